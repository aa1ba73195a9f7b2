use super::*;

/// Readings 0, 2, 5, 7, 10, 12: steps of 2 and 3, two of which always make 5; then a break and
/// 100, 102.
#[test]
fn multiples_by_hand() {
    let mut walk = PhaseWalk::default();
    assert_eq!(walk.facts(), None);
    for reading in [0, 2, 5, 7, 10, 12] {
        walk.push(reading);
    }
    let facts = walk.facts().unwrap();
    assert_eq!((facts.cycles, walk.pieces()), (5, 1));
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
    near(facts.multiples[0], 12.0 / 5.0);
    near(facts.multiples[1], 5.0);
    // 7, 8, 7 over three; 10, 10 over four; 12 over five.
    near(facts.multiples[2], 22.0 / 3.0);
    near(facts.multiples[3], 10.0);
    near(facts.multiples[4], 12.0);
    // None are seen over six: six times the mean.
    near(facts.multiples[5], 6.0 * 12.0 / 5.0);
    near(facts.period, 32.0 * 12.0 / 5.0 / 32.0);
    near(facts.end_error, (1.0_f64 / 6.0).sqrt() / 5.0);
    walk.interrupt();
    walk.push(100);
    walk.push(102);
    let facts = walk.facts().unwrap();
    assert_eq!((facts.cycles, walk.pieces()), (6, 2));
    near(facts.multiples[0], 14.0 / 6.0);
    near(facts.multiples[1], 5.0);
    near(facts.end_error, (2.0_f64 / 6.0).sqrt() / 6.0);
    near(
        facts.period_error,
        facts.end_error.hypot(facts.jitter[1] / 6.0_f64.sqrt()),
    );
}

/// Counts of -1, 0, 0, 1, 2: mean 0.4 from 0; 0.2 lies against it.
#[test]
fn what_lies_against_the_mean_by_hand() {
    let mut tally = Tally::default();
    [-1, 0, 0, 1, 2]
        .into_iter()
        .for_each(|ticks| tally.add(ticks));
    let (offset, against) = tally.against();
    assert!((offset - 0.4).abs() < 1e-12 && (against - 0.2).abs() < 1e-12);
    assert!(!tally.overflows());
    assert_eq!((tally.n, tally.sum), (5, 2));
    // A whole number nearer to the other side: 0, 1, 1, 1.
    let mut tally = Tally::default();
    [0, 1, 1, 1].into_iter().for_each(|ticks| tally.add(ticks));
    let (offset, against) = tally.against();
    assert!((offset - 0.25).abs() < 1e-12 && against == 0.0, "{against}");
    tally.add(1000);
    assert!(tally.overflows());
}

/// 200 of 4000 on either side of 0: 0.05 against, in 2000 windows 100; bounds
/// 100 - 23.26 - 0.5 and 100 + 16.45 + 1.5 of them, times sqrt(2 pi) / 2000. Over
/// two cycles there are 1000 windows: 50 - 16.45 - 0.5 and 50 + 11.63 + 1.5, and the
/// walk is 1 / sqrt(2) of it.
#[test]
fn bounds_of_the_scatter_by_hand() {
    let mut tally = Tally::default();
    for (ticks, times) in [(0, 3600), (-1, 200), (1, 200)] {
        (0..times).for_each(|_| tally.add(ticks));
    }
    for (lag, expected) in [
        (1, [0.095_553, 0.125_331, 0.147_828]),
        (2, [0.058_584, 0.088_623, 0.111_898]),
    ] {
        let mut level = Level::new();
        level.lags[lag - 1] = tally;
        let found = level.jitter(true).unwrap();
        for (a, b) in found.into_iter().zip(expected) {
            assert!((a - b).abs() < 2e-6, "{lag}: {found:?}");
        }
    }
}

/// Four whole windows of three cycles are 12; the coarser levels need four of 32.
#[test]
fn few_windows_say_nothing() {
    for (n, finest, is_enough) in [
        (11, true, false),
        (12, true, true),
        (127, false, false),
        (128, false, true),
    ] {
        let mut level = Level::new();
        (0..n).for_each(|i| level.lags[2].add(i % 2));
        assert_eq!(level.jitter(finest).is_some(), is_enough, "{n} {finest}");
    }
}

/// A normal value around 0 has s/sqrt(2 pi) below 0 on average; around 1 with
/// s = 1 it has phi(1) - Phi(-1) = 0.241 971 - 0.158 655.
#[test]
fn scatter_by_hand() {
    for s in [0.01, 0.3, 2.0] {
        let against = s / (2.0 * std::f64::consts::PI).sqrt();
        assert!((scatter(0.0, against) - s).abs() < 1e-6 * s, "{s}");
    }
    assert!((scatter(1.0, 0.241_970_725 - 0.158_655_254) - 1.0).abs() < 1e-6);
    assert_eq!((scatter(0.4, 0.0), scatter(0.4, -1.0)), (0.0, 0.0));
}

#[test]
fn time_scales_together_by_hand() {
    let fine = [0.1, 0.2, 0.4];
    assert_eq!(combined(fine, [0.05, 0.3, 0.9]), fine);
    assert_eq!(combined(fine, [0.01, 0.02, 0.05]), [0.01, 0.02, 0.4]);
    assert_eq!(combined(fine, [0.5, 0.6, 0.8]), [0.1, 0.6, 0.8]);
    // Touching is no contradiction.
    assert_eq!(combined(fine, [0.4, 0.6, 0.8]), fine);
    assert_eq!(combined(fine, [0.01, 0.02, 0.1]), fine);
}

/// A walk whose steps scatter by a known amount, read in whole ticks: the guess is near, and
/// the bounds contain it.
#[test]
fn a_known_scatter_is_found() {
    for jitter in [0.02, 0.1, 0.4] {
        let (mut at, mut walk) = (0.123, PhaseWalk::default());
        for i in 0..20_000_u32 {
            walk.push(f64::floor(at) as i64);
            at += 2.5 + jitter * mixed(i);
        }
        let facts = walk.facts().unwrap();
        let [lo, guess, hi] = facts.jitter;
        assert!(lo <= jitter && jitter <= hi, "{jitter}: {lo} {guess} {hi}");
        assert!((guess / jitter - 1.0).abs() < 0.3, "{jitter}: {guess}");
        // 19 999 steps: the two ends, and the walk between them.
        let (ends, walked) = ((1.0_f64 / 6.0).sqrt() / 19_999.0, guess / 141.417_82);
        let error = (ends * ends + walked * walked).sqrt();
        assert!((facts.period_error / error - 1.0).abs() < 1e-6);
    }
}

/// A fixed standard normal value for each number: SplitMix64, Box and Muller.
fn mixed(i: u32) -> f64 {
    let uniform = |seed: u64| {
        let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    };
    let (u, v) = (uniform(2 * u64::from(i) + 1), uniform(2 * u64::from(i) + 2));
    (-2.0 * (1.0 - u).ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
}
