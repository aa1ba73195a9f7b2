use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::{Slope, deviations, line, ranks};

/// Sum of twelve uniform numbers: nearly normal.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
}

/// A disturber that is on for 10 % of the time in phases of one or two intervals, beside a
/// drift of which a share of 0.75 remains from one interval to the next.
fn disturbed(seed: u64, slope: f64) -> (Vec<f64>, Vec<f64>) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut on, mut drift) = (0, 0.0);
    (0..100)
        .map(|_| {
            if on == 0 && random.random_bool(0.07) {
                on = random.random_range(1..3);
            }
            let x = f64::from(u8::from(on > 0)) * (0.6 + 0.4 * random.random::<f64>());
            on = (on - 1).max(0);
            drift = 0.75 * drift + 0.15 * normal(&mut random);
            (x, 1.0 + slope * x + drift)
        })
        .unzip()
}

/// The interval contains the true slope as often as it should, and the slope scatters less than
/// that of a line that ignores the drift.
#[test]
fn the_slope_beside_a_drift() {
    const RUNS: u64 = 2000;
    const TRUE: f64 = 0.47;
    let (mut held, mut of_line, mut beside) = (0, 0.0, 0.0);
    for seed in 0..RUNS {
        let (x, y) = disturbed(seed, TRUE);
        let slope = Slope::beside_drift(&x, &y).unwrap();
        held += u64::from((slope.value - TRUE).abs() <= 1.96 * slope.error);
        beside += (slope.value - TRUE).powi(2);
        of_line += (line(&x, &y).unwrap().0 - TRUE).powi(2);
    }
    // 95 %: 1849 to 1944 of 2000, except for one in a million.
    assert!((1849..=1944).contains(&held), "{held} of {RUNS}");
    assert!(beside < 0.65 * of_line, "{beside} and {of_line}");
}

/// Without a drift it equals the line: 0.5 x + 2 with residuals that cancel in every way.
#[test]
fn the_slope_by_hand() {
    let x: Vec<f64> = (0..40).map(|i| f64::from(i % 2)).collect();
    let left = |i: usize| [0.01, 0.01, -0.01, -0.01][i % 4];
    let y: Vec<f64> = (0..40).map(|i| 2.0 + 0.5 * x[i] + left(i)).collect();
    let slope = Slope::beside_drift(&x, &y).unwrap();
    assert!((slope.value - 0.5).abs() < 0.002, "{slope:?}");
    // Nearly 0.01 / sqrt(40) / 0.5.
    assert!((slope.error / 0.00316 - 1.0).abs() < 0.15, "{slope:?}");
    let exact: Vec<f64> = x.iter().map(|x| 2.0 + 0.5 * x).collect();
    let slope = Slope::beside_drift(&x, &exact).unwrap();
    assert!((slope.value - 0.5).abs() < 1e-12 && slope.error < 1e-9);
    assert_eq!(Slope::beside_drift(&[1.0; 40], &y), None);
    assert_eq!(Slope::beside_drift(&x[..4], &y[..4]), None);
    assert_eq!(Slope::beside_drift(&[], &[]), None);
}

#[test]
fn places_in_their_order() {
    assert_eq!(
        ranks(&[5.0, -1.0, 5.0, 7.0, 2.0]),
        [2.5, 0.0, 2.5, 4.0, 1.0]
    );
    assert!(ranks(&[]).is_empty());
}

/// Phases of about seven values, on for that share; and an unrelated drift with large values in
/// it.
fn apart(seed: u64, share: f64) -> (Vec<f64>, Vec<f64>) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut on, mut left, mut drift) = (false, 0.0, 0.0);
    (0..500)
        .map(|_| {
            while left <= 0.0 {
                on = !on;
                let mean = if on { 7.0 } else { 7.0 * (1.0 - share) / share };
                left += mean * (0.3 + 1.4 * random.random::<f64>());
            }
            left -= 1.0;
            drift = 0.75 * drift + 0.15 * normal(&mut random);
            let great = if random.random_bool(0.02) { 2.0 } else { 0.0 };
            (f64::from(u8::from(on)), drift + great)
        })
        .unzip()
}

/// Unrelated series agree by chance: as a normal variable.
#[test]
fn deviations_by_chance() {
    const RUNS: usize = 4000;
    let all: Vec<f64> = (0..RUNS)
        .map(|seed| {
            let (x, y) = apart(seed as u64, [0.1, 0.3, 0.6][seed % 3]);
            deviations(&x, &y, 15).unwrap()
        })
        .collect();
    let beyond = |limit: f64| all.iter().filter(|z| z.abs() > limit).count();
    // 4.55 % of 4000 are 182, and 0.27 % are 10.8: bounds of one in a million for these and
    // a tenth more of a standard deviation.
    assert!((120..=300).contains(&beyond(2.0)), "{}", beyond(2.0));
    assert!((1..=40).contains(&beyond(3.0)), "{}", beyond(3.0));
    assert_eq!(beyond(4.9), 0);
}

/// Related series are found, in either direction.
#[test]
fn deviations_of_what_goes_together() {
    for seed in 0..200 {
        let (x, y) = apart(seed, [0.1, 0.3, 0.6][seed as usize % 3]);
        let slowed: Vec<f64> = x.iter().zip(&y).map(|(x, y)| y + 0.5 * x).collect();
        let found = deviations(&x, &slowed, 15).unwrap();
        assert!(found > 4.9, "seed {seed}: {found}");
        let opposite: Vec<f64> = x.iter().map(|x| -x).collect();
        assert!(deviations(&opposite, &slowed, 15).unwrap() < -4.9);
    }
    let (x, y) = apart(1, 0.3);
    assert_eq!(deviations(&x[..40], &y[..40], 15), None, "too few");
    assert_eq!(deviations(&[1.0; 500], &y, 15), None, "never changes");
    assert_eq!(deviations(&[], &[], 15), None);
}
