//! Merged runs, with figures by hand.

use crate::support;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use support::{begin, end, interval, manifest, report};
use undertick_analyze::Options;
use undertick_combine::{Run, combine};
use undertick_document::{Report, Scope};

/// Makes a run of eight spans of equal length, and one span of another event after them if `extra`.
fn run(name: &str, ns: i64, extra: bool) -> Run {
    let mut rows = Vec::new();
    for i in 0..8 {
        rows.extend([begin(1_000 * i, 1), end(1_000 * i + ns, 1)]);
    }
    if extra {
        rows.extend([begin(9_000, 2), end(9_007, 2)]);
    }
    Run {
        name: name.to_owned(),
        report: report(&manifest(), &Options::default(), &rows),
    }
}

fn five() -> Report {
    let runs: Vec<Run> = [10, 12, 11, 13, 14]
        .iter()
        .enumerate()
        .map(|(i, &ns)| run(&format!("000{}", i + 1), ns, i == 2))
        .collect();
    combine(&runs, 0.95).unwrap()
}

/// 10, 12, 11, 13, 14: median 12, standard deviation 1.5811, Student's t of 4 degrees 2.7764,
/// variance of a median of five pi / 11. Half the interval is 2.7764 * 1.5811 * sqrt(2 pi / 11) =
/// 3.3177. All readings of a run agree, so each run leaves a step of the clock uncertain, 1.
#[test]
fn five_runs_by_hand() {
    let report = five();
    assert_eq!(report.runs, Some(5));
    assert_eq!(report.settings.scope, Scope::Repetition);
    assert_eq!(report.runs_within_ns, None, "when they began is not known");
    assert_eq!((report.trace.events, report.trace.threads), (82, 1));
    let span = interval(&report, "event 1");
    assert_eq!((span.count, span.total_ns), (40, Some(480.0)));
    for figure in [&span.mean, &span.median] {
        let figure = figure.as_ref().unwrap();
        assert_eq!(
            (figure.value, figure.n, figure.n_effective),
            (12.0, 40, 5.0)
        );
        let half = figure.interval.half_width().unwrap();
        assert!((half - 4.317_7).abs() < 1e-3, "{half}");
    }
    assert_eq!(
        (span.statistics.min, span.statistics.max),
        (Some(10.0), Some(14.0))
    );
    // 8 values each, no scatter within: 8 * (4 + 0 + 1 + 1 + 4) / 39.
    assert!((span.statistics.sd.unwrap() - (80.0_f64 / 39.0).sqrt()).abs() < 1e-9);
    assert_eq!(span.histogram.counts.iter().sum::<u64>(), 40);
    let means: Vec<_> = span.by_run.iter().map(|r| (&*r.run, r.mean_ns)).collect();
    assert_eq!(means[1], ("0002", Some(12.0)));
    assert!(span.of_this_run.is_none());
}

/// 1000 sets of five normal runs (sums of 12 uniform numbers), each compared with five fresh ones:
/// a 95 % interval contains their figure in 912 to 981 (binomial, less than one in a million
/// outside). In the second thousand one run in twenty takes four times as long: the interval may
/// contain more, but not less. Student's interval of the mean would contain 88 and about 80 %.
#[test]
fn five_runs_hold_what_five_fresh_runs_give() {
    let held = held_by_fresh_runs(0.0);
    assert!((912..=981).contains(&held), "{held} of 1000");
    let held = held_by_fresh_runs(0.05);
    assert!(held >= 912, "{held} of 1000 where some are slow");
}

fn held_by_fresh_runs(slow: f64) -> usize {
    let mut random = ChaCha8Rng::seed_from_u64(24);
    let template = run("0001", 10, false);
    let mut five = || {
        let runs: Vec<Run> = (0..5)
            .map(|_| {
                let mut run = template.clone();
                let span = &mut run.report.intervals[0];
                let normal = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
                let mean = span.mean.as_mut().unwrap();
                mean.value = 10_000.0 + 500.0 * normal;
                if random.random::<f64>() < slow {
                    mean.value *= 4.0;
                }
                run
            })
            .collect();
        combine(&runs, 0.95).unwrap().intervals[0]
            .mean
            .clone()
            .unwrap()
    };
    let holds = |_: &i32| {
        let (interval, fresh) = (five().interval, five().value);
        (interval.lo.unwrap()..=interval.hi.unwrap()).contains(&fresh)
    };
    (0..1000).filter(holds).count()
}

/// Intervals that only some runs have are in the report, with a note.
#[test]
fn what_one_run_has_is_said() {
    let report = five();
    let rare = interval(&report, "event 2");
    assert_eq!(rare.count, 1);
    let mean = rare.mean.as_ref().unwrap();
    assert_eq!(
        (mean.value, mean.interval.lo, mean.interval.hi),
        (7.0, None, None)
    );
    assert!(
        rare.notes.iter().any(|n| n == "in 1 of 5 runs only"),
        "{:?}",
        rare.notes
    );
}

