//! Whether the subtraction of the cost that pairs show made samples scatter less.

use serde::{Deserialize, Serialize};
use undertick_estimate::compensation::improvement;
use undertick_units::Estimate;

/// Samples whose pairs gave their cost, before and after its subtraction: as many as are needed
/// to say whether that made them scatter less.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Improvement {
    before: Vec<f64>,
    after: Vec<f64>,
}

/// Enough for k within 2 %; 1 MiB.
const MOST_FOR_K: usize = 1 << 16;

impl Improvement {
    #[inline]
    pub(super) fn add(&mut self, before: i64, after: i64) {
        if self.before.len() < MOST_FOR_K {
            self.before.push(before as f64);
            self.after.push(after as f64);
        }
    }

    /// Adds the first samples of another, as far as there is room.
    pub(super) fn merge(&mut self, other: &Self) {
        let room = (MOST_FOR_K - self.before.len()).min(other.before.len());
        self.before.extend(&other.before[..room]);
        self.after.extend(&other.after[..room]);
    }

    /// The improvement factor, from the first samples.
    pub(crate) fn k(&self, level: f64) -> Option<Estimate> {
        let mut k = improvement(&self.before, &self.after, level)?;
        if self.before.len() == MOST_FOR_K {
            k.notes.push(format!("of the first {MOST_FOR_K} samples"));
        }
        Some(k)
    }
}
