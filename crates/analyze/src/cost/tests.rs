use std::slice;

use undertick_document::Slowed;
use undertick_estimate::Cost;
use undertick_format::manifest::{
    Calibration, FunctionCost, Name, Ring, SampledCost, SpanCost, SparseCost,
};
use undertick_ring::layout::FIRST_FUNCTION;
use undertick_units::{Estimate, Interval};

use super::*;
use crate::reading::{Ends, Inner, Recorded};
use crate::sample::Sample;

pub(crate) fn estimate(value: f64, lo: f64, hi: f64) -> Estimate {
    Estimate {
        value,
        interval: Interval::new(lo, hi),
        level: 0.95,
        unit: "ns".into(),
        method: "test".into(),
        n: 100,
        n_effective: 100.0,
        notes: vec![],
    }
}

fn sample(ends: Ends, inner_spans: u32, pairs: [u32; 2]) -> Sample {
    Sample {
        ticks: 500,
        start: 0,
        ends,
        pairs,
        inner: spans(inner_spans),
        inner_ordered: 0,
        hit: false,
        unknown: false,
        sampling: crate::sample::Sampling::default(),
        path: crate::tree::Path::ROOT,
    }
}

fn holding(ends: Ends, inner: Inner, inner_ordered: u32) -> Sample {
    Sample {
        inner,
        inner_ordered,
        ..sample(ends, 0, [0; 2])
    }
}

fn spans(n: u32) -> Inner {
    (0..n).fold(Inner::NONE, |inner, _| inner.and(Inner::SPAN))
}

fn calibration() -> Calibration {
    Calibration {
        inner_off_ns: None,
        inner_span_ns: None,
        plain: SpanCost {
            empty_ns: estimate(20.0, 19.0, 21.0),
            dosed_ns: estimate(10.0, 9.0, 12.0),
            least_dose_ns: None,
        },
        ordered: SpanCost {
            empty_ns: estimate(30.0, 29.0, 31.0),
            dosed_ns: estimate(30.5, 30.0, 31.0),
            least_dose_ns: None,
        },
        inner_event_ns: estimate(8.0, 7.0, 9.0),
        inner_ordered_ns: estimate(16.0, 15.0, 17.0),
        sparse: None,
        functions: None,
        sampled: None,
        paired: None,
        interrupt: None,
        read_ns: None,
        measured_unix_ns: None,
    }
}

/// Half of 75 and 80 is 77.5 ticks, and one inner record 20: 97.5, of which 98 are subtracted. A
/// sample without pairs has the constant's 76.25.
#[test]
fn pairs_tell_the_cost_of_their_sample() {
    let mut t = CostTable::new(&calibration(), Recorded::ByHand, 0.4);
    t.pair_correction = Some(PairCorrection::published(None));
    let with = sample(Ends::Ordered, 1, [75, 80]);
    let without = sample(Ends::Ordered, 0, [0; 2]);
    assert_eq!(t.subtracted_from(&with).ticks, 98);
    assert_eq!(t.subtracted_from(&without).ticks, 76);
    let mut costs = Costs::default();
    costs.add(&with, t.subtracted_from(&with));
    assert!((costs.mean(&t).value - 97.5 * 0.4).abs() < 1e-12);
    assert!((costs.residue(&t) + 0.5).abs() < 1e-12);
    // The pairs say nothing of the record inside: 7 to 9 ns.
    let (all, ends) = (costs.mean(&t), costs.ends(&t));
    assert!(
        (all.above - ends.above - 1.0).abs() < 1e-12,
        "{all:?} {ends:?}"
    );
    assert_eq!(costs.inner_records(), 1.0);
    costs.add(&without, t.subtracted_from(&without));
    assert!((costs.mean(&t).value - (97.5 * 0.4 + 30.5) / 2.0).abs() < 1e-12);
    // (97.5 + 76.25) / 2 less (98 + 76) / 2.
    assert!((costs.residue(&t) + 0.125).abs() < 1e-12);
    assert_eq!((costs.n(), costs.by_ends()), (2, [0, 0, 2, 0, 0]));
}

/// One reading each: 20 ticks plain, 50 ordered, 35 mixed.
#[test]
fn long_term_is_one_constant_a_reading() {
    let cost = |value| Cost {
        value,
        ..Cost::default()
    };
    let t = CostTable::long_term(cost(8.0), cost(20.0), 0.4);
    assert_eq!(t.subtracted_from(&sample(Ends::Plain, 0, [0; 2])).ticks, 20);
    assert_eq!(
        t.subtracted_from(&sample(Ends::Ordered, 0, [0; 2])).ticks,
        50
    );
    assert_eq!(t.subtracted_from(&sample(Ends::Mixed, 2, [0; 2])).ticks, 75);
}

