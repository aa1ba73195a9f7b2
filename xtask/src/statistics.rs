//! The statistics that the benchmarks need: medians of ratios within one run.

/// Median; NaN for no values.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Quantile by nearest rank; NaN for no values.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or(f64::NAN)
}

/// 95 % confidence interval of the median by order statistics (binomial, normal ranks).
pub fn median_interval(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let half = 1.96 * n.sqrt() / 2.0;
    let at = |rank: f64| quantile(values, (rank / n).clamp(0.0, 1.0));
    (
        at((n / 2.0 - half).floor().max(1.0)),
        at((n / 2.0 + half).ceil() + 1.0),
    )
}

#[cfg(test)]
mod tests;
