use super::*;

#[test]
fn quantiles_match_the_printed_tables() {
    assert!((normal(0.95) - 1.959_964).abs() < 1e-5);
    assert!((student(0.95, 1.0) - 12.706_205).abs() < 1e-4);
    assert!((student(0.95, 31.0) - 2.039_513).abs() < 1e-5);
    assert!((student(0.99, 9.0) - 3.249_836).abs() < 1e-5);
}

/// 1, 2, 3, 4: variance 5/3; lag-1 products 0.75 - 0.25 + 0.75 over 5.
#[test]
fn variance_and_lag1_by_hand() {
    let (v, r) = variance_and_lag1(&[1.0, 2.0, 3.0, 4.0]);
    assert!((v - 5.0 / 3.0).abs() < 1e-12);
    assert!((r - 0.25).abs() < 1e-12);
    assert_eq!(variance_and_lag1(&[2.0, 2.0]), (0.0, 0.0));
}

#[test]
fn a_ramp_is_too_short_for_its_correlation() {
    let ramp: Vec<f64> = (0..512).map(f64::from).collect();
    let spread = spread_of_mean(&ramp).unwrap();
    assert!(spread.too_short);
    assert!(
        spread.half_width(0.95) > 256.0,
        "the whole ramp: {spread:?}"
    );
    assert!(is_correlated(&ramp));
}

#[test]
fn too_few_is_none() {
    assert_eq!(spread_of_mean(&[]), None);
    assert_eq!(spread_of_mean(&[1.0]), None);
    assert_eq!(spread_of_mean(&[1.0, 3.0]).unwrap().variance, 1.0);
}

/// The sum of `k` neighbours among the squares modulo 401.
fn smooth(k: u32, n: u32) -> Vec<f64> {
    let square = |i: u32| f64::from(i * i % 401);
    (1..=n).map(|i| (i..i + k).map(square).sum()).collect()
}

#[track_caller]
fn spread(values: &[f64], batches: usize, variance: f64, correlation: f64, too_short: bool) {
    let s = spread_of_mean(values).unwrap();
    assert_eq!(
        (s.batches, s.degrees, s.too_short),
        (batches, (batches - 1) as f64, too_short)
    );
    assert!((s.variance / variance - 1.0).abs() < 1e-6, "{s:?}");
    assert!((s.correlation - correlation).abs() < 1e-6, "{s:?}");
}

/// Variances and correlations of each level were calculated independently, in Python; the rules
/// were then applied by hand.
#[test]
fn merging_by_hand() {
    // 15 and 63 values are used as they are: correlation 0.013 .. no more than 2.33 errors.
    let few = smooth(1, 15);
    let (v, _) = variance_and_lag1(&few);
    spread(&few, 15, v / 15.0, 0.0, false);
    // 64 are more than 63; r 0.328759 is 2.63 errors, halved it widens 32 batches.
    spread(
        &smooth(1, 64),
        32,
        398.654_706_4 * 1.328_759_34,
        0.164_379_67,
        false,
    );
    // 0.549174 / 2 is too large for 63; r 0.283918 there is 2.25 errors.
    spread(
        &smooth(2, 126),
        31,
        539.685_535_9 * 1.283_918_47,
        0.141_959_23,
        false,
    );
    // 0.592083 / 4 from 126 batches; that of 63, 0.205341, is 1.63 errors.
    spread(
        &smooth(4, 252),
        31,
        1_176.069_685_4 * 1.296_041_55,
        0.148_020_78,
        false,
    );
    // 31 batches cannot be halved: an autoregression of 126, r 0.741419, phi 0.767632,
    // equivalent to 16.6 independent ones.
    let s = spread_of_mean(&smooth(4, 126)).unwrap();
    assert_eq!((s.batches, s.too_short), (126, false));
    for (found, expected) in [
        (s.variance, 3_963.677_859_2),
        (s.correlation, 0.767_632_05),
        (s.degrees, 9.913_492_1),
    ] {
        assert!((found / expected - 1.0).abs() < 1e-6, "{s:?}");
    }
    // 62 values would be equivalent to 4.1: the variance is that of a value, not over 31.
    let (few, merged) = (smooth(4, 62), |values: &[f64]| -> Vec<f64> {
        values
            .chunks_exact(2)
            .map(|p| (p[0] + p[1]) / 2.0)
            .collect()
    });
    let (v, r) = variance_and_lag1(&merged(&few));
    spread(&few, 31, v, r, true);
    assert!(is_correlated(&smooth(1, 64)));
    assert!(!is_correlated(&smooth(1, 15)) && !is_correlated(&smooth(4, 15)));
}

/// Alternates up and down by 10, under a wave of 1 that is 64 long: only pairs show it.
#[test]
fn a_correlation_under_an_alternation_is_seen() {
    let wave = |i: u32| f64::from(i / 32 % 2);
    let values: Vec<f64> = (0..256)
        .map(|i| wave(i) + f64::from(i % 2) * 10.0)
        .collect();
    assert!(is_correlated(&values));
    let flat: Vec<f64> = (0..256).map(|i| f64::from(i % 2) * 10.0).collect();
    assert!(!is_correlated(&flat));
}

#[test]
fn the_normal_quantile_is_two_sided() {
    assert!((normal_quantile(0.95) - 1.959_964).abs() < 1e-5);
    // Beyond a million degrees Student's t is treated as normal.
    assert_eq!(student(0.95, 1e6), normal(0.95));
    assert!(student(0.95, 999.0) > normal(0.95) + 2e-3);
}
