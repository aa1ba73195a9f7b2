//! Expected values are calculated by hand, or come from an independent calculation where stated.

use super::*;

fn numbers_of(values: &[f64]) -> Numbers {
    Numbers::new(values.to_vec())
}

#[track_caller]
fn near(found: Interval, lo: f64, hi: f64) {
    let (l, h) = (found.lo.unwrap(), found.hi.unwrap());
    assert!((l - lo).abs() < 1e-4 && (h - hi).abs() < 1e-4, "{l} {h}");
}

/// The level at which Student's quantile of one degree of freedom is `t`.
fn cauchy(t: f64) -> f64 {
    2.0 / std::f64::consts::PI * t.atan()
}

/// Both runs have fewer than ten values, so skewness is not corrected. Means 11 and root 6,
/// variances of the means 1 and 2; 9 / (1 + 4 / 2) = 3 degrees, t 3.182446.
#[test]
fn welch_by_hand() {
    let (a, b) = (
        numbers_of(&[10.0, 12.0]),
        numbers_of(&[0.0, 6_f64.sqrt(), 2.0 * 6_f64.sqrt()]),
    );
    let e = difference(&a, &b, 0.95).unwrap();
    let (value, half) = (11.0 - 6_f64.sqrt(), 3.182_446 * 3_f64.sqrt());
    assert!((e.value - value).abs() < 1e-12);
    near(e.interval, value - half, value + half);
    assert_eq!((e.n, e.n_effective), (5, 2.0));
    assert_eq!(
        e.notes[0],
        "first: fewer than 16 samples: autocorrelation not tested"
    );
    assert_eq!(
        e.notes[1],
        "second: fewer than 16 samples: autocorrelation not tested"
    );
    assert!(difference(&numbers_of(&[]), &b, 0.95).is_none());
    assert_eq!(
        difference(&numbers_of(&[1.0]), &b, 0.95)
            .unwrap()
            .interval
            .lo,
        None
    );
}

/// Without any spread the difference is certain.
#[test]
fn constants_differ_by_a_constant() {
    let e = difference(&numbers_of(&[5.0; 20]), &numbers_of(&[3.0; 30]), 0.95).unwrap();
    assert_eq!((e.value, e.interval), (2.0, Interval::new(2.0, 2.0)));
}

const A: [f64; 20] = [
    0.3, 4.7, 12.9, 0.8, 5.5, 14.9, 1.3, 6.4, 17.4, 1.9, 7.4, 20.8, 2.5, 8.6, 25.9, 3.2, 9.8, 36.9,
    3.9, 11.2,
];
const B: [f64; 16] = [
    0.6, 8.4, 21.4, 69.3, 6.6, 18.0, 47.3, 4.9, 15.2, 37.1, 3.4, 12.7, 30.4, 2.0, 10.4, 25.4,
];

/// Skewed (1.40 and 1.32): calculated independently, in Python, from the cumulants, with Student's
/// quantile by numerical integration and the ratio by bisection.
#[test]
fn skewed_runs_match_another_calculation() {
    near(
        MeanOf::from_values(&A).unwrap().interval(0.95),
        5.260_71,
        15.031_71,
    );
    let (a, b) = (numbers_of(&A), numbers_of(&B));
    let e = difference(&a, &b, 0.95).unwrap();
    assert!((e.value + 9.753_75).abs() < 1e-9);
    near(e.interval, -21.616_59, 0.937_59);
    near(
        difference(&b, &a, 0.95).unwrap().interval,
        -0.937_59,
        21.616_59,
    );
    let e = ratio(&a, &b, 0.95).unwrap();
    assert!((e.value - 0.501_564_995).abs() < 1e-8);
    near(e.interval, 0.251_270, 1.096_054);
    assert!(
        e.notes
            .iter()
            .any(|n| n.starts_with("second: too few samples for their skewness 1.3"))
    );
}

/// 4 without spread over 11 with standard error 1, t = 1: 4 / 12 to 4 / 10.
#[test]
fn fieller_by_hand() {
    let (a, b) = (numbers_of(&[4.0, 4.0]), numbers_of(&[10.0, 12.0]));
    near(ratio(&a, &b, 0.5).unwrap().interval, 4.0 / 12.0, 0.4);
    let e = paired_ratio(&[4.0, 4.0], &[10.0, 12.0], 0.5).unwrap();
    assert!((e.value - 4.0 / 11.0).abs() < 1e-12);
    near(e.interval, 4.0 / 12.0, 0.4);
    near(
        ratio(&a, &numbers_of(&[-12.0, -10.0]), 0.5)
            .unwrap()
            .interval,
        -0.4,
        -4.0 / 12.0,
    );
    // Only the denominator is without spread: (11 -+ 1) / 2.
    near(
        ratio(&b, &numbers_of(&[2.0, 2.0]), 0.5).unwrap().interval,
        5.0,
        6.0,
    );
}

