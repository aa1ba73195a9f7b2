//! Corrections for many simultaneous tests.

/// The p-values adjusted by the method of Benjamini and Hochberg (1995). If those up to q are
/// called discoveries, at most the share q of the discoveries is false on average. This holds if
/// tests of true hypotheses are independent or depend positively on one another.
///
/// ```
/// let adjusted = undertick_estimate::fleet::adjusted(&[0.01, 0.04, 0.03]);
/// assert!((adjusted[0] - 0.03).abs() < 1e-12 && (adjusted[2] - 0.04).abs() < 1e-12);
/// ```
#[must_use]
pub fn adjusted(p: &[f64]) -> Vec<f64> {
    let n = p.len() as f64;
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_unstable_by(|&i, &j| p[j].total_cmp(&p[i]));
    let mut least = 1.0_f64;
    let mut adjusted = vec![1.0; p.len()];
    for (above, &i) in order.iter().enumerate() {
        let rank = n - above as f64;
        least = least.min(p[i] * n / rank);
        adjusted[i] = least;
    }
    adjusted
}

/// One p-value for "none of these is false" (Simes 1986), valid under the same conditions as
/// [`adjusted`]. `None` without p-values.
#[must_use]
pub fn simes(p: &[f64]) -> Option<f64> {
    adjusted(p).into_iter().reduce(f64::min)
}

#[cfg(test)]
mod tests;
