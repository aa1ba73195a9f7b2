use super::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
}

/// 1, 2, 3, 4, 10: median 3, squares about the mean of 4 add up to 50, t of 4 degrees 2.776445:
/// 2.776445 * sqrt(50 / 4 * 2 pi / 11). 2 and 4: t of one degree 12.7062, variance of the mean
/// of two 1/2, standard deviation sqrt 2.
#[test]
fn medians_of_runs_by_hand() {
    let found = median_of_runs(&[10.0, 1.0, 3.0, 2.0, 4.0], 0.95).unwrap();
    near(found.value, 3.0);
    let half = found.interval.half_width().unwrap();
    assert!((half - 7.418_87).abs() < 1e-4, "{half}");
    assert!(found.method.contains("of 5 fresh ones"), "{}", found.method);
    let two = median_of_runs(&[2.0, 4.0], 0.95).unwrap();
    near(two.value, 3.0);
    let half = two.interval.half_width().unwrap();
    assert!((half - 12.706_2 * 2.0_f64.sqrt()).abs() < 1e-3, "{half}");
    let one = median_of_runs(&[2.0], 0.95).unwrap();
    assert_eq!((one.interval.lo, one.interval.hi), (None, None));
    assert!(median_of_runs(&[], 0.95).is_none());
    assert!(median_of_runs(&[1.0, f64::NAN], 0.95).is_none());
}

/// 4000 sets of normal runs against as many fresh ones: an interval of 95 % contains 3728 to 3867
/// (binomial, less than one in a million outside). It may contain a little more, as documented: 97
/// %, 3931.
#[test]
fn an_interval_of_runs_holds_the_median_of_fresh_ones() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let mut runs = |n: usize| -> Vec<f64> {
        let normal = |_| (0..12).map(|_| random.random::<f64>()).sum::<f64>();
        (0..n).map(normal).collect()
    };
    for n in [2, 3, 4, 5, 6, 10] {
        let held = (0..4000).filter(|_| {
            let found = median_of_runs(&runs(n), 0.95).unwrap().interval;
            let fresh = median_of_runs(&runs(n), 0.95).unwrap().value;
            (found.lo.unwrap()..=found.hi.unwrap()).contains(&fresh)
        });
        let held = held.count();
        assert!((3728..=3931).contains(&held), "{n} runs: {held} of 4000");
    }
}

/// 4 and 4 at 95 %: the first and the last of the 16 differences. Written out: 10 to 13 less 1, 2,
/// 4, 8 lie from 2 to 12; the eighth and the ninth are 8 and 9.
#[test]
fn two_sets_by_hand() {
    let found = runs_versus(&[4.0, 1.0, 8.0, 2.0], &[12.0, 10.0, 13.0, 11.0], 0.95).unwrap();
    let d = &found.difference;
    // Ascending: 2 3 4 5 6 7 8 8 9 9 9 10 10 11 11 12.
    near(d.value, 8.5);
    near(d.interval.lo.unwrap(), 2.0);
    near(d.interval.hi.unwrap(), 12.0);
    // Two of the 70 orders are as far apart.
    near(found.p.unwrap(), 2.0 / 70.0);
    let ratio = found.ratio.unwrap();
    near(ratio.interval.lo.unwrap(), 10.0 / 8.0);
    near(ratio.interval.hi.unwrap(), 13.0);
    assert_eq!((ratio.n, ratio.unit.as_str()), (8, "1"));
}

/// Six rounds, differences 1, 2, 3, 4, 5 and -6: 21 means of two, the eleventh of them
/// 2.5 (written out: -6 -2.5 -2 -1.5 -1 -0.5 1 1.5 2 2 2.5 2.5 3 3 3 3.5 3.5 4 4 4.5 5).
/// Of 21 six lie below 0: signed ranks up to 6 have 14 of 64 ways (1, 1, 1, 2, 2, 3, 4).
#[test]
fn rounds_by_hand() {
    let a = [10.0; 6];
    let b = [11.0, 12.0, 13.0, 14.0, 15.0, 4.0];
    let found = paired_runs_versus(&a, &b, 0.95).unwrap();
    near(found.difference.value, 2.5);
    near(found.difference.interval.lo.unwrap(), -6.0);
    near(found.difference.interval.hi.unwrap(), 5.0);
    let alone = Tail::of_pairs(6).up_to(6);
    near(alone, 14.0 / 64.0);
    // The ratio's differences are logarithms: ln 0.4 outweighs all others.
    let ratio = found.ratio.unwrap();
    near(ratio.interval.lo.unwrap(), 0.4);
    near(ratio.interval.hi.unwrap(), 1.5);
}

