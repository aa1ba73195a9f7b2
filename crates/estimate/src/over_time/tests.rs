use super::*;

/// 16 slices of two values with sums 8 and 12 in turn, so the mean is 5 and the
/// residuals are -2 and 2: variance 64 / 15 of one, over 16; two values a slice.
#[test]
fn by_hand() {
    let sums: Vec<f64> = (0..16).map(|i| [8.0, 12.0][i % 2]).collect();
    let spread = spread_over_time(&[2.0; 16], &sums).unwrap();
    assert!((spread.variance - 64.0 / 15.0 / 16.0 / 4.0).abs() < 1e-12);
    assert_eq!(spread.degrees, 15.0);
}

#[test]
fn fewer_than_16_slices_say_nothing() {
    let mut counts = vec![1.0; 15];
    counts.extend([0.0; 100]);
    assert_eq!(spread_over_time(&counts, &vec![3.0; 115]), None);
    assert_eq!(spread_over_time(&[], &[]), None);
}
