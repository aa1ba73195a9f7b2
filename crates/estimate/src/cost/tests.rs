use super::*;

fn estimate(value: f64, lo: f64, hi: f64) -> Estimate {
    Estimate {
        value,
        interval: Interval::new(lo, hi),
        level: 0.95,
        unit: "ticks".into(),
        method: "test".into(),
        n: 1,
        n_effective: 1.0,
        notes: vec![],
    }
}

/// The estimate's half-widths are 3 below and 6 above; the cost is uncertain by 8 below, 4
/// above.
#[test]
fn uncertainty_of_the_cost_widens_the_other_side() {
    let cost = Cost::from_estimate(&estimate(20.0, 12.0, 24.0));
    assert_eq!((cost.below, cost.above), (8.0, 4.0));
    let mut e = estimate(100.0, 97.0, 106.0);
    cost.widen(&mut e);
    assert_eq!(e.interval, Interval::new(95.0, 110.0));
    let mut e = estimate(100.0, 97.0, 106.0);
    Cost {
        systematic: true,
        ..cost
    }
    .widen(&mut e);
    assert_eq!(e.interval, Interval::new(93.0, 114.0));
}

#[test]
fn a_missing_bound_stays_missing_or_counts_in_full() {
    let mut open = estimate(20.0, 0.0, 0.0);
    open.interval = Interval {
        lo: None,
        hi: Some(21.0),
    };
    let cost = Cost::from_estimate(&open).times(2.0);
    assert_eq!((cost.below, cost.above), (40.0, 2.0));
    cost.widen(&mut open);
    assert_eq!(open.interval.lo, None);
}

#[test]
fn scale_and_shift_by_hand() {
    let e = scaled(shifted(estimate(10.0, 8.0, 14.0), 2.0), 0.5, "ns");
    assert_eq!(
        (e.value, e.interval, e.unit.as_str()),
        (6.0, Interval::new(5.0, 8.0), "ns")
    );
}

#[test]
fn costs_add_up_by_hand() {
    let a = Cost::from_estimate(&estimate(20.0, 12.0, 24.0));
    let twice = a.times(2.0);
    assert_eq!((twice.value, twice.below, twice.above), (40.0, 16.0, 8.0));
    let sum = a.and(twice);
    assert_eq!(sum.value, 60.0);
    assert_eq!((sum.below, sum.above, sum.systematic), (24.0, 12.0, false));
    let bounds = Cost {
        systematic: true,
        ..a
    };
    assert!(a.and(bounds).systematic && bounds.and(a).systematic);
}
