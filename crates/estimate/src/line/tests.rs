use super::*;

#[track_caller]
fn near(found: f64, expected: f64) {
    assert!(
        (found / expected - 1.0).abs() < 1e-5,
        "{found}, not {expected}"
    );
}

/// Calculated independently, in Python: each point left out in turn, degrees 3.2731 and 1.9818
/// with t 3.037357 and 4.340718.
#[test]
fn six_points_match_another_calculation() {
    let l = line(
        &[1.0, 2.0, 4.0, 7.0, 9.0, 10.0],
        &[1.0, 3.0, 4.0, 9.0, 8.0, 13.0],
        0.95,
    )
    .unwrap();
    near(l.slope.value, 1.136_690_647);
    near(l.slope.interval.half_width().unwrap(), 0.732_719_57);
    near(l.slope.n_effective, 3.536_167_7);
    assert!(l.slope.notes.is_empty(), "{:?}", l.slope.notes);
    near(l.intercept.value, 0.081_534_772);
    near(l.intercept.interval.half_width().unwrap(), 3.390_715_1);
    assert_eq!((l.intercept.n, l.intercept.n_effective), (6, 6.0));
    let middle = |e: &Estimate| (e.interval.lo.unwrap() + e.interval.hi.unwrap()) / 2.0;
    near(middle(&l.slope), 1.136_690_647);
    near(middle(&l.intercept), 0.081_534_772);
}

#[test]
fn exact_points_and_too_few() {
    let l = line(&[0.0, 1.0, 2.0, 4.0], &[3.0, 5.0, 7.0, 11.0], 0.95).unwrap();
    assert_eq!((l.slope.value, l.intercept.value), (2.0, 3.0));
    assert!(l.slope.interval.half_width().unwrap() < 1e-12);
    assert_eq!(line(&[1.0, 2.0], &[1.0], 0.95), None);
    assert_eq!(line(&[], &[], 0.95), None);
    assert_eq!(line(&[2.0; 9], &[1.0; 9], 0.95), None);
    let two = line(&[1.0, 2.0], &[1.0, 5.0], 0.95).unwrap();
    assert_eq!((two.slope.value, two.intercept.value), (4.0, -3.0));
    assert_eq!(two.slope.interval.lo, None);
    assert!(two.slope.notes[0].contains("fewer than 4"));
    // A single point determines the slope.
    let lone = line(&[1.0, 1.0, 1.0, 1.0, 2.0], &[1.0, 2.0, 1.0, 2.0, 9.0], 0.95).unwrap();
    assert_eq!(lone.slope.interval.lo, None);
    assert!(lone.slope.notes[0].contains("one block"));
}

/// A parabola is not a line: its residuals stay correlated at every scale.
#[test]
fn a_bend_is_said() {
    let x: Vec<f64> = (0..400).map(f64::from).collect();
    let y: Vec<f64> = x.iter().map(|x| x * x / 400.0).collect();
    let l = line(&x, &y, 0.95).unwrap();
    assert!((l.slope.value - 0.9975).abs() < 1e-9);
    assert!(
        l.slope.notes[0].contains("too few points"),
        "{:?}",
        l.slope.notes
    );
    // The slope may be as steep as at the ends, or flat.
    assert!(
        l.slope.interval.half_width().unwrap() > 0.5,
        "{:?}",
        l.slope
    );
}

/// Large x with little spread, 1e9 .. 1e9 + 9.
#[test]
fn large_x_keep_their_digits() {
    let x: Vec<f64> = (0..10).map(|i| 1e9 + f64::from(i)).collect();
    let y: Vec<f64> = (0..10).map(|i| 7.0 + 3.0 * f64::from(i)).collect();
    let l = line(&x, &y, 0.95).unwrap();
    assert!((l.slope.value - 3.0).abs() < 1e-9);
    assert!((l.intercept.value + 2_999_999_993.0).abs() < 1.0);
}
