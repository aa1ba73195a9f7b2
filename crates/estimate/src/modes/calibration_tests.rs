//! The simulation from which the limit of the evidence is taken.

use super::*;
use crate::histogram::SignedHistogram;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

fn uniform(r: &mut ChaCha8Rng) -> f64 {
    1.0 - r.random::<f64>()
}
fn normal(r: &mut ChaCha8Rng) -> f64 {
    (-2.0 * uniform(r).ln()).sqrt() * (std::f64::consts::TAU * uniform(r)).cos()
}

fn draw(kind: usize, r: &mut ChaCha8Rng) -> f64 {
    match kind {
        0 => 1000.0 * uniform(r),
        1 => 1000.0 + 1000.0 * uniform(r),
        2 => 1000.0 + 100.0 * normal(r),
        3 => -1000.0 * uniform(r).ln(),
        4 => 1000.0 * (0.5 * normal(r)).exp(),
        5 => 1000.0 * (1.0 * normal(r)).exp(),
        6 => {
            let chi: f64 = (0..3).map(|_| normal(r).powi(2)).sum();
            1000.0 + 50.0 * normal(r) / (chi / 3.0).sqrt()
        }
        7 => {
            if uniform(r) < 0.05 {
                1000.0 + 20_000.0 * uniform(r)
            } else {
                1000.0 + 50.0 * normal(r)
            }
        }
        8 => (1000.0_f64.ln() * uniform(r)).exp() * 10.0,
        _ => {
            if uniform(r) < 0.3 {
                1000.0 + 20_000.0 * uniform(r)
            } else {
                1000.0 + 50.0 * normal(r)
            }
        }
    }
}

#[test]
#[ignore = "prints what the limit is taken from"]
fn prints_quantiles_of_the_evidence() {
    let runs = std::env::var("RUNS").map_or(2000, |r| r.parse().unwrap());
    for kind in 0..10 {
        for (n, scale) in [
            (30, 1000.0),
            (100, 1000.0),
            (1000, 1000.0),
            (10_000, 1000.0),
            (1000, 0.05),
        ] {
            let runs = if n >= 10_000 { runs / 10 } else { runs };
            let mut found: Vec<f64> = Vec::new();
            let start = std::time::Instant::now();
            for run in 0..runs {
                let mut r = ChaCha8Rng::seed_from_u64(run as u64 * 100 + kind as u64);
                let mut h = SignedHistogram::new();
                for _ in 0..n {
                    h.record((draw(kind, &mut r) * scale).round() as i64);
                }
                let mut cells = Cells::of_distribution(&h.distribution(), 1.0);
                cells.stretch(1.0);
                let cells = cells.coarse();
                let rule = Rule {
                    weight: 1.0,
                    least: (n as f64 * 0.01).max(10.0),
                    depth: 0.5,
                    width: 0.0,
                    limit: 0.0,
                };
                found.push(best_valley(&cells, 0..cells.len(), &rule).map_or(0.0, |v| v.evidence));
            }
            found.sort_by(f64::total_cmp);
            let q = |p: f64| found[((p * runs as f64) as usize).min(runs - 1)];
            println!(
                "{kind} n {n} x{scale}: 50% {:.2} 90% {:.2} 99% {:.2} 99.9% {:.2} max {:.2}; {:.3} ms",
                q(0.5),
                q(0.9),
                q(0.99),
                q(0.999),
                q(1.0),
                start.elapsed().as_secs_f64() * 1e3 / runs as f64
            );
        }
    }
}
