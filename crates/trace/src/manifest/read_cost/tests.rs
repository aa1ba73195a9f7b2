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

/// Ten samples of 8 and 12 ticks, as many of each, and thirty of 20 ticks: mean 17.5; squares
/// 104 and 400 weighted as 10 to 30, 326, less 306.25: a deviation of 4.444.
#[test]
fn rings_count_by_their_samples() {
    let ring = |samples, mean_ticks, deviation_ticks| ReadCost {
        samples,
        mean_ticks,
        deviation_ticks,
    };
    let all = ReadCost::of_all([ring(10, 10.0, 2.0), ring(30, 20.0, 0.0)].into_iter()).unwrap();
    assert_eq!(all.samples, 40);
    assert!((all.mean_ticks - 17.5).abs() < 1e-12);
    assert!((all.deviation_ticks - 19.75_f64.sqrt()).abs() < 1e-9);
    // Of half a nanosecond each: 8.75 +- 1.96 x 2.222 / 6.325.
    let mean = all.mean_ns(0.5).unwrap();
    assert!((mean.value - 8.75).abs() < 1e-12);
    assert!((mean.interval.half_width().unwrap() - 0.688_6).abs() < 1e-3);
    assert_eq!(ReadCost::of_all([].into_iter()), None);
    let few = ReadCost::of_all([ring(7, 10.0, 2.0)].into_iter()).unwrap();
    assert_eq!(few.mean_ns(0.5), None);
}

/// Whatever a program wrote into its ring: no figure that is none.
#[test]
fn samples_that_cannot_be_say_nothing() {
    for (mean_ticks, deviation_ticks) in [
        (f64::NAN, 1.0),
        (f64::INFINITY, 1.0),
        (f64::MAX, f64::MAX),
        (0.0, 0.0),
        (-3.0, 1.0),
    ] {
        let ring = ReadCost {
            samples: 100,
            mean_ticks,
            deviation_ticks,
        };
        let mean = ReadCost::of_all([ring].into_iter()).and_then(|all| all.mean_ns(0.5));
        let change = Change::between(Some(&ns(10.0, 9.0, 11.0)), mean.as_ref());
        assert_eq!(change, None, "{mean_ticks} {deviation_ticks}");
    }
}

/// Readings from 20 to 30 ns, exactly known: half dearer, and a cost by three fifths:
/// 40 [36, 48] is 64, its bounds 57.6 and 76.8, and a half of a half of 40, 10, is not sure.
#[test]
fn a_cost_moves_with_the_readings_and_is_known_less_well() {
    let change = Change::between(Some(&ns(20.0, 20.0, 20.0)), Some(&ns(30.0, 30.0, 30.0))).unwrap();
    assert_eq!((change.ratio, change.error), (1.5, 0.0));
    let mut cost = ns(40.0, 36.0, 48.0);
    change.apply(&mut cost);
    let about = |a: f64, b: f64| (a - b).abs() < 1e-9;
    assert!(about(cost.value, 64.0), "{cost:?}");
    assert!(about(cost.interval.lo.unwrap(), 47.6), "{cost:?}");
    assert!(about(cost.interval.hi.unwrap(), 86.8), "{cost:?}");
    // 20 +- 1 to 20 +- 2: as dear, give or take the root of 0.05 and 0.1 in squares, of a cost
    // a fifth more.
    let same = Change::between(Some(&ns(20.0, 19.0, 21.0)), Some(&ns(20.0, 18.0, 22.0))).unwrap();
    assert!((same.error - 0.0125_f64.sqrt()).abs() < 1e-12);
    let mut cost = ns(40.0, 36.0, 48.0);
    same.apply(&mut cost);
    assert!((cost.interval.lo.unwrap() - (36.0 - 48.0 * 0.0125_f64.sqrt())).abs() < 1e-12);
    assert_eq!(Change::between(None, Some(&ns(20.0, 18.0, 22.0))), None);
}
