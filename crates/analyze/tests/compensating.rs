//! `--compensate` on traces whose reading costs are known. The clock has a load that changes
//! slowly, so a pair shows the cost of its neighbour. The truth is the work that the generator put
//! in.

use crate::support;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use support::{calibration, interval, manifest, ns, report, row};
use undertick_analyze::{Analysis, Compensate, Options};
use undertick_document::Report;
use undertick_format::manifest::{Calibration, Manifest, PairedCost, SpanCost};
use undertick_format::schema::Kind;

/// Ticks of work in every span.
const WORK: i64 = 50;

/// Makes spans whose readings cost 20 + load ticks. The load is a random walk between 0 and 40 that
/// moves by at most 2 between spans. Each span carries its pairs (which cost the same, give or take
/// one tick) or has `ut_pair`s around it. A sampler in ring 1 reads between spans.
fn spans(seed: u64, n: usize, carried: bool) -> Vec<support::Row> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut load = 20;
    let mut now = 1000;
    let mut rows = Vec::new();
    for _ in 0..n {
        load = (load + random.random_range(-2..=2_i64)).clamp(0, 40);
        let mut cost = || 20 + load + random.random_range(-1..=1_i64);
        rows.push(row(Kind::Pair, now, 9, cost()).on(1));
        let (before, inside, after) = (cost(), cost(), cost());
        if carried {
            rows.push(row(Kind::BeginOrdered, now + 100, 1, before));
            rows.push(row(Kind::EndOrdered, now + 100 + WORK + inside, 1, after));
        } else {
            rows.push(row(Kind::Pair, now + 90, 2, before));
            rows.push(row(Kind::Begin, now + 100, 1, 0));
            rows.push(row(Kind::End, now + 100 + WORK + inside, 1, 0));
            rows.push(row(Kind::Pair, now + 300, 2, after));
        }
        now += 1000;
    }
    rows
}

fn compensated(manifest: &Manifest, rows: &[support::Row], compensate: Compensate) -> Report {
    let options = Options {
        compensate,
        ..Options::default()
    };
    report(manifest, &options, rows)
}

/// Shares of pairs that have nothing to do with their span are refused as the pairs themselves are:
/// asked for or chosen by the calibration, they are not subtracted where k is below 1.
#[test]
fn control_variates_that_make_it_scatter_more_are_refused() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut rows = Vec::new();
    for i in 0..1000 {
        let (before, after) = (random.random_range(10..50), random.random_range(10..50));
        let ticks = 100 + random.random_range(-2..=2_i64);
        rows.push(row(Kind::BeginOrdered, 1000 * i, 1, before));
        rows.push(row(Kind::EndOrdered, 1000 * i + ticks, 1, after));
    }
    for (chosen, compensate) in [
        ("long-term", Compensate::ControlVariate),
        ("control-variate", Compensate::Auto),
    ] {
        let found = compensated(&with_shares(chosen), &rows, compensate);
        let span = interval(&found, "event 1");
        // Uniform over five values: the root of 2; with the shares it would be over 6.
        let sd = span.statistics.sd.unwrap();
        assert!((sd - 2_f64.sqrt()).abs() < 0.1, "{chosen}: {sd}");
        assert!(
            span.compensation.k.is_none(),
            "{chosen}: {:?}",
            span.compensation
        );
        assert!(
            (span.notes.iter()).any(|note| note.contains("would make it scatter more")),
            "{chosen}: {:?}",
            span.notes
        );
    }
}

/// The pairs are independent of their span: subtracting them would make 100 ticks, give or take 2,
/// scatter more. Each span is then reduced by their mean.
#[test]
fn what_makes_it_scatter_more_is_refused() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let (mut rows, mut taken, mut read) = (Vec::new(), 0.0, 0.0);
    for i in 0..1000 {
        let (before, after) = (random.random_range(10..50), random.random_range(10..50));
        let ticks = 100 + random.random_range(-2..=2_i64);
        rows.push(row(Kind::BeginOrdered, 1000 * i, 1, before));
        rows.push(row(Kind::EndOrdered, 1000 * i + ticks, 1, after));
        taken += (before + after) as f64 / 2.0;
        read += ticks as f64;
    }
    let found = compensated(&manifest(), &rows, Compensate::Pairs);
    let span = interval(&found, "event 1");
    let mean = span.mean.as_ref().unwrap();
    assert!(
        (mean.value - (read - taken) / 1000.0).abs() < 0.01,
        "{mean:?}"
    );
    // Uniform over five values: the root of 2; with the pairs it would be over 8.
    assert!(
        (span.statistics.sd.unwrap() - 2_f64.sqrt()).abs() < 0.1,
        "{:?}",
        span.statistics.sd
    );
    assert_eq!(
        (&*span.compensation.method, &span.compensation.k),
        ("long-term", &None)
    );
    assert!(
        span.notes
            .iter()
            .any(|note| note.contains("pairs would make it scatter more")),
        "{:?}",
        span.notes
    );
}

