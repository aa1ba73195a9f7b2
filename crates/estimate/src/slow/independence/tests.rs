use super::*;

fn counted(counts: &[i64]) -> ActivityCounts {
    let mut of = ActivityCounts::default();
    counts.iter().for_each(|&count| of.push(count));
    of
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// 240 counts of a fixed irregular sequence, everything calculated from its definition: there
/// are 60 batches of 4, the first number below 64.
#[test]
fn by_definition() {
    let counts: Vec<i64> = (0..240_i64).map(|i| (i * i * 7 + i / 3) % 11 % 4).collect();
    let x: Vec<f64> = counts.iter().map(|&c| c as f64).collect();
    let m = mean(&x);
    let variance = mean(&x.iter().map(|v| v * v).collect::<Vec<_>>()) - m * m;
    let found = Independence::from_counts(&counted(&counts)).unwrap();
    for lag in 1..=LAGS {
        let products: Vec<f64> = x.windows(lag + 1).map(|w| w[0] * w[lag]).collect();
        let r = (mean(&products) - m * m) / variance;
        assert!((found.autocorrelation[lag - 1] - r).abs() < 1e-12, "{lag}");
    }
    let q: f64 = found.autocorrelation.iter().map(|r| 240.0 * r * r).sum();
    // Chi-squared with 4 degrees has the closed form 1 - exp(-q/2) (1 + q/2).
    let p = (-q / 2.0).exp() * (1.0 + q / 2.0);
    assert!((found.p_autocorrelation - p).abs() < 1e-9, "{found:?}");
    let batches: Vec<f64> = x.chunks(4).map(mean).collect();
    let between: f64 =
        batches.iter().map(|b| (b - m) * (b - m)).sum::<f64>() / (batches.len() - 1) as f64;
    assert_eq!(batches.len(), 60);
    assert!((found.batch_ratio - 4.0 * between / variance).abs() < 1e-12);
    let (ratio, degrees) = batch_ratio(&counted(&counts), variance).unwrap();
    assert_eq!((ratio, degrees), (found.batch_ratio, 59.0));
}

/// Chi-squared with 2 degrees is exponential.
#[test]
fn probabilities_by_hand() {
    assert!((chi_squared(3.0, 2.0) - (1.0 - (-1.5_f64).exp())).abs() < 1e-9);
    assert_eq!(chi_squared(-1.0, 2.0), 0.0);
    let found = |p_autocorrelation, p_batches| Independence {
        autocorrelation: [0.0; LAGS],
        batch_ratio: 1.0,
        p_autocorrelation,
        p_batches,
    };
    assert!(!found(0.0011, 0.0011).is_rejected());
    assert!(found(0.0009, 0.5).is_rejected() && found(0.5, 0.0009).is_rejected());
}

#[test]
fn swinging_and_balancing_counts_are_told_apart() {
    // 32 zeros, 32 ones and so on swing together; 0, 1, 0, 1 balance.
    let swings: Vec<i64> = (0..1024).map(|i| i / 32 % 2).collect();
    let balances: Vec<i64> = (0..1024).map(|i| i % 2).collect();
    let swings = Independence::from_counts(&counted(&swings)).unwrap();
    let balances = Independence::from_counts(&counted(&balances)).unwrap();
    assert!(
        swings.batch_ratio > 10.0 && swings.is_rejected(),
        "{swings:?}"
    );
    assert!(
        balances.batch_ratio < 0.1 && balances.is_rejected(),
        "{balances:?}"
    );
    assert!(balances.autocorrelation[0] < -0.9 && balances.autocorrelation[1] > 0.9);
    assert!(swings.p_batches < 1e-6 && balances.p_batches < 1e-6);
}

/// 63 counts are too few, and so are 7 batches.
#[test]
fn too_few_say_nothing() {
    let mixed = |n: i64| (0..n).map(|i| i * 5 % 3).collect::<Vec<i64>>();
    assert_eq!(Independence::from_counts(&counted(&mixed(63))), None);
    assert!(Independence::from_counts(&counted(&mixed(64))).is_some());
    assert_eq!(Independence::from_counts(&counted(&[1; 100])), None);
    assert_eq!(batch_ratio(&counted(&mixed(7)), 1.0), None);
    let (_, degrees) = batch_ratio(&counted(&mixed(8)), 1.0).unwrap();
    assert_eq!(degrees, 7.0);
    let (_, degrees) = batch_ratio(&counted(&mixed(63)), 1.0).unwrap();
    assert_eq!(degrees, 62.0);
    let (_, degrees) = batch_ratio(&counted(&mixed(64)), 1.0).unwrap();
    assert_eq!(degrees, 31.0);
}
