//! Random numbers: a stream for each entity.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Exp1, StandardNormal};
use serde::Deserialize;

/// The owner of a stream. Streams of different entities are independent, so an additional entity
/// does not change the others' draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entity {
    /// A computer module: its speed, its instructions, its interrupts.
    Cm,
    /// A process: its references and operations.
    Process,
    /// A load: the start times of its processes.
    Load,
    /// Streams for tests.
    Test,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// Returns the stream of the entity of this kind and index, for a seed.
    #[must_use]
    pub fn new(seed: u64, entity: Entity, index: u64) -> Self {
        let which = (entity as u64 + 1) << 48 ^ index;
        // Mixed twice, so that seeds and indices that differ in few bits do not
        // meet; the generator's own seeding mixes once more.
        Self(Xoshiro256PlusPlus::seed_from_u64(mixed(
            mixed(seed) ^ which,
        )))
    }

    /// Draws a uniform number from 0 to 1, without 1.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        self.0.random()
    }

    /// Draws an exponential number with mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        self.0.sample(Exp1)
    }

    /// Draws a normal number with mean 0 and standard deviation 1.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        self.0.sample(StandardNormal)
    }

    /// Draws 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
const fn mixed(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// The distribution of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// Constant.
    #[default]
    Fixed,
    /// Exponential.
    Exponential,
    /// Uniform between 0 and twice the mean.
    Uniform,
}

/// A time that may vary.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delay {
    /// Its mean, ns.
    pub mean_ns: f64,
    /// How it varies.
    pub law: Law,
}

impl Delay {
    /// Returns a constant time, ns.
    #[must_use]
    pub const fn fixed_ns(ns: f64) -> Self {
        Self {
            mean_ns: ns,
            law: Law::Fixed,
        }
    }

    /// Draws a time, in whole ns.
    #[inline]
    pub fn draw_ns(&self, stream: &mut Stream) -> u64 {
        let factor = match self.law {
            Law::Fixed => 1.0,
            Law::Exponential => stream.exponential(),
            Law::Uniform => 2.0 * stream.uniform(),
        };
        (self.mean_ns * factor).round() as u64
    }
}