/// Plain: 9..12 against 19..21 disagree: 15 with 9..21. Ordered: agree.
#[test]
fn contradiction_takes_the_hull() {
    let t = CostTable::new(&calibration(), Recorded::ByHand, 0.4);
    assert_eq!(t.disagree, [true, true, false, true, true]);
    assert_eq!(t.spans[0].value, 15.0);
    assert_eq!((t.spans[0].below, t.spans[0].above), (6.0, 6.0));
    assert!(t.spans[0].systematic && !t.spans[2].systematic);
    assert_eq!((t.spans[2].below, t.spans[2].above), (0.5, 0.5));
}

/// Ordered 36 +- 0.2 empty, 33 +- 0.2 dosed: 33 with 32.8..36.2.
#[test]
fn serialised_readings_keep_the_dosed_cost() {
    let mut c = calibration();
    c.ordered = SpanCost {
        empty_ns: estimate(36.0, 35.8, 36.2),
        dosed_ns: estimate(33.0, 32.8, 33.2),
        least_dose_ns: None,
    };
    let t = CostTable::new(&c, Recorded::ByHand, 0.4);
    assert!(t.disagree[2]);
    let ordered = t.spans[2];
    assert_eq!(ordered.value, 33.0);
    assert!((ordered.below - 0.2).abs() < 1e-9 && (ordered.above - 3.2).abs() < 1e-9);
}

/// As above with a smallest dose of 5 ns: from there on the empty span's 36.2 no longer counts.
#[test]
fn spans_of_work_have_the_dosed_cost() {
    let mut c = calibration();
    c.ordered = SpanCost {
        empty_ns: estimate(36.0, 35.8, 36.2),
        dosed_ns: estimate(33.0, 32.8, 33.2),
        least_dose_ns: Some(5.0),
    };
    let t = CostTable::new(&c, Recorded::ByHand, 0.4);
    let mut costs = Costs::default();
    let one = sample(Ends::Ordered, 0, [0; 2]);
    costs.add(&one, t.subtracted_from(&one));
    assert!((costs.mean_for(&t, 4.9, None).above - 3.2).abs() < 1e-9);
    assert!((costs.mean_for(&t, 5.0, None).above - 0.2).abs() < 1e-9);
    assert_eq!(costs.mean_for(&t, 5.0, None).value, 33.0);
    assert!(costs.is_disputed(&t, 4.9) && !costs.is_disputed(&t, 5.0));
    let plain = sample(Ends::Plain, 0, [0; 2]);
    costs.add(&plain, t.subtracted_from(&plain));
    assert!(costs.is_disputed(&t, 5.0), "plain readings stay disputed");
}

/// 15 ns = 37.5 ticks; 30.5 ns = 76.25; mixed 56.875; 8 ns = 20; 16 ns = 40.
#[test]
fn ticks_by_hand() {
    let t = CostTable::new(&calibration(), Recorded::ByHand, 0.4);
    assert_eq!(t.ticks(&sample(Ends::Plain, 0, [0; 2])), 38);
    assert_eq!(t.ticks(&holding(Ends::Plain, spans(3), 1)), 138); // 137.5
    assert_eq!(t.ticks(&holding(Ends::Plain, spans(4), 1)), 158); // 157.5
    assert_eq!(t.ticks(&sample(Ends::Ordered, 0, [0; 2])), 76);
    assert_eq!(t.ticks(&sample(Ends::Mixed, 0, [0; 2])), 57);
    let mut costs = Costs::default();
    let mut add = |inner| {
        let sample = sample(Ends::Ordered, inner, [0; 2]);
        costs.add(&sample, t.subtracted_from(&sample));
    };
    add(0);
    add(2);
    // Mean 30.5 + 8 ns = 96.25 ticks; 96 were subtracted.
    assert_eq!(costs.mean(&t).value, 38.5);
    assert!((costs.residue(&t) - 0.25).abs() < 1e-12);
}