/// Few runs: 1.00, 1.01, 1.02 against 1.05, 1.06, 1.07: 0.05 by hand, standard error
/// the root of 2 * 0.0001 / 3, t of 4 degrees 2.776445.
#[test]
fn few_runs_by_student() {
    let found = runs_versus(&[1.0, 1.01, 1.02], &[1.05, 1.06, 1.07], 0.95).unwrap();
    let half = 2.776_445 * (0.0002_f64 / 3.0).sqrt();
    near(found.difference.value, 0.05);
    assert!((found.difference.interval.lo.unwrap() - (0.05 - half)).abs() < 1e-6);
    assert!(found.difference.method.contains("Welch"));
    let found = paired_runs_versus(&[1.0, 1.01, 1.02], &[1.05, 1.06, 1.08], 0.95).unwrap();
    // 0.05, 0.05, 0.06: standard deviation 0.005774, t of 2 degrees 4.302653.
    let half = 4.302_653 * 0.005_773_503 / 3.0_f64.sqrt();
    assert!(
        (found.difference.interval.hi.unwrap() - (0.16 / 3.0 + half)).abs() < 1e-6,
        "{found:?}"
    );
}

/// A clock's step makes all runs equal: that is not evidence of a difference.
#[test]
fn what_does_not_scatter_says_nothing() {
    let found = runs_versus(&[5.0, 5.0], &[6.0, 6.0], 0.95).unwrap();
    assert_eq!((found.p, found.difference.interval.lo), (None, None));
    let one = runs_versus(&[5.0], &[6.0], 0.95).unwrap();
    assert_eq!((one.p, one.difference.interval.lo), (None, None));
    // Ties count against a difference.
    let same = runs_versus(&[5.0; 9], &[5.0; 9], 0.95).unwrap();
    assert_eq!(same.p, Some(1.0));
    let same = paired_runs_versus(&[5.0; 9], &[5.0; 9], 0.95).unwrap();
    assert_eq!(same.p, Some(1.0));
}

#[test]
fn nothing_and_unequal_rounds() {
    assert_eq!(runs_versus(&[], &[1.0], 0.95), None);
    assert_eq!(paired_runs_versus(&[1.0], &[1.0, 2.0], 0.95), None);
    assert_eq!(paired_runs_versus(&[], &[], 0.95), None);
    assert!(
        runs_versus(&[-1.0; 5], &[1.0; 5], 0.95)
            .unwrap()
            .ratio
            .is_none()
    );
}

/// 6 rounds have 64 ways, two of them extreme: 0.031. Of 30 figures it takes 0.0017,
/// so 11 rounds with 2 / 2048; of sets 2 in 924 orders of 6 and 6 (0.0022), so 7.
#[test]
fn fewest_by_hand() {
    assert_eq!(fewest_runs(1, true, 0.95), 6);
    assert_eq!(fewest_runs(30, true, 0.95), 11);
    assert_eq!(fewest_runs(1, false, 0.95), 4);
    assert_eq!(fewest_runs(30, false, 0.95), 7);
}

/// Many runs take no longer than they need to, and give the same as the definition.
#[test]
fn many_runs() {
    let a: Vec<f64> = (0..1500)
        .map(|i| 100.0 + f64::from(i * 617 % 1500) / 100.0)
        .collect();
    let b: Vec<f64> = a.iter().map(|x| x * 1.01).collect();
    let two = runs_versus(&a, &b, 0.95).unwrap();
    assert!((two.ratio.unwrap().value - 1.01).abs() < 1e-3);
    let rounds = paired_runs_versus(&a, &b, 0.95).unwrap();
    assert!((rounds.ratio.unwrap().value - 1.01).abs() < 1e-9);
}
