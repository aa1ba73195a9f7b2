//! The number of modes found in distributions whose number of modes is known, and the coverage of
//! their shares. Seeded. `UNDERTICK_REPETITIONS` sets the repetitions of every case; without it
//! there are fewer, with the bands for these.

use crate::known;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use known::{LEVEL, Source};
use undertick_estimate::{Axis, ModeOptions, Modes, Series, SignedHistogram, modes, modes_of_bins};

/// Returns the number of repetitions: `few`, or that of the environment.
fn repetitions(few: u64) -> u64 {
    std::env::var("UNDERTICK_REPETITIONS").map_or(few, |text| text.parse().expect("a number"))
}

/// Returns the smallest k with P(binomial(n, p) > k) < 1e-6.
fn at_most(n: u64, p: f64) -> u64 {
    let (mut term, mut k) = ((1.0 - p).powf(n as f64), 0);
    let mut above = 1.0 - term;
    while above >= 1e-6 && k < n {
        term *= (n - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
        above -= term;
        k += 1;
    }
    k
}

const STEP: i64 = 26;

/// Reads a time on a clock that moves by `STEP` ticks, at any phase.
fn on_clock(source: &mut Source, ticks: f64) -> i64 {
    let step = STEP as f64;
    ((source.uniform() + ticks / step).floor() * step) as i64
}

fn histogram(values: impl Iterator<Item = i64>) -> SignedHistogram {
    let mut h = SignedHistogram::new();
    values.for_each(|value| h.record(value));
    h
}

fn modes_of(values: impl Iterator<Item = i64>, n: usize, step: f64) -> Modes {
    let options = ModeOptions {
        step,
        ..ModeOptions::default()
    };
    modes(&histogram(values).distribution(), n as f64, &options)
}

/// A density with one mode, with a spread of about 1.
type Draw = fn(&mut Source) -> f64;

const ONE_MODE: [(&str, Draw); 10] = [
    ("normal", |s| 12.0 + s.normal()),
    ("log-normal 0.05", |s| 20.0 * (0.05 * s.normal()).exp()),
    ("log-normal 0.2", |s| 5.0 * (0.2 * s.normal()).exp()),
    ("log-normal 0.5", |s| 2.0 * (0.5 * s.normal()).exp()),
    ("log-normal 1", |s| s.normal().exp()),
    ("exponential", Source::exponential),
    ("gamma 4", |s| {
        (0..4).map(|_| s.exponential()).sum::<f64>() / 2.0
    }),
    ("Student 3", |s| {
        let chi: f64 = (0..3).map(|_| s.normal().powi(2)).sum();
        12.0 + s.normal() / (chi / 3.0).sqrt()
    }),
    ("uniform", |s| 3.5 * s.uniform()),
    ("uniform, far from 0", |s| 10.0 + 3.5 * s.uniform()),
];

/// Draws a value: in fine ticks; on a clock with 1, 3 and 10 steps to the spread; and with 5 %
/// spread evenly up to a hundred times as far.
fn value(source: &mut Source, draw: Draw, form: usize) -> (i64, f64) {
    let x = draw(source);
    match form {
        0 => ((x * 10_000.0).round() as i64, 1.0),
        1..=3 => {
            let steps = [1.0, 3.0, 10.0][form - 1];
            (on_clock(source, x * steps * STEP as f64), STEP as f64)
        }
        _ if source.uniform() < 0.05 => ((source.uniform() * 1e6).round() as i64, 1.0),
        _ => ((x * 10_000.0).round() as i64, 1.0),
    }
}

const FORMS: [&str; 5] = ["", ", 1 step", ", 3 steps", ", 10 steps", ", outliers"];

fn false_alarms(n: usize, few: u64) {
    let runs = repetitions(few);
    let mut total = 0;
    for (case, &(name, draw)) in ONE_MODE.iter().enumerate() {
        for (form, form_name) in FORMS.iter().enumerate() {
            let alarms = (0..runs)
                .filter(|&run| {
                    let mut source = Source::new((1000 + case * 10 + form) as u64, run);
                    let step = value(&mut source, draw, form).1;
                    let values = (0..n).map(|_| value(&mut source, draw, form).0);
                    modes_of(values.collect::<Vec<_>>().into_iter(), n, step)
                        .modes
                        .len()
                        != 1
                })
                .count() as u64;
            total += alarms;
            if alarms > 0 {
                println!("n = {n}, {name}{form_name}: {alarms} of {runs}");
            }
            let allowed = if runs >= 2000 {
                runs / 100
            } else {
                at_most(runs, 0.01)
            };
            assert!(
                alarms <= allowed,
                "{name}{form_name}, n = {n}: {alarms} of {runs}"
            );
        }
    }
    println!("n = {n}: {total} of {}", runs * 50);
}

#[test]
fn one_mode_is_one_mode_of_100() {
    false_alarms(100, 300);
}

#[test]
fn one_mode_is_one_mode_of_1000() {
    false_alarms(1000, 40);
}

#[test]
fn one_mode_is_one_mode_of_100_000() {
    false_alarms(100_000, 3);
}

/// Draws from normals with a spread of 1 %, `apart` standard deviations apart.
fn mixture(source: &mut Source, shares: &[f64], apart: f64) -> i64 {
    let mut u = source.uniform();
    let mut i = 0;
    while i + 1 < shares.len() && u > shares[i] {
        u -= shares[i];
        i += 1;
    }
    (100_000.0 * (1.0 + 0.01 * (apart * i as f64 + source.normal()))).round() as i64
}

fn share_right(shares: &[f64], apart: f64, n: usize, runs: u64) -> u64 {
    (0..runs)
        .filter(|&run| {
            let mut source = Source::new((n as u64) * 100 + apart as u64, run);
            let values: Vec<i64> = (0..n)
                .map(|_| mixture(&mut source, shares, apart))
                .collect();
            modes_of(values.into_iter(), n, 1.0).modes.len() == shares.len()
        })
        .count() as u64
}

const SHARES: [(&str, &[f64]); 4] = [
    ("50/50", &[0.5, 0.5]),
    ("90/10", &[0.9, 0.1]),
    ("97.3/2.7", &[0.973, 0.027]),
    ("90.5/2.7/6.8", &[0.905, 0.027, 0.068]),
];

/// Samples in the smallest mode from which the number of modes is right in 95 % of the runs: by
/// shares, and standard deviations apart.
const ENOUGH: [[(f64, f64); 4]; 4] = [
    [(4.0, 300.0), (5.0, 100.0), (6.0, 60.0), (7.0, 30.0)],
    [(5.0, 300.0), (6.0, 100.0), (7.0, 60.0), (8.0, 30.0)],
    [(5.0, 1000.0), (6.0, 200.0), (7.0, 60.0), (9.0, 30.0)],
    [(5.0, 1000.0), (6.0, 200.0), (7.0, 60.0), (9.0, 30.0)],
];

#[test]
fn separate_modes_are_found() {
    let runs = repetitions(100);
    for ((name, shares), enough) in SHARES.iter().zip(ENOUGH) {
        let least = shares.iter().fold(1.0, |a: f64, &b| a.min(b));
        for (apart, small) in enough {
            let n = (small / least).round() as usize;
            let right = share_right(shares, apart, n, runs);
            println!("{name}, {apart} sd, {small} in the smallest: {right} of {runs}");
            let wrong = runs - right;
            assert!(
                wrong <= at_most(runs, 0.05),
                "{name} {apart} sd: {wrong} wrong of {runs}"
            );
        }
    }
}

/// The modes found at 4, 5, 6 and 8 standard deviations, for the book.
#[test]
#[ignore = "prints a table"]
fn prints_power() {
    let runs = repetitions(400);
    for (name, shares) in SHARES {
        let least = shares.iter().fold(1.0, |a: f64, &b| a.min(b));
        for apart in [4.0, 5.0, 6.0, 7.0, 8.0] {
            let found = [30.0, 60.0, 100.0, 300.0, 1000.0].map(|small| {
                let n = (small / least) as usize;
                let right = share_right(shares, apart, n, runs);
                format!("{:5.1}", 100.0 * right as f64 / runs as f64)
            });
            println!("| {name} | {apart} | {} |", found.join(" | "));
        }
    }
}

/// At ten standard deviations no sample changes sides.
#[test]
fn shares_hold_the_truth() {
    let runs = repetitions(1000).max(1000);
    for (case, (name, shares)) in SHARES.iter().enumerate() {
        let mut hits = vec![0_u64; shares.len()];
        let mut places = 0;
        for run in 0..runs {
            let mut source = Source::new(7000 + case as u64, run);
            let n = 3000;
            let values: Vec<i64> = (0..n).map(|_| mixture(&mut source, shares, 10.0)).collect();
            let found = modes_of(values.into_iter(), n, 1.0);
            assert_eq!(found.modes.len(), shares.len(), "{name} {run}");
            for (hit, (mode, truth)) in hits.iter_mut().zip(found.modes.iter().zip(*shares)) {
                let i = mode.share.interval;
                *hit += u64::from(i.lo.unwrap() <= *truth && *truth <= i.hi.unwrap());
            }
            let i = found.modes[0].place.interval;
            places += u64::from(i.lo.unwrap() <= 1e5 && 1e5 <= i.hi.unwrap());
        }
        println!("{name}: shares {hits:?} of {runs}, place of the first {places}");
        // 93 to 97 %, with the scatter of a thousand runs.
        let (slack, expected) = (
            4.9 * (runs as f64 * 0.0475).sqrt(),
            runs as f64 * (1.0 - LEVEL),
        );
        for hit in hits {
            let miss = (runs - hit) as f64;
            assert!(
                (miss - expected).abs() <= slack,
                "{name}: {miss} of {runs} missed"
            );
        }
        // The bounds are edges of bins of 0.06 standard deviations, so they cover more.
        assert!(
            (runs - places) as f64 <= expected + slack,
            "{name}: {places}"
        );
    }
}

/// Where modes overlap, the share is the mass between valleys. A mode of 10 % at 5 standard
/// deviations, cut at 3.0 .. 3.7 (the valley is flat there), has between 9.2 and 9.9 %.
#[test]
fn shares_of_overlapping_modes_are_those_between_valleys() {
    let runs = 60;
    let mut sum = 0.0;
    for run in 0..runs {
        let mut source = Source::new(8000, run);
        let n = 20_000;
        let values: Vec<i64> = (0..n)
            .map(|_| mixture(&mut source, &[0.9, 0.1], 5.0))
            .collect();
        let found = modes_of(values.into_iter(), n, 1.0);
        assert_eq!(found.modes.len(), 2);
        sum += found.modes[1].share.value;
    }
    let share = sum / runs as f64;
    println!("0.1 at 5 sd: {share:.4}");
    assert!((0.092..0.102).contains(&share), "{share}");
}

/// The published histogram of the rate of a probe with interlace off (MPL-55), from its legible
/// bins: three peaks, about 90 %, 2.5 .. 3 % and 6 .. 7 %.
#[test]
fn the_published_interference_histogram_has_three_peaks() {
    let bins: [(u32, u64); 31] = [
        (224, 1),
        (232, 1),
        (240, 5),
        (244, 13),
        (248, 15),
        (252, 41),
        (256, 60),
        (260, 32),
        (264, 88),
        (268, 22),
        (276, 1),
        (280, 0),
        (284, 5),
        (292, 24),
        (296, 47),
        (304, 37),
        (312, 2),
        (316, 8),
        (320, 6),
        (324, 6),
        (328, 14),
        (332, 16),
        (336, 36),
        (340, 136),
        (344, 496),
        (348, 1746),
        (352, 2037),
        (356, 0),
        (360, 0),
        (364, 0),
        (368, 0),
    ];
    let first = 224;
    let edges: Vec<f64> = (0..=37)
        .map(|i| (f64::from(first + 4 * i) - 2.0) / 1000.0)
        .collect();
    let mut counts = vec![0; 37];
    for (at, count) in bins {
        counts[((at - first) / 4) as usize] += count;
    }
    let n: u64 = counts.iter().sum();
    let options = ModeOptions {
        axis: Axis::Linear,
        ..ModeOptions::default()
    };
    let found = modes_of_bins(&edges, &counts, n as f64, &options);
    let shares: Vec<f64> = found.modes.iter().map(|m| m.share.value).collect();
    assert_eq!(shares.len(), 3, "{shares:?}");
    assert!((0.05..0.07).contains(&shares[0]), "{shares:?}");
    assert!((0.02..0.03).contains(&shares[1]), "{shares:?}");
    assert!((0.88..0.93).contains(&shares[2]), "{shares:?}");
}

/// A slow random walk leaves peaks in its histogram that are no modes.
#[test]
fn a_drift_has_no_modes() {
    let runs = repetitions(200);
    for (case, phi) in [(1, 0.5), (2, 0.9), (3, 0.99), (4, 0.999)] {
        let (mut alarms, mut blind) = (0, 0);
        for run in 0..runs {
            let mut source = Source::new(9000 + case, run);
            let values = source.ar1(phi, 4000);
            let series: Series = (values.iter())
                .map(|x| (100_000.0 + 10_000.0 * x).round() as i64)
                .collect();
            let sample = series.sample();
            let options = ModeOptions::default();
            alarms += u64::from(sample.modes(&options).modes.len() != 1);
            let all = modes(sample.distribution(), 4000.0, &options);
            blind += u64::from(all.modes.len() != 1);
        }
        println!("AR(1) {phi}: {alarms} of {runs}; as if independent {blind}");
        assert!(alarms <= at_most(runs, 0.01), "AR(1) {phi}: {alarms}");
    }
}

/// Two paths, each kept for 200 samples on average (geometric): both are found, and the shares'
/// intervals allow for only 100 visits. The truth is a half.
#[test]
fn modes_that_last_are_found() {
    for (case, lasts) in [(1, 20.0), (2, 200.0)] {
        let runs = repetitions(400).max(400);
        let (mut found, mut hits, mut width) = (0, 0, 0.0);
        for run in 0..runs {
            let mut source = Source::new(9100 + case, run);
            let mut second = source.uniform() < 0.5;
            let series: Series = (0..20_000)
                .map(|_| {
                    second ^= source.uniform() < 1.0 / lasts;
                    let at = if second { 32_000.0 } else { 7000.0 };
                    (at * (1.0 + 0.03 * source.normal())) as i64
                })
                .collect();
            let modes = series.sample().modes(&ModeOptions::default());
            found += u64::from(modes.modes.len() == 2);
            let i = modes.modes[0].share.interval;
            let (lo, hi) = (i.lo.unwrap(), i.hi.unwrap());
            hits += u64::from(lo <= 0.5 && 0.5 <= hi);
            width += hi - lo;
        }
        println!(
            "{lasts}: {found} of {runs}, share holds {hits}, width {}",
            width / runs as f64
        );
        assert!(runs - found <= at_most(runs, 0.01), "{found} of {runs}");
        assert!(runs - hits <= at_most(runs, 0.07), "{hits} of {runs}");
    }
}

/// A ripple of a fifth is beyond doubt in ten million values, but not relevant; one that leaves
/// less than half of the peaks is both.
#[test]
fn a_ripple_of_millions_is_no_mode() {
    let edges: Vec<f64> = (0..=200).map(f64::from).collect();
    let found = |ripple: f64, depth: f64| {
        let counts: Vec<u64> = (0..200)
            .map(|i| {
                (50_000.0
                    * (1.0 - ripple * (std::f64::consts::TAU * (f64::from(i) + 0.5) / 40.0).cos()))
                    as u64
            })
            .collect();
        let options = ModeOptions {
            axis: Axis::Linear,
            depth,
            ..ModeOptions::default()
        };
        modes_of_bins(&edges, &counts, 1e7, &options).modes.len()
    };
    // Ripples of five periods; (1 - 0.2) / (1 + 0.2) is two thirds.
    assert_eq!(found(0.2, 0.5), 1);
    assert_eq!(found(0.2, 0.9), 5);
    assert_eq!(found(0.6, 0.5), 5);
}

/// Outliers spread evenly over octaves are dense per nanosecond where they are short.
#[test]
fn outliers_even_over_octaves_are_no_mode() {
    let found = |axis: Axis| {
        let mut source = Source::new(9300, 0);
        let values: Vec<i64> = (0..20_000)
            .map(|_| match source.uniform() < 0.1 {
                true => (1e3 * (2e5_f64.ln() * source.uniform()).exp()) as i64,
                false => (2e8 + 2e6 * source.normal()) as i64,
            })
            .collect();
        let options = ModeOptions {
            axis,
            ..ModeOptions::default()
        };
        let h = histogram(values.into_iter());
        modes(&h.distribution(), 20_000.0, &options).modes.len()
    };
    assert_eq!(found(Axis::Logarithmic), 1);
    assert!(found(Axis::Linear) > 1);
}

/// For any bins, sparse ones too: no mode is empty, neighbouring modes touch, and shares add up to
/// 1.
#[test]
fn modes_of_any_bins_hold_samples() {
    let mut random = ChaCha8Rng::seed_from_u64(20_261_121);
    for case in 0..20_000 {
        let bins = random.random_range(1..60);
        let mut edges = vec![random.random_range(-50.0..1e4_f64)];
        for _ in 0..bins {
            let last = edges[edges.len() - 1];
            edges.push(last + 10.0 * f64::from(random.random_range(1..200_u32)));
        }
        let counts: Vec<u64> = (0..bins)
            .map(|_| match random.random_range(0..3) {
                0 => 0,
                1 => random.random_range(0..20),
                _ => random.random_range(0..5000),
            })
            .collect();
        let n: u64 = counts.iter().sum();
        let n_effective = random.random_range(0.01..1.0) * n as f64;
        let options = ModeOptions {
            step: 10.0,
            ..ModeOptions::default()
        };
        let found = modes_of_bins(&edges, &counts, n_effective.max(1.0), &options);
        assert_eq!(found.modes.is_empty(), n == 0, "case {case}");
        assert_eq!(
            found.valleys.len() + 1,
            found.modes.len().max(1),
            "case {case}"
        );
        assert!(
            found.modes.iter().all(|m| m.place.n > 0),
            "case {case}: {found:?}"
        );
        assert!(
            found.modes.windows(2).all(|m| m[0].hi == m[1].lo),
            "case {case}"
        );
        let shares: f64 = found.modes.iter().map(|m| m.share.value).sum();
        assert!(
            n == 0 || (shares - 1.0).abs() < 1e-9,
            "case {case}: {shares}"
        );
    }
}
