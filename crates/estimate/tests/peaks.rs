//! Peaks of single machines, of the published histograms, and of invalid input.

use crate::known;
use crate::probe;

use known::Source;
use probe::Machine;
use undertick_estimate::peaks::{PeakOptions, Peaks, RateSample, peaks, peaks_of_histogram};
use undertick_units::Estimate;

fn holds(estimate: &Estimate, truth: f64) -> bool {
    let interval = estimate.interval;
    interval.lo.unwrap() <= truth && truth <= interval.hi.unwrap()
}

/// Every loop is slow with a chance of 0.3, and then takes 2.4 times as long: 0.3 * 2.4 / (0.7 +
/// 0.3 * 2.4) = 0.507 of the time.
#[test]
fn shares_of_time_are_not_shares_of_samples() {
    let machine = Machine {
        states: vec![(0.7, 1.0), (0.3, 2.4)],
        bursts: 1000,
        loops: 100,
        ..Machine::default()
    };
    let start = std::time::Instant::now();
    let ran = machine.run(&mut Source::new(24_000, 0));
    let drawn = start.elapsed();
    let found = peaks(&ran.samples, &PeakOptions::default()).unwrap();
    println!(
        "100 000 samples: {:.0} ms",
        (start.elapsed() - drawn).as_secs_f64() * 1e3
    );
    assert_eq!(found.peaks.len(), 2);
    let [clean, slow] = &found.peaks[..] else {
        panic!("{found:?}")
    };
    let near = |estimate: &Estimate, truth: f64, by: f64| {
        assert!((estimate.value - truth).abs() < by, "{estimate:?}");
    };
    // Five standard errors: of 100 000 with a chance of 0.3, 0.0072.
    near(&slow.sample_share, 0.3, 0.0075);
    near(&slow.time_share, 0.507, 0.01);
    near(&clean.sample_share, 0.7, 0.0075);
    near(&slow.slowdown, 2.4, 0.01);
    near(&slow.rate, 1.0 / 2.4, 0.002);
    // Work over time: 1 / (0.7 + 0.3 * 2.4) = 0.704; the noise takes 0.3 %.
    near(&found.mean_loss, 1.0 - 1.0 / 1.42, 0.008);
    assert!(slow.p_value.unwrap() < 1e-6 && clean.p_value.is_none());
    assert!(clean.lo == slow.hi && slow.lo == 0.0 && clean.hi > 1.0);
    let all =
        |x: fn(&undertick_estimate::peaks::Peak) -> f64| -> f64 { found.peaks.iter().map(x).sum() };
    assert!((all(|p| p.time_share.value) - 1.0).abs() < 1e-9);
    assert!((all(|p| p.sample_share.value) - 1.0).abs() < 1e-9);
    let seconds: f64 = ran.samples.iter().map(|s| s.seconds).sum();
    let histogram = &found.histogram;
    assert_eq!(histogram.counts.iter().sum::<u64>(), 100_000);
    assert!((histogram.seconds.iter().sum::<f64>() / seconds - 1.0).abs() < 1e-9);
}

/// The reference reports the change of the core's speed: the scatter of the noise alone, or 4 %.
#[test]
fn the_reference_says_how_much_it_moved() {
    for (drift, lo, hi) in [(0.0, 0.0, 0.004), (0.04, 0.02, 0.07)] {
        let machine = Machine {
            drift,
            ..Machine::default()
        };
        let ran = machine.run(&mut Source::new(24_100, 0));
        let found = peaks(&ran.samples, &PeakOptions::default()).unwrap();
        let moved = &found.reference_drift;
        println!("{drift}: {moved:?}");
        assert!((lo..hi).contains(&moved.value), "{moved:?}");
        assert!(holds(moved, moved.value));
    }
}

/// The published rates of a probe with interlace off (MPL, 1971): the legible bins, with the
/// doubtful digits last.
const INTERLACE_OFF: [(f64, u64); 28] = [
    (0.224, 1),
    (0.232, 1),
    (0.240, 5),
    (0.244, 13),
    (0.248, 15),
    (0.252, 41),
    (0.256, 60),
    (0.260, 32),
    (0.268, 22),
    (0.276, 1),
    (0.280, 0),
    (0.284, 5),
    (0.292, 24),
    (0.296, 47),
    (0.304, 37),
    (0.312, 2),
    (0.316, 8),
    (0.328, 14),
    (0.332, 16),
    (0.336, 36),
    (0.340, 136),
    (0.344, 496),
    (0.348, 1746),
    (0.352, 2037),
    (0.356, 0),
    (0.264, 88),
    (0.320, 6),
    (0.324, 6),
];

