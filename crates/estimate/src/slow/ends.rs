//! Confidence intervals where the ends of a run are the uncertain part. A contiguous run of cycles
//! is wrong by only two readings, each uniform over a tick. So its error is triangular on (-d, d)
//! over the whole run, and not normal.

use crate::beta;
use crate::long_run::student;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Points of the integral over the triangular error.
const POINTS: usize = 512;

/// Half the width, in ticks, of the symmetric interval that covers with probability `level` the
/// error of a difference of two readings. The error is triangular on (-1, 1) plus a scatter of `sd`
/// ticks that is Student's with `degrees` (normal if infinite). By 10c the variance is
/// `sd^2 + 1/6`; the normal interval of that variance is too wide where the ends dominate.
#[must_use]
pub fn two_ends(sd: f64, degrees: f64, level: f64) -> f64 {
    if sd <= 0.0 {
        return triangular(level);
    }
    let (mut lo, mut hi) = (0.0, 1.0 + student(level, degrees) * sd);
    for _ in 0..60 {
        let middle = 0.5 * (lo + hi);
        if covered(middle, sd, degrees) < level {
            lo = middle;
        } else {
            hi = middle;
        }
    }
    hi
}

/// P(|error| <= w) = 1 - (1 - w)^2 for the triangular error alone.
fn triangular(level: f64) -> f64 {
    1.0 - (1.0 - level).sqrt()
}

/// P(|triangular + scatter| <= w), by the midpoint rule over the narrower of
/// the two, so that the other one is smooth beside it.
fn covered(w: f64, sd: f64, degrees: f64) -> f64 {
    let middles = (0..POINTS).map(|i| (i as f64 + 0.5) / POINTS as f64);
    let sum: f64 = if sd < 0.5 {
        middles
            .map(|p| {
                let scatter = sd * quantile(p, degrees);
                triangle_cdf(w - scatter) - triangle_cdf(-w - scatter)
            })
            .sum()
    } else {
        middles
            .map(|end| {
                let inside = |x: f64| cdf(x / sd, degrees);
                2.0 * (1.0 - end) * (inside(w - end) - inside(-w - end))
            })
            .sum()
    };
    sum / POINTS as f64
}

/// Distribution function of the difference of two errors uniform on (0, 1).
fn triangle_cdf(x: f64) -> f64 {
    let tail = 0.5 * (1.0 - x.abs().min(1.0)).powi(2);
    if x < 0.0 { tail } else { 1.0 - tail }
}

fn cdf(z: f64, degrees: f64) -> f64 {
    if degrees < 1e6 {
        StudentsT::new(0.0, 1.0, degrees).map_or(f64::NAN, |t| t.cdf(z))
    } else {
        Normal::standard().cdf(z)
    }
}

fn quantile(p: f64, degrees: f64) -> f64 {
    if degrees < 1e6 {
        beta::student_quantile(degrees, p)
    } else {
        Normal::standard().inverse_cdf(p)
    }
}

#[cfg(test)]
mod tests;
