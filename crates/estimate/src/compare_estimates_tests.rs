use super::*;

fn estimate(value: f64, lo: f64, hi: f64, level: f64, n_effective: f64) -> Estimate {
    Estimate {
        value,
        interval: Interval::new(lo, hi),
        level,
        unit: "ns".into(),
        method: String::new(),
        n: 100,
        n_effective,
        notes: vec![],
    }
}

fn close(x: Option<f64>, y: f64) {
    assert!(x.is_some_and(|x| (x - y).abs() < 1e-3), "{x:?} {y}");
}

/// By hand: 100 [90, 110] and 130 [118, 140]. Difference 30: lower arm the root of
/// 12^2 + 10^2 = 15.620, upper that of 10^2 + 10^2 = 14.142.
#[test]
fn a_difference_by_hand() {
    let found = versus(
        &estimate(100.0, 90.0, 110.0, 0.95, 9.0),
        &estimate(130.0, 118.0, 140.0, 0.95, 9.0),
        0.95,
    );
    let bounds = found.difference.interval;
    assert_eq!(found.difference.value, 30.0);
    close(bounds.lo, 14.380);
    close(bounds.hi, 44.142);
    assert_eq!(found.difference.unit, "ns");
}

/// By hand: 100 [80, 125] and 200 [160, 250], all arms ln 1.25 = 0.22314; their root of squares
/// 0.31557, so 2 / 1.37104 and 2 * 1.37104. With 8 degrees each the standard error is 0.22314 /
/// 2.3060 = 0.096766, both together 0.136848; ln 2 is 5.0651 of them. Welch: 16 degrees; P(|t16| >
/// 5.0651) = 1.157e-4 (printed tables: 4.015 at 0.001, 5.134 at 0.0001).
#[test]
fn a_ratio_and_its_chance_by_hand() {
    let found = versus(
        &estimate(100.0, 80.0, 125.0, 0.95, 9.0),
        &estimate(200.0, 160.0, 250.0, 0.95, 9.0),
        0.95,
    );
    let ratio = found.ratio.unwrap();
    assert_eq!((ratio.value, ratio.unit.as_str()), (2.0, "1"));
    close(ratio.interval.lo, 2.0 / 1.371_04);
    close(ratio.interval.hi, 2.0 * 1.371_04);
    let p = found.p.unwrap();
    assert!(p > 1.0e-4 && p < 1.35e-4, "{p}");
    // Swapped: the ratio is the inverse, the chance is the same.
    let back = versus(
        &estimate(200.0, 160.0, 250.0, 0.95, 9.0),
        &estimate(100.0, 80.0, 125.0, 0.95, 9.0),
        0.95,
    );
    assert!(
        (back.ratio.unwrap().interval.lo.unwrap() * ratio.interval.hi.unwrap() - 1.0).abs() < 1e-12
    );
    assert!((back.p.unwrap() / p - 1.0).abs() < 1e-9);
}

/// t(0.975; 8) = 2.3060, t(0.995; 8) = 3.3554.
#[test]
fn an_interval_is_brought_to_another_level() {
    let found = versus(
        &estimate(100.0, 90.0, 110.0, 0.95, 9.0),
        &estimate(100.0, 100.0, 100.0, 0.95, 9.0),
        0.99,
    );
    close(found.difference.interval.hi, 10.0 * 3.3554 / 2.3060);
    assert_eq!(found.p, Some(1.0));
}

#[test]
fn hard_bounds_are_no_chance() {
    let a = estimate(10.0, 9.0, 11.0, 1.0, 2.0);
    let near = versus(&a, &estimate(11.5, 11.0, 12.0, 1.0, 2.0), 0.95);
    assert_eq!(near.p, Some(1.0));
    let far = versus(&a, &estimate(12.6, 12.0, 13.2, 1.0, 2.0), 0.95);
    assert_eq!(far.p, Some(0.0));
    // 2.6 less 1 and 0.6.
    close(far.difference.interval.lo, 1.0);
}

/// An interval that reaches 0 has no logarithm: the ratio is stated, its bounds are
/// not, and chance is judged by the difference.
#[test]
fn near_zero() {
    let found = versus(
        &estimate(1.0, -1.0, 3.0, 0.95, 9.0),
        &estimate(9.0, 8.0, 10.0, 0.95, 9.0),
        0.95,
    );
    let ratio = found.ratio.unwrap();
    assert_eq!(
        (ratio.value, ratio.interval.lo, ratio.interval.hi),
        (9.0, None, None)
    );
    assert!(found.p.unwrap() < 1e-3);
    assert!(
        versus(
            &estimate(-1.0, -2.0, 0.0, 0.95, 9.0),
            &estimate(1.0, 0.5, 1.5, 0.95, 9.0),
            0.95
        )
        .ratio
        .is_none()
    );
}

#[test]
fn a_missing_bound_is_missed_only_where_it_counts() {
    let mut a = estimate(100.0, 90.0, 110.0, 0.95, 9.0);
    a.interval.lo = None;
    // Towards b, the upper bound of a counts.
    let found = versus(&a, &estimate(130.0, 118.0, 140.0, 0.95, 9.0), 0.95);
    assert!(found.p.is_some() && found.difference.interval.lo.is_some());
    assert_eq!(found.difference.interval.hi, None);
    a.interval.hi = None;
    assert_eq!(
        versus(&a, &estimate(130.0, 118.0, 140.0, 0.95, 9.0), 0.95).p,
        None
    );
}

/// Half-width 10 over t(0.975; 8); the logarithm of 1.21 / 2 over the same.
#[test]
fn standard_errors_by_hand() {
    close(
        standard_error(&estimate(100.0, 90.0, 110.0, 0.95, 9.0)),
        10.0 / 2.3060,
    );
    close(
        standard_error_of_ln(&estimate(1.1, 1.0, 1.21, 0.95, 9.0)),
        0.095_310 / 2.3060,
    );
    close(
        standard_error(&estimate(100.0, 97.0, 103.0, 1.0, 2.0)),
        3.0 / 3.0_f64.sqrt(),
    );
    assert_eq!(
        standard_error_of_ln(&estimate(1.0, 0.0, 2.0, 0.95, 9.0)),
        None
    );
}
