//! Dropping and compensation, every expected number by hand.

use crate::support;

use support::*;
use undertick_analyze::{Compensate, Cull, Options};
use undertick_document::Reads;
use undertick_format::manifest::{Calibration, Descheduled, Manifest, SpanCost};
use undertick_format::schema::Kind;
use undertick_units::Interval;

fn options(cull: Cull, compensate: Compensate) -> Options {
    Options {
        cull,
        compensate,
        ..Options::default()
    }
}

fn calibrated() -> Manifest {
    Manifest {
        calibration: Some(calibration()),
        ..manifest()
    }
}

/// 1 contains 2, and the flag comes with the end of 2: both were disturbed. A flag on a begin
/// belongs to the time before it. A flag inside 1, between two spans of 2, disturbs 1 only.
fn flagged() -> Vec<Row> {
    vec![
        begin(0, 1),
        begin(10, 2),
        end(30, 2).flag(1),
        end(40, 1),
        begin(100, 1).flag(1),
        begin(110, 2),
        end(120, 2),
        end(130, 1),
        begin(200, 1),
        begin(210, 2),
        end(218, 2),
        instant(219, 9, 0).flag(1),
        begin(220, 2),
        end(229, 2),
        end(231, 1),
    ]
}

/// The disturbed spans, with 27 more executions of 1 and 57 of 2 that are undisturbed, of 10 ticks
/// each.
fn hit_among_many() -> Vec<Row> {
    let mut rows = flagged();
    for i in 0..27 {
        let at = 1_000 + 100 * i;
        rows.extend([begin(at, 2), end(at + 10, 2), begin(at + 20, 2)]);
        rows.extend([end(at + 30, 2), begin(at + 40, 1), end(at + 50, 1)]);
    }
    rows
}

#[test]
fn descheduled_samples_are_dropped_with_their_enclosing_ones() {
    let r = plain(&hit_among_many());
    // Totals include all samples: 40, 30, 31 and 20, 10, 8, 9, and the undisturbed ones.
    exact(&r, "event 1", (28, 40.0 + 30.0 + 31.0 + 270.0, 0, 0));
    exact(&r, "event 2", (57, 20.0 + 10.0 + 8.0 + 9.0 + 540.0, 0, 0));
    let one = interval(&r, "event 1");
    assert_eq!((one.culled.count, one.culled.by["descheduled"]), (2, 2));
    assert_eq!(one.culled.share, 2.0 / 30.0);
    assert_eq!(one.mean.as_ref().unwrap().value, (30.0 + 270.0) / 28.0);
    assert_eq!(one.before_culling.count, 30);
    assert_eq!(
        one.before_culling.mean.as_ref().unwrap().value,
        (40.0 + 30.0 + 31.0 + 270.0) / 30.0
    );
    assert_eq!(one.before_culling.median.as_ref().unwrap().value, 10.0);
    assert!(warned(&r, "culled_share").unwrap().contains("event 1"));
    assert!(warned(&r, "blocking_is_culled").is_none());
    let blocking = Manifest {
        descheduled: Descheduled::AnyDeschedule,
        ..manifest()
    };
    let r = report(&blocking, &Options::default(), &hit_among_many());
    assert!(
        warned(&r, "blocking_is_culled")
            .unwrap()
            .contains("--cull none")
    );
}

/// Two of three are disturbed: without them too few would remain.
#[test]
fn too_many_to_be_dropped_stay() {
    let r = plain(&flagged());
    exact(&r, "event 1", (3, 40.0 + 30.0 + 31.0, 0, 0));
    exact(&r, "event 2", (4, 20.0 + 10.0 + 8.0 + 9.0, 0, 0));
    let one = interval(&r, "event 1");
    assert_eq!((one.culled.count, one.culled.share), (0, 0.0));
    assert!(one.culled.by.is_empty());
    assert_eq!(one.mean.as_ref().unwrap().value, 101.0 / 3.0);
    assert_eq!(one.uncompensated.mean.as_ref().unwrap().value, 101.0 / 3.0);
    let told = |text: &str| one.notes.iter().any(|note| note.contains(text));
    assert!(
        told("2 of 3 samples (67 %) were disturbed"),
        "{:?}",
        one.notes
    );
    assert!(warned(&r, "culled_share").is_none());
    // At most one in ten may be dropped: of 27 others and 3 disturbed ones 3, of 26 and 3 none.
    for (others, dropped) in [(27, 3), (26, 0)] {
        let rows: Vec<Row> = (0..others + 3)
            .flat_map(|i| {
                let hit = i8::from(i < 3);
                [begin(100 * i, 1), end(100 * i + 10, 1).flag(hit)]
            })
            .collect();
        let r = report(&calibrated(), &Options::default(), &rows);
        let one = interval(&r, "event 1");
        assert_eq!(one.culled.count, dropped, "{others}");
        let n = others as u64 + 3 - dropped;
        assert_eq!((one.count, one.uncompensated.count), (n, n), "{others}");
        assert_eq!(one.uncompensated.mean.as_ref().unwrap().value, 10.0);
        assert_eq!(one.statistics.max, Some(0.0));
    }
}