#[test]
fn one_run_knows_no_repetition() {
    let report = combine(&[run("a", 10, false)], 0.95).unwrap();
    let span = interval(&report, "event 1");
    let mean = span.mean.as_ref().unwrap();
    assert_eq!((mean.interval.lo, mean.interval.hi), (None, None));
    assert!(span.notes.iter().any(|n| n.contains("record --runs 5")));
    assert!(combine(&[], 0.95).is_none());
}

/// Five medians on one step of the clock are known to a step, regardless of the number of runs.
#[test]
fn a_step_of_the_clock_is_open_in_every_run() {
    let mut coarse = manifest();
    coarse.clock.granularity_ticks = 10.0;
    let runs: Vec<Run> = (1..=5)
        .map(|i| {
            // 50 each, and a growing number of 60; not in step with the clock.
            let rows: Vec<_> = (0..1000)
                .flat_map(|k: i64| {
                    let from = 1_000 * k + 10 * (k * k % 37);
                    [begin(from, 1), end(from + if k < i { 60 } else { 50 }, 1)]
                })
                .collect();
            Run {
                name: format!("000{i}"),
                report: report(&coarse, &Options::default(), &rows),
            }
        })
        .collect();
    let found = combine(&runs, 0.95).unwrap();
    let span = interval(&found, "event 1");
    let bounds = |e: &undertick_units::Estimate| (e.interval.lo.unwrap(), e.interval.hi.unwrap());
    assert_eq!(bounds(span.median.as_ref().unwrap()), (40.0, 60.0));
    assert_eq!(bounds(&span.quantiles["0.99"]), (40.0, 60.0));
    // In one run the mean is uncertain by 1.96 * 10 / sqrt(6 * 1000) = 0.253. In these five it is
    // 50.03, with Student's 2.7764 * 0.015811 * sqrt(2 pi / 11) = 0.0332.
    let mean = span.mean.as_ref().unwrap();
    assert!((mean.value - 50.03).abs() < 1e-9);
    let half = mean.interval.half_width().unwrap();
    assert!((half - 0.286_2).abs() < 1e-3, "{half}");
}

/// The fourth of five runs of 100 to 104 ns takes 469. A warning names it, in the one span that all
/// have, and the figure stays near the others. Where runs scatter evenly none is named.
#[test]
fn a_run_far_off_is_named() {
    let of = |ns: [i64; 5]| {
        let runs: Vec<Run> = (ns.iter().enumerate())
            .map(|(i, &ns)| run(&format!("000{}", i + 1), ns, i == 2))
            .collect();
        let report = combine(&runs, 0.95).unwrap();
        let found = report
            .warnings
            .into_iter()
            .find(|w| w.code == "run_far_off");
        let mean = report.intervals[0].mean.clone().unwrap();
        (found.map(|warning| warning.text), mean)
    };
    let (text, mean) = of([102, 100, 104, 469, 101]);
    let text = text.unwrap();
    assert!(
        text.starts_with(
            "run 0004 lies far from the others: its mean is 4.60 times the runs' median in 1 of 2 spans"
        ),
        "{text}"
    );
    assert_eq!(mean.value, 102.0);
    assert_eq!(of([102, 100, 104, 103, 101]).0, None);
}

/// A warning reports runs that begin 4 s after one another, but not runs 12 s apart, nor runs whose
/// begin is unknown.
#[test]
fn close_runs_are_told() {
    let warned = |apart_s: i64| {
        let mut runs: Vec<Run> = (0..5)
            .map(|i| run(&format!("000{i}"), 10 + i, false))
            .collect();
        for (i, run) in runs.iter_mut().enumerate() {
            // Runs of 2 s that did not begin in the order of their names.
            run.report.trace.started_unix_ns = (7 + i as i64 * 3 % 5 * apart_s) * 1_000_000_000;
            run.report.trace.duration_ns = Some(2_000_000_000);
        }
        let report = combine(&runs, 0.95).unwrap();
        assert_eq!(
            report.runs_within_ns,
            Some((4 * apart_s + 2) * 1_000_000_000)
        );
        let found = report.warnings.into_iter().find(|w| w.code == "runs_close");
        found.map(|warning| warning.text)
    };
    assert!(warned(4).unwrap().starts_with("the runs began 4.0 s apart"));
    let mut imported = run("one", 10, false);
    imported.report.trace.duration_ns = Some(2_000_000_000);
    assert_eq!(combine(&[imported], 0.95).unwrap().runs_within_ns, None);
    assert_eq!((warned(12), warned(0)), (None, None));
}

/// A single run reports its scope; the figures of this run are exact.
#[test]
fn a_run_says_what_is_a_fact() {
    let one = run("a", 10, false).report;
    assert_eq!((one.runs, one.settings.scope), (None, Scope::ThisRun));
    let own = interval(&one, "event 1").of_this_run.clone().unwrap();
    let mean = own.mean.unwrap();
    assert_eq!((mean.value, mean.method.as_str()), (10.0, "of this run"));
    assert_eq!(own.median.unwrap().value, 10.0);
}
