//! The figures that the paper prints.

use undertick_cmstar::{Os, Routine};

/// References per second: under Medusa, by the number of Cms and the way of reading.
pub(super) const RATES: [(Routine, usize, f64); 6] = [
    (Routine::Varying, 8, 53e3),
    (Routine::Varying, 30, 90e3),
    (Routine::Four, 8, 64e3),
    (Routine::Four, 30, 96e3),
    (Routine::One, 8, 23e3),
    (Routine::One, 28, 76e3),
];

/// A published zero test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ZeroTest {
    /// Method I or II.
    pub(super) method: u8,
    pub(super) os: Os,
    pub(super) routine: Routine,
    /// Mean of the corrected results, us, if it is printed.
    pub(super) mean_us: Option<f64>,
    pub(super) k: f64,
    /// The figure that shows it.
    pub(super) figure: Option<u8>,
}

impl ZeroTest {
    /// The method as the paper writes it.
    pub(super) const fn method(&self) -> &'static str {
        if self.method == 1 { "I" } else { "II" }
    }

    /// The part of the ids of its figures that says which test it is.
    pub(super) fn id(&self) -> String {
        format!("{}/{}/{}", self.method(), self.os, self.routine.name())
    }
}

pub(super) const ZERO_TESTS: [ZeroTest; 8] = [
    zero(1, Os::StarOs, Routine::Four, Some(-1.90), 0.80, Some(12)),
    zero(1, Os::StarOs, Routine::One, None, 0.81, None),
    zero(1, Os::Medusa, Routine::Four, Some(6.69), 3.57, Some(13)),
    zero(1, Os::Medusa, Routine::One, None, 0.68, None),
    zero(2, Os::StarOs, Routine::Four, Some(-5.24), 1.14, Some(14)),
    zero(2, Os::StarOs, Routine::One, None, 1.98, None),
    zero(2, Os::Medusa, Routine::Four, Some(6.69), 1.11, Some(15)),
    zero(2, Os::Medusa, Routine::One, None, 0.81, None),
];

const fn zero(
    method: u8,
    os: Os,
    routine: Routine,
    mean_us: Option<f64>,
    k: f64,
    figure: Option<u8>,
) -> ZeroTest {
    ZeroTest {
        method,
        os,
        routine,
        mean_us,
        k,
        figure,
    }
}

/// Every mean of a zero test lies within this, us.
pub(super) const LARGEST_MEAN_US: f64 = 6.7;
/// Latency of a message, us, with 1, 2 and 3 pairs in each cluster.
pub(super) const LATENCY_US: [f64; 3] = [7050.0, 7960.0, 9615.0];
/// The running check of Section 5.2: largest mean, us, and range of k, with interrupts and without.
pub(super) const CHECK_MEAN_US: f64 = 4.9;
pub(super) const CHECK_K: [f64; 2] = [0.74, 0.78];
pub(super) const CHECK_K_UNDISTURBED: [f64; 2] = [1.01, 1.22];
/// Time that each word adds to a remote call, us.
pub(super) const CALL_US_PER_WORD: f64 = 49.9;
/// Words accessed in a call.
pub(super) const WORDS: [u32; 5] = [0, 50, 100, 150, 200];
/// The speeds of all Cms lie within this share of each other.
pub(super) const SPEED_RANGE: f64 = 0.046;
/// Number of Cms whose speed was measured.
pub(super) const SPEED_CMS: usize = 34;
/// Minimum time of a 4-Read, us.
pub(super) const LEAST_US: [(Os, f64); 2] = [(Os::StarOs, 310.0), (Os::Medusa, 320.0)];
/// Range of the results that the line clock disturbed, us.
pub(super) const HIT_US: [(Routine, f64, f64); 2] =
    [(Routine::Four, 630.0, 760.0), (Routine::One, 470.0, 550.0)];
/// Standard deviation of reading a word of the clock under a very light load, us.
pub(super) const WORD_SD_US: [(Os, f64); 2] = [(Os::StarOs, 7.13), (Os::Medusa, 2.3)];