#[test]
fn without_culling_all_stay() {
    let r = report(
        &manifest(),
        &options(Cull::None, Compensate::Auto),
        &flagged(),
    );
    exact(&r, "event 1", (3, 101.0, 0, 0));
    assert_eq!(interval(&r, "event 1").culled.count, 0);
    assert!(warned(&r, "culled_share").is_none());
}

/// An unknown flag keeps the sample and is counted: -1, and any odd code.
#[test]
fn unknown_flags_keep_the_sample() {
    let r = plain(&[
        begin(0, 1),
        end(9, 1).flag(-1),
        begin(20, 1),
        end(25, 1).flag(7),
        begin(30, 1),
        end(31, 1),
    ]);
    exact(&r, "event 1", (3, 15.0, 0, 0));
    assert!(
        warned(&r, "unknown_descheduled")
            .unwrap()
            .contains("for 2 samples")
    );
}

/// The smallest is 10: samples over 40 are dropped, 40 stays (TRAMS: *over* 4 times the smallest).
#[test]
fn ratio_drops_what_is_over_it() {
    let rows: Vec<Row> = [25, 10, 40, 41, 400]
        .iter()
        .enumerate()
        .flat_map(|(i, &d)| [begin(1000 * i as i64, 1), end(1000 * i as i64 + d, 1)])
        .collect();
    let r = report(
        &manifest(),
        &options(Cull::Ratio(4.0), Compensate::Auto),
        &rows,
    );
    exact(&r, "event 1", (3, 516.0, 0, 0));
    let i = interval(&r, "event 1");
    assert_eq!(i.mean.as_ref().unwrap().value, 25.0);
    assert_eq!(
        (i.culled.count, i.culled.by["ratio"], i.before_culling.count),
        (2, 2, 5)
    );
    assert!(warned(&r, "culled_by_ratio").is_some());
    // Frequencies count one pass, not two.
    assert_eq!(frequency(&r, "event 1").count, 5);
    assert_eq!(r.trace.events, 10);
}

/// The smallest is 0, so the ratio refers to one step (here 26): 104 stays, 130 is dropped.
#[test]
fn ratio_of_nothing_is_of_one_step() {
    let mut m = manifest();
    m.clock.granularity_ticks = 26.0;
    let rows: Vec<Row> = [0, 26, 104, 130]
        .iter()
        .enumerate()
        .flat_map(|(i, &d)| [begin(1000 * i as i64, 1), end(1000 * i as i64 + d, 1)])
        .collect();
    let r = report(&m, &options(Cull::Ratio(4.0), Compensate::Auto), &rows);
    exact(&r, "event 1", (3, 260.0, 0, 0));
    assert!(
        warned(&r, "least_not_positive")
            .unwrap()
            .contains("event 1")
    );
}

/// 2: 50 - 10 = 40. 1: 100 - 10 - 2 inner readings * 8 = 74.
#[test]
fn cost_of_spans_and_of_what_lies_in_them() {
    let rows = [begin(0, 1), begin(20, 2), end(70, 2), end(100, 1)];
    let r = report(&calibrated(), &Options::default(), &rows);
    exact(&r, "event 2", (1, 40.0, 0, 0));
    exact(&r, "event 1", (1, 74.0, 0, 0));
    let one = interval(&r, "event 1");
    let cost = one.compensation.cost.as_ref().unwrap();
    assert_eq!(one.compensation.method, "calibrated");
    assert_eq!(
        (cost.value, cost.interval),
        (26.0, Interval::new(24.0, 28.0))
    );
    assert_eq!(one.compensation.inner_records, Some(2.0));
    assert_eq!(one.uncompensated.mean.as_ref().unwrap().value, 100.0);
    assert_eq!(
        (one.statistics.min, one.statistics.max),
        (Some(74.0), Some(74.0))
    );
    let r = report(&calibrated(), &options(Cull::Auto, Compensate::None), &rows);
    exact(&r, "event 1", (1, 100.0, 0, 0));
    assert_eq!(interval(&r, "event 1").compensation.method, "none");
}

