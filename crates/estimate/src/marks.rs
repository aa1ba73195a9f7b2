//! Quantiles that are watched while a series passes.

use serde::{Deserialize, Serialize};

use crate::batches::Batches;
use crate::histogram::SignedHistogram;

/// Quantiles whose autocorrelation is watched while the series passes.
pub const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// The indicator `x <= threshold` of a quantile, in batches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) p: f64,
    pub(crate) threshold: i64,
    pub(crate) below: Batches<u64>,
}

impl Mark {
    /// Places a mark at each of [`QUANTILES`].
    pub(crate) fn at_all(histogram: &SignedHistogram) -> Vec<Self> {
        (QUANTILES.iter().zip(histogram.quantiles(QUANTILES)))
            .map(|(&p, threshold)| Self {
                p,
                threshold,
                below: Batches::new(),
            })
            .collect()
    }

    /// Returns the share of the batched values not above the threshold.
    pub(crate) fn share(&self) -> f64 {
        let sums = self.below.sums();
        let n = sums.len() as f64 * self.below.size() as f64;
        sums.iter().sum::<u64>() as f64 / n
    }

    /// Returns whether the threshold has drifted so far from the quantile that its correlation says
    /// little about the quantile's.
    pub(crate) fn is_stale(&self) -> bool {
        let above = (1.0 - self.share()) / (1.0 - self.p);
        !(0.5..=1.5).contains(&above)
    }
}
