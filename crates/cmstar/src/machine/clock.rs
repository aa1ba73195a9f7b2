//! The clocks of the machine.

use undertick_clock::wide::Shape;

use crate::engine::Moment;
use crate::parameters::Clock;

/// A clock that counts from 0 at the start, on a Cm, shown in words.
#[derive(Clone, Copy, Debug)]
pub(super) struct SystemClock {
    /// Cluster, from 0.
    pub cluster: usize,
    /// Index of its Cm.
    pub cm: usize,
    pub shape: Shape,
    tick_ns: u64,
}

impl SystemClock {
    pub fn new(cluster: usize, cm: usize, clock: &Clock) -> Self {
        Self {
            cluster,
            cm,
            shape: Shape::new(clock.word_bits, clock.words).expect("checked"),
            tick_ns: (clock.tick_us * 1e3).round() as u64,
        }
    }

    /// Returns its full count at a moment, ticks.
    pub fn ticks(&self, at: Moment) -> u64 {
        let bits = self.shape.width_bits() * self.shape.words() as u32;
        (at.ns() / self.tick_ns) & (u64::MAX >> (64 - bits))
    }

    /// Returns the number of its words.
    pub fn words(&self) -> u64 {
        self.shape.words() as u64
    }

    /// Returns a word of it; 0 is the low one.
    pub fn word(&self, index: usize, at: Moment) -> u64 {
        let shifted = self.ticks(at) >> (self.shape.width_bits() as usize * index);
        shifted & (self.shape.period_ticks() - 1)
    }
}
