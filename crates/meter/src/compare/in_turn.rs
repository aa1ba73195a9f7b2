//! Records two programs in turn, so that what drifts more slowly than a round affects both equally.
//! A random draw decides which is first in each round, so that the effect of being second falls on
//! both.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use undertick_clock::{Choice, facts::Facts};
use undertick_experiment::ExperimentError;
use undertick_format::manifest::{Calibration, Exit, Manifest};
use undertick_record::kernel;
use undertick_record::record::{Request, With, record_with};
use undertick_record::session::Settings;

use super::rounds::{Rounds, SIDES};

/// With fewer rounds there is no scatter.
const FEWEST_ROUNDS: usize = 2;

/// Number of last lines of a failed program's output to show.
const LAST_LINES: usize = 5;

/// What to record.
#[derive(Clone, Debug)]
pub struct InTurn {
    /// Programs and arguments.
    pub commands: [Vec<OsString>; 2],
    /// Directory to create: the runs are `a/0001.ut`, `b/0001.ut` and so on, and the output of the
    /// programs goes to `a/0001.out`.
    pub dir: PathBuf,
    /// Rounds to make; `None`: as many as fit into the time.
    pub rounds: Option<usize>,
    /// Time limit: a round that would probably end later is not begun, but two are made in any
    /// case. `None`: all rounds are made, however long they take.
    pub time: Option<Duration>,
    /// The recording clock.
    pub choice: Choice,
    /// Facts about that clock.
    pub facts: Facts,
    /// The cost of recording on this machine, where it was measured.
    pub calibration: Option<Calibration>,
    /// The kernel evidence to keep.
    pub kernel: kernel::Wanted,
    /// Seed of the order in each round.
    pub seed: u64,
}

/// Progress that is shown to the user.
#[derive(Clone, Copy, Debug)]
pub struct InTurnProgress {
    /// Rounds that are complete.
    pub rounds: usize,
    /// Share of the work done, as far as it is known, 0 to 1.
    pub share: f64,
}

/// The result of recording in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The directories of the two sets of runs.
    pub sets: [PathBuf; 2],
    /// Complete rounds.
    pub rounds: usize,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
}

/// Records two programs in turn until all rounds are made or the time is over.
///
/// # Errors
/// The directory could not be created, or a program could not be recorded or failed; what was
/// recorded before is kept.
pub fn record_in_turn(
    wanted: &InTurn,
    mut progress: impl FnMut(InTurnProgress),
) -> Result<Recorded, ExperimentError> {
    let sets = SIDES.map(|side| wanted.dir.join(side));
    for set in &sets {
        fs::create_dir_all(set)
            .map_err(|e| ExperimentError::input(format!("{}: {e}", set.display())))?;
    }
    let mut order = ChaCha8Rng::seed_from_u64(wanted.seed);
    let mut kept = Rounds::new(wanted.seed, wanted.commands.each_ref().map(|c| words(c)));
    let begun = Instant::now();
    let mut longest = Duration::ZERO;
    let mut recorded = Recorded {
        sets,
        rounds: 0,
        interrupted: false,
    };
    while wanted.has_room(recorded.rounds, begun.elapsed(), longest) {
        let round_begun = Instant::now();
        let first = usize::from(order.random_bool(0.5));
        for side in [first, 1 - first] {
            if !run(wanted, &recorded, side)? {
                recorded.interrupted = true;
                remove_round(&recorded);
                return Ok(recorded);
            }
        }
        kept.first.push(SIDES[first].to_owned());
        kept.write(&wanted.dir).map_err(ExperimentError::machine)?;
        recorded.rounds += 1;
        longest = longest.max(round_begun.elapsed());
        progress(InTurnProgress {
            rounds: recorded.rounds,
            share: wanted.share(recorded.rounds, begun.elapsed()),
        });
    }
    Ok(recorded)
}