fn of_bins(bins: &[(f64, u64)]) -> Peaks {
    let (rates, counts): (Vec<f64>, Vec<u64>) = bins.iter().copied().unzip();
    peaks_of_histogram(&rates, &counts, &PeakOptions::default()).unwrap()
}

/// Published: .352 (90 %), .296 (about 2.5 %), .256 (6.9 %), a mean loss of about 3 %.
#[test]
fn the_published_histogram_without_interlace() {
    let mut least = f64::INFINITY;
    for at_264 in [88, 18, 28, 38, 80, 98] {
        for at_320 in [0, 6, 9] {
            for at_324 in [0, 6, 9] {
                let mut bins = INTERLACE_OFF;
                bins[25].1 = at_264;
                bins[26].1 = at_320;
                bins[27].1 = at_324;
                let found = of_bins(&bins);
                let what = format!("{at_264} {at_320} {at_324}");
                assert_eq!(found.peaks.len(), 3, "{what}");
                let rates: Vec<f64> = (found.peaks.iter())
                    .map(|p| p.rate.value * found.clean_rate.value)
                    .collect();
                assert!((0.347..0.353).contains(&rates[0]), "{what}: {rates:?}");
                assert!((0.293..0.303).contains(&rates[1]), "{what}: {rates:?}");
                assert!((0.253..0.263).contains(&rates[2]), "{what}: {rates:?}");
                let shares: Vec<f64> = found.peaks.iter().map(|p| p.sample_share.value).collect();
                assert!((0.89..0.94).contains(&shares[0]), "{what}: {shares:?}");
                assert!((0.02..0.03).contains(&shares[1]), "{what}: {shares:?}");
                assert!((0.04..0.07).contains(&shares[2]), "{what}: {shares:?}");
                let loss = found.mean_loss.value;
                assert!((0.02..0.035).contains(&loss), "{what}: {loss}");
                least = found
                    .peaks
                    .iter()
                    .filter_map(|p| p.p_value)
                    .fold(least, f64::min);
                if what == "88 6 6" {
                    println!("{rates:?} {shares:?} {loss}");
                }
            }
        }
    }
}

/// As described: the main peak at .352 and 10 % of the samples near .328, so a slow-down of 7 % and
/// a loss of 0.7 %. The shape is that of the other figure's main peak.
#[test]
fn the_published_histogram_with_interlace() {
    let shape = [14.0, 16.0, 36.0, 136.0, 496.0, 1746.0, 2037.0, 0.0];
    let sum: f64 = shape.iter().sum();
    let mut bins: Vec<(f64, u64)> = Vec::new();
    for (i, at) in (-12..=1).enumerate() {
        let main = i.checked_sub(6).map_or(0.0, |i| shape[i]);
        let slow = shape.get(i).copied().unwrap_or(0.0);
        let count = 5000.0 * (0.9 * main + 0.1 * slow) / sum;
        bins.push((0.352 + 0.004 * f64::from(at), count.round() as u64));
    }
    let found = of_bins(&bins);
    assert_eq!(found.peaks.len(), 2, "{bins:?}");
    let slow = &found.peaks[1];
    let at = slow.rate.value * found.clean_rate.value;
    println!("{at} {:?} {:?}", slow.sample_share, slow.slowdown);
    assert!((0.325..0.331).contains(&at), "{at}");
    assert!(holds(&slow.sample_share, 0.1) || (slow.sample_share.value - 0.1).abs() < 0.015);
    assert!(
        (slow.slowdown.value - 1.07).abs() < 0.012,
        "{:?}",
        slow.slowdown
    );
}

fn sample(burst: u32, rate: f64, reference: f64, seconds: f64) -> RateSample {
    RateSample {
        burst,
        rate,
        reference,
        seconds,
    }
}

#[test]
fn nonsense_is_no_panic() {
    let nonsense = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -1.0,
        f64::MAX,
        f64::MIN_POSITIVE,
        1e-80,
        1e80,
        1.0,
    ];
    let mut source = Source::new(25_000, 0);
    for case in 0..3000 {
        let n = (80.0 * source.uniform()) as usize;
        let pick = |source: &mut Source| match source.uniform() < 0.3 {
            true => nonsense[(10.0 * source.uniform()) as usize % 10],
            false => 1.0 + 0.1 * source.normal(),
        };
        let samples: Vec<RateSample> = (0..n)
            .map(|_| {
                let burst = (20.0 * source.uniform()) as u32;
                sample(
                    burst,
                    pick(&mut source),
                    pick(&mut source),
                    pick(&mut source),
                )
            })
            .collect();
        let options = PeakOptions {
            level: pick(&mut source),
            least_share: pick(&mut source),
            false_alarm: pick(&mut source),
            bin: pick(&mut source),
            at_most: (5.0 * source.uniform()) as usize,
            step: pick(&mut source),
            least_bursts: (5.0 * source.uniform()) as usize,
        };
        if let Some(found) = peaks(&samples, &options) {
            assert!(!found.peaks.is_empty(), "case {case}");
            assert_eq!(found.n + found.unusable, n as u64);
            let shares: f64 = found.peaks.iter().map(|p| p.sample_share.value).sum();
            assert!((shares - 1.0).abs() < 1e-9, "case {case}: {shares}");
        }
        let rates: Vec<f64> = samples.iter().map(|s| s.rate).collect();
        let counts: Vec<u64> = samples.iter().map(|s| u64::from(s.burst)).collect();
        let _ = peaks_of_histogram(&rates, &counts, &options);
        let _ = peaks_of_histogram(&rates, &counts[n / 2..], &options);
    }
}

