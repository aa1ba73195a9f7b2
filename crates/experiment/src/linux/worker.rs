//! A worker: one process or thread of a repetition, which executes its steps and records each of
//! them.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Act;
use super::repetition_state::{OVER, Position, RECORDING, RepetitionState, WARMING_UP};
use crate::script::Length;

/// A step that is ready to run.
pub(crate) struct ReadyStep {
    pub(crate) act: Act,
    /// Event number of the step.
    pub(crate) event: u16,
    /// Whether the clock is read around the step.
    pub(crate) timed: bool,
}

/// A worker process or thread, with everything that it needs to run.
pub(crate) struct Worker {
    pub(crate) state: &'static RepetitionState,
    pub(crate) at: &'static Position,
    /// Whether it decides how many passes count, and from when.
    pub(crate) leads: bool,
    /// Whether it reads the clock.
    pub(crate) measured: bool,
    /// Whether it continues until the others are done.
    pub(crate) background: bool,
    /// Whether the clock is read around each step, rather than between two.
    pub(crate) around: bool,
    /// Event between two passes.
    pub(crate) between: u16,
    pub(crate) every: Option<Duration>,
    pub(crate) after: Option<Duration>,
    pub(crate) length: Length,
    pub(crate) warm_up: u64,
    /// Steps before the first pass: those before the step to which passes return, and waiting to be
    /// woken.
    pub(crate) before: Vec<ReadyStep>,
    /// Steps of a pass, the null steps included.
    pub(crate) pass: Vec<ReadyStep>,
    pub(crate) seed: u64,
}

/// Minimum number of passes that count where a duration in seconds is requested.
const FEWEST_PASSES: f64 = 16.0;
const MOST_PASSES: f64 = 1e7;
/// Passes that are timed to find how many fit into a duration in seconds.
const FEWEST_TIMED: u64 = 4;
/// Maximum number of turns of the delay between two passes. The delay lasts up to about one step of
/// a coarse counter. The phase of short spans against the counter therefore differs from pass to
/// pass.
const MOST_TURNS: u64 = 32;

impl Worker {
    /// Runs until all passes are done.
    pub(crate) fn run(mut self) {
        // The ring is created before any pass counts.
        if self.measured {
            undertick::begin(self.between);
            undertick::end(self.between);
        }
        self.state.arrive();
        if let Some(after) = self.after {
            std::thread::sleep(after);
        }
        let mut current = self.between;
        if self.go_through(true, &mut current) {
            self.all_passes(&mut current);
        }
        if self.measured && self.state.status.load(Ordering::Acquire) == RECORDING {
            undertick::end(current);
        }
        self.at.step.store(0, Ordering::Relaxed);
        self.state.leave(self.at);
    }

    fn all_passes(&mut self, current: &mut u16) {
        let warm_up = match self.length {
            Length::Seconds(_) => self.warm_up.max(FEWEST_TIMED),
            Length::Passes(_) => self.warm_up,
        };
        let mut random = self.seed | 1;
        let begun = Instant::now();
        let mut half = begun;
        let mut recording_since = None;
        let (mut pass, mut counted) = (0_u64, 0_u64);
        let mut due = begun;
        loop {
            if self.leads && pass == warm_up / 2 {
                half = Instant::now();
            }
            if self.leads && pass == warm_up {
                let passes = self.passes(half.elapsed(), warm_up - warm_up / 2);
                self.state.passes.store(passes, Ordering::Relaxed);
                self.state
                    .status
                    .compare_exchange(WARMING_UP, RECORDING, Ordering::Release, Ordering::Relaxed)
                    .ok();
                recording_since = Some(Instant::now());
            }
            if self.state.status.load(Ordering::Acquire) == RECORDING {
                if !self.background && counted >= self.state.passes.load(Ordering::Relaxed) {
                    break;
                }
                counted += 1;
            }
            if let Some(every) = self.every {
                due = next_due(due, every);
            }
            delay(&mut random);
            if !self.go_through(false, current) {
                return;
            }
            pass += 1;
            self.at.pass.store(pass, Ordering::Relaxed);
        }
        if let Some(since) = recording_since {
            self.state
                .took_ns
                .store(since.elapsed().as_nanos() as u64, Ordering::Release);
        }
    }

    /// Number of passes that count, if `timed` passes of the warm-up took `took`.
    fn passes(&self, took: Duration, timed: u64) -> u64 {
        match self.length {
            Length::Passes(passes) => passes,
            Length::Seconds(seconds) => {
                let each = took.as_secs_f64() / timed.max(1) as f64;
                (seconds / each.max(1e-9)).clamp(FEWEST_PASSES, MOST_PASSES) as u64
            }
        }
    }

    /// Executes one pass, or the steps before the first one. Returns false when the repetition is
    /// over.
    fn go_through(&mut self, before: bool, current: &mut u16) -> bool {
        let steps = if before {
            &mut self.before
        } else {
            &mut self.pass
        };
        match (self.measured, self.around) {
            (false, _) => unmeasured(steps, self.state, self.at),
            (true, true) => around(steps, self.state, self.at),
            (true, false) => between(steps, self.state, self.at, current, self.between),
        }
    }
}

fn unmeasured(steps: &mut [ReadyStep], state: &RepetitionState, at: &Position) -> bool {
    for (i, step) in (1..).zip(steps) {
        if state.status.load(Ordering::Relaxed) == OVER {
            return false;
        }
        at.step.store(i, Ordering::Relaxed);
        (step.act)();
    }
    true
}

/// One reading between two steps: it ends one and begins the next.
fn between(
    steps: &mut [ReadyStep],
    state: &RepetitionState,
    at: &Position,
    current: &mut u16,
    outside: u16,
) -> bool {
    for (i, step) in (1..).zip(steps) {
        match state.status.load(Ordering::Relaxed) {
            RECORDING => undertick::next(*current, step.event),
            OVER => return false,
            _ => {}
        }
        *current = step.event;
        at.step.store(i, Ordering::Relaxed);
        (step.act)();
    }
    if state.status.load(Ordering::Relaxed) == RECORDING {
        undertick::next(*current, outside);
    }
    *current = outside;
    true
}

/// A serialised reading before and after each step.
fn around(steps: &mut [ReadyStep], state: &RepetitionState, at: &Position) -> bool {
    for (i, step) in (1..).zip(steps) {
        at.step.store(i, Ordering::Relaxed);
        let status = state.status.load(Ordering::Relaxed);
        if status == OVER {
            return false;
        }
        if !step.timed {
            (step.act)();
            continue;
        }
        if status == RECORDING {
            undertick::begin_ordered(step.event);
        }
        (step.act)();
        if state.status.load(Ordering::Relaxed) == RECORDING {
            undertick::end_ordered(step.event);
        }
    }
    true
}

/// Sleeps until the next time that is due; missed times are skipped.
fn next_due(last: Instant, every: Duration) -> Instant {
    let now = Instant::now();
    let mut due = last + every;
    if due < now {
        let periods = (now - last).as_nanos() / every.as_nanos().max(1);
        due = last + every * u32::try_from(periods + 1).unwrap_or(u32::MAX);
    }
    std::thread::sleep(due.saturating_duration_since(now));
    due
}

/// Delays for a short time that differs from pass to pass.
fn delay(random: &mut u64) {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    let mut x = *random;
    for _ in 0..(*random >> 32) % MOST_TURNS {
        x = std::hint::black_box(x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
    }
    std::hint::black_box(x);
}