impl InTurn {
    fn has_room(&self, rounds: usize, elapsed: Duration, longest: Duration) -> bool {
        let fits = (self.time).is_none_or(|time| elapsed + longest <= time);
        let is_wanted = self.rounds.is_none_or(|wanted| rounds < wanted);
        is_wanted && (fits || rounds < FEWEST_ROUNDS)
    }

    fn share(&self, rounds: usize, elapsed: Duration) -> f64 {
        let of_rounds = (self.rounds).map_or(0.0, |wanted| rounds as f64 / wanted.max(1) as f64);
        let of_time = (self.time).map_or(0.0, |time| elapsed.as_secs_f64() / time.as_secs_f64());
        of_rounds.max(of_time).min(1.0)
    }
}

/// Records one run; false if the user stopped it.
fn run(wanted: &InTurn, recorded: &Recorded, side: usize) -> Result<bool, ExperimentError> {
    let name = name_of(recorded.rounds);
    let dir = &recorded.sets[side];
    let printed = dir.join(format!("{name}.out"));
    let output = File::create(&printed)
        .map_err(|e| ExperimentError::machine(format!("{}: {e}", printed.display())))?;
    let request = wanted.request(side, dir.join(format!("{name}.ut")));
    let with = With {
        output: Some(output),
        ..With::default()
    };
    let manifest = record_with(request, with, &mut |_| {})?;
    let what = SIDES[side].to_uppercase();
    let ended = manifest.exit.unwrap_or(Exit {
        status: None,
        signal: None,
        interrupted: false,
    });
    if ended.interrupted {
        return Ok(false);
    }
    check(&what, ended, &manifest, &printed)?;
    Ok(true)
}

impl InTurn {
    fn request(&self, side: usize, trace: PathBuf) -> Request {
        Request {
            trace,
            command: self.commands[side].clone(),
            settings: Settings::growing(self.choice.clock),
            choice: self.choice,
            facts: self.facts.clone(),
            calibration: self.calibration.clone(),
            names: Vec::new(),
            kernel: self.kernel,
            stacks: None,
            perturbation: None,
            triggers: None,
            functions: None,
            with: Vec::new(),
        }
    }
}

/// Rejects a failed run, because it is not typical of the program.
fn check(
    what: &str,
    ended: Exit,
    manifest: &Manifest,
    printed: &Path,
) -> Result<(), ExperimentError> {
    let how = match ended {
        Exit {
            status: Some(0), ..
        } => None,
        Exit {
            status: Some(status),
            ..
        } => Some(format!("ended with status {status}")),
        Exit {
            signal: Some(signal),
            ..
        } => Some(format!("was ended by signal {signal}")),
        _ => Some("did not end".to_owned()),
    };
    if let Some(how) = how {
        return Err(ExperimentError::machine(format!(
            "{what} {how}; {}",
            last_of(printed)
        )));
    }
    if manifest.events == 0 {
        return Err(ExperimentError::input(format!(
            "{what} recorded no event: build it with undertick.h or the undertick crate; {}",
            last_of(printed)
        )));
    }
    Ok(())
}

/// The last lines that a program printed.
fn last_of(printed: &Path) -> String {
    let bytes = fs::read(printed).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().rev().take(LAST_LINES).collect();
    match lines.is_empty() {
        true => "it printed nothing".to_owned(),
        false => {
            let lines: Vec<&str> = lines.into_iter().rev().collect();
            format!("it printed last:\n{}", lines.join("\n"))
        }
    }
}

/// Removes an incomplete round: half a round cannot be compared.
fn remove_round(recorded: &Recorded) {
    let name = name_of(recorded.rounds);
    for set in &recorded.sets {
        let _ = fs::remove_dir_all(set.join(format!("{name}.ut")));
        let _ = fs::remove_file(set.join(format!("{name}.out")));
    }
}

fn name_of(round: usize) -> String {
    format!("{:04}", round + 1)
}

fn words(command: &[OsString]) -> Vec<String> {
    let words = command
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    words.collect()
}
