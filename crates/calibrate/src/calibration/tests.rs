use undertick_format::manifest::{PairedCost, SpanCost, SparseCost};

use super::costs::{hull, least_dose, together};
use super::look::of_looks;
use super::*;

fn ns(value: f64, half: f64) -> Estimate {
    Estimate {
        value,
        interval: Interval::new(value - half, value + half),
        level: 0.95,
        unit: "ns".into(),
        method: "test".into(),
        n: 10,
        n_effective: 10.0,
        notes: vec![],
    }
}

/// 30 +- 1 and 31 +- 2 with weights of 1 and 1/4: 30.2 +- 0.894.
#[test]
fn a_regular_loop_tells_the_value_and_all_widen_it() {
    let regular = [ns(30.0, 1.0), ns(31.0, 2.0)];
    let alone = together(&regular, &[]);
    assert!((alone.value - 30.2).abs() < 1e-12);
    let (lo, hi) = (alone.interval.lo.unwrap(), alone.interval.hi.unwrap());
    assert!((lo - (30.2 - 0.8_f64.sqrt())).abs() < 1e-12, "{lo}");
    assert!((hi - (30.2 + 0.8_f64.sqrt())).abs() < 1e-12, "{hi}");
    assert_eq!(alone.n, 20);
    let wide = together(&regular, &[ns(35.0, 0.5), ns(28.0, 1.0)]);
    assert!((wide.value - 30.2).abs() < 1e-12);
    assert_eq!(
        (wide.interval.lo, wide.interval.hi),
        (Some(29.0), Some(34.5))
    );
    // A poorly known figure adds nothing.
    assert_eq!(together(&regular, &[ns(48.9, 40.0), ns(5.0, 90.0)]), alone);
}

/// Doses of 15, 12.2, 13.0 and 12.5 ns: the first differs from the last by more than a nanosecond,
/// those after it do not.
#[test]
fn the_least_dose_is_the_first_after_which_all_agree() {
    let doses = [ns(15.0, 0.1), ns(12.2, 0.1), ns(13.0, 0.1), ns(12.5, 0.1)];
    assert_eq!(least_dose(&doses), 1);
    assert_eq!(least_dose(&doses[1..]), 0);
    let last = [ns(15.0, 0.1), ns(12.0, 0.1), ns(14.0, 0.1)];
    assert_eq!(least_dose(&last), 2);
    // Measured on a core whose frequency changed: all are about 30.
    let unsure = [ns(29.8, 1.2), ns(28.2, 5.1), ns(28.6, 10.0), ns(37.4, 41.0)];
    assert_eq!(least_dose(&unsure), 0);
    // The short doses are known to cost more, whatever the longest is.
    let short = [ns(35.0, 0.1), ns(30.0, 0.3), ns(30.2, 0.6), ns(37.4, 41.0)];
    assert_eq!(least_dose(&short), 1);
}

pub(super) fn calibration(plain: f64, event: f64) -> Calibration {
    let span = |value: f64, empty: f64| SpanCost {
        empty_ns: ns(empty, 0.1),
        dosed_ns: ns(value, 0.1),
        least_dose_ns: Some(5.0),
    };
    Calibration {
        plain: span(plain, 20.0),
        ordered: span(25.0, 26.0),
        inner_event_ns: ns(event, 1.0),
        inner_off_ns: None,
        inner_span_ns: Some(ns(18.0, 1.0)),
        inner_ordered_ns: ns(26.0, 1.0),
        sparse: None,
        functions: None,
        sampled: None,
        paired: None,
        interrupt: None,
        read_ns: None,
        measured_unix_ns: None,
    }
}

