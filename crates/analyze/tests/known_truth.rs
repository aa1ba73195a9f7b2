//! A simulated program and recorder, read by a clock that steps by 26 ticks, with the fine clock
//! stored beside it. The tests check whether the whole path, from rows to report, covers the true
//! mean as often as the level says.

use crate::support;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use support::*;
use undertick_analyze::{Cull, Options};
use undertick_format::manifest::{Calibration, Manifest, ReadCost, Ring, SpanCost};

/// Exact binomial band of 2000 repetitions, 1 false alarm in 1000.
const BAND: std::ops::RangeInclusive<u32> = 1867..=1931;
const STEP: f64 = 26.0;
/// Ticks per nanosecond of the simulated clock.
const RATE: f64 = 2.6;
const TRUE_MEAN_NS: f64 = 50.0;
const COST_NS: f64 = 9.0;
const INNER_NS: f64 = 8.0;

struct Machine {
    rng: ChaCha8Rng,
    /// The fine clock, ticks.
    now: f64,
    rows: Vec<Row>,
}

impl Machine {
    fn uniform(&mut self) -> f64 {
        1.0 - self.rng.random::<f64>()
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn pass(&mut self, ns: f64) {
        self.now += ns * RATE;
    }

    /// Returns the reading of the coarse clock: 13 modulo 26.
    fn reading(&self) -> i64 {
        ((self.now / STEP).floor() * STEP) as i64 + 13
    }

    /// Adds one span. The cost falls after the first and before the second reading, with jitter;
    /// every third span has one event inside; the work is exponential. One span in fifty is
    /// descheduled for 20 us, and its end has the flag.
    fn span(&mut self, i: u64) {
        let gap = 900.0 * self.uniform();
        self.pass(gap);
        self.rows.push(begin(self.reading(), 1));
        let jitter = 2.0 * self.uniform();
        self.pass(COST_NS - 2.0 + jitter);
        let work = -TRUE_MEAN_NS * self.uniform().ln();
        self.pass(work);
        if i.is_multiple_of(3) {
            self.pass(3.0);
            self.rows.push(instant(self.reading(), 2, 0));
            self.pass(INNER_NS - 3.0);
        }
        let hit = self.rng.random_range(0..50) == 0;
        if hit {
            self.pass(20_000.0);
        }
        self.pass(1.0);
        self.rows.push(end(self.reading(), 1).flag(i8::from(hit)));
    }
}

/// Returns the hits out of 2000 when the calibration of the span's cost has a standard error of
/// `cost_se_ns`, and the hits without compensation.
fn coverage(cost_se_ns: f64, spans: u64) -> (u32, u32) {
    let (mut hits, mut uncompensated) = (0, 0);
    for seed in 0..2000 {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        let mut machine = Machine {
            rng,
            now: 1e6,
            rows: Vec::new(),
        };
        machine.now += STEP * machine.uniform();
        (0..spans).for_each(|i| machine.span(i));
        let found = COST_NS + cost_se_ns * machine.normal();
        let half = 1.959_964 * cost_se_ns;
        let span = SpanCost {
            empty_ns: ns(found, found - half, found + half),
            dosed_ns: ns(found, found - half, found + half),
            least_dose_ns: None,
        };
        let mut m = Manifest {
            calibration: Some(Calibration {
                plain: span.clone(),
                ordered: span,
                inner_event_ns: ns(INNER_NS, INNER_NS, INNER_NS),
                inner_off_ns: None,
                inner_span_ns: None,
                inner_ordered_ns: ns(0.0, 0.0, 0.0),
                sparse: None,
                functions: None,
                sampled: None,
                paired: None,
                interrupt: None,
                read_ns: None,
                measured_unix_ns: None,
            }),
            ..manifest()
        };
        m.clock.ticks_per_second_numerator = 2_600_000_000;
        m.clock.granularity_ticks = STEP;
        let r = report(
            &m,
            &Options {
                cull: Cull::Auto,
                ..Options::default()
            },
            &machine.rows,
        );
        let i = interval(&r, "event 1");
        let holds = |e: &undertick_units::Estimate| {
            e.interval.lo.unwrap() <= TRUE_MEAN_NS && TRUE_MEAN_NS <= e.interval.hi.unwrap()
        };
        hits += u32::from(holds(i.mean.as_ref().unwrap()));
        uncompensated += u32::from(holds(i.uncompensated.mean.as_ref().unwrap()));
    }
    eprintln!("cost +- {cost_se_ns} ns: {hits} hold the truth, uncompensated {uncompensated}");
    (hits, uncompensated)
}

#[test]
fn compensated_and_culled_mean_covers() {
    let (hits, uncompensated) = coverage(0.0, 1500);
    assert!(BAND.contains(&hits), "{hits}");
    // The recorder's cost is too large for the interval to hide it.
    assert!(uncompensated < 20, "{uncompensated}");
}

#[test]
fn uncertainty_of_the_cost_is_in_the_interval() {
    let (hits, _) = coverage(1.5, 1000);
    assert!(BAND.contains(&hits), "{hits}");
}

/// Spans of exactly 200 ns cost 48 to record, where a reading takes 29.589 ns. The calibration
/// measured 30 +- 1, when a reading took 20. Readings are 1.47943 times slower, so the cost is
/// 1.47943 to the power of 1.2, 1.6 times as large, give or take 0.196 of 48: 9.4.
#[test]
fn readings_that_are_dearer_for_the_program_are_subtracted_as_such() {
    let rows: Vec<Row> = (0..400)
        .flat_map(|i| [begin(1000 * i, 1), end(1000 * i + 248, 1)])
        .collect();
    let mean = |read_cost: Option<ReadCost>| {
        let mut m = manifest();
        let mut found = calibration();
        found.plain.empty_ns = ns(30.0, 29.0, 31.0);
        found.plain.dosed_ns = ns(30.0, 29.0, 31.0);
        found.read_ns = Some(ns(20.0, 20.0, 20.0));
        m.calibration = Some(found);
        m.rings = vec![Ring {
            ring: 0,
            pid: 100,
            tid: 1000,
            written: 800,
            received: 800,
            dropped: 0,
            overwritten: 0,
            spans_wait: Some(true),
            interposed: false,
            read_cost,
        }];
        let report = report(&m, &Options::default(), &rows);
        interval(&report, "event 1").mean.clone().unwrap()
    };
    let of = |mean_ticks: f64, samples: u64| {
        Some(ReadCost {
            samples,
            least_ticks: mean_ticks,
            mean_ticks,
            deviation_ticks: 0.0,
        })
    };
    let as_measured = mean(None);
    assert!((as_measured.value - 218.0).abs() < 0.01, "{as_measured:?}");
    assert!(as_measured.interval.lo.unwrap() > 215.0);
    let now = mean(of(29.588_67, 100));
    assert!((now.value - 200.0).abs() < 0.01, "{now:?}");
    let (lo, hi) = (now.interval.lo.unwrap(), now.interval.hi.unwrap());
    assert!(
        (188.0..190.0).contains(&lo) && (210.0..212.0).contains(&hi),
        "{now:?}"
    );
    // The first cost is unchanged; the second has too few samples.
    assert_eq!(mean(of(20.0, 100)), as_measured);
    assert_eq!(mean(of(30.0, 7)), as_measured);
}