/// Two records inside cost 16 ns by the calibration. Measured in place by switching one of them,
/// with 300 of 400 samples on: 20 [18, 24] ns when on are 15 [13.5, 18] over all samples, and the
/// one that was not switched adds half of 8 [7, 9]. There are 1.5 points a sample when on.
#[test]
fn what_was_measured_in_place_is_subtracted() {
    let t = CostTable::new(&calibration(), Recorded::ByHand, 0.4);
    let mut costs = Costs::default();
    let one = sample(Ends::Ordered, 2, [0; 2]);
    costs.add(&one, t.subtracted_from(&one));
    assert_eq!(costs.mean_for(&t, 500.0, None).value, 30.5 + 16.0);
    let slowed = Slowed {
        what: "points".into(),
        by: estimate(20.0, 18.0, 24.0),
        share: estimate(0.1, 0.0, 0.2),
        per_point: Some(estimate(15.0, 13.5, 18.0)),
        points: 4.0 / 3.0,
        samples: [300, 100],
        long: [0, 0],
    };
    let in_place = InPlace::from_slowed(&slowed, 0.75);
    let cost = costs.mean_for(&t, 500.0, in_place);
    assert!((cost.value - (30.5 + 15.0 + 8.0)).abs() < 1e-9, "{cost:?}");
    assert!((cost.below - (0.5 + 1.5 + 1.0)).abs() < 1e-9, "{cost:?}");
    assert!((cost.above - (0.5 + 3.0 + 1.0)).abs() < 1e-9, "{cost:?}");
    // A point that is off takes 3 [1, 4] ns: the 4/3 of each sample leave 4 [4/3, 16/3].
    let mut c = calibration();
    c.inner_off_ns = Some(estimate(3.0, 1.0, 4.0));
    let off = CostTable::new(&c, Recorded::ByHand, 0.4);
    let with_off = costs.mean_for(&off, 500.0, in_place);
    let more = |of: fn(&Cost) -> f64| of(&with_off) - of(&cost);
    assert!((more(|c| c.value) - 4.0).abs() < 1e-9, "{with_off:?}");
    assert!((more(|c| c.below) - 8.0 / 3.0).abs() < 1e-9, "{with_off:?}");
    assert!((more(|c| c.above) - 4.0 / 3.0).abs() < 1e-9, "{with_off:?}");
    assert_eq!(costs.mean_for(&off, 500.0, None).value, 30.5 + 16.0);
    // If both records were ordered, they would take half of a reading of 30 ns each when off.
    let mut serialised = Costs::default();
    let one = holding(Ends::Ordered, Inner::NONE, 2);
    serialised.add(&one, t.subtracted_from(&one));
    let [with, without] = [&off, &t].map(|table| serialised.inner(table, in_place).value);
    assert!((with - without - 20.0).abs() < 1e-9, "{with} {without}");
    let kernel = Slowed {
        per_point: None,
        ..slowed
    };
    assert!(InPlace::from_slowed(&kernel, 0.75).is_none());
}

/// Two records of 8 [7, 9] ns: a plain span's far from others cost up to 60 ns, so that 102 are added
/// to the upper bound where a record comes every 400 ns or more, half of it at 250, and nothing up to
/// 100. What is subtracted stays. An upper bound that is lower far from others lowers none.
#[test]
fn records_far_from_others_may_cost_more() {
    let mut c = calibration();
    c.sparse = Some(SparseCost {
        event_ns: estimate(5.0, 4.0, 6.0),
        span_ns: estimate(40.0, 20.0, 60.0),
        ordered_ns: estimate(50.0, 40.0, 80.0),
    });
    let table = CostTable::new(&c, Recorded::ByHand, 0.4);
    let inner = |inner: Inner, ordered: u32, mean_ns: f64| {
        let one = holding(Ends::Ordered, inner, ordered);
        let mut costs = Costs::default();
        costs.add(&one, table.subtracted_from(&one));
        let cost = costs.inner_for(&table, mean_ns, None);
        let all = costs.mean_for(&table, mean_ns, None);
        assert!((all.above - 0.5 - cost.above).abs() < 1e-9, "{all:?}");
        [cost.value, cost.below, cost.above].map(|ns| (1e6 * ns).round() / 1e6)
    };
    assert_eq!(inner(spans(2), 0, 200.0), [16.0, 2.0, 2.0]);
    assert_eq!(inner(spans(2), 0, 500.0), [16.0, 2.0, 53.0]);
    assert_eq!(inner(spans(2), 0, 800.0), [16.0, 2.0, 104.0]);
    assert_eq!(inner(spans(2), 0, 1e6), [16.0, 2.0, 104.0]);
    assert_eq!(inner(Inner::NONE, 1, 1e6), [16.0, 1.0, 64.0]);
    assert_eq!(inner(Inner::EVENT, 0, 1e6), [8.0, 1.0, 1.0]);
    assert_eq!(inner(Inner::NONE, 0, 1e6), [0.0, 0.0, 0.0]);
}

