use super::*;

/// By hand: a part of 0.25 ticks counts 1 with probability 1/4, one of 1.5
/// counts 1 or 2; over 40 repetitions of 1000 cycles the standard errors are
/// 0.0022 and 0.0025; 6 of them are a false alarm in 10^8.
#[test]
fn means_are_those_put_in() {
    let runs = mean_counts(&[0.25, 1.5], 1000, 40);
    let mean = |i: usize| runs.iter().map(|r| r[i]).sum::<f64>() / 40.0;
    assert!((mean(1) - 0.25).abs() < 6.0 * 0.0022, "{}", mean(1));
    assert!((mean(2) - 1.5).abs() < 6.0 * 0.0025, "{}", mean(2));
    assert!((mean(0) - 1.75).abs() < 6.0 * 0.0022, "{}", mean(0));
}
