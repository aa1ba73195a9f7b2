use super::*;

/// The fifteen p-values of Benjamini and Hochberg's own example (myocardial
/// infarction): at 0.05 the first four are rejected. By hand: 0.0201 * 15 / 5 =
/// 0.0603; 0.0095 * 15 / 4 = 0.035625; 0.0019 * 15 / 3 = 0.0095.
#[test]
fn the_published_example() {
    let p = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
        0.5719, 0.6528, 0.7590, 1.0,
    ];
    let found = adjusted(&p);
    assert_eq!(found.iter().filter(|&&p| p <= 0.05).count(), 4);
    assert!((found[2] - 0.0095).abs() < 1e-12 && (found[3] - 0.035_625).abs() < 1e-12);
    assert!((found[0] - 0.0015).abs() < 1e-12);
    // 0.0278 * 15 / 6 = 0.0695, 0.0298 * 15 / 7 = 0.06386, 0.0201 * 15 / 5 = 0.0603.
    assert!((found[4] - 0.0603).abs() < 1e-12 && (found[5] - 0.063_857_142).abs() < 1e-8);
    assert!((simes(&p).unwrap() - 0.0015).abs() < 1e-12);
}

#[test]
fn order_does_not_matter() {
    let found = adjusted(&[0.9, 0.02, 0.9, 0.001]);
    assert!((found[3] - 0.004).abs() < 1e-12 && (found[1] - 0.04).abs() < 1e-12);
    assert!((found[0] - 0.9).abs() < 1e-12);
    assert!(adjusted(&[]).is_empty() && simes(&[]).is_none());
    assert_eq!(adjusted(&[0.3]), [0.3]);
}
