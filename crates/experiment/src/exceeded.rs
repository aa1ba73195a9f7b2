//! The duration that is exceeded once in a given time.

use undertick_document::Histogram;
use undertick_units::{Estimate, Interval};

/// The duration that is exceeded once in that many seconds on average, in samples that took
/// `observed` seconds; `None` if fewer were observed. For the interval, exceedances form a Poisson
/// process. The resolution is that of the bins, eight an octave.
pub(super) fn exceeded_once_in(
    seconds: f64,
    observed: f64,
    histogram: &Histogram,
    level: f64,
) -> Option<Estimate> {
    let expected = observed / seconds;
    if expected < 1.0 {
        return None;
    }
    // The middle of the bin that holds the sample of this rank, counted from above.
    let ranked = |rank: f64| {
        let mut above = 0.0;
        for (i, &count) in histogram.counts.iter().enumerate().rev() {
            above += count as f64;
            if above >= rank {
                return Some((histogram.edges[i] + histogram.edges[i + 1]) / 2.0);
            }
        }
        None
    };
    let z = undertick_estimate::normal_quantile(0.5 + level / 2.0);
    let spread = z * expected.sqrt();
    let fewest = expected - spread;
    Some(Estimate {
        value: ranked(expected.round())?,
        interval: Interval {
            lo: ranked(expected + spread + 1.0),
            hi: (fewest >= 1.0).then(|| ranked(fewest)).flatten(),
        },
        level,
        unit: "ns".to_owned(),
        method: format!("exceeded once in {seconds} s on average, in {observed:.2} s"),
        n: histogram.counts.iter().sum(),
        n_effective: expected,
        notes: Vec::new(),
    })
}

#[cfg(test)]
mod tests;
