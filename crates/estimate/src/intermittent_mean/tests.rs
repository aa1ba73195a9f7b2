use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

#[test]
fn by_hand() {
    // Differences 2, -1, 3: squares 14; 14 / (2 * 3 * 4); t(2 degrees) = 4.303.
    let e = intermittent_mean(&[1.0, 3.0, 2.0, 5.0], 0.95).unwrap();
    assert!((e.value - 2.75).abs() < 1e-12);
    let half = e.interval.half_width().unwrap();
    assert!(
        (half - 4.3027 * (14.0_f64 / 24.0).sqrt()).abs() < 1e-3,
        "{e:?}"
    );
    assert_eq!(intermittent_mean(&[1.0], 0.95), None);
}

/// A disturber that is on and off for random times: its share of the run is known from the
/// generator. 1000 runs; at least 95 % must be covered (the interval is too wide by design),
/// and it must not be as wide as that of independent observations.
#[test]
fn covers_the_share_of_a_slow_disturber() {
    let mut random = ChaCha8Rng::seed_from_u64(20_261_121);
    let (mut held, mut width, mut independent) = (0, 0.0, 0.0);
    const RUNS: usize = 1000;
    for _ in 0..RUNS {
        let n = 300;
        let (on, off) = (
            random.random_range(4.0..20.0),
            random.random_range(4.0..40.0),
        );
        // Changes of state over 0..n.
        let mut at = 0.0;
        let mut state = random.random_bool(0.5);
        let mut stretches = Vec::new();
        while at < n as f64 {
            let mean: f64 = if state { on } else { off };
            let end = (at - mean * (1.0 - random.random::<f64>()).ln()).min(n as f64);
            stretches.push((at, end, state));
            (at, state) = (end, !state);
        }
        let truth: f64 = (stretches.iter().filter(|s| s.2))
            .map(|s| s.1 - s.0)
            .sum::<f64>()
            / n as f64;
        let looks: Vec<f64> = (0..n)
            .map(|i| {
                let at = i as f64 + random.random::<f64>();
                f64::from(u8::from(
                    stretches.iter().any(|s| s.2 && s.0 <= at && at < s.1),
                ))
            })
            .collect();
        let e = intermittent_mean(&looks, 0.95).unwrap();
        let (lo, hi) = (e.interval.lo.unwrap(), e.interval.hi.unwrap());
        held += usize::from(lo <= truth && truth <= hi);
        width += hi - lo;
        independent += 2.0 * 1.96 * (truth * (1.0 - truth) / n as f64).sqrt();
    }
    // 950 less 5 standard deviations of a binomial.
    assert!(held >= 915, "{held} of {RUNS}");
    assert!(width < 0.75 * independent, "{width} {independent}");
}

/// Independent values: 95 %, 2000 runs, the exact binomial band (1 in 10^6).
#[test]
fn covers_as_usual_without_order() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let held = (0..2000)
        .filter(|_| {
            // Uniform values; the mean over the time is that of the distribution.
            let looks: Vec<f64> = (0..60).map(|_| random.random::<f64>()).collect();
            let i = intermittent_mean(&looks, 0.95).unwrap().interval;
            i.lo.unwrap() <= 0.5 && 0.5 <= i.hi.unwrap()
        })
        .count();
    assert!((1850..=1945).contains(&held), "{held}");
}
