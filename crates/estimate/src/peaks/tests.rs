//! Parts calculated by hand, and the reason for the smoothing of the reference.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use undertick_units::{Estimate, Interval};

use super::bursts::{over_bursts, over_time, score, window};
use super::histogram::RateHistogram;
use super::location::shortest_half;
use super::predict::{predict, predict_times};
use super::relative::{Run, median, smoothed};
use super::{PeakOptions, RateSample, peaks, peaks_of_histogram};

fn sample(burst: u32, rate: f64, seconds: f64) -> RateSample {
    RateSample {
        burst,
        rate,
        reference: 1.0,
        seconds,
    }
}

fn estimate(value: f64, lo: f64, hi: f64) -> Estimate {
    Estimate {
        value,
        interval: Interval::new(lo, hi),
        level: 0.95,
        unit: "1".into(),
        method: String::new(),
        n: 100,
        n_effective: 100.0,
        notes: Vec::new(),
    }
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9, "{a} {b}");
}

/// 0 0 0 1 1 1 0 0: two differences of 1, so 2 / (2 * 7) / 8 = 1 / 56; if independent it would be
/// 0.2344 * 8 / 7 / 8. Degrees: 2 * 49 / 20.
#[test]
fn variance_by_successive_differences() {
    let values = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0];
    let found = over_bursts(&values, &[3.0; 8]);
    near(found.mean, 0.375);
    near(found.variance.unwrap(), 1.0 / 56.0);
    near(found.degrees, 4.9);
    // As a share: 0.375 * 0.625 * 56 = 13.125 independent samples.
    near(found.share(1000, 0.95, "").n_effective, 13.125);
    near(found.share(10, 0.95, "").n_effective, 10.0);
    assert_eq!(over_bursts(&values[..5], &[1.0; 5]).variance, None);
    // A burst of twice the weight: (1 + 2 * 2) / 7; it adds 2 * 6 / 7 * 2 / 7.
    let weights = [1.0, 1.0, 1.0, 1.0, 1.0, 2.0];
    let found = over_bursts(&[0.0, 0.0, 0.0, 0.0, 1.0, 1.0], &weights);
    near(found.mean, 3.0 / 7.0);
    let own = [-3.0_f64, -3.0, -3.0, -3.0, 4.0, 8.0].map(|x| x / 7.0 * 6.0 / 7.0);
    let squares = (own[4] - own[3]).powi(2) + (own[5] - own[4]).powi(2);
    near(found.variance.unwrap(), squares / 10.0 / 6.0);
}

/// Newcombe 1998, table I: 81 of 263 gives 0.2553..0.3662.
#[test]
fn the_score_interval() {
    let found = score(81.0 / 263.0, 263.0, 1.959_964);
    assert!((found.lo.unwrap() - 0.2553).abs() < 5e-5);
    assert!((found.hi.unwrap() - 0.3662).abs() < 5e-5);
}

/// Bursts of 4 s, 4 s, 10 s: the first 4 s of each are examined. The third has 1 s of fast samples
/// and then slow ones, 3 s of 4; of all of it 9 of 10.
#[test]
fn only_the_time_of_a_short_burst_is_looked_at() {
    let mut samples = vec![sample(0, 1.0, 1.0); 4];
    samples.extend([sample(1, 1.0, 2.0); 2]);
    samples.push(sample(2, 1.0, 1.0));
    samples.extend([sample(2, 0.2, 4.5); 2]);
    let run = Run::from_samples(&samples, 0.0).unwrap();
    near(window(&run), 4.0);
    let slow = |i: usize| f64::from(u8::from(run.samples[i].time > 2.0));
    let found = over_time(&run, 4.0, slow);
    assert_eq!(found.len(), 3);
    near(found[0], 0.0);
    near(found[2], 0.75);
    near(over_time(&run, 100.0, slow)[2], 0.9);
}

#[test]
fn places_by_hand() {
    // Of five values, the three that are nearest: 3, 3.5, 4.
    assert_eq!(shortest_half(&[0.0, 1.5, 3.0, 3.5, 4.0]), (3.0, 4.0));
    assert_eq!(shortest_half(&[2.0]), (2.0, 2.0));
    assert!(shortest_half(&[]).0.is_nan());
    assert_eq!(median(vec![4.0, 1.0, 3.0]), 3.0);
    assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), 2.5);
    assert_eq!(median(vec![]), 0.0);
}

