use super::*;

/// S(h) from its definition: the mean over all pairs of cycles of the cosine
/// of their distance, each faded by the walk between them.
fn by_definition(n: u64, period: f64, jitter: f64, h: f64) -> f64 {
    let mut sum = 0.0;
    for j in 0..n {
        for k in 0..n {
            let lag = j.abs_diff(k) as f64;
            let fade = (-0.5 * (2.0 * PI * h * jitter).powi(2) * lag).exp();
            sum += (2.0 * PI * h * period * lag).cos() * fade;
        }
    }
    sum / (n * n) as f64
}

#[test]
fn coherence_by_definition() {
    for (n, period, jitter) in [(17, 2.37, 0.0), (40, 2.5, 0.01), (64, 0.731, 0.05)] {
        let facts = WalkFacts::known(n, period, jitter);
        let spectrum = Spectrum::of_walk(n, &facts, jitter);
        for h in [1, 2, 3, 31, 32, 33, 40, 192] {
            let expected = by_definition(n, period, jitter, h as f64);
            let found = spectrum.at(h);
            assert!(
                (found - expected).abs() < 1e-7,
                "{n} {h}: {found} {expected}"
            );
        }
        let upper: f64 = (97..=192)
            .map(|h| by_definition(n, period, jitter, f64::from(h)))
            .sum();
        assert!((spectrum.at(193) - upper / 96.0).abs() < 1e-7);
    }
    assert_eq!(Spectrum::independent(8).at(1), 0.125);
}

/// The variance of the mean count over all phases at which a run may begin, counted out:
/// without jitter a run is determined by its first phase.
#[test]
fn variance_counted_out() {
    let phases = 40_000;
    for (n, period, ticks) in [
        (17_u64, 2.37, 0.3),
        (10, 2.61, 1.05),
        (8, 1.5, 0.2),
        (9, 2.2, 0.91),
    ] {
        let means: Vec<f64> = (0..phases)
            .map(|i| {
                let start = (f64::from(i) + 0.5) / f64::from(phases);
                let counts = (0..n).map(|k| {
                    let at = start + k as f64 * period;
                    (at + ticks).floor() - at.floor()
                });
                counts.sum::<f64>() / n as f64
            })
            .collect();
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        let squares: f64 = means.iter().map(|m| (m - mean) * (m - mean)).sum();
        let expected = squares / means.len() as f64;
        let facts = WalkFacts::known(n, period, 0.0);
        let found = Spectrum::of_walk(n, &facts, 0.0).variance(ticks);
        assert!(
            (found - expected).abs() < 0.02 * expected + 2e-5,
            "{n} {period} {ticks}: {found} {expected}"
        );
    }
    let independent = Spectrum::independent(50).variance(3.2);
    assert!((independent - 0.16 / 50.0).abs() < 1e-12, "{independent}");
}

/// Where the period has an error, S(h) is its mean over that error, here by the sum over a fine
/// grid of the normal distribution.
#[test]
fn an_uncertain_period_is_averaged_over() {
    let (n, period, jitter) = (30, 2.5, 0.004);
    for h in [1, 2, 5, 40] {
        let facts = WalkFacts {
            end_error: 0.02,
            period_error: 0.001,
            ..WalkFacts::known(n, period, jitter)
        };
        let found = Spectrum::of_walk(n, &facts, jitter).at(h);
        // Of the harmonic's whole step: its two ends, and the walk.
        let ends = if h <= 32 {
            0.02
        } else {
            0.02 * h as f64 / 32.0
        };
        let error = (ends * ends + (h as f64 * jitter).powi(2) / n as f64).sqrt() / h as f64;
        let (mut sum, mut weights) = (0.0, 0.0);
        for i in -400..=400 {
            let z = f64::from(i) / 80.0;
            let weight = (-0.5 * z * z).exp();
            sum += weight * by_definition(n, period + z * error, jitter, h as f64);
            weights += weight;
        }
        let expected = sum / weights;
        assert!((found - expected).abs() < 1e-5, "{h}: {found} {expected}");
    }
}
