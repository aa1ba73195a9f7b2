use super::{median, median_interval};

#[test]
fn order_statistics_of_a_hundred() {
    let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
    assert_eq!(median(&values), 50.0);
    // Ranks 40 and 61 are the tabled 95 % interval of the median for n = 100.
    assert_eq!(median_interval(&values), (40.0, 61.0));
    assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
    assert!(median(&[]).is_nan());
}