#[test]
fn few_samples_have_no_interval() {
    let options = PeakOptions::default();
    assert_eq!(peaks(&[], &options), None);
    assert_eq!(peaks(&[sample(0, f64::NAN, 1.0, 1.0)], &options), None);
    assert_eq!(peaks_of_histogram(&[], &[], &options), None);
    assert_eq!(peaks_of_histogram(&[0.3, 0.4], &[0, 0], &options), None);
    for n in [1, 2, 100] {
        let found = peaks(&vec![sample(0, 7.0, 2.0, 1e-3); n], &options).unwrap();
        assert_eq!(found.peaks.len(), 1);
        let peak = &found.peaks[0];
        assert_eq!((peak.time_share.value, peak.rate.value), (1.0, 1.0));
        // A single burst gives no bounds for the run.
        assert_eq!(peak.time_share.interval.lo, None);
        assert_eq!(found.mean_loss.interval.lo, None);
        assert!(found.mean_loss.value.abs() < 1e-12);
        assert!((found.clean_rate.value - 3.5).abs() < 1e-12);
    }
    // Ten equal bursts: at least 1 - z^2 / (10 + z^2) of the time, with Student's z of 6.2 degrees
    // of freedom, 2.42: 0.63.
    let same: Vec<RateSample> = (0..100).map(|i| sample(i / 10, 7.0, 2.0, 1e-3)).collect();
    let found = peaks(&same, &options).unwrap();
    let lo = found.peaks[0].time_share.interval.lo.unwrap();
    assert!((lo - 0.63).abs() < 0.01, "{lo}");
    // Two exact values that lie far apart are two peaks; 30 of 100 samples last twice as long.
    let two: Vec<RateSample> = (0..400)
        .map(|i| match i % 10 < 3 {
            true => sample(i / 10, 3.5, 2.0, 2e-3),
            false => sample(i / 10, 7.0, 2.0, 1e-3),
        })
        .collect();
    let found = peaks(&two, &options).unwrap();
    assert_eq!(found.peaks.len(), 2);
    assert!((found.peaks[1].slowdown.value - 2.0).abs() < 1e-9);
    assert!((found.peaks[1].time_share.value - 6.0 / 13.0).abs() < 1e-9);
    assert!((found.mean_loss.value - 3.0 / 13.0).abs() < 1e-9);
}

/// 20 of 40 samples, all in one burst, lie elsewhere. One visit is no peak, unless there is only
/// one burst; three visits are.
#[test]
fn one_visit_is_no_peak() {
    let run = |slow: &[u32]| {
        let mut source = Source::new(26_000, 0);
        let samples: Vec<RateSample> = (0..4000)
            .map(|i| {
                let burst = i / 20;
                let slow = if slow.contains(&burst) { 2.0 } else { 1.0 };
                let rate = (1.0 + 0.01 * source.normal()) / slow;
                sample(burst, rate, 1.0, 1e-3 / rate)
            })
            .collect();
        peaks(&samples, &PeakOptions::default())
            .unwrap()
            .peaks
            .len()
    };
    assert_eq!(
        [run(&[]), run(&[7]), run(&[7, 90]), run(&[7, 90, 91])],
        [1, 1, 1, 2]
    );
}

/// Three of a thousand samples last 60 times as long: 15 % of the time.
#[test]
fn a_rare_peak_that_takes_much_time_is_found() {
    for seed in 0..10 {
        let machine = Machine {
            states: vec![(0.997, 1.0), (0.003, 60.0)],
            bursts: 400,
            loops: 50,
            grid_s: 0.1,
            ..Machine::default()
        };
        let ran = machine.run(&mut Source::new(24_200, seed));
        let found = peaks(&ran.samples, &PeakOptions::default()).unwrap();
        assert_eq!(found.peaks.len(), 2, "seed {seed}");
        let slow = &found.peaks[1].slowdown.value;
        assert!((slow - 60.0).abs() < 1.0, "seed {seed}: {slow}");
    }
}