#[test]
fn a_denominator_near_zero() {
    let (a, b) = (numbers_of(&[4.0, 4.0]), numbers_of(&[10.0, 12.0]));
    // t = 9.9: 11 is more than 1.1 half-widths from 0.
    near(
        ratio(&a, &b, cauchy(9.9)).unwrap().interval,
        4.0 / 20.9,
        4.0 / 1.1,
    );
    let e = ratio(&a, &b, cauchy(10.1)).unwrap();
    assert_eq!((e.interval.lo, e.interval.hi), (None, None));
    assert!(
        e.notes.iter().any(|n| n.contains("may be 0")),
        "{:?}",
        e.notes
    );
    assert!(ratio(&a, &numbers_of(&[-1.0, 1.0]), 0.5).is_none());
    assert!(paired_ratio(&[4.0, 4.0], &[-1.0, 1.0], 0.5).is_none());
    let one = ratio(&a, &numbers_of(&[2.0]), 0.5).unwrap();
    assert_eq!((one.value, one.interval.lo), (2.0, None));
}

/// 3 - 1 and 5 - 2: mean 2.5, standard error 1/2, t = 1.
#[test]
fn pairs_by_hand() {
    let e = paired_difference(&[3.0, 5.0], &[1.0, 2.0], 0.5).unwrap();
    assert_eq!(e.value, 2.5);
    near(e.interval, 2.0, 3.0);
    assert!(paired_difference(&[3.0], &[1.0, 2.0], 0.5).is_none());
    assert!(paired_ratio(&[3.0], &[1.0, 2.0], 0.5).is_none());
    assert!(paired_difference(&[], &[], 0.5).is_none());
    // 6 / 4 of pairs (2, 1) and (4, 3): residuals 2 - r, 4 - 3r; their mean
    // 3 - 2r is as far from 0 as its standard error |1 - r|: r = 2 and 4/3.
    near(
        paired_ratio(&[2.0, 4.0], &[1.0, 3.0], 0.5)
            .unwrap()
            .interval,
        4.0 / 3.0,
        2.0,
    );
}

/// Median of 1 .. 10: 5.5, bounds 2.657658 and 8.342342 (Hettmansperger and
/// Sheather), arms 2.842342. Of 100 .. 280 by 20: 190, arms 20 times that.
#[test]
fn medians_by_hand() {
    let a = numbers_of(&[3.0, 1.0, 2.0, 10.0, 4.0, 7.0, 6.0, 5.0, 9.0, 8.0]);
    let b = Numbers::new(a.values().iter().map(|x| 80.0 + 20.0 * x).collect());
    let arm = 2.842_342 * 401_f64.sqrt();
    let e = difference_of_quantiles(&b, &a, 0.5, 0.95).unwrap();
    assert_eq!((e.value, e.n), (184.5, 20));
    near(e.interval, 184.5 - arm, 184.5 + arm);
    let e = ratio_of_quantiles(&b, &a, 0.5, 0.95).unwrap();
    assert!((e.value - 190.0 / 5.5).abs() < 1e-9);
    let (below, above) = (
        (190.0_f64 / 133.153_15)
            .ln()
            .hypot((8.342_342_f64 / 5.5).ln()),
        (246.846_85_f64 / 190.0)
            .ln()
            .hypot((5.5_f64 / 2.657_658).ln()),
    );
    let i = e.interval;
    assert!(
        (i.lo.unwrap() / (190.0 / 5.5 * (-below).exp()) - 1.0).abs() < 1e-6,
        "{i:?}"
    );
    assert!(
        (i.hi.unwrap() / (190.0 / 5.5 * above.exp()) - 1.0).abs() < 1e-6,
        "{i:?}"
    );
}

#[test]
fn a_bound_that_is_not_there() {
    let (few, many) = (
        numbers_of(&[1.0, 2.0]),
        numbers_of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]),
    );
    let e = difference_of_quantiles(&few, &many, 0.5, 0.95).unwrap();
    assert_eq!((e.interval.lo, e.interval.hi), (None, None));
    assert_eq!(
        e.notes,
        ["too few samples for both bounds of the 0.5 quantile"]
    );
    // A quantile that is not positive has no ratio; a bound that is not positive leaves none on its
    // side.
    assert!(ratio_of_quantiles(&many, &numbers_of(&[0.0; 9]), 0.5, 0.95).is_none());
    assert!(ratio_of_quantiles(&numbers_of(&[0.0; 9]), &many, 0.5, 0.95).is_none());
    let low: Vec<f64> = (-1..12).map(f64::from).collect();
    let e = ratio_of_quantiles(&numbers_of(&low), &many, 0.5, 0.99).unwrap();
    assert_eq!(e.interval.lo, None);
}