/// By hand: 100 ticks between pairs of 20 and 30 are 75 by pairs. The mean of all four carried
/// pairs (20, 30, 40, 50) is 35, and gives 65 and 165.
#[test]
fn pairs_and_their_mean_by_hand() {
    let rows = [
        row(Kind::BeginOrdered, 1000, 1, 20),
        row(Kind::EndOrdered, 1100, 1, 30),
        row(Kind::BeginOrdered, 2000, 1, 40),
        row(Kind::EndOrdered, 2200, 1, 50),
    ];
    let total = |compensate| {
        let found = compensated(&manifest(), &rows, compensate);
        interval(&found, "event 1").total_ns.unwrap()
    };
    assert_eq!(total(Compensate::None), 300.0);
    assert_eq!(total(Compensate::Pairs), 75.0 + 155.0);
    assert_eq!(total(Compensate::LongTerm), 65.0 + 165.0);
}

/// Half ticks are not lost: (20 + 25) / 2 = 22.5 from each of three.
#[test]
fn half_ticks_add_up() {
    let rows: Vec<_> = (0..3)
        .flat_map(|i| {
            [
                row(Kind::BeginOrdered, 1000 * i, 1, 20),
                row(Kind::EndOrdered, 1000 * i + 100, 1, 25),
            ]
        })
        .collect();
    let found = compensated(&manifest(), &rows, Compensate::Pairs);
    assert!((interval(&found, "event 1").total_ns.unwrap() - 232.5).abs() < 1e-9);
}

/// Every method finds the work. Long-term averaging leaves the load's scatter (k = 1, a standard
/// deviation of about 11), and pairs remove it: below 2. A mean of 4000 samples with one tick of
/// scatter is right within 0.1.
#[test]
fn every_method_finds_the_work() {
    for carried in [true, false] {
        let rows = spans(5, 4000, carried);
        let figures = |compensate| {
            let found = compensated(&manifest(), &rows, compensate);
            let span = interval(&found, "event 1").clone();
            (
                span.mean.clone().unwrap().value,
                span.statistics.sd.unwrap(),
                span,
            )
        };
        let (mean, sd, span) = figures(Compensate::Pairs);
        assert!((mean - WORK as f64).abs() < 0.1, "{carried}: {mean}");
        assert!(sd < 2.0, "{carried}: {sd}");
        assert_eq!(span.compensation.method, "pairs");
        let k = span.compensation.k.unwrap();
        assert!(k.interval.lo.unwrap() > 20.0, "{k:?}");
        let (mean, sd, span) = figures(Compensate::LongTerm);
        assert!((mean - WORK as f64).abs() < 0.1, "{carried}: {mean}");
        assert!(sd > 8.0, "{carried}: {sd}");
        assert_eq!(span.compensation.method, "long-term");
        let (mean, sd, span) = figures(Compensate::Sampler);
        assert!((mean - WORK as f64).abs() < 0.1, "{carried}: {mean}");
        assert!(sd < 3.0, "{carried}: {sd}");
        assert_eq!(span.compensation.method, "sampler");
        let (mean, _, span) = figures(Compensate::None);
        assert!(mean > WORK as f64 + 20.0);
        assert!(span.compensation.cost.is_none());
    }
}

fn with_shares(chosen: &str) -> Manifest {
    let span = SpanCost {
        empty_ns: ns(40.0, 39.0, 41.0),
        dosed_ns: ns(40.0, 39.0, 41.0),
        least_dose_ns: None,
    };
    Manifest {
        calibration: Some(Calibration {
            paired: Some(PairedCost {
                span,
                pairs_bias_ns: ns(0.0, -0.5, 0.5),
                shares: [0.25, 0.5],
                fence_ticks: [0.0, 60.0],
                constant_ns: ns(5.0, 4.0, 6.0),
                pair_ns: ns(25.0, 24.0, 26.0),
                pairs_k: None,
                control_variate_k: None,
                chosen: chosen.into(),
                why: "test".into(),
            }),
            ..calibration()
        }),
        ..manifest()
    }
}

