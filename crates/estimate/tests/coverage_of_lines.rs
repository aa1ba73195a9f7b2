//! Checks whether 95 % means 95 % for a line's slope and intercept, and for block bootstraps.

use crate::known;

use known::{LEVEL, best, covers};
use undertick_estimate::{Line, block_bootstrap, line};
use undertick_units::Estimate;

const SLOPE: f64 = 0.3;
const INTERCEPT: f64 = 5.0;

fn fitted(x: &[f64], residuals: &[f64]) -> Option<Line> {
    let y: Vec<f64> = (x.iter().zip(residuals))
        .map(|(x, e)| INTERCEPT + SLOPE * x + e)
        .collect();
    line(x, &y, LEVEL)
}

fn slope(line: Option<Line>) -> Option<Estimate> {
    line.map(|l| l.slope)
}

fn intercept(line: Option<Line>) -> Option<Estimate> {
    line.map(|l| l.intercept)
}

/// x = 0 .. n-1: variance of the slope 12 / n^3, of the intercept 4 / n. Both are multiplied by the
/// variance of the residuals' mean over that of independent ones (3 for AR(1) 0.5).
#[test]
fn lines_in_time() {
    let time = |n: usize| -> Vec<f64> { (0..n).map(|i| i as f64).collect() };
    for (case, n, phi, inflation) in [
        (41, 40, 0.0, 1.0),
        (42, 1000, 0.0, 1.0),
        (43, 1000, 0.5, 3.0),
        (44, 4000, 0.9, 19.0),
    ] {
        let nf = n as f64;
        covers(
            &format!("slope in time, AR(1) {phi}, n = {n}"),
            (case, SLOPE, best(inflation * 12.0 / nf.powi(3))),
            false,
            |s| slope(fitted(&time(n), &s.ar1(phi, n))),
        );
        covers(
            &format!("intercept in time, AR(1) {phi}, n = {n}"),
            (case, INTERCEPT, best(inflation * 4.0 / nf)),
            false,
            |s| intercept(fitted(&time(n), &s.ar1(phi, n))),
        );
    }
}

/// x is drawn anew, or rises repeatedly (doses of work in turn).
#[test]
fn lines_of_doses() {
    // x exponential of mean 1: variance of x 1, of its mean square 2. Skewed x means that few
    // points decide.
    covers(
        "slope, x exponential, residuals exponential, n = 1000",
        (51, SLOPE, best(1e-3)),
        false,
        |s| {
            let x = s.many(1000, |s| s.exponential());
            slope(fitted(&x, &s.many(1000, |s| s.exponential() - 1.0)))
        },
    );
    // Residuals grow with x in 0..8: sum (x - 3.5)^2 (1 + x)^2 / 8 = 160.125 per
    // point, over the square of 5.25.
    let mean: f64 = (0..8)
        .map(f64::from)
        .map(|x| (x - 3.5).powi(2) * (1.0 + x).powi(2) / 8.0)
        .sum();
    covers(
        "slope, doses in turn, scatter grows, n = 400",
        (52, SLOPE, best(mean / 5.25_f64.powi(2) / 400.0)),
        false,
        |s| {
            let x: Vec<f64> = (0..400).map(|i| f64::from(i % 8)).collect();
            let e: Vec<f64> = x.iter().map(|x| (1.0 + x) * s.normal()).collect();
            slope(fitted(&x, &e))
        },
    );
    // Doses are held for 50 points each while residuals drift as AR(1) 0.5.
    let x: Vec<f64> = (0..2000).map(|i| f64::from(i / 50 % 4)).collect();
    covers(
        "slope, doses held for 50, AR(1) 0.5, n = 2000",
        (53, SLOPE, best(3.0 / 1.25 / 2000.0)),
        false,
        |s| slope(fitted(&x, &s.ar1(0.5, 2000))),
    );
}

fn median(v: &[f64]) -> f64 {
    let mut v = v.to_vec();
    let n = v.len();
    let (below, &mut upper, _) = v.select_nth_unstable_by(n / 2, f64::total_cmp);
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if n % 2 == 1 {
        upper
    } else {
        (lower + upper) / 2.0
    }
}

#[test]
#[ignore = "long: cargo xtask test --all"]
fn bootstraps() {
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    covers(
        "bootstrap, mean, normal, n = 200",
        (61, 0.0, best(1.0 / 200.0)),
        false,
        |s| block_bootstrap(&s.many(200, |s| s.normal()), |&x| x, mean, LEVEL, 1),
    );
    covers(
        "bootstrap, mean, exponential, n = 400",
        (62, 1.0, best(1.0 / 400.0)),
        false,
        |s| block_bootstrap(&s.many(400, |s| s.exponential()), |&x| x, mean, LEVEL, 1),
    );
    covers(
        "bootstrap, mean, AR(1) 0.5, n = 1000",
        (63, 0.0, best(3.0 / 1000.0)),
        false,
        |s| block_bootstrap(&s.ar1(0.5, 1000), |&x| x, mean, LEVEL, 1),
    );
    // Pairs that belong together: the median of a less that of b. With noise of sd 1 in each, and
    // common noise, the normal median has variance pi / 2 / n.
    covers(
        "bootstrap, difference of medians of pairs, n = 300",
        (64, 1.0, best(std::f64::consts::PI / 300.0)),
        true,
        |s| {
            let pairs: Vec<(f64, f64)> = (0..300).map(|_| (s.normal() + 1.0, s.normal())).collect();
            let of = |v: &[(f64, f64)]| {
                median(&v.iter().map(|p| p.0).collect::<Vec<_>>())
                    - median(&v.iter().map(|p| p.1).collect::<Vec<_>>())
            };
            block_bootstrap(&pairs, |p| p.0 - p.1, of, LEVEL, 1)
        },
    );
}