/// A sampled span of 2 [1, 3] ns that is executed 9 times inside, with one record of 9 [8, 11] ns more:
/// 27 ns. Ten things in 4 us lie 400 ns apart, so that 21 and 51 ns are added to the upper bounds; they
/// would lie 4 us apart if executions did not count. In place, what was not switched has its part.
#[test]
fn executions_of_sampled_spans_far_from_others_may_cost_more() {
    let mut c = calibration();
    c.sampled = Some(SampledCost {
        span: c.plain.clone(),
        counted_ns: estimate(2.0, 1.0, 3.0),
        record_ns: estimate(9.0, 8.0, 11.0),
    });
    c.sparse = Some(SparseCost {
        event_ns: estimate(20.0, 10.0, 30.0),
        span_ns: estimate(40.0, 20.0, 60.0),
        ordered_ns: estimate(50.0, 40.0, 80.0),
    });
    let table = CostTable::new(&c, Recorded::ByHand, 0.4);
    let mut one = sample(Ends::Ordered, 0, [0; 2]);
    one.sampling.inside = 9;
    one.sampling.records = 1;
    let mut costs = Costs::default();
    costs.add(&one, table.subtracted_from(&one));
    let above = |mean_ns: f64, in_place| costs.inner_for(&table, mean_ns, in_place).above;
    assert!((above(1000.0, None) - (9.0 + 2.0)).abs() < 1e-9);
    let far = above(4000.0, None);
    assert!((far - (9.0 * 22.0 + 53.0)).abs() < 1e-9, "{far}");
    // Half of the records were switched.
    let in_place = InPlace {
        cost: Cost::default(),
        points: 0.5,
        on: 1.0,
    };
    let half = above(4000.0, Some(in_place));
    assert!((half - (9.0 * 22.0 + 53.0 / 2.0)).abs() < 1e-9, "{half}");
}

/// Ten executions of 2 [1, 3] ns according to records, with points on during half of the samples:
/// twenty in truth. Without switched points they are ten.
#[test]
fn sampled_spans_are_counted_while_points_are_off() {
    let mut c = calibration();
    c.sampled = Some(SampledCost {
        span: c.plain.clone(),
        counted_ns: estimate(2.0, 1.0, 3.0),
        record_ns: estimate(9.0, 8.0, 11.0),
    });
    let t = CostTable::new(&c, Recorded::ByHand, 0.4);
    let mut one = sample(Ends::Ordered, 0, [0; 2]);
    one.sampling.inside = 10;
    let mut costs = Costs::default();
    costs.add(&one, t.subtracted_from(&one));
    let counting = |in_place| {
        let cost = costs.inner(&t, in_place);
        [cost.value, cost.value - cost.below, cost.value + cost.above]
    };
    assert_eq!(counting(None), [20.0, 10.0, 30.0]);
    let in_place = InPlace {
        cost: Cost::default(),
        points: 0.0,
        on: 0.5,
    };
    assert_eq!(counting(Some(in_place)), [40.0, 20.0, 60.0]);
    // A single sample loses 30.5 ns for its own span; the mean also loses 20 ns for counting.
    assert_eq!(t.subtracted_from(&one).ticks, 76);
    assert!((costs.residue(&t) - (50.5 / 0.4 - 76.0)).abs() < 1e-9);
}

/// Spans wait: 12 ns for each of their records is 30 ticks, 8 ns for an event 20. One event lies
/// between two readings that wait for nothing.
#[test]
fn records_of_spans_and_events_cost_what_each_costs() {
    let c = Calibration {
        inner_span_ns: Some(estimate(12.0, 11.0, 14.0)),
        ..calibration()
    };
    let t = CostTable::new(&c, Recorded::ByHand, 0.4);
    let inside = spans(2)
        .and(Inner::EVENT)
        .and(Inner::EVENT)
        .and(Inner::EVENT);
    assert_eq!(
        (inside.spans(), inside.events(), inside.records()),
        (2, 3, 5)
    );
    assert_eq!(t.ticks(&sample(Ends::Unordered, 0, [0; 2])), 20);
    assert_eq!(
        t.ticks(&holding(Ends::Unordered, inside, 0)),
        20 + 2 * 30 + 3 * 20
    );
    // Plain spans wait, so their doses are right: 10 ns, 25 ticks.
    assert_eq!(
        t.ticks(&holding(Ends::Plain, inside, 0)),
        25 + 2 * 30 + 3 * 20
    );
    assert_eq!(t.fast_path_costs(Ends::Unordered).cost(inside), 140);
    // Counts that wrap.
    let then = Inner(u64::MAX - 1);
    assert_eq!(then.and(inside).since(then), inside);
}

