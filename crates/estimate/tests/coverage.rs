//! Checks whether 95 % means 95 %, with two thousand seeded repetitions of each case. The truth
//! comes from the formula of the generator, never from the code under test. 1867..=1931 hits is the
//! exact binomial band of 1 false alarm in 1000; seeds are fixed, so a failure is a change, not
//! chance.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use undertick_estimate::{Sample, Series};
use undertick_units::{Estimate, Interval};

const REPETITIONS: u64 = 2000;
const BAND: std::ops::RangeInclusive<u64> = 1867..=1931;
const LEVEL: f64 = 0.95;

struct Source(ChaCha8Rng);

impl Source {
    fn uniform(&mut self) -> f64 {
        // In (0, 1]: its logarithm is finite.
        1.0 - self.0.random::<f64>()
    }

    /// Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Stationary AR(1) with unit variance.
    fn ar1(&mut self, phi: f64, n: usize) -> Vec<f64> {
        let innovation = (1.0 - phi * phi).sqrt();
        let mut x = self.normal();
        (0..n)
            .map(|_| {
                x = phi * x + innovation * self.normal();
                x
            })
            .collect()
    }
}

/// Returns the hits of each question over all repetitions, and the mean half-width.
fn coverage<const Q: usize>(
    seed: u64,
    draw: impl Fn(&mut Source) -> Vec<f64>,
    ask: impl Fn(&Sample) -> [Estimate; Q],
    truth: [f64; Q],
) -> [(u64, f64); Q] {
    let mut hits = [(0, 0.0); Q];
    for repetition in 0..REPETITIONS {
        let mut source = Source(ChaCha8Rng::seed_from_u64(seed * 1_000_003 + repetition));
        let sample = draw(&mut source)
            .into_iter()
            .map(|x| x.round() as i64)
            .collect::<Series>()
            .sample();
        for ((hit, truth), estimate) in hits.iter_mut().zip(truth).zip(ask(&sample)) {
            hit.0 += u64::from(holds(estimate.interval, truth));
            hit.1 += estimate.interval.half_width().unwrap_or(f64::INFINITY) / REPETITIONS as f64;
        }
    }
    hits
}

fn holds(interval: Interval, truth: f64) -> bool {
    interval.lo.is_none_or(|lo| lo <= truth) && interval.hi.is_none_or(|hi| truth <= hi)
}

/// The band around a known coverage: 3.29 standard deviations, as in [`BAND`].
fn band_around(coverage: f64) -> std::ops::RangeInclusive<u64> {
    let n = REPETITIONS as f64;
    let half = 3.29 * (n * coverage * (1.0 - coverage)).sqrt();
    (n * coverage - half).ceil() as u64..=(n * coverage + half).floor() as u64
}

/// Returns the exact coverage of the interval between the order statistics of ranks `lo` and `hi`:
/// P(lo <= B < hi), B binomial(n, p), summed term by term.
fn order_statistics_cover(n: u64, p: f64, lo: u64, hi: u64) -> f64 {
    let ln_factorial: Vec<f64> = std::iter::once(0.0)
        .chain((1..=n).scan(0.0, |sum, k| {
            *sum += (k as f64).ln();
            Some(*sum)
        }))
        .collect();
    (lo..hi)
        .map(|k| {
            let choose = ln_factorial[n as usize]
                - ln_factorial[k as usize]
                - ln_factorial[(n - k) as usize];
            (choose + k as f64 * p.ln() + (n - k) as f64 * (1.0 - p).ln()).exp()
        })
        .sum()
}

fn mean(s: &Sample) -> Estimate {
    s.mean(LEVEL, 0.0).expect("there are samples")
}

fn quantile(s: &Sample, p: f64) -> Estimate {
    s.quantile(p, LEVEL, 0.0).expect("there are samples")
}

#[track_caller]
fn within(what: &str, (hits, half): (u64, f64), band: std::ops::RangeInclusive<u64>) {
    eprintln!(
        "{what}: {hits} of {REPETITIONS} hold the truth, half-width {half:.2}, band {band:?}"
    );
    assert!(band.contains(&hits), "{what}: {hits} hits outside {band:?}");
}

/// Standard normal quantile of 0.9.
const Z90: f64 = 1.281_551_565_545;

/// Ranks 469 and 532 (n = 1000, median): exact coverage 0.9537. Ranks 882 and
/// 919 (p90): 0.9537. Both from binomial tables.
#[test]
fn normal() {
    let [m, median, p90] = coverage(
        1,
        |s| (0..1000).map(|_| 600.0 * s.normal()).collect(),
        |s| [mean(s), quantile(s, 0.5), quantile(s, 0.9)],
        [0.0, 0.0, 600.0 * Z90],
    );
    within("normal, mean", m, BAND);
    let exact = order_statistics_cover(1000, 0.5, 469, 532);
    within("normal, median", median, band_around(exact));
    let exact = order_statistics_cover(1000, 0.9, 881, 919);
    within("normal, p90", p90, band_around(exact));
}

