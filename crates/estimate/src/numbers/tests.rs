use super::*;

fn numbers_of(values: &[f64]) -> Numbers {
    Numbers::new(values.to_vec())
}

#[test]
fn of_nothing_one_and_two() {
    assert!(numbers_of(&[]).mean(0.95).is_none() && numbers_of(&[]).quantile(0.5, 0.95).is_none());
    let one = numbers_of(&[7.5]);
    let mean = one.mean(0.95).unwrap();
    assert_eq!((mean.value, mean.interval.lo), (7.5, None));
    assert_eq!(one.quantile(0.5, 0.95).unwrap().interval.hi, None);
    // 10 and 12: standard error 1, t(0.975; 1) = 12.7062; no skewness.
    let mean = numbers_of(&[10.0, 12.0]).mean(0.95).unwrap();
    assert!((mean.interval.half_width().unwrap() - 12.7062).abs() < 1e-4);
    assert_eq!(
        numbers_of(&[10.0, 12.0]).quantile(0.5, 0.95).unwrap().value,
        11.0
    );
}

/// A billion plus small numbers: no digit of the spread is lost.
#[test]
fn large_numbers_keep_their_spread() {
    let small: Vec<f64> = (0..40).map(|i| f64::from(i % 7)).collect();
    let large: Vec<f64> = small.iter().map(|x| x + 1e15).collect();
    let half = |v: &[f64]| {
        numbers_of(v)
            .mean(0.95)
            .unwrap()
            .interval
            .half_width()
            .unwrap()
    };
    assert!((half(&small) / half(&large) - 1.0).abs() < 0.2);
}

#[test]
#[should_panic(expected = "finite")]
fn infinity_is_no_number() {
    numbers_of(&[1.0, f64::INFINITY]);
}

/// 1 .. 10: ranks 2 and 9 (0.97852), 3 and 8 (0.89062), interpolated 0.657658
/// of the way (Hettmansperger and Sheather); p90 has no upper bound.
#[test]
fn quantiles_by_hand() {
    let numbers = numbers_of(&[3.0, 1.0, 2.0, 10.0, 4.0, 7.0, 6.0, 5.0, 9.0, 8.0]);
    let e = numbers.quantile(0.5, 0.95).unwrap();
    assert_eq!((e.value, e.n, e.n_effective), (5.5, 10, 10.0));
    assert!((e.interval.lo.unwrap() - 2.657_658).abs() < 1e-5, "{e:?}");
    assert!((e.interval.hi.unwrap() - 8.342_342).abs() < 1e-5, "{e:?}");
    assert!(e.notes.is_empty());
    let e = numbers.quantile(0.9, 0.95).unwrap();
    assert_eq!(
        (e.value, e.interval),
        (
            9.0,
            Interval {
                lo: Some(7.0),
                hi: None
            }
        )
    );
    assert_eq!(
        e.notes,
        ["too few samples for both bounds of the 0.9 quantile"]
    );
    assert_eq!(
        numbers_of(&[3.0, 1.0, 2.0])
            .quantile(0.5, 0.95)
            .unwrap()
            .value,
        2.0
    );
}

/// The median of a ramp of 4096 may be any value of it.
#[test]
fn a_median_that_moves_is_said() {
    let ramp = Numbers::new((0..4096).map(f64::from).collect());
    let e = ramp.quantile(0.5, 0.95).unwrap();
    assert!(
        e.notes
            .iter()
            .any(|n| n.starts_with("too few samples for their autocorrelation")),
        "{e:?}"
    );
    assert!(e.n_effective < 64.0, "{e:?}");
    let mean = ramp.mean(0.95).unwrap();
    assert!(mean.n_effective < 2.0 && mean.interval.half_width().is_none());
}
