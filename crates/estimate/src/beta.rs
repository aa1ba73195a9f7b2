//! The beta distribution, and by it Student's t and the tails of the binomial and of Fisher's F. Probabilities are
//! within 1e-10 of the true ones.
//!
//! `statrs` 0.19 is not used for these: its continued fraction ends after 140 terms, so that
//! binomial probabilities of 10^8 events exceed 1, and its inversion does not end for many pairs of
//! counts, such as 309 of 4 005 489.

use core::f64::consts::TAU;

use statrs::function::gamma::ln_gamma;

/// Most terms of the continued fraction; shapes of 10^9 need some 10^5.
const MOST_TERMS: u32 = 1_000_000;
/// Most steps of the inversion, of which few are needed.
const MOST_STEPS: u32 = 200;

/// Probability that a beta variable of these shapes, both above 0, lies below `x`.
pub(crate) fn cdf(a: f64, b: f64, x: f64) -> f64 {
    if (a + b + x).is_nan() {
        return f64::NAN;
    }
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges where x is below the mean or not far above it.
    match x < (a + 1.0) / (a + b + 2.0) {
        true => density_times(a, b, x) / a * fraction(a, b, x),
        false => 1.0 - density_times(a, b, x) / b * fraction(b, a, 1.0 - x),
    }
}

/// The value below which a beta variable of these shapes lies with probability `p`.
pub(crate) fn quantile(a: f64, b: f64, p: f64) -> f64 {
    if (a + b + p).is_nan() {
        return f64::NAN;
    }
    if p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return 1.0;
    }
    let (mut below, mut above) = (0.0, 1.0);
    let mut x = a / (a + b);
    for _ in 0..MOST_STEPS {
        let off = cdf(a, b, x) - p;
        match off < 0.0 {
            true => below = x,
            false => above = x,
        }
        let slope = density_times(a, b, x) / (x * (1.0 - x));
        let newton = x - off / slope;
        let next = match below < newton && newton < above {
            true => newton,
            false if below > 0.0 => (below * above).sqrt(),
            // Towards 0 by orders of magnitude.
            false => above * 1e-3,
        };
        if (next - x).abs() <= f64::EPSILON * x {
            return next;
        }
        x = next;
    }
    x
}

/// Probability of at most `k` of `n` independent events, each with probability `p`.
pub(crate) fn binomial_cdf(k: u64, n: u64, p: f64) -> f64 {
    let (above, up_to) = ((n.saturating_sub(k)) as f64, k as f64 + 1.0);
    match k < n {
        // Not 1 - p, which has lost digits of a small p.
        true if p < 0.5 => 1.0 - cdf(up_to, above, p),
        true => cdf(above, up_to, 1.0 - p),
        false => 1.0,
    }
}

/// The value that Student's t of these degrees of freedom stays below with probability `p`.
pub(crate) fn student_quantile(degrees: f64, p: f64) -> f64 {
    // t^2 / (degrees + t^2) is a beta variable.
    let beyond = 2.0 * p.min(1.0 - p);
    let size = match degrees < 100.0 {
        // Far out the share is so near to 1 that what is missing has more digits.
        true => {
            let rest = quantile(degrees / 2.0, 0.5, beyond);
            degrees * (1.0 - rest) / rest
        }
        false => {
            let share = quantile(0.5, degrees / 2.0, 1.0 - beyond);
            degrees * share / (1.0 - share)
        }
    }
    .sqrt();
    if p < 0.5 { -size } else { size }
}

/// Probability that Fisher's F of these degrees of freedom, both above 0, exceeds `f`.
pub(crate) fn fisher_sf(f: f64, numerator: f64, denominator: f64) -> f64 {
    let x = denominator / (denominator + numerator * f.max(0.0));
    cdf(denominator / 2.0, numerator / 2.0, x)
}

/// The density at `x` times `x (1 - x)`.
///
/// It is a binomial probability for real counts, computed from its distance to the largest one
/// (Loader 2000, "Fast and accurate computation of binomial probabilities"): logarithms of
/// factorials would lose all digits for large shapes.
fn density_times(a: f64, b: f64, x: f64) -> f64 {
    let n = a + b;
    let exponent = rest_of_stirling(n)
        - rest_of_stirling(a)
        - rest_of_stirling(b)
        - deviance(a, n * x)
        - deviance(b, n * (1.0 - x));
    a * b / n * (n / (TAU * a * b)).sqrt() * exponent.exp()
}

/// `ln(z!)` less Stirling's formula.
fn rest_of_stirling(z: f64) -> f64 {
    if z < 16.0 {
        return ln_gamma(z + 1.0) - (z + 0.5) * z.ln() + z - 0.5 * TAU.ln();
    }
    let square = z * z;
    (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / 1680.0 / square) / square) / square) / z
}

/// `x ln(x / mean) + mean - x`, without loss of digits where they are near each other.
fn deviance(x: f64, mean: f64) -> f64 {
    let v = (x - mean) / (x + mean);
    if v.abs() > 0.1 {
        return x * (x / mean).ln() + mean - x;
    }
    // ln(x / mean) = 2 artanh(v).
    let mut sum = (x - mean) * v;
    let mut power = 2.0 * x * v;
    for odd in (3..1000).step_by(2) {
        power *= v * v;
        let next = sum + power / f64::from(odd);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), by
/// Lentz's method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let not_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut d = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0));
    let (mut c, mut product) = (1.0, d);
    for m in 1..MOST_TERMS {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut factor = 1.0;
        for term in [even, odd] {
            d = 1.0 / not_zero(1.0 + term * d);
            c = not_zero(1.0 + term / c);
            factor = c * d;
            product *= factor;
        }
        if (factor - 1.0).abs() < 1e-15 {
            break;
        }
    }
    product
}

#[cfg(test)]
mod tests;
