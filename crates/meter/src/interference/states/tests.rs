use super::time_for_its_own;

/// Five bursts of 10 in which the probe had 1, 1, 1, 1 and 5: 50 over 9. The part is 0.18 with a
/// standard error of 0.08; four degrees of freedom widen it to -0.04 to 0.40. So it may be nearly all
/// that others took, and is at least 1 / 0.40.
#[test]
fn others_do_not_make_the_probe_faster() {
    let found = time_for_its_own(&[10.0; 5], &[1.0, 1.0, 1.0, 1.0, 5.0], 0.95).unwrap();
    assert!((found.value - 50.0 / 9.0).abs() < 1e-9, "{found:?}");
    let lo = found.interval.lo.unwrap();
    assert!((1.0..3.5).contains(&lo), "{found:?}");
    assert_eq!(found.interval.hi, None, "{found:?}");
}

/// Bursts that agree: 10 for 5 and 5.1 in turn is 1.98, and its interval holds 10 / 5.05.
#[test]
fn bursts_that_agree_have_two_bounds() {
    let own: Vec<f64> = (0..40).map(|i| 5.0 + 0.1 * f64::from(i % 2)).collect();
    let found = time_for_its_own(&[10.0; 40], &own, 0.95).unwrap();
    let (lo, hi) = (found.interval.lo.unwrap(), found.interval.hi.unwrap());
    assert!(
        lo < 10.0 / 5.05 && 10.0 / 5.05 < hi && hi - lo < 0.05,
        "{found:?}"
    );
}

/// A probe that was never disturbed is not faster than itself.
#[test]
fn nothing_taken_is_one() {
    let found = time_for_its_own(&[10.0; 5], &[10.0; 5], 0.95).unwrap();
    assert_eq!((found.value, found.interval.lo), (1.0, Some(1.0)));
}
