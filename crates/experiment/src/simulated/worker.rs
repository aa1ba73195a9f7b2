//! A worker: a process of a repetition as a program of the simulated machine. It executes the steps
//! that a process executes here, with a reading of the clock between two of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use undertick_cmstar::{Act, ClockId, Moment, Outcome, Program, Reading, Routine, StepInput};
use undertick_ring::{DeschedFlag, Kind, Record};

use crate::script::Length;

/// State shared by the processes of a repetition. Only one thread uses it.
#[derive(Debug, Default)]
pub(super) struct RepetitionState {
    recording: AtomicU8,
    /// Number of passes that count.
    passes: AtomicU64,
    /// Duration of these passes as the leader measures it, ns.
    took_ns: AtomicU64,
}

impl RepetitionState {
    fn is_recording(&self) -> bool {
        self.recording.load(Ordering::Relaxed) == 1
    }

    /// Number of passes that count; 0 if none did.
    pub(super) fn passes(&self) -> u64 {
        self.passes.load(Ordering::Relaxed)
    }

    /// Duration of these passes, s.
    pub(super) fn seconds(&self) -> f64 {
        self.took_ns.load(Ordering::Relaxed) as f64 / 1e9
    }
}

/// A step as a list of acts.
#[derive(Clone, Debug)]
pub(super) struct ReadyStep {
    pub(super) acts: Vec<Act>,
    /// Event number of the step.
    pub(super) event: u16,
    /// Whether the clock is read around the step.
    pub(super) timed: bool,
}

/// The specification of the worker that is one replica of a process.
#[derive(Clone, Debug)]
pub(super) struct WorkerSpec {
    /// Whether it decides how many passes count, and from when.
    pub(super) leads: bool,
    /// Whether it reads the clock.
    pub(super) measured: bool,
    /// Whether it continues until the others are done.
    pub(super) background: bool,
    /// Whether the clock is read around each step, rather than between two.
    pub(super) around: bool,
    /// Event between two passes.
    pub(super) between: u16,
    pub(super) every_ns: Option<u64>,
    pub(super) after_ns: u64,
    pub(super) length: Length,
    pub(super) warm_up: u64,
    /// Steps before the first pass.
    pub(super) before: Vec<ReadyStep>,
    /// Steps of a pass, the null steps included.
    pub(super) pass: Vec<ReadyStep>,
    pub(super) clock: ClockId,
    pub(super) routine: Routine,
    pub(super) tick_ns: u64,
    /// Its Cm, as a CPU number.
    pub(super) cpu: u16,
    pub(super) seed: u64,
}

/// A running worker.
#[derive(Debug)]
pub(super) struct Worker {
    spec: WorkerSpec,
    state: Arc<RepetitionState>,
    /// Records, and the true time of each, ns.
    pub(super) records: Vec<Record>,
    pub(super) true_ns: Vec<i64>,
    /// Duration of each reading, ns.
    pub(super) reading_ns: Vec<u64>,
    /// Readings for which the routine was too slow.
    pub(super) too_slow: u64,
    at: At,
    /// Index of the current step, in `before` or in `pass`.
    step: usize,
    act: usize,
    /// Event of the open span.
    current: u16,
    /// The record for which the current reading is made.
    wanted: Option<(Kind, u16, u32)>,
    done: u64,
    counted: u64,
    half: Moment,
    since: Option<Moment>,
    due: Moment,
    random: u64,
}

/// Position of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    /// Before the first pass.
    Before,
    /// Between two passes: may sleep, then delays.
    NextPass,
    Delay,
    Pass,
    /// The reading after the last step of a pass.
    PassEnd,
    /// The reading at the end of the process.
    Leaving,
    End,
}

const FEWEST_PASSES: f64 = 16.0;
const MOST_PASSES: f64 = 1e6;
const FEWEST_TIMED: u64 = 4;
/// The delay between two passes lasts up to this many ticks, so that passes do not keep step with
/// the clock.
const DELAY_TICKS: u64 = 4;

impl Worker {
    pub(super) fn new(spec: WorkerSpec, state: Arc<RepetitionState>) -> Self {
        Self {
            current: spec.between,
            random: spec.seed | 1,
            spec,
            state,
            records: Vec::new(),
            true_ns: Vec::new(),
            reading_ns: Vec::new(),
            too_slow: 0,
            at: At::Start,
            step: 0,
            act: 0,
            wanted: None,
            done: 0,
            counted: 0,
            half: Moment::START,
            since: None,
            due: Moment::START,
        }
    }

    /// Whether all its passes are done.
    pub(super) fn is_done(&self) -> bool {
        self.at == At::End
    }

    /// Number of passes so far, and the current step, from 1; 0 between passes.
    pub(super) fn position(&self) -> (u64, usize) {
        let step = match self.at {
            At::Pass => self.step + 1,
            _ => 0,
        };
        (self.done, step)
    }

    fn heard(&mut self, outcome: Outcome) {
        let Outcome::Read(Reading {
            ticks,
            called,
            sampled,
            returned,
        }) = outcome
        else {
            return;
        };
        self.reading_ns
            .push(returned.ns_since(called).unsigned_abs());
        let Some((kind, event, payload)) = self.wanted.take() else {
            return;
        };
        let Some(ts) = ticks else {
            self.too_slow += 1;
            return;
        };
        self.records.push(Record {
            ts,
            payload,
            event,
            cpu: self.spec.cpu,
            kind,
            descheduled: DeschedFlag::Unknown,
        });
        self.true_ns.push(sampled.ns().cast_signed());
    }

