use super::*;

#[test]
fn scales_by_hand() {
    // Clocks of 2 GHz and of 3 GHz.
    let scale = Scale::new(1000, [2_000_000_000, 1], [3_000_000_000, 1]);
    assert_eq!(scale.common(1000), Some(0));
    assert_eq!((scale.common(1002), scale.common(998)), (Some(3), Some(-3)));
    assert_eq!((scale.local(3), scale.local(-3)), (1002, 998));
    // The same rate, written in two ways: no tick is lost, over any distance.
    let same = Scale::new(i64::MIN, [1_000_000_000, 1], [2_000_000_000, 2]);
    assert_eq!(same.common(-1), Some(i64::MAX));
    assert_eq!(same.common(0), None);
    assert_eq!(same.local(i64::MAX), -1);
    // 64-bit fractions, 30 days.
    let scale = Scale::new(0, [u64::MAX, 1 << 33], [u64::MAX - 1, 1 << 33]);
    let month = 30 * 86_400 * 2_000_000_000_i64;
    assert!((scale.common(month).unwrap() - month).abs() <= 1);
}
