//! Running a loop against a slow clock.

use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use undertick_clock::slow::TickClock;
use undertick_estimate::slow::{LoopCounts, Stepper};
use undertick_ring::mark::Mark;

use super::document::{ActivityRow, Document};
use super::edges;
use super::script::{Length, Script};
use super::step::{Step, Worker};

/// Cycles between two looks at what was found; their readings are kept, so that
/// the counting does not run inside the loop.
const BATCH: u64 = 128;
/// Cycles that tell how many a number of seconds is.
const PILOT: u64 = 32;
/// Delay and lock of a stepped run are drawn from this.
const SEED: u64 = 0x5eed_0f51_0c10_c45e;

/// How to estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// Tick counts of the loop as it runs.
    Counts,
    /// Tick counts with a delay in each cycle that steps the phase.
    Stepped,
    /// The loop waits for edges of the tick.
    Edges,
    /// Edges where the script may wait, else stepped where it may be delayed,
    /// else counts.
    Auto,
}

impl Estimator {
    fn name(self) -> &'static str {
        match self {
            Self::Counts => "counts",
            Self::Stepped => "stepped",
            Self::Edges => "edges",
            Self::Auto => "auto",
        }
    }

    /// The estimator to use, and why if that was left open.
    fn chosen(self, script: &Script) -> (Self, Option<String>) {
        let because = |why: &str| Some(why.to_owned());
        match self {
            Self::Auto if script.may_wait => {
                (Self::Edges, because("the script may wait for ticks"))
            }
            Self::Auto if script.may_delay => (
                Self::Stepped,
                because("small delays make it independent of how loop and tick happen to fit"),
            ),
            Self::Auto => (Self::Counts, because("the script allows no delays")),
            asked => (asked, None),
        }
    }
}

impl FromStr for Estimator {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        [Self::Counts, Self::Stepped, Self::Edges, Self::Auto]
            .into_iter()
            .find(|e| e.name() == name)
            .ok_or_else(|| format!("{name:?}: there are counts, stepped, edges and auto"))
    }
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Request {
    /// The loop.
    pub script: Script,
    /// The clock's name, for the document.
    pub clock: String,
    /// How to estimate.
    pub estimator: Estimator,
    /// Level of the intervals.
    pub level: f64,
}

/// Why nothing could be measured.
#[derive(Debug)]
pub enum Failed {
    /// No partner for messages.
    Io(std::io::Error),
    /// Ended before enough cycles were run.
    TooShort,
    /// The clock's tick is not known.
    NoTick,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "the loop could not be set up: {error}"),
            Self::TooShort => f.write_str("ended before enough undisturbed cycles were run"),
            Self::NoTick => f.write_str("the clock does not tick"),
        }
    }
}

impl core::error::Error for Failed {}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// Runs the loop on this thread. `go_on` hears the share done so far, and ends
/// the run by returning false: what was found till then is given.
///
/// # Errors
/// Nothing could be measured.
pub fn run(
    request: &Request,
    clock: &impl TickClock,
    go_on: impl FnMut(f64) -> bool,
) -> Result<Document, Failed> {
    let tick_ns = clock.tick_ns();
    if !(tick_ns.is_finite() && tick_ns > 0.0) {
        return Err(Failed::NoTick);
    }
    let script = &request.script;
    let steps: Vec<Step> = (script.activities.iter())
        .flat_map(|a| a.steps.iter().copied())
        .collect();
    let (estimator, why) = request.estimator.chosen(script);
    let mut looped = Loop {
        script,
        clock,
        worker: Worker::new(&steps)?,
        mark: if script.blocks() {
            None
        } else {
            Mark::of_this_thread()
        },
        tick_ns,
        ticks: vec![0; script.activities.len() + 1],
        fine: vec![0; script.activities.len() + 1],
    };
    for _ in 0..script.warm_up {
        looped.cycle();
    }
    let mut document = match estimator {
        Estimator::Edges => edges::run(&mut looped, request.level, go_on)?,
        _ => counted(&mut looped, estimator, request.level, go_on)?,
    };
    document.clock.clone_from(&request.clock);
    document.why = why;
    if script.blocks() {
        let finding = "the loop gives its CPU away, so preempted cycles cannot be told from others";
        document.findings.push(finding.to_owned());
    }
    Ok(document)
}

/// A loop, its clock and the readings of its last cycle.
pub(super) struct Loop<'a, C> {
    pub(super) script: &'a Script,
    pub(super) clock: &'a C,
    pub(super) worker: Worker,
    pub(super) mark: Option<Mark>,
    pub(super) tick_ns: f64,
    pub(super) ticks: Vec<i64>,
    fine: Vec<u64>,
}

