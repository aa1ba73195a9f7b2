use super::*;

/// 0 three times and 1 once: m2 3/16, m3 3/32, m4 21/256.
#[test]
fn shape_by_hand() {
    let s = Shape::from_weighted([(5.0, 3.0), (6.0, 1.0)].into_iter());
    assert!((s.skewness - (3.0 / 32.0) / (3.0_f64 / 16.0).powf(1.5)).abs() < 1e-12);
    assert!((s.excess - (21.0 / 256.0 / (9.0 / 256.0) - 3.0)).abs() < 1e-12);
    assert_eq!(
        Shape::from_weighted([(5.0, 3.0)].into_iter()),
        Shape::default()
    );
    assert_eq!(Shape::from_weighted(std::iter::empty()), Shape::default());
}

/// Exponential: skewness 2, excess 6; z^2 = 3.841459 at 95 %:
/// 4 (14.75680 + 7.68292 - 3) / 18 - 6 * 0.841459 / 12 = 3.899211.
#[test]
fn exponential_by_hand() {
    let shape = Shape {
        skewness: 2.0,
        excess: 6.0,
    };
    let m = mend(shape, 50.0, 0.95);
    assert!((m.factor - (1.0 + 3.899_211 / 50.0)).abs() < 1e-5, "{m:?}");
    assert_eq!(m.shift, 1.0);
    let far = Shape {
        skewness: 9.0,
        excess: 6.0,
    };
    assert_eq!(mend(far, 10.0, 0.95).factor, 2.0);
    assert_eq!(mend(far, 9.9, 0.95).factor, 1.0);
    let flat = Shape {
        skewness: 0.0,
        excess: 6.0,
    };
    assert_eq!(mend(flat, 50.0, 0.95).factor, 1.0, "never narrower");
}
