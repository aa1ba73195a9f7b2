//! Progress of a run, and the true durations of the cycles that count.

use std::time::Instant;

use super::script::Length;

/// Cycles between two evaluations; their readings are kept, so that the counting does not run
/// inside the loop.
pub(super) const BATCH: u64 = 128;

/// True durations of the cycles that count, in ticks of the fine clock.
pub(super) struct Truth {
    sums: Vec<u64>,
    cycles: u64,
    /// Durations of cycles whose status is not yet known.
    pending: Vec<u64>,
    pending_cycles: u64,
}

impl Truth {
    pub(super) fn new(activities: usize) -> Self {
        Self {
            sums: vec![0; activities],
            cycles: 0,
            pending: vec![0; activities],
            pending_cycles: 0,
        }
    }

    /// Adds the readings of a cycle, which does not count before [`Self::keep`].
    pub(super) fn add(&mut self, fine: &[u64]) {
        self.pending_cycles += 1;
        for (sum, ends) in self.pending.iter_mut().zip(fine.windows(2)) {
            *sum += ends[1].saturating_sub(ends[0]);
        }
    }

    /// Counts the cycles added since the last decision.
    pub(super) fn keep(&mut self) {
        for (sum, pending) in self.sums.iter_mut().zip(&self.pending) {
            *sum += pending;
        }
        self.cycles += self.pending_cycles;
        self.forget();
    }

    /// Discards the cycles added since the last decision.
    pub(super) fn forget(&mut self) {
        self.pending.fill(0);
        self.pending_cycles = 0;
    }

    /// Number of cycles that count.
    pub(super) fn cycles(&self) -> u64 {
        self.cycles
    }

    pub(super) fn mean_ns(&self, activity: usize, fine_ns: Option<f64>) -> Option<f64> {
        Some(self.sums[activity] as f64 * fine_ns? / self.cycles as f64)
    }

    pub(super) fn cycle_ns(&self, fine_ns: Option<f64>) -> Option<f64> {
        Some(self.sums.iter().sum::<u64>() as f64 * fine_ns? / self.cycles as f64)
    }
}

/// Progress of a run.
pub(super) struct Pace {
    pub(super) begin: Instant,
    pub(super) length: Length,
    pub(super) cycles: u64,
    pub(super) interrupted: bool,
}

impl Pace {
    fn share(&self) -> f64 {
        match self.length {
            Length::Cycles(n) => self.cycles as f64 / n as f64,
            Length::Seconds(s) => self.begin.elapsed().as_secs_f64() / s,
        }
    }

    /// Called after a cycle: whether another one follows.
    pub(super) fn goes_on(&mut self, go_on: &mut impl FnMut(f64) -> bool) -> bool {
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