/// Ordered at both ends: 100 - 30. Mixed: 100 - (10 + 30) / 2. Ordered inside
/// a plain one: 200 - 10 - 2 * 20.
#[test]
fn cost_by_kind_of_reading() {
    let rows = [
        row(Kind::BeginOrdered, 0, 1, 0),
        row(Kind::EndOrdered, 100, 1, 0),
        row(Kind::BeginOrdered, 200, 2, 0),
        end(300, 2),
        begin(400, 3),
        row(Kind::BeginOrdered, 410, 1, 0),
        row(Kind::EndOrdered, 510, 1, 0),
        end(600, 3),
    ];
    let r = report(&calibrated(), &Options::default(), &rows);
    exact(&r, "event 1", (2, 140.0, 0, 0));
    exact(&r, "event 2", (1, 80.0, 0, 0));
    exact(&r, "event 3", (1, 150.0, 0, 0));
    let reads: Vec<Reads> = ["event 1", "event 2", "event 3"]
        .iter()
        .map(|n| interval(&r, n).reads)
        .collect();
    assert_eq!(reads, [Reads::Ordered, Reads::Mixed, Reads::Plain]);
}

/// Stages are plain spans: 15 - 10. Between the readings of two events lies the cost of one event:
/// 40 - 8 - 8.
#[test]
fn cost_of_stages_and_periods() {
    let r = report(
        &calibrated(),
        &Options::default(),
        &[
            begin(0, 1),
            next(15, 1, 2),
            end(35, 2),
            instant(100, 5, 0),
            instant(120, 6, 0),
            instant(140, 5, 0),
        ],
    );
    exact(&r, "event 1", (1, 5.0, 0, 0));
    exact(&r, "event 5 (period)", (1, 24.0, 0, 0));
}

/// A cost above the sample leaves no mean, and a note says so; the single result stays as it is.
/// Pairs are the cost itself.
#[test]
fn no_mean_below_nothing_and_pairs_untouched() {
    let r = report(
        &calibrated(),
        &Options::default(),
        &[
            begin(0, 1),
            end(3, 1),
            row(Kind::Pair, 10, 4, 11),
            begin(20, 2),
            row(Kind::Pair, 30, 4, 12),
            end(60, 2),
        ],
    );
    exact(&r, "event 1", (1, 0.0, 0, 0));
    assert_eq!(interval(&r, "event 1").negative, 0);
    assert_eq!(interval(&r, "event 1").statistics.min, Some(-7.0));
    assert!(warned(&r, "below_the_cost").unwrap().contains("event 1"));
    exact(&r, "event 4 (pair)", (2, 23.0, 0, 0));
    assert_eq!(interval(&r, "event 4 (pair)").compensation.method, "none");
    // A pair inside a span is two readings.
    exact(&r, "event 2", (1, 40.0 - 10.0 - 16.0, 0, 0));
}

/// For a cost of 10.25 ticks single samples lose 10, the mean 10.25.
#[test]
fn fractions_of_a_tick_are_exact_in_the_mean() {
    let mut c = calibration();
    c.plain.dosed_ns = ns(10.25, 10.0, 10.5);
    c.plain.empty_ns = ns(10.25, 10.0, 10.5);
    let m = Manifest {
        calibration: Some(c),
        ..manifest()
    };
    let rows: Vec<Row> = (0..50)
        .flat_map(|i| [begin(1000 * i, 1), end(1000 * i + 100 + i % 2, 1)])
        .collect();
    let r = report(&m, &Options::default(), &rows);
    let i = interval(&r, "event 1");
    assert_eq!(i.mean.as_ref().unwrap().value, 90.25);
    assert_eq!(i.median.as_ref().unwrap().value, 89.75);
    assert_eq!(i.total_ns, Some(50.0 * 90.25));
}

/// The empty span gives 20 +- 1, the dosed one 10 +- 1: the cost is 9..21, its middle 15. The mean
/// of 100 equal samples of 100 is 85 with a little more than 79..91.
#[test]
fn disagreeing_calibrations_widen_the_interval() {
    let plain = SpanCost {
        empty_ns: ns(20.0, 19.0, 21.0),
        dosed_ns: ns(10.0, 9.0, 11.0),
        least_dose_ns: None,
    };
    let m = Manifest {
        calibration: Some(Calibration {
            plain,
            // As from a recorder whose spans did not wait.
            inner_span_ns: None,
            ..calibration()
        }),
        ..manifest()
    };
    let rows: Vec<Row> = (0..100)
        .flat_map(|i| [begin(1000 * i, 1), end(1000 * i + 100, 1)])
        .collect();
    let r = report(&m, &Options::default(), &rows);
    let i = interval(&r, "event 1");
    let mean = i.mean.as_ref().unwrap();
    assert_eq!(mean.value, 85.0);
    let (lo, hi) = (mean.interval.lo.unwrap(), mean.interval.hi.unwrap());
    // The readings agree to one step of 1: 1 - 0.025^(1/100) = 0.0362.
    assert!(
        (lo - (79.0 - 0.0362)).abs() < 1e-3 && (hi - (91.0 + 0.0362)).abs() < 1e-3,
        "{lo} {hi}"
    );
    let median = i.median.as_ref().unwrap().interval;
    assert_eq!(median, Interval::new(78.0, 92.0));
    assert!(warned(&r, "calibration_disagrees").is_some());
    assert!(i.notes.iter().any(|n| n.contains("disagree")));
}