impl<C: TickClock> Loop<'_, C> {
    /// Runs a cycle; false if the thread was taken off its CPU in it.
    fn cycle(&mut self) -> bool {
        if let Some(mark) = &self.mark {
            mark.set();
        }
        self.read(0);
        for (point, activity) in self.script.activities.iter().enumerate() {
            for step in &activity.steps {
                self.worker.act(step);
            }
            self.read(point + 1);
        }
        !self.mark.as_ref().is_some_and(Mark::is_gone)
    }

    #[inline]
    fn read(&mut self, point: usize) {
        let (ticks, fine) = self.clock.read_with_truth();
        self.ticks[point] = ticks as i64;
        self.fine[point] = fine.unwrap_or(0);
    }

    /// Nanoseconds per tick of the fine clock, if there is one.
    pub(super) fn fine_ns(&self) -> Option<f64> {
        self.clock
            .fine_rate()
            .map(undertick_units::TickRate::ns_per_tick)
    }

    pub(super) fn empty_document(&self, estimator: Estimator) -> Document {
        Document {
            schema_version: 1,
            clock: String::new(),
            tick_ns: self.tick_ns,
            estimator: estimator.name().to_owned(),
            why: None,
            cycles: 0,
            dropped: 0,
            evidence: if self.mark.is_some() { "rseq" } else { "none" }.to_owned(),
            seconds: 0.0,
            delay_seconds: 0.0,
            interrupted: false,
            activities: Vec::new(),
            cycle: None,
            jitter_ticks: None,
            findings: Vec::new(),
        }
    }
}

/// True durations of the cycles that count, in ticks of the fine clock.
struct Truth {
    sums: Vec<u64>,
    cycles: u64,
}

impl Truth {
    fn add(&mut self, fine: &[u64]) {
        self.cycles += 1;
        for (sum, ends) in self.sums.iter_mut().zip(fine.windows(2)) {
            *sum += ends[1].saturating_sub(ends[0]);
        }
    }

    fn mean_ns(&self, activity: usize, fine_ns: Option<f64>) -> Option<f64> {
        Some(self.sums[activity] as f64 * fine_ns? / self.cycles as f64)
    }

    fn cycle_ns(&self, fine_ns: Option<f64>) -> Option<f64> {
        Some(self.sums.iter().sum::<u64>() as f64 * fine_ns? / self.cycles as f64)
    }
}

/// How far a run has come.
struct Pace {
    begin: Instant,
    length: Length,
    cycles: u64,
    interrupted: bool,
}

impl Pace {
    fn share(&self) -> f64 {
        match self.length {
            Length::Cycles(n) => self.cycles as f64 / n as f64,
            Length::Seconds(s) => self.begin.elapsed().as_secs_f64() / s,
        }
    }

    /// After a cycle: whether another one follows.
    fn goes_on(&mut self, go_on: &mut impl FnMut(f64) -> bool) -> bool {
        self.cycles += 1;
        if let (Length::Cycles(n), true) = (self.length, !self.cycles.is_multiple_of(BATCH)) {
            return self.cycles < n;
        }
        if !self.cycles.is_multiple_of(16) {
            return true;
        }
        let share = self.share();
        self.interrupted = share < 1.0 && !go_on(share);
        share < 1.0 && !self.interrupted
    }
}

fn counted<C: TickClock>(
    looped: &mut Loop<'_, C>,
    estimator: Estimator,
    level: f64,
    mut go_on: impl FnMut(f64) -> bool,
) -> Result<Document, Failed> {
    let activities = looped.script.activities.len();
    let mut truth = Truth {
        sums: vec![0; activities],
        cycles: 0,
    };
    let mut pace = Pace {
        begin: Instant::now(),
        length: looped.script.length,
        cycles: 0,
        interrupted: false,
    };
    let mut document = looped.empty_document(estimator);
    let found = if estimator == Estimator::Stepped {
        let cycles = expected_cycles(looped);
        pace.begin = Instant::now();
        stepped(looped, &mut truth, &mut pace, cycles, &mut go_on)
    } else {
        plain(looped, &mut truth, &mut pace, &mut go_on)
    };
    if truth.cycles < 2 {
        return Err(Failed::TooShort);
    }
    document.cycles = pace.cycles;
    document.seconds = pace.begin.elapsed().as_secs_f64();
    document.interrupted = pace.interrupted;
    found.tell(looped, &truth, level, &mut document)?;
    let gone = document.dropped as f64 / document.cycles.max(1) as f64;
    if gone > 0.01 {
        document.findings.push(format!(
            "{:.1} % of the cycles were preempted: the intervals hold what leaving them out may have shifted",
            100.0 * gone
        ));
    }
    Ok(document)
}

