use super::two_ends;

/// 1 - (1 - w)^2 = 0.9 at w = 0.683772; 0.99 at 0.9.
#[test]
fn the_triangle_alone() {
    assert!((two_ends(0.0, 9.0, 0.9) - 0.683_772).abs() < 1e-6);
    assert!((two_ends(0.0, 9.0, 0.99) - 0.9).abs() < 1e-9);
    assert!((two_ends(1e-6, f64::INFINITY, 0.9) - 0.683_772).abs() < 1e-4);
}

/// Where the scatter is large the ends are a variance of 1/6:
/// 1.644854 sqrt(100 + 1/6) = 16.4622.
#[test]
fn the_scatter_alone() {
    assert!((two_ends(10.0, f64::INFINITY, 0.9) - 16.4622).abs() < 2e-3);
    // Student's t(0.95; 5) = 2.015048.
    assert!((two_ends(1e3, 5.0, 0.9) - 2015.048).abs() < 0.1);
}