/// 0.352 / 0.328 at 0.3 of the time: 0.3 * 0.024 / 0.352; bounds by those of the
/// slow-down, 1.25 and 2.
#[test]
fn predictions_by_hand() {
    let share = estimate(0.1, 0.05, 0.2);
    let drum = predict(&share, &estimate(0.352 / 0.328, 1.0, 1.1), 0.3);
    near(drum.value, 0.3 * 0.024 / 0.352);
    near(drum.interval.lo.unwrap(), 0.0);
    near(drum.interval.hi.unwrap(), 0.3 * 0.1 / 1.1);
    let slowdown = estimate(1.5, 1.25, 2.0);
    let found = predict(&share, &slowdown, 0.6);
    near(found.value, 0.2);
    near(found.interval.lo.unwrap(), 0.12);
    near(found.interval.hi.unwrap(), 0.3);
    // The loss is largest when it is active all the time.
    near(predict(&share, &slowdown, 7.0).value, 1.0 / 3.0);
    // Three times as often: 0.3 / 3; the share moves it by -0.05 and 0.1, the
    // slow-down by 0.06 - 0.1 and 0.15 - 0.1.
    let found = predict_times(&share, &slowdown, 3.0);
    near(found.value, 0.1);
    near(found.interval.lo.unwrap(), 0.1 - 0.05_f64.hypot(0.04));
    near(found.interval.hi.unwrap(), 0.1 + 0.1_f64.hypot(0.05));
    near(predict_times(&share, &slowdown, 30.0).value, 1.0 / 3.0);
    let mut unknown = slowdown.clone();
    unknown.interval.hi = None;
    assert_eq!(predict(&share, &unknown, 0.6).interval.hi, None);
    assert_eq!(predict_times(&share, &unknown, 3.0).interval.hi, None);
}

#[test]
fn bins_of_the_clean_rate() {
    let rates = [
        (1.0, 3, 0.3),
        (0.994, 1, 0.1),
        (0.996, 1, 0.1),
        (0.97, 2, 0.5),
        (9.0, 1, 0.1),
    ];
    let found = RateHistogram::from_rates(0.01, rates.into_iter());
    near(found.edges[0], 0.965);
    near(*found.edges.last().unwrap(), 5.005);
    assert_eq!(found.edges.len(), found.counts.len() + 1);
    assert_eq!(found.counts[..5], [2, 0, 1, 4, 0]);
    assert_eq!((found.counts.len(), found.counts[403]), (404, 1));
    near(found.seconds[3], 0.4);
    assert_eq!(
        RateHistogram::from_rates(0.01, [].into_iter()),
        RateHistogram::default()
    );
}

/// Bins 1.0: 80, 0.9: 0, 0.5: 20. The slow ones are a fifth of the samples and 40 of
/// 120 parts of the time; the mean rate is 100 / 120.
#[test]
fn a_histogram_by_hand() {
    let rates = [0.5, 0.55, 0.6, 0.8, 0.9, 0.95, 1.0, 1.05];
    let counts = [20, 0, 0, 0, 0, 0, 80, 0];
    let found = peaks_of_histogram(&rates, &counts, &PeakOptions::default()).unwrap();
    assert_eq!(found.peaks.len(), 2);
    let slow = &found.peaks[1];
    near(slow.slowdown.value, 2.0);
    near(slow.sample_share.value, 0.2);
    near(slow.time_share.value, 1.0 / 3.0);
    near(found.mean_loss.value, 1.0 / 6.0);
    near(found.clean_rate.value, 1.0);
}

/// A run whose bursts have five references each, the quartiles of 1, 2 .. 9 are 3 and 7.
#[test]
fn drift_by_hand() {
    let samples: Vec<RateSample> = (0..45)
        .map(|i| RateSample {
            reference: f64::from(i / 5 + 1) + 0.1 * f64::from(i % 5 - 2),
            ..sample(i as u32 / 5, f64::from(i / 5 + 1), 1.0)
        })
        .collect();
    let found = peaks(&samples, &PeakOptions::default()).unwrap();
    near(found.reference_drift.value, 4.0 / 5.0);
    assert_eq!(found.bursts, 9);
}

/// The scatter that remains when rates are divided by smoothed references, for each number of
/// neighbours: where the core keeps its speed in a burst, where it changes it once, and where one
/// reference in fifty was interrupted.
#[test]
fn references_are_smoothed_over_neighbours() {
    let own = 0.003;
    let mut table = Vec::new();
    for case in 0..3 {
        let mut random = ChaCha8Rng::seed_from_u64(27_000 + case);
        let mut normal = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
        let mut samples = Vec::new();
        for burst in 0..200 {
            let mut speed = 1.0 + 0.03 * normal();
            for i in 0..60 {
                if case == 1 && i == 30 {
                    speed *= 1.06;
                }
                let interrupted = case == 2 && (burst * 60 + i) % 50 == 7;
                samples.push(RateSample {
                    burst,
                    rate: speed * (1.0 + own * normal()),
                    reference: speed
                        * (1.0 + 0.01 * normal())
                        * if interrupted { 0.3 } else { 1.0 },
                    seconds: 1.0,
                });
            }
        }
        let bursts: Vec<_> = (0..200).map(|b| b * 60..b * 60 + 60).collect();
        table.push([0, 2, 4, 8, 60].map(|neighbours| {
            let smooth = smoothed(&samples, &bursts, neighbours);
            let squares: f64 = (samples.iter().zip(&smooth))
                .map(|(s, r)| (s.rate / r).ln().powi(2))
                .sum();
            (squares / 12_000.0).sqrt() / own
        }));
    }
    for (case, row) in ["kept", "changed", "interrupted"].iter().zip(&table) {
        println!("{case}: {row:.2?} (0, 2, 4, 8 neighbours, whole burst)");
    }
    // Within a tenth of the worst of the others wherever it is not the best.
    for row in &table {
        assert!(row[2] < 2.2, "{table:?}");
        assert!(row[0] > 1.5 * row[2], "{table:?}");
    }
    assert!(table[1][4] > 3.0 * table[1][2], "{table:?}");
}