/// What the readings were summed up in.
enum Found {
    Counts(Box<LoopCounts>),
    Stepped(Box<Stepper>),
}

/// The loop as it runs. Readings are kept for a batch and counted after it.
fn plain<C: TickClock>(
    looped: &mut Loop<'_, C>,
    truth: &mut Truth,
    pace: &mut Pace,
    go_on: &mut impl FnMut(f64) -> bool,
) -> Found {
    let width = looped.ticks.len();
    let mut counts = Box::new(LoopCounts::new(width - 1));
    let mut kept: Vec<i64> = Vec::with_capacity(BATCH as usize * width);
    let mut whole: Vec<bool> = Vec::with_capacity(BATCH as usize);
    loop {
        whole.push(looped.cycle());
        kept.extend(&looped.ticks);
        if whole.last() == Some(&true) {
            truth.add(&looped.fine);
        }
        let goes_on = pace.goes_on(go_on);
        if whole.len() as u64 == BATCH || !goes_on {
            for (readings, whole) in kept.chunks_exact(width).zip(&whole) {
                if *whole {
                    // The next cycle begins with a reading of its own.
                    counts.push(readings, false);
                } else {
                    counts.drop_cycle();
                }
            }
            kept.clear();
            whole.clear();
        }
        if !goes_on {
            return Found::Counts(counts);
        }
    }
}

/// Cycles that the run will have, delays included.
fn expected_cycles<C: TickClock>(looped: &mut Loop<'_, C>) -> u64 {
    match looped.script.length {
        Length::Cycles(n) => n,
        Length::Seconds(s) => {
            let begin = Instant::now();
            for _ in 0..PILOT {
                looped.cycle();
            }
            let cycle_s = begin.elapsed().as_secs_f64() / PILOT as f64;
            // A delay is between 0 and a half of a tick: a quarter.
            let delayed_s = cycle_s + 0.25 * looped.tick_ns / 1e9;
            (s / delayed_s) as u64
        }
    }
}

fn stepped<C: TickClock>(
    looped: &mut Loop<'_, C>,
    truth: &mut Truth,
    pace: &mut Pace,
    cycles: u64,
    go_on: &mut impl FnMut(f64) -> bool,
) -> Found {
    let mut stepper = Box::new(Stepper::new(looped.ticks.len() - 1, cycles, SEED));
    loop {
        let delay = stepper.delay_ticks();
        looped.worker.work(delay * looped.tick_ns);
        if looped.cycle() {
            truth.add(&looped.fine);
            stepper.push(&looped.ticks);
        } else {
            stepper.drop_cycle();
        }
        if !pace.goes_on(go_on) {
            return Found::Stepped(stepper);
        }
    }
}

impl Found {
    fn tell<C: TickClock>(
        &self,
        looped: &Loop<'_, C>,
        truth: &Truth,
        level: f64,
        document: &mut Document,
    ) -> Result<(), Failed> {
        let (tick_ns, fine_ns) = (looped.tick_ns, looped.fine_ns());
        let (activities, cycle) = match self {
            Self::Counts(counts) => {
                let results = counts.results(tick_ns, level);
                document.dropped = results.dropped;
                document.jitter_ticks = results.walk.map(|w| w.jitter).filter(|j| j[2].is_finite());
                if let Some(lock) = results.lock {
                    document.findings.push(lock.to_string());
                }
                (results.activities, results.cycle)
            }
            Self::Stepped(stepper) => {
                let blocks = stepper.blocks();
                document.dropped = blocks.dropped();
                document.delay_seconds = stepper.delayed_ticks() * tick_ns / 1e9;
                document.findings.push(format!(
                    "a delay of {:.4} of a tick in each cycle steps the phase; the loop without it \
                     takes {:.4} ticks",
                    stepper.step_delay_ticks(),
                    stepper.loop_ticks().unwrap_or(f64::NAN)
                ));
                let results = blocks.activities(tick_ns, level);
                if results.iter().any(|a| a.estimate.interval.lo.is_none()) {
                    return Err(Failed::TooShort);
                }
                (results, blocks.cycle(tick_ns, level))
            }
        };
        let named = looped.script.activities.iter().zip(activities).enumerate();
        document.activities = named
            .map(|(i, (a, result))| {
                ActivityRow::counted(&a.name, result, truth.mean_ns(i, fine_ns))
            })
            .collect();
        document.cycle = Some(ActivityRow::counted(
            "cycle",
            cycle,
            truth.cycle_ns(fine_ns),
        ));
        Ok(())
    }
}