/// Costs differ from sample to sample, and uncompensated figures are of the raw durations: 100
/// without and 116 with two inner readings are both 90.
#[test]
fn varying_cost_keeps_what_was_read() {
    let rows: Vec<Row> = (0..40)
        .flat_map(|i| {
            let t = 1000 * i;
            if i % 2 == 0 {
                vec![begin(t, 1), end(t + 100, 1)]
            } else {
                vec![
                    begin(t, 1),
                    instant(t + 5, 7, 0),
                    instant(t + 9, 8, 0),
                    end(t + 116, 1),
                ]
            }
        })
        .collect();
    let r = report(&calibrated(), &Options::default(), &rows);
    let i = interval(&r, "event 1");
    assert_eq!(
        (i.statistics.min, i.statistics.max),
        (Some(90.0), Some(90.0))
    );
    assert_eq!(i.uncompensated.mean.as_ref().unwrap().value, 108.0);
    assert_eq!(i.uncompensated.median.as_ref().unwrap().value, 100.0);
    assert_eq!(i.uncompensated.count, 40);
    assert_eq!(i.compensation.inner_records, Some(1.0));
}

#[test]
fn no_calibration_is_said() {
    let r = plain(&[begin(0, 1), end(9, 1)]);
    assert!(warned(&r, "no_calibration").is_some());
    assert!(warned(&r, "too_few_samples").is_some());
    assert!(warned(&r, "granularity").is_some());
    let r = report(
        &calibrated(),
        &Options::default(),
        &[begin(0, 1), end(9, 1)],
    );
    assert!(warned(&r, "no_calibration").is_none());
}

/// Nanoseconds are ticks times 0.4, granularity too.
#[test]
fn ticks_become_nanoseconds() {
    let mut m = manifest();
    m.clock.ticks_per_second_numerator = 2_500_000_000;
    m.clock.granularity_ticks = 25.0;
    let r = report(
        &m,
        &Options::default(),
        &[begin(0, 1), end(1000, 1), begin(2000, 1), end(2500, 1)],
    );
    let i = interval(&r, "event 1");
    assert_eq!(
        (i.total_ns.unwrap(), i.granularity_ns, i.median_steps),
        (600.0, 10.0, Some(20.0))
    );
    assert_eq!(r.trace.events_span_ns, Some(1000.0));
    let h = &i.histogram;
    assert_eq!(h.counts.iter().sum::<u64>(), 2);
    assert!(
        h.edges[0] <= 200.0 && *h.edges.last().unwrap() > 400.0,
        "{:?}",
        h.edges
    );
    assert_eq!(h.edges.len(), h.counts.len() + 1);
}

/// Stages that follow each other, and periods from event to event, fill the time from the first
/// reading to the last one. Their totals and the subtracted cost of recording add up to it, and no
/// total is longer than the raw durations.
#[test]
fn contiguous_ones_add_up_to_the_elapsed_time() {
    let mut m = manifest();
    m.calibration = Some(calibration());
    let mut rows = vec![begin(1_000, 1)];
    let (mut at, mut stage) = (1_000, 1);
    for i in 0..300_i64 {
        at += 400 + i * i % 977;
        let entered = 1 + i as i32 % 3 + 1;
        rows.push(next(at, stage, i64::from(entered)));
        stage = entered;
    }
    rows.push(end(at + 500, stage));
    let stages = report(&m, &Options::default(), &rows);
    let with_cost = |r: &undertick_document::Report, cost: bool| -> f64 {
        (r.intervals.iter())
            .map(|i| {
                let each = i.compensation.cost.as_ref().map_or(0.0, |c| c.value);
                i.total_ns.unwrap() + if cost { each * i.count as f64 } else { 0.0 }
            })
            .sum()
    };
    let elapsed = (at + 500 - 1_000) as f64 * m.clock.ns_per_tick();
    let sum = with_cost(&stages, true);
    assert!((sum / elapsed - 1.0).abs() < 1e-9, "{sum} of {elapsed}");
    assert!(with_cost(&stages, false) < elapsed);
    let events: Vec<Row> = (0..300_i64)
        .map(|i| instant(1_000 * i + i * i % 977, 7, 0))
        .collect();
    let periods = report(&m, &Options::default(), &events);
    let elapsed = (299_000 + 299 * 299 % 977) as f64 * m.clock.ns_per_tick();
    let sum = with_cost(&periods, true);
    assert!((sum / elapsed - 1.0).abs() < 1e-9, "{sum} of {elapsed}");
    assert!(with_cost(&periods, false) <= elapsed);
}
