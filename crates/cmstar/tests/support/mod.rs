//! Common code of the tests: intervals from seeds, plain sums.
#![allow(dead_code, reason = "each test uses a part of it")]

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Probability of a false alarm, for each interval.
const FALSE_ALARM: f64 = 1e-6;

/// Returns mean and half-width of the interval from the scatter between seeds, at 1 - 1e-6:
/// Student's t.
pub fn interval(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let t = StudentsT::new(0.0, 1.0, n - 1.0).unwrap();
    let quantile = t.inverse_cdf(1.0 - FALSE_ALARM / 2.0);
    (mean(values), quantile * sd(values) / n.sqrt())
}

/// Asserts that an external truth lies within the interval of several seeds.
pub fn assert_agrees(what: &str, values: &[f64], truth: f64) {
    let (mean, half) = interval(values);
    println!("{what}: {mean:.6} +- {half:.6}, in theory {truth:.6}");
    assert!(
        (mean - truth).abs() <= half,
        "{what}: {mean} +- {half} over {} seeds, in theory {truth}",
        values.len()
    );
    // A band that contains everything tests nothing.
    assert!(half < 0.05 * truth.abs(), "{what}: +- {half} is no test");
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

pub fn sd(values: &[f64]) -> f64 {
    variance(values).sqrt()
}

pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * q).round() as usize]
}

/// Asserts that a figure is the published one within a share of it.
pub fn assert_within(what: &str, value: f64, published: f64, share: f64) {
    let relative = value / published - 1.0;
    println!(
        "{what}: {value:.2}, published {published} ({:+.1} %)",
        100.0 * relative
    );
    assert!(
        relative.abs() <= share,
        "{what}: {value}, published {published}, allowed are {} %",
        100.0 * share
    );
}