/// A sampler's pairs take 24, and a plain span costs 10 +- 1 by the calibration: nothing says that
/// readings of another thread cost what the program's own do, so the interval reaches from 9 to 24.
/// Without a calibration it is 0 to twice as much.
#[test]
fn readings_of_another_thread_leave_open_what_the_own_cost() {
    let rows: Vec<support::Row> = (1..=40)
        .flat_map(|i| {
            [
                row(Kind::Pair, 1000 * i, 9, 24).on(1),
                row(Kind::Begin, 1000 * i + 100, 1, 0),
                row(Kind::End, 1000 * i + 200, 1, 0),
            ]
        })
        .collect();
    let calibrated = Manifest {
        calibration: Some(calibration()),
        ..manifest()
    };
    for (manifest, [least, most], said) in [
        (calibrated, [9.0, 24.0], "holds the calibration's cost"),
        (manifest(), [0.0, 48.0], "0 to twice as much"),
    ] {
        let found = compensated(&manifest, &rows, Compensate::Sampler);
        let span = interval(&found, "event 1");
        let cost = span.compensation.cost.clone().unwrap();
        let near = |got: Option<f64>, by_hand: f64| {
            assert!((got.unwrap() - by_hand).abs() < 1e-9, "{cost:?}");
        };
        near(Some(cost.value), 24.0);
        near(cost.interval.lo, least);
        near(cost.interval.hi, most);
        assert!(cost.method.contains(said), "{cost:?}");
        let mean = span.mean.clone().unwrap();
        assert!((mean.value - 76.0).abs() < 1e-9, "{mean:?}");
        let (lo, hi) = (mean.interval.lo.unwrap(), mean.interval.hi.unwrap());
        // The truth of the calibration, 90, is in it.
        assert!(lo <= 100.0 - most.min(100.0) && hi >= 90.0, "{mean:?}");
    }
}

/// 5 + 0.25 * 20 + 0.5 * 30 = 25; 5 + 0.25 * 34 + 0.5 * 16 = 21.5. The pairs'
/// mean is the calibration's 25: nothing has drifted.
#[test]
fn fitted_shares_by_hand() {
    let rows = [
        row(Kind::BeginOrdered, 1000, 1, 20),
        row(Kind::EndOrdered, 1100, 1, 30),
        row(Kind::BeginOrdered, 2000, 1, 34),
        row(Kind::EndOrdered, 2100, 1, 16),
    ];
    let found = compensated(&with_shares("long-term"), &rows, Compensate::ControlVariate);
    let span = interval(&found, "event 1");
    assert_eq!(span.total_ns, Some(75.0 + 78.5));
    let cost = span.compensation.cost.clone().unwrap();
    assert_eq!(cost.value, 23.25);
    // The constant is uncertain by 1 either way.
    assert_eq!(
        (cost.interval.lo, cost.interval.hi),
        (Some(22.25), Some(24.25))
    );
    let auto = |chosen| {
        let found = compensated(&with_shares(chosen), &rows, Compensate::Auto);
        let span = interval(&found, "event 1").clone();
        (span.total_ns.unwrap(), span.compensation.method)
    };
    assert_eq!(auto("control-variate"), (153.5, "control-variate".into()));
    assert_eq!(auto("long-term"), (120.0, "calibrated".into()));
}

/// A pair of 500 counts as 75 in its sample, three times the calibration's: 5 + 18.75 + 15. It does
/// not affect the drift: the other sample's 25 and 25 are the calibration's.
#[test]
fn a_pair_that_was_hit_is_held_at_the_fence() {
    let rows = [
        row(Kind::BeginOrdered, 2000, 1, 500),
        row(Kind::EndOrdered, 2100, 1, 30),
        row(Kind::BeginOrdered, 3000, 1, 25),
        row(Kind::EndOrdered, 3100, 1, 25),
    ];
    let found = compensated(&with_shares("control-variate"), &rows, Compensate::Auto);
    // 5 + 0.75 * 25 = 23.75.
    assert_eq!(interval(&found, "event 1").total_ns, Some(61.25 + 76.25));
}