/// A function's span costs 25 to 27 ns around work, and 12 to 20 a record inside another span;
/// one by hand costs 9 to 12, and 11 to 14. If the trace has only functions the former is
/// subtracted, if it has both a cost that holds both, and without functions the latter.
#[test]
fn functions_cost_what_their_hooks_take() {
    let functions = FunctionCost {
        span: SpanCost {
            empty_ns: estimate(25.0, 24.0, 26.0),
            dosed_ns: estimate(26.0, 25.0, 27.0),
            least_dose_ns: Some(3.0),
        },
        inner_ns: estimate(16.0, 12.0, 20.0),
    };
    let mut plain = calibration().plain;
    plain.empty_ns = plain.dosed_ns.clone();
    plain.least_dose_ns = Some(5.0);
    let c = Calibration {
        functions: Some(functions),
        inner_span_ns: Some(estimate(12.0, 11.0, 14.0)),
        plain,
        ..calibration()
    };
    // A span around work, and two records inside.
    let found = |recorded: Recorded| {
        let t = CostTable::new(&c, recorded, 0.4);
        let mut costs = Costs::default();
        let sample = sample(Ends::Plain, 2, [0; 2]);
        costs.add(&sample, t.subtracted_from(&sample));
        let cost = costs.mean_for(&t, 100.0, None);
        [cost.value, cost.value - cost.below, cost.value + cost.above]
    };
    let near = |found: [f64; 3], expected: [f64; 3]| {
        let far = |(a, b): (f64, f64)| (a - b).abs() > 1e-9;
        assert!(!found.into_iter().zip(expected).any(far), "{found:?}");
    };
    let by_hand = [10.0 + 24.0, 9.0 + 22.0, 12.0 + 28.0];
    near(found(Recorded::ByHand), by_hand);
    near(
        found(Recorded::Functions),
        [26.0 + 32.0, 25.0 + 24.0, 27.0 + 40.0],
    );
    // The middles of 9 to 27 and of 11 to 20, which are also subtracted.
    near(
        found(Recorded::Both),
        [18.0 + 31.0, 9.0 + 22.0, 27.0 + 40.0],
    );
    let both = CostTable::new(&c, Recorded::Both, 0.4);
    let empty = sample(Ends::Plain, 0, [0; 2]);
    assert_eq!(both.subtracted_from(&empty).ticks, 45);
    let unmeasured = CostTable::new(&calibration(), Recorded::Functions, 0.4);
    assert_eq!(
        unmeasured
            .subtracted_from(&sample(Ends::Plain, 0, [0; 2]))
            .ticks,
        38
    );
}

/// Functions have separate numbers and rings, and names that hold for all processes.
#[test]
fn names_and_rings_tell_what_is_recorded() {
    let name = |event: u16, pid: Option<i32>| Name {
        pid,
        event,
        name: "a".to_owned(),
    };
    let ring = |tid: i32| Ring {
        ring: tid,
        pid: 7,
        tid,
        written: 1,
        received: 1,
        dropped: 0,
        overwritten: 0,
        spans_wait: None,
        interposed: false,
        read_cost: None,
    };
    let rings = [ring(7), ring(8)];
    let of = |names: &[Name]| Recorded::by(names, &rings);
    let (function, span) = (name(FIRST_FUNCTION, None), name(1, Some(7)));
    assert_eq!(of(&[]), Recorded::ByHand);
    assert_eq!(of(slice::from_ref(&span)), Recorded::ByHand);
    let functions = slice::from_ref(&function);
    assert_eq!(of(functions), Recorded::Functions);
    assert_eq!(of(&[function.clone(), span]), Recorded::Both);
    assert_eq!(of(&[name(FIRST_FUNCTION, Some(7))]), Recorded::ByHand);
    // Spans by hand that have no name.
    let rings = [ring(7), ring(8), ring(7)];
    assert_eq!(Recorded::by(functions, &rings), Recorded::Both);
}