#[test]
fn normal_small() {
    let [m, median] = coverage(
        2,
        |s| (0..20).map(|_| 600.0 * s.normal()).collect(),
        |s| [mean(s), quantile(s, 0.5)],
        [0.0, 0.0],
    );
    within("normal n=20, mean", m, BAND);
    // Ranks 6 and 15 (Conover, table A3): 0.9586.
    let exact = order_statistics_cover(20, 0.5, 6, 15);
    assert!((exact - 0.9586).abs() < 1e-4);
    within("normal n=20, median", median, band_around(exact));
}

#[test]
fn exponential() {
    let [m, median, p90] = coverage(
        3,
        |s| (0..4000).map(|_| -500.0 * s.uniform().ln()).collect(),
        |s| [mean(s), quantile(s, 0.5), quantile(s, 0.9)],
        [500.0, 500.0 * 2f64.ln(), 500.0 * 10f64.ln()],
    );
    within("exponential, mean", m, BAND);
    within("exponential, median", median, BAND);
    within("exponential, p90", p90, BAND);
}

/// Uniform over 0, 26, .. 234: ten equal steps. The mean is 117. The median is 104 (share 0.5 up to
/// it, 0.4 below it): its interval misses only if fewer than `lo` values are <= 104, or `hi` or
/// more are < 104.
#[test]
fn quantised_uniform() {
    let [m, median] = coverage(
        4,
        |s| {
            (0..1000)
                .map(|_| 26.0 * (10.0 * (1.0 - s.uniform())).floor())
                .collect()
        },
        |s| [mean(s), quantile(s, 0.5)],
        [117.0, 104.0],
    );
    within("quantised, mean", m, BAND);
    let exact = order_statistics_cover(1000, 0.5, 469, 1001);
    assert!(order_statistics_cover(1000, 0.4, 532, 1001) < 1e-12);
    within("quantised, median", median, band_around(exact));
}

#[test]
fn lognormal() {
    let [m, median, p90] = coverage(
        5,
        |s| (0..20_000).map(|_| 500.0 * s.normal().exp()).collect(),
        |s| [mean(s), quantile(s, 0.5), quantile(s, 0.9)],
        [500.0 * 0.5f64.exp(), 500.0, 500.0 * Z90.exp()],
    );
    within("lognormal, mean", m, BAND);
    within("lognormal, median", median, BAND);
    within("lognormal, p90", p90, BAND);
}

#[test]
fn autocorrelated() {
    let [m, median, p90] = coverage(
        6,
        |s| s.ar1(0.6, 20_000).iter().map(|x| 600.0 * x).collect(),
        |s| [mean(s), quantile(s, 0.5), quantile(s, 0.9)],
        [0.0, 0.0, 600.0 * Z90],
    );
    within("AR(1) 0.6 n=20000, mean", m, BAND);
    within("AR(1) 0.6 n=20000, median", median, BAND);
    within("AR(1) 0.6 n=20000, p90", p90, BAND);
}

/// Fewer values and longer memory, so that batches are no longer much longer than the correlation.
#[test]
fn autocorrelated_and_short() {
    for (seed, phi, n) in [
        (7, 0.6, 400),
        (8, 0.6, 1000),
        (9, 0.9, 3000),
        (10, 0.3, 200),
    ] {
        let [m, median] = coverage(
            seed,
            |s| s.ar1(phi, n).iter().map(|x| 600.0 * x).collect(),
            |s| [mean(s), quantile(s, 0.5)],
            [0.0, 0.0],
        );
        within(&format!("AR(1) {phi} n={n}, mean"), m, BAND);
        within(&format!("AR(1) {phi} n={n}, median"), median, BAND);
    }
}

/// A series too short for its memory: the mean must have a note or be right.
#[test]
fn too_short_says_so_rather_than_undercover() {
    for (seed, phi, n) in [(11, 0.99, 2000), (12, 0.9, 300), (13, 0.6, 60)] {
        let mut silent_misses = 0;
        let mut said = 0;
        for repetition in 0..REPETITIONS {
            let mut source = Source(ChaCha8Rng::seed_from_u64(seed * 1_000_003 + repetition));
            let series = source.ar1(phi, n);
            let e = mean(
                &series
                    .iter()
                    .map(|x| (600.0 * x) as i64)
                    .collect::<Series>()
                    .sample(),
            );
            let says = e
                .notes
                .iter()
                .any(|n| n.contains("too few samples for their autocorr"));
            said += u64::from(says);
            silent_misses += u64::from(!says && !holds(e.interval, 0.0));
        }
        eprintln!("AR(1) {phi} n={n}: {said} said too few, {silent_misses} missed without");
        assert!(
            silent_misses <= REPETITIONS - BAND.start(),
            "AR(1) {phi} n={n}: {silent_misses}"
        );
    }
}
