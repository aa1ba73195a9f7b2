use super::*;

/// By hand: 1, 2, 3, 4, 5 have mean 3, variance 2.5; t(4, 97.5 %) = 2.776445;
/// chi-squared(4) at 2.5 % and 97.5 % = 0.484419 and 11.143287 (tables).
#[test]
fn five_numbers() {
    let values = [1.0, 2.0, 3.0, 4.0, 5.0];
    let mean = mean_of_repetitions(&values, 0.0, 0.95, "ns").unwrap();
    assert_eq!(mean.value, 3.0);
    let half = 2.776_445 * (2.5_f64 / 5.0).sqrt();
    assert!((mean.interval.hi.unwrap() - 3.0 - half).abs() < 1e-5);
    assert!((mean.interval.lo.unwrap() - 3.0 + half).abs() < 1e-5);
    let sd = spread_of_repetitions(&values, 0.95, "ns").unwrap();
    assert!((sd.value - 1.581_139).abs() < 1e-6);
    assert!((sd.interval.lo.unwrap() - (10.0_f64 / 11.143_287).sqrt()).abs() < 1e-5);
    assert!((sd.interval.hi.unwrap() - (10.0_f64 / 0.484_419).sqrt()).abs() < 1e-5);
}

#[test]
fn equal_repetitions_do_not_claim_certainty() {
    let mean = mean_of_repetitions(&[7.0; 4], 2.0, 0.95, "ns").unwrap();
    // t(3, 97.5 %) = 3.182446, of sd 2 over 4 repetitions.
    assert!((mean.interval.hi.unwrap() - 7.0 - 3.182_446).abs() < 1e-5);
    assert!(mean_of_repetitions(&[7.0], 2.0, 0.95, "ns").is_none());
}
