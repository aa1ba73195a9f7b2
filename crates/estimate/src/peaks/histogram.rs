//! The rates in bins of 1 % of the clean rate.

/// Rates above this are in the last bin.
const HIGHEST: f64 = 5.0;

/// A histogram of rates relative to the clean one, which is the middle of a bin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateHistogram {
    /// Edges of the bins, one more than bins, ascending; the outermost bins are not empty. All
    /// rates over 5 are in the last.
    pub edges: Vec<f64>,
    /// Samples in each bin.
    pub counts: Vec<u64>,
    /// Time in each bin, s; for a published histogram in durations of a clean sample.
    pub seconds: Vec<f64>,
}

impl RateHistogram {
    /// Builds the histogram from rates, their counts and their times.
    pub(super) fn from_rates(
        bin: f64,
        rates: impl Iterator<Item = (f64, u64, f64)> + Clone,
    ) -> Self {
        let of = |rate: f64| ((rate.clamp(0.0, HIGHEST) / bin) + 0.5).floor() as usize;
        let bins = rates.clone().filter(|r| r.1 > 0).map(|r| of(r.0));
        let (Some(first), Some(last)) = (bins.clone().min(), bins.max()) else {
            return Self::default();
        };
        let mut histogram = Self {
            edges: (first..=last + 1).map(|i| (i as f64 - 0.5) * bin).collect(),
            counts: vec![0; last + 1 - first],
            seconds: vec![0.0; last + 1 - first],
        };
        for (rate, count, seconds) in rates.filter(|r| r.1 > 0) {
            histogram.counts[of(rate) - first] += count;
            histogram.seconds[of(rate) - first] += seconds;
        }
        histogram
    }
}
