use super::*;

/// Newcombe 1998, table I: 81 of 263 gives 0.2553..0.3662, 0 of 20 0..0.1611.
#[test]
fn proportions_match_the_printed_ones() {
    for (inside, seen, lo, hi) in [(81, 263, 0.2553, 0.3662), (0, 20, 0.0, 0.1611)] {
        let i = proportion(inside, seen, 0.95).unwrap().interval;
        assert!(
            (i.lo.unwrap() - lo).abs() < 5e-5 && (i.hi.unwrap() - hi).abs() < 5e-5,
            "{i:?}"
        );
    }
    assert_eq!(proportion(0, 0, 0.95), None);
}

/// Newcombe 1998, table I, method 5: 81 of 263 gives 0.2527..0.3676, 15 of
/// 148 0.0578..0.1617, 0 of 20 0..0.1684, 1 of 29 0.0009..0.1776.
#[test]
fn exact_proportions_match_the_printed_ones() {
    for (inside, seen, lo, hi) in [
        (81, 263, 0.2527, 0.3676),
        (15, 148, 0.0578, 0.1617),
        (0, 20, 0.0, 0.1684),
        (1, 29, 0.0009, 0.1776),
        (28, 29, 0.8224, 0.9991),
        (20, 20, 0.8316, 1.0),
    ] {
        let e = proportion_exact(inside, seen, 0.95).unwrap();
        let i = e.interval;
        assert!(
            (i.lo.unwrap() - lo).abs() < 5e-5 && (i.hi.unwrap() - hi).abs() < 5e-5,
            "{i:?}"
        );
        assert_eq!(e.n, seen);
    }
    assert_eq!(proportion_exact(0, 0, 0.95), None);
    assert_eq!(proportion_exact(2, 1, 0.95), None);
}

/// A million: the bounds solve P(B >= k) = 0.025 and P(B <= k) = 0.025, which the normal
/// distribution gives within 1e-5 at this size: 0.5 -+ (1.959964 * 0.5 / 1000 + 0.5e-6).
#[test]
fn exact_of_a_million() {
    let i = proportion_exact(500_000, 1_000_000, 0.95).unwrap().interval;
    let half = 1.959_964 * 0.5 / 1000.0 + 0.5e-6;
    assert!((i.lo.unwrap() - 0.5 + half).abs() < 1e-7, "{i:?}");
    assert!((i.hi.unwrap() - 0.5 - half).abs() < 1e-7, "{i:?}");
}
