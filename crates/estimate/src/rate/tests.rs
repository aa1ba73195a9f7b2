use super::*;

/// Garwood's table: 0 events 0..3.689, 1: 0.0253..5.572, 10: 4.795..18.39.
#[test]
fn poisson_limits_match_the_printed_table() {
    for (n, lo, hi) in [
        (0, 0.0, 3.6889),
        (1, 0.02532, 5.5716),
        (10, 4.7954, 18.3904),
    ] {
        let (l, h) = garwood(n, 0.95);
        assert!(
            (l - lo).abs() < 1e-4 && (h - hi).abs() < 1e-4,
            "{n}: {l} {h}"
        );
    }
}

#[test]
fn no_time_no_rate() {
    assert_eq!(rate(&[], 3, 0.0, 0.95), None);
    assert_eq!(rate(&[], 3, f64::NAN, 0.95), None);
    assert_eq!(ratio_of_sums(&[1.0], &[0.0], 0.95), None);
    assert_eq!(ratio_of_sums(&[1.0], &[1.0, 1.0], 0.95), None);
}

/// Exactly 5 in each of 40 slices: the rate is certain, unlike Poisson.
#[test]
fn regular_counts_are_not_poisson() {
    let e = rate(&[5.0; 40], 200, 100.0, 0.95).unwrap();
    assert_eq!((e.value, e.interval), (2.0, Interval::new(2.0, 2.0)));
}

/// Parts 1, 6 of wholes 4, 10: ratio 1/2, residuals -1, 1, variance of
/// their mean 1, t(0.975; 1) = 12.7062, times 2 / 14.
#[test]
fn ratio_by_hand() {
    let e = ratio_of_sums(&[1.0, 6.0], &[4.0, 10.0], 0.95).unwrap();
    assert_eq!(e.value, 0.5);
    let half = e.interval.half_width().unwrap();
    assert!((half - 12.7062 / 7.0).abs() < 1e-4, "{half}");
}

/// 18 and 22 in two slices of 10: 2 a unit, variance of the mean 4, at 50 % t = 1: half 2 /
/// 20 * 2. With 10 and 30: 10 / 20 * 2, equivalent to 400 / 100 events.
#[test]
fn rate_by_hand() {
    let e = rate(&[18.0, 22.0], 40, 20.0, 0.5).unwrap();
    assert_eq!(e.value, 2.0);
    assert!(
        (e.interval.lo.unwrap() - 1.8).abs() < 1e-9 && (e.interval.hi.unwrap() - 2.2).abs() < 1e-9
    );
    assert_eq!((e.n, e.n_effective), (40, 40.0));
    let e = rate(&[10.0, 30.0], 40, 20.0, 0.5).unwrap();
    assert!(
        (e.interval.lo.unwrap() - 1.0).abs() < 1e-9 && (e.interval.hi.unwrap() - 3.0).abs() < 1e-9
    );
    assert!((e.n_effective - 4.0).abs() < 1e-9);
    // 30 events are enough; 29 include the Poisson interval: 29 in 10 at 95 % is 1.942 .. 4.165
    // (Garwood: 19.42 .. 41.65).
    assert!(rate(&[15.0; 2], 30, 10.0, 0.95).unwrap().notes.is_empty());
    let e = rate(&[14.5; 2], 29, 10.0, 0.95).unwrap();
    assert!(
        (e.interval.lo.unwrap() - 1.942).abs() < 1e-3,
        "{:?}",
        e.interval
    );
    assert!(
        (e.interval.hi.unwrap() - 4.165).abs() < 1e-3,
        "{:?}",
        e.interval
    );
    let one = rate(&[3.0], 3, 10.0, 0.95).unwrap();
    assert_eq!(one.notes.len(), 2);
}
