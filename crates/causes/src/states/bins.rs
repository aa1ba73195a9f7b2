//! Bins in which the calls of each state are counted: the same for all states of a path, so that they
//! can be drawn one below the other.

/// Bins over the range of the drawing.
const BINS: f64 = 48.0;
/// Share of the calls of each state that may lie beyond either end.
const BEYOND: f64 = 0.005;
/// Bins of fewer steps of the clock are whole steps wide: others would hold different numbers of
/// them.
const WHOLE_STEPS: f64 = 8.0;

/// Edges of bins of about the same width on a logarithmic scale, over what nearly all calls of each
/// state took. `step`: that of the clock, in the unit of the values.
pub(super) fn edges<'a>(
    values: &[f64],
    states: impl Iterator<Item = &'a [usize]>,
    step: f64,
) -> Vec<f64> {
    let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
    for samples in states {
        let mut of: Vec<f64> = samples.iter().map(|&at| values[at]).collect();
        of.sort_by(f64::total_cmp);
        let beyond = (BEYOND * of.len() as f64) as usize;
        if let (Some(low), Some(high)) = (of.get(beyond), of.iter().rev().nth(beyond)) {
            (from, to) = (from.min(*low), to.max(*high));
        }
    }
    if !from.is_finite() || !to.is_finite() || !step.is_finite() || step <= 0.0 {
        return Vec::new();
    }
    // What is subtracted for recording may exceed a short span. Values lie within bins, not on edges.
    let first = (from - step / 2.0).max(step / 2.0);
    let ratio = (to.max(first) / first).powf(1.0 / BINS).max(1.0);
    let next = |edge: f64| {
        let steps = edge * (ratio - 1.0) / step;
        match steps < WHOLE_STEPS {
            true => edge + steps.round().max(1.0) * step,
            false => edge * ratio,
        }
    };
    // Steps that a number as large as `to` cannot show make no bin.
    let mut edges: Vec<f64> = std::iter::successors(Some(first), |&edge| {
        (edge <= to && next(edge) > edge).then(|| next(edge))
    })
    .collect();
    if edges.len() == 1 {
        edges.push(next(first).max(first * 2.0));
    }
    edges
}

/// How many samples lie in each bin; the first and the last one also count what lies beyond.
pub(super) fn counts(values: &[f64], samples: &[usize], edges: &[f64]) -> Vec<u64> {
    let bins = edges.len().saturating_sub(1);
    let mut counts = vec![0; bins];
    for &at in samples {
        let after = edges.partition_point(|edge| *edge <= values[at]);
        if let Some(last) = bins.checked_sub(1) {
            counts[after.saturating_sub(1).min(last)] += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::{counts, edges};

    /// Two states a factor of four apart, on a clock of 10 ns.
    #[test]
    fn each_call_is_in_the_bin_around_it() {
        let values: Vec<f64> = (0..1000)
            .map(|at| if at % 2 == 0 { 50.0 } else { 200.0 } + 10.0 * f64::from(at % 3))
            .collect();
        let states: [Vec<usize>; 2] =
            [0, 1].map(|rest| (0..1000).filter(|at| at % 2 == rest).collect());
        let edges = edges(&values, states.iter().map(Vec::as_slice), 10.0);
        assert!(edges.is_sorted_by(|a, b| a < b));
        assert!(edges[0] < 50.0 && edges[edges.len() - 1] > 220.0);
        // The clock's steps are 10 ns, and so are the bins.
        assert!(
            edges.windows(2).all(|pair| pair[1] - pair[0] == 10.0),
            "{edges:?}"
        );
        for (state, least) in states.iter().zip([50.0, 200.0]) {
            let counts = counts(&values, state, &edges);
            assert_eq!(counts.iter().sum::<u64>(), 500);
            for (bin, n) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
                let middle = f64::midpoint(edges[bin], edges[bin + 1]);
                assert!([0.0, 10.0, 20.0].contains(&(middle - least)), "{middle}");
                assert!((166..=168).contains(n), "{n}");
            }
        }
    }

    /// Long and rare values do not stretch the drawing, and are counted.
    #[test]
    fn what_lies_beyond_is_in_the_last_bin() {
        let mut values: Vec<f64> = (0..1000).map(|at| 1000.0 + f64::from(at)).collect();
        values[500] = 1e9;
        values[501] = -3.0;
        let all: Vec<usize> = (0..1000).collect();
        let edges = edges(&values, std::iter::once(all.as_slice()), 1.0);
        assert!((40..=52).contains(&edges.len()), "{}", edges.len());
        assert!(edges[edges.len() - 1] < 2100.0, "{edges:?}");
        let counts = counts(&values, &all, &edges);
        assert_eq!(counts.iter().sum::<u64>(), 1000);
        assert!(counts.iter().all(|n| *n > 0), "{counts:?}");
    }

    /// One value, or less than nothing after what recording cost.
    #[test]
    fn little_to_draw() {
        for values in [vec![7.0; 600], vec![-5.0; 600], vec![0.0; 600]] {
            let all: Vec<usize> = (0..600).collect();
            let edges = edges(&values, std::iter::once(all.as_slice()), 1.0);
            assert_eq!(counts(&values, &all, &edges).iter().sum::<u64>(), 600);
            assert!(edges.len() >= 2 && edges.len() < 10, "{edges:?}");
        }
        assert!(edges(&[], std::iter::empty(), 1.0).is_empty());
        assert!(counts(&[], &[], &[]).is_empty());
    }
}
