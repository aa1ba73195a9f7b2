use super::*;

fn sample(values: &[i64]) -> Sample {
    values.iter().copied().collect::<Series>().sample()
}

#[test]
fn of_nothing_and_of_one() {
    assert_eq!(sample(&[]).mean(0.95, 0.0), None);
    assert_eq!(sample(&[]).quantile(0.5, 0.95, 0.0), None);
    let one = sample(&[7]);
    let mean = one.mean(0.95, 0.0).unwrap();
    assert_eq!(
        (mean.value, mean.interval.lo, mean.interval.hi),
        (7.0, None, None)
    );
    let median = one.quantile(0.5, 0.95, 26.0).unwrap();
    assert_eq!(
        (median.value, median.interval.lo, median.interval.hi),
        (7.0, None, None)
    );
}

/// 10 and 12: mean 11, standard error 1, t(0.975; 1) = 12.7062.
#[test]
fn of_two() {
    let mean = sample(&[10, 12]).mean(0.95, 0.0).unwrap();
    assert_eq!(mean.value, 11.0);
    assert!((mean.interval.half_width().unwrap() - 12.7062).abs() < 1e-4);
    assert_eq!(
        sample(&[10, 12]).quantile(0.5, 0.95, 0.0).unwrap().value,
        10.0
    );
}

/// 1..=20, median: ranks 6 and 15 (Conover), a step of 2 each way.
#[test]
fn median_by_hand() {
    let values: Vec<i64> = (1..=20).map(|i| (i * 8) % 21).collect();
    let e = sample(&values).quantile(0.5, 0.95, 2.0).unwrap();
    assert_eq!((e.value, e.interval), (10.0, Interval::new(4.0, 17.0)));
    assert!(
        e.notes.iter().any(|n| n.contains("5.0 steps")),
        "{:?}",
        e.notes
    );
}

/// 52 ticks, 100 times, steps of 26: 0.025^(1/100) = 0.96378.
#[test]
fn all_equal() {
    let s = sample(&[52; 100]);
    let exact = s.mean(0.95, 0.0).unwrap();
    assert_eq!(exact.interval, Interval::new(52.0, 52.0));
    let stepped = s.mean(0.95, 26.0).unwrap();
    assert!((stepped.interval.half_width().unwrap() - 26.0 * (1.0 - 0.963_783)).abs() < 1e-3);
    let median = s.quantile(0.5, 0.95, 26.0).unwrap();
    assert_eq!(median.interval, Interval::new(26.0, 78.0));
}

#[test]
fn extremes_stay_finite() {
    let s = sample(&[i64::MIN, i64::MAX, i64::MIN, i64::MAX, 0, -1, 1, 2]);
    let mean = s.mean(0.95, 1.0).unwrap();
    assert_eq!(mean.value, 0.0);
    assert!(mean.interval.half_width().unwrap().is_finite());
    let median = s.quantile(0.5, 0.95, 1.0).unwrap();
    assert_eq!(median.value, 0.0);
    let top = s.quantile(0.999, 0.95, 0.0).unwrap().value;
    assert!(top > 0.999 * i64::MAX as f64, "{top}");
}

/// 512 values are 256 pairs. One more is in no batch, but in the mean, whose variance falls by 512
/// / 513.
#[test]
fn values_outside_full_batches_narrow_the_interval() {
    // Symmetric with long tails: no skewness to correct.
    let values: Vec<i64> = (0..513_i64)
        .map(|i| ((i * 7919) % 1009 - 504).pow(3))
        .collect();
    let half = |n: usize| {
        let mean = sample(&values[..n]).mean(0.95, 0.0).unwrap();
        mean.interval.half_width().unwrap()
    };
    let expected = half(512) * (512.0_f64 / 513.0).sqrt();
    assert!((half(513) / expected - 1.0).abs() < 1e-12);
}

/// 32 shares of 10 values: 0.2, 0.8, 0.8, 0.2, ..: variance 0.0929032 of a
/// batch, 0.025 if independent; t(31) over normal 1.040587.
fn scattered() -> Inflation {
    let shares = [0.2, 0.8, 0.8, 0.2].repeat(8);
    inflation(&shares, 10.0, 0.95).unwrap()
}

