//! Compares two benchmark programs, process by process in turn, until enough is known.
//!
//! **Method.** In each round both programs run once, in an order that a coin decides, and what a process
//! says of a benchmark is one number of that round. After some rounds, fixed beforehand, one looks
//! ([`Looks`]): a benchmark is decided if it differs, with the chance of a false alarm that this look may
//! spend, or if it surely differs by less than what matters. When all are decided, or the time is over, it
//! ends.
//!
//! No rounds are continued of a program whose file has changed; what a script or pytest starts is not
//! looked at. A program that crashes or hangs is run benchmark by benchmark from then on, and so is the
//! other one; the benchmarks that fail are named and left out.

mod judging;
mod side;

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use undertick_estimate::Looks;
use undertick_experiment::ExperimentError;
use undertick_report::benchmarks::{Benchmarks, KIND, SCHEMA_VERSION};
use undertick_report::compare::{Comparison, SequentialEnd};

use super::Options;
use super::rounds::{Rounds, SIDES};
use crate::benchmarks::{How, Program, Round, found, unix_s};
use crate::survey::machine;
use side::Side;

/// With fewer rounds nothing can be said.
const FEWEST_ROUNDS: usize = 2;

/// What to compare and how.
#[derive(Clone, Debug)]
pub struct Suites {
    /// The programs.
    pub programs: [Program; 2],
    /// Where each process' figures are kept: `a/0001.json`, `b/0001.json` and so on. If it has rounds of
    /// the same programs, these are continued.
    pub dir: PathBuf,
    /// About how long a benchmark is measured in a process.
    pub each: Duration,
    /// Most rounds; `None`: as many as fit into the time.
    pub rounds: Option<usize>,
    /// No round is begun that would probably end later.
    pub time: Duration,
    /// When a process has hung.
    pub limit: Duration,
    /// Names of the benchmarks that are wanted, with `*` and `?`; all if empty.
    pub only: Vec<String>,
    /// Level of the intervals, what matters, and the gate.
    pub options: Options,
    /// What matters: a benchmark that surely differs by less is alike.
    pub within: f64,
    /// Chance that any benchmark is called different if none differs.
    pub false_alarms: f64,
    /// Seed of the order in each round.
    pub seed: u64,
}

