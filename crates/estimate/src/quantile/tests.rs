use super::*;

/// Printed tables (Conover, *Practical Nonparametric Statistics*): n = 10,
/// median, 97.9 %: ranks 2 and 9; n = 20: 6 and 15; n = 5 has none.
#[test]
fn median_of_small_samples() {
    let ranks = |n| {
        let r = binomial_ranks(n, 0.5, 0.95);
        (r.lo, r.hi)
    };
    assert_eq!(ranks(0), (None, None));
    assert_eq!(ranks(1), (None, None));
    assert_eq!(ranks(5), (None, None));
    assert_eq!(ranks(6), (Some(1), Some(6)));
    assert_eq!(ranks(10), (Some(2), Some(9)));
    assert_eq!(ranks(20), (Some(6), Some(15)));
}

/// 0.9^n <= 0.025 first holds at n = 36: from there p90 has an upper bound.
#[test]
fn a_rank_outside_the_sample_is_none() {
    assert_eq!(binomial_ranks(35, 0.9, 0.95).hi, None);
    assert_eq!(binomial_ranks(36, 0.9, 0.95).hi, Some(36));
    // 0.999^n <= 0.025 first holds at 3688.
    assert_eq!(binomial_ranks(3687, 0.999, 0.95).hi, None);
    assert_eq!(binomial_ranks(3688, 0.999, 0.95).hi, Some(3688));
    assert_eq!(binomial_ranks(3687, 0.001, 0.95).lo, None);
    assert_eq!(binomial_ranks(3688, 0.001, 0.95).lo, Some(1));
}

/// n = 10, 95 %: ranks 2 and 9 cover 0.97852, 3 and 8 0.89062; I = 0.32444,
/// share = 8 I / (2 + 6 I) = 0.65766. Below 6 values there is none.
#[test]
fn interpolated_by_hand() {
    let (rank, share) = interpolated(10, 0.95).unwrap();
    assert_eq!(rank, 2);
    let i = (0.978_515_625 - 0.95) / (0.978_515_625 - 0.890_625);
    assert!((share - 8.0 * i / (2.0 + 6.0 * i)).abs() < 1e-9, "{share}");
    assert_eq!(interpolated(5, 0.95), None);
    assert!(interpolated(6, 0.95).is_some());
    // Up to 10 000 values; ranks 469 and 470 of 1000.
    assert_eq!(interpolated(1000, 0.95).unwrap().0, 469);
    assert!(interpolated(10_000, 0.95).is_some());
    assert_eq!(interpolated(10_002, 0.95), None);
    assert_eq!(interpolated(20_000, 0.95), None);
}

/// The exact sum and the expansion agree where the expansion takes over.
#[test]
fn exact_and_expanded_meet() {
    for (n, p) in [
        (10_100_u64, 0.5),
        (28_000, 0.9),
        (252_600, 0.99),
        (2_502_600, 0.999),
    ] {
        let exact = (
            lower_rank(n, p, 0.025),
            n + 1 - lower_rank(n, 1.0 - p, 0.025),
        );
        let series = expanded(n, p, 0.025);
        assert_eq!(exact, series, "{n} {p}");
    }
}