#[test]
fn inflation_by_hand() {
    let found = scattered();
    assert!((found.variance - 3.716_129).abs() < 1e-5, "{found:?}");
    assert!((found.quantile_ratio - 1.040_587).abs() < 1e-5, "{found:?}");
    // 8 shares are too few, and single values 0 and 1 scatter as they must.
    assert!(inflation(&[0.2, 0.8, 0.8, 0.2].repeat(2), 10.0, 0.95).is_none());
    assert!(inflation(&[0.0, 1.0, 1.0, 0.0].repeat(8), 1.0, 0.95).is_none());
    assert!(inflation(&[1.0; 32], 10.0, 0.95).is_none());
    // Shares that scatter less than independent ones: no deflation.
    assert!(inflation(&[0.4, 0.6, 0.6, 0.4].repeat(8), 10.0, 0.95).is_none());
    // A long run of each of single values: its correlation shows it.
    let runs = [[0.0; 8], [1.0; 8]].concat().repeat(16);
    assert!(inflation(&runs, 1.0, 0.95).unwrap().variance > 3.0);
}

/// 1000 / (3.716129 * 1.082822) = 248.5: ranks of 248, stretched by 1000 /
/// 248. Median: 109 and 140 (binomial sums); p90: 214 and 233.
#[test]
fn widened_ranks_by_hand() {
    let ranks = |p| {
        let r = widened_ranks(1000, p, 0.95, Some(scattered()));
        (r.lo, r.hi)
    };
    assert_eq!(ranks(0.5), (Some(439), Some(562)));
    assert_eq!(ranks(0.9), (Some(862), Some(937)));
    let none = widened_ranks(4, 0.5, 0.95, Some(scattered()));
    assert_eq!((none.lo, none.hi), (None, None));
    let as_it_is = widened_ranks(20, 0.5, 0.95, None);
    assert_eq!((as_it_is.lo, as_it_is.hi), (Some(6), Some(15)));
}

/// Bins of large values are wider than one; the observed extremes bound the result.
#[test]
fn a_quantile_stays_between_the_extremes() {
    let s = sample(&[1_234_567; 20]);
    assert_eq!(s.distribution().n(), 20);
    let e = s.quantile(0.5, 0.95, 0.0).unwrap();
    assert_eq!(e.value, 1_234_567.0);
    assert_eq!(e.interval, Interval::new(1_234_567.0, 1_234_567.0));
}

/// Cochran: skewness 2 needs 100 values.
#[test]
fn cochran_by_hand() {
    assert!(too_skewed(99.0, 2.0) && !too_skewed(100.0, 2.0));
}

/// The notes that belong to each result.
#[test]
fn notes_and_effective_size() {
    let few = sample(&[1, 2, 3]).mean(0.95, 0.0).unwrap();
    assert_eq!(
        few.notes,
        ["fewer than 16 samples: autocorrelation not tested"]
    );
    let alternating: Vec<i64> = (0..64).map(|i| [0, 9, 9, 0][i % 4]).collect();
    let e = sample(&alternating).mean(0.95, 0.0).unwrap();
    assert_eq!((e.notes.len(), e.n, e.n_effective), (0, 64, 64.0));
    let ramp: Vec<i64> = (0..4096).collect();
    let e = sample(&ramp).mean(0.95, 0.0).unwrap();
    assert!(e.notes[0].starts_with("too few samples for their autocorrelation"));
    assert!(e.n_effective < 2.0, "{}", e.n_effective);
    // Its median leaves all thresholds behind.
    let median = sample(&ramp).quantile(0.5, 0.95, 0.0).unwrap();
    assert_eq!((median.interval.lo, median.interval.hi), (None, None));
    // Its sixteen or more batches scatter as the values do.
    assert!(
        (median.n_effective - 1.0).abs() < 0.1,
        "{}",
        median.n_effective
    );
    assert!(
        median
            .notes
            .iter()
            .any(|n| n.starts_with("too few samples for their autocorrelation"))
    );
}

/// Skewed, as `numbers`: the same values in ticks of a tenth; 5.26071 and 15.03171 were calculated
/// independently.
#[test]
fn a_skewed_mean_matches_another_calculation() {
    let e = sample(&[
        3, 47, 129, 8, 55, 149, 13, 64, 174, 19, 74, 208, 25, 86, 259, 32, 98, 369, 39, 112,
    ])
    .mean(0.95, 0.0)
    .unwrap();
    assert!((e.interval.lo.unwrap() - 52.607_13).abs() < 1e-3, "{e:?}");
    assert!((e.interval.hi.unwrap() - 150.317_15).abs() < 1e-3, "{e:?}");
    assert!(e.notes[0].starts_with("too few samples for their skewness 1.4"));
}
