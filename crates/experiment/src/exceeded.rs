//! The duration that is exceeded once in a given time.

use undertick_report::document::Histogram;
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
mod tests {
    use super::*;

    fn histogram(edges: &[f64], counts: &[u64]) -> Histogram {
        Histogram {
            unit: "ns".to_owned(),
            edges: edges.to_vec(),
            counts: counts.to_vec(),
        }
    }

    /// 10 s with 90 samples of 100 ns, 9 of 1000 and 1 of 10 000 (middles of the bins).
    #[test]
    fn once_in_by_hand() {
        let found = histogram(
            &[95.0, 105.0, 995.0, 1005.0, 9995.0, 10_005.0],
            &[90, 0, 9, 0, 1],
        );
        let level = |seconds| exceeded_once_in(seconds, 10.0, &found, 0.95).map(|e| e.value);
        // Ten in ten seconds: the tenth sample from above.
        assert_eq!(level(1.0), Some(1000.0));
        assert_eq!(level(10.0), Some(10_000.0));
        assert_eq!(level(0.5), Some(100.0));
        assert_eq!(level(10.1), None);
        let once_a_second = exceeded_once_in(1.0, 10.0, &found, 0.95).unwrap();
        // 10 +- 1.96 times the square root of 10, and one more: ranks 17.2 and 3.8.
        assert_eq!(once_a_second.interval, Interval::new(100.0, 1000.0));
        assert_eq!(once_a_second.n, 100);
    }
}