/// Two readings with nothing between take 20 ns here, so 0 to 60 ns are plausible.
#[test]
fn a_cost_that_cannot_be_is_refused() {
    check(&calibration(12.0, 5.0)).unwrap();
    check(&calibration(0.0, 60.0)).unwrap();
    for (plain, event, what) in [
        (-0.1, 5.0, "a plain span came out at -0.1 ns"),
        (12.0, -40.6, "an event inside a span came out at -40.6 ns"),
        (12.0, 61.0, "an event inside a span came out at 61.0 ns"),
        (f64::NAN, 5.0, "a plain span came out at NaN"),
    ] {
        let error = check(&calibration(plain, event)).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

/// Far from others, a record may take up to 20 times the 20 ns of two readings.
#[test]
fn a_record_far_from_others_has_a_bound() {
    let with = |most: f64| {
        let cost = |hi: f64| Estimate {
            interval: Interval::new(0.0, hi),
            ..ns(30.0, 1.0)
        };
        let mut found = calibration(12.0, 5.0);
        found.sparse = Some(SparseCost {
            event_ns: cost(90.0),
            span_ns: cost(most),
            ordered_ns: cost(90.0),
        });
        found
    };
    check(&with(400.0)).unwrap();
    for most in [400.1, f64::NAN] {
        let error = check(&with(most)).unwrap_err().to_string();
        assert!(
            error.contains("a record of a span far from others"),
            "{error}"
        );
    }
}

/// 12 +- 0.1 before and 14 +- 0.1 after: 11.9 to 14.1 with the first's value.
#[test]
fn what_differs_before_and_after_widens_the_interval() {
    let both = before_and_after(&calibration(12.0, 5.0), &calibration(14.0, 5.0));
    let dosed = &both.plain.dosed_ns;
    assert_eq!(dosed.value, 12.0);
    let (lo, hi) = (dosed.interval.lo.unwrap(), dosed.interval.hi.unwrap());
    assert!((lo - 11.9).abs() < 1e-12 && (hi - 14.1).abs() < 1e-12);
}

/// 12 +- 0.1 ns before. A check of 12.3 +- 0.2 agrees, and widens the interval to 12.3. One of 13.8
/// +- 0.2, over a tenth away, does not agree. One of 20 +- 3 says nothing of that figure, and one
/// that does not know the duration of a span around nothing says nothing of any.
#[test]
fn a_look_agrees_contradicts_or_says_nothing() {
    let before = calibration(12.0, 5.0);
    let look = |value: f64, half: f64| {
        let mut look = calibration(12.0, 5.0);
        look.plain.dosed_ns = ns(value, half);
        look
    };
    let held = |look: Calibration| match compared(&before, &look) {
        Look::Holds(both) => *both,
        other => panic!("{other:?}"),
    };
    let both = held(look(12.3, 0.2));
    let Interval { lo, hi } = both.plain.dosed_ns.interval;
    assert!((lo.unwrap() - 11.9).abs() < 1e-12 && (hi.unwrap() - 12.3).abs() < 1e-12);
    assert_eq!(both.plain.dosed_ns.value, 12.0);
    for other in [look(13.8, 0.2), look(10.2, 0.2)] {
        assert_eq!(compared(&before, &other), Look::Changed(Box::new(other)));
    }
    assert_eq!(held(look(20.0, 3.0)).plain.dosed_ns, before.plain.dosed_ns);
    let mut busy = calibration(12.0, 5.0);
    busy.ordered.empty_ns = ns(26.0, 1.6);
    assert_eq!(compared(&before, &busy), Look::Unknown);
}

/// Readings at the second time cost 1.47943 times as much and all costs are 1.6 times as high.
/// These are the same costs, for which the intervals hardly widen, though 19.2 is far from 12 +-
/// 0.1. A single cost that rises contradicts, and so do costs that stay the same where readings
/// become more expensive.
#[test]
fn costs_are_compared_as_dear_as_readings_were() {
    let at = |read: f64, plain: f64, by: f64| {
        let mut found = calibration(plain, 5.0);
        found.costs_mut().into_iter().for_each(|(_, cost)| {
            *cost = ns(cost.value * by, 0.1);
        });
        found.read_ns = Some(ns(read, 0.01));
        found
    };
    let before = at(20.0, 12.0, 1.0);
    let Look::Holds(both) = compared(&before, &at(29.588_67, 12.0, 1.6)) else {
        panic!("it holds");
    };
    let Interval { lo, hi } = both.plain.dosed_ns.interval;
    assert!((lo.unwrap() - 11.9).abs() < 0.01 && (hi.unwrap() - 12.1).abs() < 0.01);
    assert_eq!(both.read_ns, before.read_ns);
    for other in [at(20.0, 18.0, 1.0), at(29.588_67, 12.0, 1.0)] {
        assert!(matches!(compared(&before, &other), Look::Changed(_)));
    }
}

/// A check of 14 contradicts 12 +- 0.1. If the next one finds 12.2, the change was momentary, and
/// the interval contains it. If that is 14 too, costs have changed; if it fails, the answer is
/// unknown.
#[test]
fn one_look_that_contradicts_is_not_enough() {
    let before = calibration(12.0, 5.0);
    let looks = |second: Option<f64>| {
        let mut found = vec![second, Some(14.0)];
        let found = std::cell::RefCell::new(&mut found);
        of_looks(&before, || {
            let plain = found.borrow_mut().pop().flatten();
            let failed = || NotCalibrated("no run".to_owned());
            plain
                .map(|plain| calibration(plain, 5.0))
                .ok_or_else(failed)
        })
    };
    let Look::Holds(both) = looks(Some(12.2)) else {
        panic!("it holds");
    };
    assert_eq!(both.plain.dosed_ns.interval.hi, Some(14.0));
    assert!(matches!(looks(Some(14.1)), Look::Changed(_)));
    assert_eq!(looks(None), Look::Unknown);
}

/// 1 +- 0.5, 8 +- 2 and 3 +- 0.1: bounds of 0.5 to 10, with the harmonic mean of 1.5 and 6. A kind that is known to +-90 ns widens the bounds alone. Of kinds that agree,
/// the bounds cross: the middle of 2.2 and 2.0.
#[test]
fn a_point_costs_what_it_may_cost_in_any_code_and_never_less_than_nothing() {
    let kinds = [ns(1.0, 0.5), ns(8.0, 2.0), ns(3.0, 0.1)];
    let all = hull(&kinds);
    assert!((all.value - 2.4).abs() < 1e-12, "{}", all.value);
    assert_eq!((all.interval.lo, all.interval.hi), (Some(0.5), Some(10.0)));
    assert_eq!(all.n, 30);
    let noisy = hull(&[&kinds[..], &[ns(60.0, 90.0)]].concat());
    assert_eq!(noisy.value, all.value);
    assert_eq!(noisy.interval.hi, Some(150.0));
    assert_eq!(noisy.interval.lo, Some(0.0));
    let agree = hull(&[ns(2.1, 0.1), ns(2.5, 0.5), ns(1.0, 6.0)]);
    assert!((agree.value - 2.1).abs() < 1e-12, "{}", agree.value);
    // Of what is only known to be small, the value is small: the middle of 10.2 and -9.8.
    let small = hull(&[ns(0.2, 10.0), ns(0.3, 12.0)]);
    assert!((small.value - 0.2).abs() < 1e-12, "{}", small.value);
    assert_eq!(hull(&[ns(-3.0, 1.0), ns(-2.0, 1.0)]).value, 0.0);
    // Where recording surely costs nothing somewhere, nothing is subtracted.
    let free_somewhere = hull(&[ns(-1.0, 0.5), ns(8.0, 1.0)]);
    assert_eq!(free_somewhere.value, 0.0);
    assert_eq!(free_somewhere.interval.hi, Some(9.0));
}

/// Whatever the code, subtracting the value leaves no more error than subtracting nothing.
#[test]
fn what_is_subtracted_is_nearer_than_nothing_in_each_kind_of_code() {
    for low in [0.0, 0.2, 1.0, 3.0] {
        for high in [low + 0.5, 2.0 * low + 1.0, 7.3, 40.0] {
            let kinds = [ns(low, 0.01), ns(low.midpoint(high), 0.01), ns(high, 0.01)];
            let value = hull(&kinds).value;
            for kind in &kinds {
                let off = (kind.value - value).abs();
                // Twice the half-width of the lowest.
                assert!(off <= kind.value + 0.02, "{low} {high}: {value}");
            }
        }
    }
}

/// 44 ns beside pairs of 42 would be 44 - 1.15 * 44 / 42 * 12 = 29.543 beside pairs of 30, where
/// another run found 30: they differ by 0.457, whatever other readings have done.
#[test]
fn spans_with_pairs_are_compared_beside_the_same_pairs() {
    let at = |read: f64, pair: f64, dosed: f64| Calibration {
        read_ns: Some(ns(read, 0.01)),
        paired: Some(PairedCost {
            span: SpanCost {
                empty_ns: ns(dosed, 0.1),
                dosed_ns: ns(dosed, 0.1),
                least_dose_ns: None,
            },
            pairs_bias_ns: ns(0.0, 0.1),
            shares: [0.4, 0.4],
            fence_ticks: [0.0, 100.0],
            constant_ns: ns(6.0, 0.1),
            pair_ns: ns(pair, 0.1),
            pairs_k: None,
            control_variate_k: None,
            chosen: "control-variate".into(),
            why: "test".into(),
        }),
        ..calibration(12.0, 5.0)
    };
    let mut found = at(24.0, 30.0, 30.0);
    hold_both(&mut found, &at(24.0, 42.0, 44.0));
    let paired = found.paired.unwrap();
    let half = paired.constant_ns.interval.half_width().unwrap();
    assert!((half - (0.1 + 0.457_142_857)).abs() < 1e-6, "{half}");
    let Interval { lo, hi } = paired.span.dosed_ns.interval;
    assert!((lo.unwrap() - 29.442_857).abs() < 1e-6 && hi == Some(30.1));
}