/// Progress for the user.
#[derive(Clone, Debug, PartialEq)]
pub enum SuitesProgress {
    /// After the second round: what is planned.
    Planned {
        /// Benchmarks that both programs have.
        benchmarks: usize,
        /// Duration of a round.
        round: Duration,
        /// Most rounds.
        most: usize,
    },
    /// After each round.
    Round {
        /// Rounds so far.
        rounds: usize,
        /// Share of the work done, if nothing is decided earlier, 0 to 1.
        share: f64,
    },
    /// A benchmark does not run: which side, which benchmark, why.
    Failed(&'static str, String, String),
    /// Something else that the user should know.
    Remark(String),
}

/// Runs both programs in turn until enough is known, and compares them.
///
/// # Errors
/// The directory cannot be written, it has rounds of other programs, or a program measures nothing.
pub fn compare_suites(
    wanted: &Suites,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(SuitesProgress),
) -> Result<Comparison, ExperimentError> {
    let mut comparing = Comparing::begin(wanted, stop)?;
    let begun = Instant::now();
    let mut longest = Duration::ZERO;
    let mut made = 0;
    let end = loop {
        let rounds = comparing.rounds();
        if stop.load(Ordering::Relaxed) {
            break SequentialEnd::Interrupted;
        }
        if comparing
            .looks()
            .is_some_and(|looks| rounds >= looks.most())
        {
            break SequentialEnd::Rounds;
        }
        if rounds >= FEWEST_ROUNDS && begun.elapsed() + longest > wanted.time {
            break SequentialEnd::Time;
        }
        let round_begun = Instant::now();
        match comparing.round(progress) {
            Ok(true) => {}
            Ok(false) => break SequentialEnd::Interrupted,
            Err(error) if rounds >= FEWEST_ROUNDS => {
                comparing.error = Some(error.text);
                break SequentialEnd::Failed;
            }
            Err(error) => return Err(error),
        }
        let took = round_begun.elapsed();
        made += 1;
        // The first round has files to read and failures to find that no other has.
        longest = if made == FEWEST_ROUNDS {
            took
        } else {
            longest.max(took)
        };
        let rounds = comparing.rounds();
        if made == FEWEST_ROUNDS || (comparing.looks().is_none() && rounds >= FEWEST_ROUNDS) {
            let left = wanted.time.saturating_sub(begun.elapsed());
            comparing.plan(rounds, took, left, progress)?;
        }
        let Some(looks) = comparing.looks() else {
            continue;
        };
        if rounds < looks.most() && looks.is_due(rounds) && comparing.is_decided()? {
            break SequentialEnd::Decided;
        }
        let of_time = begun.elapsed().as_secs_f64() / wanted.time.as_secs_f64().max(1e-9);
        let of_rounds = rounds as f64 / looks.most().max(1) as f64;
        progress(SuitesProgress::Round {
            rounds,
            share: of_time.max(of_rounds).min(1.0),
        });
    };
    comparing.result(end)
}

/// Why a side has nothing in a round.
enum Nothing {
    Stopped,
    /// From now on each benchmark is run by itself.
    Again,
}

struct Comparing<'a> {
    wanted: &'a Suites,
    stop: &'a AtomicBool,
    order: ChaCha8Rng,
    kept: Rounds,
    sides: [Side<'a>; 2],
    /// Why it ended early.
    error: Option<String>,
    /// What the files of a process begin with, in a directory that goes with the second.
    files: PathBuf,
    _scratch: tempfile::TempDir,
}

impl<'a> Comparing<'a> {
    /// Makes the directories, or goes on with the rounds that are there.
    fn begin(wanted: &'a Suites, stop: &'a AtomicBool) -> Result<Self, ExperimentError> {
        let commands = wanted.programs.each_ref().map(|program| {
            let words = program.command.iter();
            words
                .map(|word| word.to_string_lossy().into_owned())
                .collect()
        });
        let [a, b] = &wanted.programs;
        if a.harness != b.harness {
            return Err(ExperimentError::input(format!(
                "A is of {} and B of {}: only programs of one tool can be compared",
                a.harness.name(),
                b.harness.name()
            )));
        }
        let conditions = conditions(wanted);
        let before = Rounds::read(&wanted.dir).filter(|kept| !kept.first.is_empty());
        let kept = match before {
            Some(kept) => {
                let same = kept.commands == commands && kept.conditions == conditions;
                let other = "is of other programs, of another build of them, or with other options";
                if !same {
                    return Err(ExperimentError::input(format!(
                        "{}: what it has {other}; give another directory with -o",
                        wanted.dir.display()
                    )));
                }
                kept
            }
            None => {
                let mut new = Rounds::new(wanted.seed, commands);
                new.conditions = conditions;
                new
            }
        };
        let mut order = ChaCha8Rng::seed_from_u64(kept.seed);
        kept.first.iter().for_each(|_| {
            order.random_bool(0.5);
        });
        let mut sides = [0, 1].map(|at| {
            Side::new(
                &wanted.programs[at],
                ["A", "B"][at],
                wanted.dir.join(SIDES[at]),
            )
        });
        let scratch = tempfile::tempdir()
            .map_err(|e| ExperimentError::machine(format!("no temporary directory: {e}")))?;
        for side in &mut sides {
            side.open(kept.first.len())?;
        }
        for (at, side) in sides.iter_mut().enumerate() {
            side.runner.failed.clone_from(&kept.failed[at]);
            side.runner.remark.clone_from(&kept.remarks[at]);
        }
        // So that the same command finds it, whenever this one ends.
        kept.write(&wanted.dir).map_err(ExperimentError::machine)?;
        let mut comparing = Self {
            wanted,
            stop,
            order,
            kept,
            sides,
            error: None,
            files: scratch.path().join("process"),
            _scratch: scratch,
        };
        if !wanted.only.is_empty() {
            comparing.run_each()?;
        }
        Ok(comparing)
    }

    /// Names of the benchmarks that failed on either side.
    fn failed(&self) -> HashSet<String> {
        let failed = self.sides.iter().flat_map(|side| &side.runner.failed);
        failed.map(|(name, _)| name.clone()).collect()
    }

    /// The looks, once they are planned.
    fn looks(&self) -> Option<Looks> {
        self.kept.most.map(Looks::new)
    }

    fn rounds(&self) -> usize {
        self.kept.first.len()
    }