/// Pairs of 29 where the calibration had 25: readings cost 4 more, and spans, which cost 40 beside
/// 25, 1.15 * 40 / 25 = 1.84 times that. The constant's 40 becomes 47.36; with shares of 0.75 the
/// samples have had 3 of the 7.36 already. An eighth of the change widens the interval. Where the
/// last pairs show only 1, that counts; where they show the opposite, nothing is corrected. A core
/// in a state that the calibration never saw, beyond its fence of 60, is followed as well.
#[test]
fn a_drift_of_the_readings_is_followed() {
    let figures = |chosen, first, last| {
        let rows: Vec<_> = (0..64)
            .flat_map(|i| {
                [
                    row(Kind::BeginOrdered, 1000 * i, 1, first),
                    row(Kind::EndOrdered, 1000 * i + 200, 1, last),
                ]
            })
            .collect();
        let found = compensated(&with_shares(chosen), &rows, Compensate::Auto);
        let cost = interval(&found, "event 1")
            .compensation
            .cost
            .clone()
            .unwrap();
        let mean = interval(&found, "event 1").mean.clone().unwrap();
        (
            cost.value,
            cost.value - cost.interval.lo.unwrap(),
            mean.value,
        )
    };
    let same = |found: (f64, f64, f64), cost: f64, error: f64| {
        let expected = (cost, error, 200.0 - cost);
        for (found, expected) in [
            (found.0, expected.0),
            (found.1, expected.1),
            (found.2, expected.2),
        ] {
            assert!((found - expected).abs() < 1e-6, "{found} for {expected}");
        }
    };
    same(figures("long-term", 29, 29), 47.36, 1.92);
    // 5 + 0.75 * 29 = 26.75, and 4.36 more.
    same(figures("control-variate", 29, 29), 31.11, 1.92);
    same(figures("long-term", 29, 26), 41.84, 1.23);
    same(figures("long-term", 24, 21), 38.16, 1.23);
    same(figures("long-term", 29, 24), 40.0, 1.0);
    same(figures("long-term", 62, 62), 108.08, 9.51);
}

/// A known bias of published pairs is not subtracted, but widens the interval.
#[test]
fn what_pairs_leave_is_in_the_interval() {
    let rows: Vec<_> = (0..64)
        .flat_map(|i| {
            [
                row(Kind::BeginOrdered, 1000 * i, 1, 20),
                row(Kind::EndOrdered, 1000 * i + 100, 1, 20),
            ]
        })
        .collect();
    let mut manifest = with_shares("pairs");
    let paired = manifest.calibration.as_mut().unwrap().paired.as_mut();
    paired.unwrap().pairs_bias_ns = ns(3.0, 2.0, 4.0);
    let found = compensated(&manifest, &rows, Compensate::Pairs);
    let mean = interval(&found, "event 1").mean.clone().unwrap();
    assert_eq!(mean.value, 80.0);
    assert!(
        mean.interval.lo.unwrap() <= 76.0 && mean.interval.hi.unwrap() < 81.0,
        "{mean:?}"
    );
}

#[test]
fn a_trace_without_pairs_says_so() {
    let rows = [row(Kind::Begin, 0, 1, 0), row(Kind::End, 10, 1, 0)];
    for compensate in [Compensate::LongTerm, Compensate::Pairs, Compensate::Sampler] {
        let options = Options {
            compensate,
            ..Options::default()
        };
        let mut analysis = Analysis::new(&manifest(), options).unwrap();
        for _ in 0..analysis.passes() {
            analysis.push(&support::batch(&rows)).unwrap();
            analysis.finish_pass();
        }
        let error = analysis.finish().unwrap_err().to_string();
        assert!(
            error.contains("ut_pair") && error.contains(&compensate.to_string()),
            "{error}"
        );
    }
    let options = Options {
        compensate: Compensate::ControlVariate,
        ..Options::default()
    };
    let error = Analysis::new(&manifest(), options).unwrap_err().to_string();
    assert!(error.contains("calibration"), "{error}");
}

/// Only the program's threads have pairs: without a sampler nothing is subtracted, and the report
/// says so.
#[test]
fn samples_without_pairs_are_counted() {
    let rows: Vec<_> = spans(6, 50, false)
        .into_iter()
        .filter(|r| r.ring == 0)
        .collect();
    let found = compensated(&manifest(), &rows, Compensate::Sampler);
    let span = interval(&found, "event 1");
    assert_eq!(span.compensation.method, "none");
    assert!(
        span.notes
            .iter()
            .any(|n| n.contains("50 samples have no pair")),
        "{:?}",
        span.notes
    );
}
