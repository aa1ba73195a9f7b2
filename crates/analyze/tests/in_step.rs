//! Traces of a coarse clock, with the fine one stored beside it. A note reports a program that
//! keeps step with the clock, and its mean is limited accordingly.

use crate::support;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use support::*;
use undertick_analyze::Options;
use undertick_document::{IntervalReport, Report};

/// A step of the clock, ns.
const STEP: u64 = 500_000;

/// The report of 3000 turns of `steps` steps each, with a scatter of `scatter` steps, and a span of
/// `length_ns` in each.
fn of_turns(seed: u64, steps: f64, scatter: f64, length_ns: f64) -> Report {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let reading = |ns: f64| (ns / STEP as f64).floor() as i64 * STEP as i64;
    let mut now = STEP as f64 * (5.0 + rng.random::<f64>());
    let mut rows = Vec::new();
    for _ in 0..3000 {
        rows.push(begin(reading(now), 1));
        rows.push(end(reading(now + length_ns), 1));
        // Even over that many standard deviations: bounded.
        let moved = scatter * 12.0_f64.sqrt() * (rng.random::<f64>() - 0.5);
        now += STEP as f64 * (steps + moved);
    }
    let mut manifest = named(&[(1, "work")]);
    manifest.clock.granularity_ticks = STEP as f64;
    report(&manifest, &Options::default(), &rows)
}

fn said(interval: &IntervalReport) -> Option<&String> {
    (interval.notes.iter()).find(|note| note.starts_with("it keeps step with the clock"))
}

/// Spans of 50 us, read by a clock of 500 us always at the same place in a step, are 0 or 500. Of
/// this run the mean is known to a step; for a repetition nothing is known.
#[test]
fn a_locked_program_gets_no_mean() {
    let mut wrong = 0;
    for seed in 0..40 {
        let report = of_turns(seed, 9.0, 1e-5, 50_000.0);
        let work = interval(&report, "work");
        let mean = work.mean.as_ref().unwrap();
        assert_eq!(
            (mean.interval.lo, mean.interval.hi),
            (None, None),
            "{mean:?}"
        );
        let note = said(work).unwrap_or_else(|| panic!("{:?}", work.notes));
        assert!(
            note.contains("it begins every 9 steps of 500 us, so"),
            "{note}"
        );
        let own = work.of_this_run.as_ref().unwrap().mean.as_ref().unwrap();
        let (lo, hi) = (own.interval.lo.unwrap(), own.interval.hi.unwrap());
        assert!(lo <= 50_000.0 && 50_000.0 <= hi, "{own:?}");
        wrong += u32::from((mean.value - 50_000.0).abs() > 25_000.0);
    }
    assert!(wrong >= 38, "{wrong}");
}

/// Longer spans, three in seven steps: their mean is off by up to a third of a step, 4 % of 4 ms.
/// The wider interval contains the truth.
#[test]
fn a_lock_that_matters_little_widens() {
    let mut missed_without = 0;
    for seed in 0..40 {
        let truth = 4_000_000.0 + 10_000.0 * seed as f64;
        let report = of_turns(seed, 7.0 + 1.0 / 3.0, 0.0, truth);
        let work = interval(&report, "work");
        assert!(said(work).is_some(), "{:?}", work.notes);
        let mean = work.mean.as_ref().unwrap();
        let bounds = mean.interval.lo.zip(mean.interval.hi);
        let (lo, hi) = bounds.unwrap_or_else(|| panic!("{:?} {:?}", mean, work.notes));
        assert!(lo <= truth && truth <= hi, "{seed}: {truth} {mean:?}");
        let third = STEP as f64 / 3.0;
        assert!(hi - lo >= 2.0 * third && hi - lo < 2.2 * third, "{mean:?}");
        let own = work.of_this_run.as_ref().unwrap().mean.as_ref().unwrap();
        let half = own.interval.half_width().unwrap();
        // Where all readings agree, a step more is uncertain.
        let agreed = if work.statistics.sd == Some(0.0) {
            STEP as f64
        } else {
            0.0
        };
        assert!((third..1.1 * third).contains(&(half - agreed)), "{own:?}");
        missed_without += u32::from(truth < lo + third || hi - third < truth);
    }
    assert!(missed_without >= 20, "{missed_without}");
}

/// Turns that do not keep step, or whose phase is lost in a turn or two; and spans that are long
/// compared with a step.
#[test]
fn other_programs_keep_their_mean() {
    for seed in 0..40 {
        for (steps, scatter, length_ns) in [
            (9.618_034, 1e-3, 50_000.0),
            (9.0, 0.4, 50_000.0),
            (9.0, 1e-5, 50.0 * STEP as f64),
        ] {
            let report = of_turns(seed, steps, scatter, length_ns);
            let work = interval(&report, "work");
            assert_eq!(said(work), None, "{seed} {steps} {scatter}");
            let mean = work.mean.as_ref().unwrap();
            assert!(mean.interval.lo.is_some() && mean.interval.hi.is_some());
        }
    }
}
