use super::*;

/// By hand: beyond 1, the triangular density leaves the integral of u Phi(-u/s) over u, s^2/4,
/// on either side: s^2/2 = 0.01 if s is small.
#[test]
fn the_exact_bound() {
    let s2 = largest_scatter(0.99).powi(2);
    assert!((s2 - 0.02).abs() < 1e-4, "{s2}");
}

/// By hand: sqrt(29500/0.04) = 858.78.
#[test]
fn the_longest_activity() {
    let formula = longest_activity().formula.unwrap();
    assert!((formula - 858.778).abs() < 1e-3, "{formula}");
}

#[test]
fn few_digits() {
    assert_eq!(
        [52.0, 0.022_09, 3.919_93, 147.5].map(short),
        ["52", "0.02209", "3.920", "147.5"]
    );
}
