use super::*;

/// All signs and all orders are written out.
#[test]
fn as_counted_by_hand() {
    // Three pairs: sums 0, 1, 2, 3 (twice), 4, 5, 6 of eight.
    let of_three = Tail::of_pairs(3);
    for (k, eighths) in [(0, 1.0), (1, 2.0), (2, 3.0), (3, 5.0)] {
        assert!((of_three.up_to(k) - eighths / 8.0).abs() < 1e-15, "{k}");
    }
    // Two and two: counts 0, 1, 2 (twice), 3, 4 of six.
    let two = Tail::of_two(2, 2);
    for (k, sixths) in [(0, 1.0), (1, 2.0), (2, 4.0)] {
        assert!((two.up_to(k) - sixths / 6.0).abs() < 1e-15, "{k}");
    }
}

/// Published critical values, 5 % two-sided: signed ranks of 6, 10 and 25 pairs
/// 0, 8, 89 (Wilcoxon and Wilcox 1964); counts of 4 and 4, 5 and 8, 10 and 10,
/// 20 and 20 values 0, 6, 23, 127 (Mann and Whitney; Auble 1953).
#[test]
fn as_published() {
    for (n, critical) in [(6, 0), (10, 8), (25, 89)] {
        assert_eq!(Tail::of_pairs(n).rank(0.95), Some(critical + 1), "{n}");
    }
    for (n, m, critical) in [(4, 4, 0), (5, 8, 6), (8, 5, 6), (10, 10, 23), (20, 20, 127)] {
        assert_eq!(Tail::of_two(n, m).rank(0.95), Some(critical + 1), "{n} {m}");
    }
    assert_eq!(Tail::of_pairs(5).rank(0.95), None);
    assert_eq!(Tail::of_two(3, 4).rank(0.95), None);
    assert_eq!(Tail::of_two(0, 9).rank(0.95), None);
}

/// The normal distribution continues where counting ends.
#[test]
fn counted_and_normal_meet() {
    let counted = Tail::of_pairs(MOST_PAIRS).rank(0.95).unwrap() as f64;
    let normal = Tail::of_pairs(MOST_PAIRS + 1).rank(0.95).unwrap() as f64;
    // One pair more moves it by about 100 - 1.96 / 2 * the step of sd.
    assert!((normal - counted - 87.0).abs() < 8.0, "{counted} {normal}");
    let counted = Tail::of_two(40, 40).rank(0.95).unwrap() as f64;
    let normal = Tail::of_two(41, 41).rank(0.95).unwrap() as f64;
    assert!((normal - counted - 32.0).abs() < 6.0, "{counted} {normal}");
}
