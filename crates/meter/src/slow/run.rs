//! Runs a loop with a slow clock.

use undertick_clock::slow::TickClock;
use undertick_ring::mark::Mark;

use super::counted;
use super::document::Document;
use super::edges;
use super::estimator::Estimator;
use super::script::Script;
use super::step::{Step, Worker};

/// What to run.
#[derive(Clone, Debug)]
pub struct Request {
    /// The loop.
    pub script: Script,
    /// The clock's name, for the document.
    pub clock: String,
    /// The estimator to use.
    pub estimator: Estimator,
    /// Level of the intervals.
    pub level: f64,
    /// Whether the clock runs on the loop's CPU. It then takes the CPU at each tick, so a cycle that
    /// lost its CPU cannot be distinguished from one that a tick fell into.
    pub beside_clock: bool,
}

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The partner for messages could not be started.
    #[error("the loop could not be set up: {0}")]
    Io(#[from] std::io::Error),
    /// The run was stopped before it had enough cycles.
    #[error("ended before enough undisturbed cycles were run")]
    TooShort,
    /// In every block of cycles the thread was taken off its CPU.
    #[error(
        "preempted all the time: no cycle and the two ticks around it passed undisturbed; \
         use a shorter tick, or a CPU with less to do"
    )]
    Preempted,
    /// The clock's tick is not known.
    #[error("the clock does not tick")]
    NoTick,
}

/// Runs the loop on this thread. Calls `go_on` with the share done so far; the run ends when it
/// returns false, and what was measured up to then is returned.
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
        mark: if script.blocks() || request.beside_clock {
            None
        } else {
            Mark::of_this_thread()
        },
        tick_ns,
        ticks: vec![0; script.activities.len() + 1],
        fine: vec![0; script.activities.len() + 1],
    };
    (0..script.warm_up).for_each(|_| looped.cycle());
    let mut document = match estimator {
        Estimator::Edges => edges::run(&mut looped, request.level, go_on)?,
        _ => counted::run(&mut looped, estimator, request.level, go_on)?,
    };
    document.clock.clone_from(&request.clock);
    document.why = why;
    if script.blocks() {
        let finding = "the loop gives its CPU away, so preempted cycles cannot be told from others";
        document.findings.push(finding.to_owned());
    }
    if request.beside_clock {
        let finding = "the clock takes the loop's CPU at each tick, so preempted cycles cannot be distinguished from others";
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
    pub(super) fine: Vec<u64>,
}

impl<C: TickClock> Loop<'_, C> {
    /// Begins to observe whether the thread is taken off its CPU.
    pub(super) fn watch(&self) {
        if let Some(mark) = &self.mark {
            mark.set();
        }
    }

    /// Whether the thread was taken off its CPU since then.
    pub(super) fn is_gone(&self) -> bool {
        self.mark.as_ref().is_some_and(Mark::is_gone)
    }

    /// Runs a cycle.
    pub(super) fn cycle(&mut self) {
        self.worker.begin();
        self.read(0);
        for (point, activity) in self.script.activities.iter().enumerate() {
            for step in &activity.steps {
                self.worker.act(step);
            }
            self.read(point + 1);
        }
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
            clock_share: None,
            jitter_ticks: None,
            findings: Vec::new(),
        }
    }
}