    /// Runs each benchmark by itself from now on.
    fn run_each(&mut self) -> Result<(), ExperimentError> {
        for at in 0..self.sides.len() {
            let how = how(self.wanted, &self.files, self.stop);
            let chosen = self.sides[at].runner.choose(&how, &self.wanted.only);
            if !chosen.map_err(|why| self.sides[at].error(&why))? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// One round; false if the user stopped it.
    fn round(&mut self, progress: &mut dyn FnMut(SuitesProgress)) -> Result<bool, ExperimentError> {
        let first = usize::from(self.order.random_bool(0.5));
        loop {
            let mut said = [None, None];
            for at in [first, 1 - first] {
                match self.run(at, progress)? {
                    Ok(found) => said[at] = Some(found),
                    Err(Nothing::Stopped) => return Ok(false),
                    Err(Nothing::Again) => break,
                }
            }
            let [Some(a), Some(b)] = said else {
                self.run_each()?;
                continue;
            };
            let name = format!("{:04}", self.rounds() + 1);
            for (side, said) in self.sides.iter_mut().zip([a, b]) {
                side.write(&name, &said)?;
                side.take(name.clone(), said);
            }
            self.kept.first.push(SIDES[first].to_owned());
            self.kept.failed = self.sides.each_ref().map(|side| side.runner.failed.clone());
            self.kept.remarks = self.sides.each_ref().map(|side| side.runner.remark.clone());
            self.kept
                .write(&self.wanted.dir)
                .map_err(ExperimentError::machine)?;
            return Ok(true);
        }
    }

    /// Runs one side.
    fn run(
        &mut self,
        at: usize,
        progress: &mut dyn FnMut(SuitesProgress),
    ) -> Result<Result<Benchmarks, Nothing>, ExperimentError> {
        let begun = Instant::now();
        let begun_unix_s = unix_s();
        let how = how(self.wanted, &self.files, self.stop);
        let side = &mut self.sides[at];
        let (found, failed, remark) = match side.runner.round(&how) {
            Ok(Round::Measured {
                benchmarks,
                failed,
                remark,
            }) => (benchmarks, failed, remark),
            Ok(Round::Stopped) => return Ok(Err(Nothing::Stopped)),
            Ok(Round::Again) => return Ok(Err(Nothing::Again)),
            Err(why) => return Err(side.error(&why)),
        };
        if let Some(how) = remark {
            let text = format!("{} {how}; its measurements are used", side.which);
            progress(SuitesProgress::Remark(text.clone()));
            side.runner.remark = Some(text);
        }
        for (name, why) in failed {
            progress(SuitesProgress::Failed(side.which, name, why));
        }
        let failed = self.failed();
        for side in &mut self.sides {
            side.runner.leave_out(failed.iter());
        }
        let side = &self.sides[at];
        Ok(Ok(Benchmarks {
            schema_version: SCHEMA_VERSION,
            kind: KIND.to_owned(),
            harness: side.runner.program.harness,
            command: self.kept.commands[at].clone(),
            host: machine(),
            begun_unix_s,
            took_s: begun.elapsed().as_secs_f64(),
            benchmarks: found,
        }))
    }
}

/// How a program is run.
fn how<'a>(wanted: &Suites, files: &'a Path, stop: &'a AtomicBool) -> How<'a> {
    How {
        each: wanted.each,
        only: None,
        files,
        limit: wanted.limit,
        stop,
    }
}

/// Whether a directory has rounds that can be continued.
#[must_use]
pub fn has_rounds(dir: &Path) -> bool {
    Rounds::read(dir).is_some()
}

/// What must be the same for rounds to be continued: the programs' files, and how they are run.
fn conditions(wanted: &Suites) -> Vec<String> {
    let file = |program: &Program| {
        let path = program
            .command
            .first()
            .and_then(|path| found(Path::new(path)));
        let about = path.and_then(|path| std::fs::metadata(path).ok());
        about.map_or("a program that is not there".to_owned(), |about| {
            format!(
                "{} bytes of {}.{:09}",
                about.len(),
                about.mtime(),
                about.mtime_nsec()
            )
        })
    };
    let mut all: Vec<String> = wanted.programs.iter().map(file).collect();
    all.push(format!(
        "{} of {:?}",
        wanted.programs[0].harness.name(),
        wanted.each
    ));
    all.push(format!("{} of false alarms", wanted.false_alarms));
    all.extend(wanted.only.iter().cloned());
    all
}