    /// Reads the clock for a record.
    fn read(&mut self, kind: Kind, event: u16, payload: u16) -> Act {
        self.wanted = Some((kind, event, u32::from(payload)));
        Act::Read {
            clock: self.spec.clock,
            routine: self.spec.routine,
        }
    }

    /// Ends the open span and begins another one, with a reading if the record is wanted.
    fn turn_to(&mut self, event: u16) -> Option<Act> {
        let from = std::mem::replace(&mut self.current, event);
        (self.spec.measured && !self.spec.around && self.state.is_recording())
            .then(|| self.read(Kind::Next, from, event))
    }

    fn steps(&self) -> &[ReadyStep] {
        match self.at {
            At::Before => &self.spec.before,
            _ => &self.spec.pass,
        }
    }

    /// The next act within the steps; `None` after the last one.
    ///
    /// `act` counts the acts of a step from 1; 0 is the reading before them, and one more than
    /// their number is the reading after them.
    fn in_steps(&mut self) -> Option<Act> {
        loop {
            let ready = self.steps().get(self.step)?;
            let (event, timed, acts) = (ready.event, ready.timed, ready.acts.len());
            let act = self.act;
            self.act += 1;
            let around =
                self.spec.measured && self.spec.around && timed && self.state.is_recording();
            match act {
                0 => {
                    let reading = match around {
                        true => Some(self.read(Kind::BeginOrdered, event, 0)),
                        false => self.turn_to(event),
                    };
                    if reading.is_some() {
                        return reading;
                    }
                }
                act if act <= acts => return Some(self.steps()[self.step].acts[act - 1]),
                _ => {
                    (self.step, self.act) = (self.step + 1, 0);
                    if around {
                        return Some(self.read(Kind::EndOrdered, event, 0));
                    }
                }
            }
        }
    }

    /// Whether another pass follows; called between two passes.
    fn another(&mut self, now: Moment) -> bool {
        let warm_up = match self.spec.length {
            Length::Seconds(_) => self.spec.warm_up.max(FEWEST_TIMED),
            Length::Passes(_) => self.spec.warm_up,
        };
        if self.spec.leads && self.done == warm_up / 2 {
            self.half = now;
        }
        if self.spec.leads && self.done == warm_up {
            let timed = warm_up - warm_up / 2;
            let passes = self.passes(now.ns_since(self.half) as f64 / 1e9, timed);
            self.state.passes.store(passes, Ordering::Relaxed);
            self.state.recording.store(1, Ordering::Relaxed);
            self.since = Some(now);
        }
        if !self.state.is_recording() {
            return true;
        }
        if !self.spec.background && self.counted >= self.state.passes() {
            if let Some(since) = self.since {
                let took = now.ns_since(since).unsigned_abs();
                self.state.took_ns.store(took, Ordering::Relaxed);
            }
            return false;
        }
        self.counted += 1;
        true
    }

    fn passes(&self, took_s: f64, timed: u64) -> u64 {
        match self.spec.length {
            Length::Passes(passes) => passes,
            Length::Seconds(seconds) => {
                let each = took_s / timed.max(1) as f64;
                (seconds / each.max(1e-9)).clamp(FEWEST_PASSES, MOST_PASSES) as u64
            }
        }
    }

    /// The time when the next pass is due; missed passes are skipped.
    fn next_due(&mut self, every_ns: u64, now: Moment) -> Moment {
        let missed = now.ns_since(self.due).max(0) as u64 / every_ns.max(1);
        self.due = self.due.plus_ns((missed.max(1)) * every_ns);
        if self.due < now {
            self.due = self.due.plus_ns(every_ns);
        }
        self.due
    }

    fn delay_ns(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 20) % (DELAY_TICKS * self.spec.tick_ns) + 1
    }

    fn go_to(&mut self, at: At) {
        (self.at, self.step, self.act) = (at, 0, 0);
    }
}

impl Program for Worker {
    fn next(&mut self, told: StepInput) -> Act {
        self.heard(told.outcome);
        loop {
            match self.at {
                At::Start => {
                    (self.half, self.due) = (told.now, told.now);
                    self.go_to(At::Before);
                    if self.spec.after_ns > 0 {
                        return Act::Sleep {
                            ns: self.spec.after_ns,
                        };
                    }
                }
                At::Before => match self.in_steps() {
                    Some(act) => return act,
                    None => {
                        self.due = told.now;
                        self.go_to(At::NextPass);
                    }
                },
                At::NextPass => {
                    if !self.another(told.now) {
                        self.go_to(At::Leaving);
                        continue;
                    }
                    self.go_to(At::Delay);
                    if let Some(every_ns) = self.spec.every_ns {
                        let until = self.next_due(every_ns, told.now);
                        return Act::SleepUntil { until };
                    }
                }
                At::Delay => {
                    self.go_to(At::Pass);
                    return Act::Work {
                        ns: self.delay_ns(),
                    };
                }
                At::Pass => match self.in_steps() {
                    Some(act) => return act,
                    None => self.go_to(At::PassEnd),
                },
                At::PassEnd => {
                    self.done += 1;
                    self.go_to(At::NextPass);
                    if let Some(reading) = self.turn_to(self.spec.between) {
                        return reading;
                    }
                }
                At::Leaving => {
                    self.go_to(At::End);
                    let is_open = self.spec.measured && !self.spec.around;
                    if is_open && self.state.is_recording() {
                        return self.read(Kind::End, self.current, 0);
                    }
                }
                At::End => return Act::End,
            }
        }
    }
}
