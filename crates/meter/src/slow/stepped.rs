//! Runs in which a delay in each cycle steps the phase.

use std::time::{Duration, Instant};

use undertick_clock::slow::TickClock;
use undertick_estimate::slow::{Move, Stepper};

use super::counted::CountedReadings;
use super::pace::{Pace, Truth};
use super::run::Loop;
use super::script::Length;

/// Number of cycles that determine how many fit into a number of seconds.
const PILOT: u64 = 32;
/// Random phases are drawn from this seed and the clock: runs with the same phases would share
/// their errors.
const SEED: u64 = 0x5eed_0f51_0c10_c45e;

/// Number of cycles that the run will have, with delays included.
pub(super) fn expected_cycles<C: TickClock>(looped: &mut Loop<'_, C>) -> u64 {
    match looped.script.length {
        Length::Cycles(n) => n,
        Length::Seconds(s) => {
            let begin = Instant::now();
            for _ in 0..PILOT {
                looped.cycle();
            }
            let cycle_s = begin.elapsed().as_secs_f64() / PILOT as f64;
            // A delay is between 0 and half a tick, so a quarter on average.
            let delayed_s = cycle_s + 0.25 * looped.tick_ns / 1e9;
            (s / delayed_s) as u64
        }
    }
}

/// Executes the stepper's instructions. A block's true durations count if its window ended
/// undisturbed.
pub(super) fn run<C: TickClock>(
    looped: &mut Loop<'_, C>,
    truth: &mut Truth,
    pace: &mut Pace,
    cycles: u64,
    go_on: &mut impl FnMut(f64) -> bool,
) -> CountedReadings {
    let seed = SEED
        ^ looped
            .clock
            .read_with_truth()
            .1
            .unwrap_or_else(|| u64::from(std::process::id()));
    let mut stepper = Box::new(Stepper::new(looped.ticks.len() - 1, cycles, seed));
    let mut waited = Duration::ZERO;
    looped.watch();
    loop {
        match stepper.next_move() {
            Move::Align => {
                truth.forget();
                looped.worker.pause();
                let begin = Instant::now();
                looped.watch();
                stepper.aligned(looped.edge());
                waited += begin.elapsed();
            }
            Move::Cycle { delay_ticks } => {
                looped.worker.delay(delay_ticks * looped.tick_ns);
                looped.cycle();
                if looped.is_gone() {
                    stepper.disturbed();
                    looped.watch();
                } else {
                    truth.add(&looped.fine);
                    stepper.push(&looped.ticks);
                }
                if !pace.goes_on(go_on) {
                    return CountedReadings::Stepped(stepper, waited.as_secs_f64());
                }
            }
            Move::Hold { until } => {
                let begin = Instant::now();
                looped.hold(until);
                waited += begin.elapsed();
                if looped.is_gone() {
                    stepper.disturbed();
                } else {
                    truth.keep();
                    stepper.held();
                }
            }
        }
    }
}

impl<C: TickClock> Loop<'_, C> {
    /// Waits for the next edge of the tick; returns the reading after it.
    fn edge(&self) -> i64 {
        let before = self.clock.read_ticks();
        loop {
            let now = self.clock.read_ticks();
            if now != before {
                return now as i64;
            }
        }
    }

    /// Waits until the clock shows `until` ticks, or the thread was taken off its CPU.
    fn hold(&self, until: i64) {
        while (self.clock.read_ticks() as i64) < until && !self.is_gone() {}
    }
}
