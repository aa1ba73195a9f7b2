use super::*;

/// Nine up and one down: 2 * (1 + 10) / 1024. Ranks of the median of 10 at 95 %: 2
/// and 9.
#[test]
fn ten_by_hand() {
    let found = change(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, -1.0], 0.95).unwrap();
    assert_eq!((found.value, found.n), (4.5, 10));
    assert_eq!((found.lo, found.hi), (Some(1.0), Some(8.0)));
    assert!((found.p - 22.0 / 1024.0).abs() < 1e-12, "{found:?}");
}

#[test]
fn nothing_changed() {
    let found = change(&[0.0; 7], 0.95).unwrap();
    assert_eq!((found.value, found.p), (0.0, 1.0));
    assert_eq!(change(&[], 0.95), None);
    assert_eq!(change(&[0.5], 0.95).unwrap().lo, None);
}
