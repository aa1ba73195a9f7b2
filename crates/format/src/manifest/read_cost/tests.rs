use super::*;

fn ns(value: f64, lo: f64, hi: f64) -> Estimate {
    Estimate {
        value,
        interval: Interval::new(lo, hi),
        level: 0.95,
        unit: "ns".into(),
        method: "test".into(),
        n: 10,
        n_effective: 10.0,
        notes: vec![],
    }
}

fn ring(samples: u64, mean_ticks: f64, deviation_ticks: f64) -> ReadCost {
    ReadCost {
        samples,
        least_ticks: 8.0,
        mean_ticks,
        deviation_ticks,
    }
}

/// A quarter of the events with readings of 8 and 12 ticks in equal parts, and three quarters with
/// 20: mean 17.5. The weighted squares 104 and 400 give 326, less 306.25: a deviation of 4.444.
#[test]
fn rings_count_by_their_events() {
    let rings = [(100, ring(30, 10.0, 2.0)), (300, ring(10, 20.0, 0.0))];
    let all = ReadCost::of_all(rings.into_iter()).unwrap();
    assert_eq!((all.samples, all.least_ticks), (40, 8.0));
    assert!((all.mean_ticks - 17.5).abs() < 1e-12);
    assert!((all.deviation_ticks - 19.75_f64.sqrt()).abs() < 1e-9);
    // A tick is half a nanosecond: 8.75 +- 2.36 x 2.222 / 6.325.
    let mean = all.mean_ns(0.5).unwrap();
    assert!((mean.value - 8.75).abs() < 1e-12);
    assert!((mean.interval.half_width().unwrap() - 0.829_1).abs() < 1e-3);
    assert_eq!(ReadCost::of_all([].into_iter()), None);
    let few = ReadCost::of_all([(9, ring(7, 10.0, 2.0))].into_iter()).unwrap();
    assert_eq!(few.mean_ns(0.5), None);
    // A short thread that was preempted in its only sample of the read cost.
    let hit = [rings[0], rings[1], (2, ring(1, 100_000.0, 0.0))];
    assert_eq!(ReadCost::of_all(hit.into_iter()), Some(all));
}

/// Impossible samples from a program's ring give no figure.
#[test]
fn samples_that_cannot_be_say_nothing() {
    for (mean_ticks, deviation_ticks) in [
        (f64::NAN, 1.0),
        (f64::INFINITY, 1.0),
        (f64::MAX, f64::MAX),
        (0.0, 0.0),
        (-3.0, 1.0),
    ] {
        let odd = (u64::MAX, ring(u64::MAX, mean_ticks, deviation_ticks));
        let mean = ReadCost::of_all([odd, odd].into_iter()).and_then(|all| all.mean_ns(0.5));
        let change = Change::between(Some(&ns(10.0, 9.0, 11.0)), mean.as_ref());
        assert_eq!(change, None, "{mean_ticks} {deviation_ticks}");
    }
}

/// Readings from 20 to 30 ns, exactly known: 1.5 to the power of 1.2, 1.626709. A cost of 40 [36,
/// 48] becomes 65.068, its bounds 58.562 and 78.082. Half of the logarithm of 1.5, 0.202733 of the
/// cost, 13.192, is uncertain. The way back is the inverse.
#[test]
fn a_cost_moves_with_the_readings_and_is_known_less_well() {
    let (cheap, dear) = (ns(20.0, 20.0, 20.0), ns(30.0, 30.0, 30.0));
    let change = Change::between(Some(&cheap), Some(&dear)).unwrap();
    assert_eq!((change.ratio, change.error), (1.5, 0.0));
    let about = |a: f64, b: f64| assert!((a - b).abs() < 2e-3, "{a} {b}");
    let bounds = |cost: &Estimate| (cost.interval.lo.unwrap(), cost.interval.hi.unwrap());
    let mut cost = ns(40.0, 36.0, 48.0);
    change.apply(&mut cost);
    about(cost.value, 65.068);
    about(bounds(&cost).0, 45.370);
    about(bounds(&cost).1, 91.274);
    let mut there = ns(40.0, 36.0, 48.0);
    change.scale(&mut there);
    about(bounds(&there).0, 58.562);
    Change::between(Some(&dear), Some(&cheap))
        .unwrap()
        .scale(&mut there);
    about(there.value, 40.0);
    about(bounds(&there).1, 48.0);
    // 20 +- 1 to 20 +- 2: the ratio is 1. Its uncertainty is the root of the squares of 0.05 and
    // 0.1; for a cost it is a fifth more.
    let same = Change::between(Some(&ns(20.0, 19.0, 21.0)), Some(&ns(20.0, 18.0, 22.0))).unwrap();
    assert!((same.error - 0.0125_f64.sqrt()).abs() < 1e-12);
    let mut cost = ns(40.0, 36.0, 48.0);
    same.apply(&mut cost);
    about(bounds(&cost).0, 36.0 - 48.0 * 0.0125_f64.sqrt());
    assert_eq!(Change::between(None, Some(&cheap)), None);
    // No neighbour changes the cost this much.
    assert_eq!(
        Change::between(Some(&cheap), Some(&ns(90.0, 90.0, 90.0))),
        None
    );
}
