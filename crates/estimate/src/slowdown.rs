//! The slow-down of a span by some cause, from neighbouring halves of time with it and without it,
//! in random order.
//!
//! Whatever changes more slowly than a pair of halves (other load, the core's frequency) is in both
//! and cancels; the random order balances the rest. Spans far longer than the others (`long`)
//! nearly always have another cause and would hide everything. They are dropped while they come as
//! often with it as without, by an exact binomial test, and included where they do not.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, DiscreteCDF};
use undertick_units::Estimate;

use crate::Numbers;

/// Spans of one half, all of one length class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HalfSections {
    /// Number of spans that are not long.
    pub n: u64,
    /// Sum of their durations, in any unit.
    pub sum: f64,
    /// Number of long ones.
    pub long: u64,
    /// Sum of their durations, in the same unit.
    pub long_sum: f64,
}

/// Result over the pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Slowdown {
    /// Mean of a span with it less that without it, in the unit of the sums.
    pub difference: Estimate,
    /// The difference as a share of the mean without it.
    pub share: Estimate,
    /// Number of pairs that had spans in both halves.
    pub pairs: u64,
    /// Number of spans with it and without it.
    pub sections: [u64; 2],
    /// Number of long spans with it and without it.
    pub long: [u64; 2],
    /// Whether long ones came more often in one state, and are therefore in the figures.
    pub with_long: bool,
}

/// Probability at which equal rates of long spans are taken for different ones.
const DIFFERENT: f64 = 0.01;
/// Minimum number of pairs to show their scatter.
const FEWEST_PAIRS: usize = 8;

/// Computes the slow-down from pairs `[with it, without it]` in the order of time. `None` for too
/// few pairs.
#[must_use]
pub fn slowdown(pairs: &[[HalfSections; 2]], level: f64) -> Option<Slowdown> {
    let total = |state: usize, of: fn(&HalfSections) -> u64| -> u64 {
        pairs.iter().map(|pair| of(&pair[state])).sum()
    };
    let long = [0, 1].map(|state| total(state, |half| half.long));
    let others = [0, 1].map(|state| total(state, |half| half.n));
    let with_long = differs(long, others);
    let mut sections = others;
    if with_long {
        sections = [others[0] + long[0], others[1] + long[1]];
    }
    let of = |half: &HalfSections| {
        if with_long {
            ((half.n + half.long) as f64, half.sum + half.long_sum)
        } else {
            (half.n as f64, half.sum)
        }
    };
    // Halves contain different numbers of spans: each pair is weighted by the precision that its
    // difference would have if spans were independent.
    let weighted: Vec<(f64, f64)> = (pairs.iter())
        .map(|pair| (of(&pair[0]), of(&pair[1])))
        .filter(|((a, _), (b, _))| *a > 0.0 && *b > 0.0)
        .map(|((a, with), (b, without))| (a * b / (a + b), with / a - without / b))
        .collect();
    if weighted.len() < FEWEST_PAIRS {
        return None;
    }
    let mean_weight = weighted.iter().map(|(w, _)| w).sum::<f64>() / weighted.len() as f64;
    let weighted = (weighted.iter())
        .map(|(w, d)| w * d / mean_weight)
        .collect();
    let mut difference = Numbers::new(weighted).mean(level)?;
    "adjacent halves in random order, batch means".clone_into(&mut difference.method);
    let used = difference.n;
    let without: f64 = pairs.iter().map(|pair| of(&pair[1]).1).sum();
    let mean_without = without / sections[1] as f64;
    let share = |x: f64| x / mean_without;
    let mut as_share = difference.clone();
    as_share.value = share(difference.value);
    as_share.interval.lo = difference.interval.lo.map(share);
    as_share.interval.hi = difference.interval.hi.map(share);
    "1".clone_into(&mut as_share.unit);
    Some(Slowdown {
        difference,
        share: as_share,
        pairs: used,
        sections,
        long,
        with_long,
    })
}

/// Returns whether long spans come more often in one state than in the other one.
fn differs(long: [u64; 2], others: [u64; 2]) -> bool {
    let (all, sections) = (long[0] + long[1], others[0] + others[1] + long[0] + long[1]);
    if all == 0 || sections == 0 {
        return false;
    }
    let p = (others[0] + long[0]) as f64 / sections as f64;
    let Ok(by_chance) = Binomial::new(p, all) else {
        return false;
    };
    let at_most = by_chance.cdf(long[0]);
    let at_least = long[0].checked_sub(1).map_or(1.0, |k| by_chance.sf(k));
    2.0 * at_most.min(at_least) < DIFFERENT
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn half(n: u64, sum: f64) -> HalfSections {
        HalfSections {
            n,
            sum,
            ..HalfSections::default()
        }
    }

    /// Means 6, 8 against 5, 5 with 4 and 4 spans, then 12 against 10 with 12 and 6: weights 2, 2
    /// and 4; (2 * 1 + 2 * 3 + 4 * 2) / 8 = 2. Without: 100 / 14.
    #[test]
    fn weights_by_hand() {
        let three = [
            [half(4, 24.0), half(4, 20.0)],
            [half(4, 32.0), half(4, 20.0)],
            [half(12, 144.0), half(6, 60.0)],
        ];
        let pairs: Vec<_> = three.into_iter().cycle().take(9).collect();
        let found = slowdown(&pairs, 0.95).unwrap();
        assert!((found.difference.value - 2.0).abs() < 1e-12);
        assert!((found.share.value - 2.0 * 14.0 / 100.0).abs() < 1e-12);
        assert_eq!((found.pairs, found.sections), (9, [60, 42]));
        // Pairs with an empty half say nothing.
        let mut more = pairs.clone();
        more.extend([[half(5, 1e6), half(0, 0.0)], [half(0, 0.0), half(5, 1e6)]]);
        assert_eq!(slowdown(&more, 0.95).unwrap().difference, found.difference);
        assert_eq!(slowdown(&pairs[..7], 0.95), None);
        assert_eq!(slowdown(&[], 0.95), None);
    }

    /// Of 20 long ones among equal numbers, 3 or fewer on one side have a probability of 0.0026 for
    /// both sides together; for 4 it is 0.012.
    #[test]
    fn long_sections_by_hand() {
        assert!(differs([3, 17], [1000, 1000]) && differs([17, 3], [1000, 1000]));
        assert!(!differs([4, 16], [1000, 1000]) && !differs([16, 4], [1000, 1000]));
        // One of three spans is with it: 0 of 12 has a probability of 0.0077, and twice that is not
        // rare; 0 of 14 has 2 * 0.0034.
        assert!(!differs([0, 12], [1000, 1988]) && differs([0, 14], [1000, 1986]));
        assert!(!differs([0, 0], [1000, 1000]) && !differs([0, 0], [0, 0]));
    }

    /// Simulates a machine whose speed drifts and is disturbed; spans of 5000 with it and 4900
    /// without it. Returns the pairs.
    fn simulated(random: &mut ChaCha8Rng, pairs: usize, slow_path: f64) -> Vec<[HalfSections; 2]> {
        let mut speed: f64 = 0.0;
        let mut normal = {
            let mut spare = ChaCha8Rng::seed_from_u64(random.random());
            move || (0..12).map(|_| spare.random::<f64>()).sum::<f64>() - 6.0
        };
        (0..pairs)
            .map(|_| {
                let with_first: bool = random.random();
                let mut pair = [HalfSections::default(); 2];
                for place in 0..2 {
                    // From half to half the speed moves by 0.5 %, and comes back; it is the same
                    // for both states.
                    speed = 0.98 * speed + 0.005 * normal();
                    let state = usize::from((place == 0) != with_first);
                    let base = if state == 0 { 5000.0 } else { 4900.0 } + 5000.0 * speed;
                    let half = &mut pair[state];
                    for _ in 0..(480_000.0 / base) as u64 {
                        let section = base * (1.0 + 0.01 * normal());
                        if random.random::<f64>() < 1e-4 {
                            half.long += 1;
                            half.long_sum += section + 4e6 * random.random::<f64>();
                        } else if state == 0 && random.random::<f64>() < slow_path {
                            half.long += 1;
                            half.long_sum += 40_000.0;
                        } else {
                            half.n += 1;
                            half.sum += section;
                        }
                    }
                }
                pair
            })
            .collect()
    }

    /// 95 % of 400 are 380; fewer than 355 or more than 399 occur by chance less than once in 10^6
    /// (exact binomial).
    #[test]
    fn the_interval_holds_the_truth() {
        let mut random = ChaCha8Rng::seed_from_u64(20);
        let mut held = 0;
        for _ in 0..400 {
            let pairs = simulated(&mut random, 300, 0.0);
            let found = slowdown(&pairs, 0.95).unwrap();
            let interval = found.difference.interval;
            held += u32::from(interval.lo.unwrap() <= 100.0 && 100.0 <= interval.hi.unwrap());
        }
        println!("{held} of 400 hold the truth");
        assert!((355..=399).contains(&held), "{held}");
    }

    /// A slow path that the points themselves cause, one span in 200 to 40 000, is not dropped:
    /// 100 + 0.005 * 35 000 = 275.
    #[test]
    fn a_slow_path_of_its_own_is_in_the_figure() {
        let mut random = ChaCha8Rng::seed_from_u64(21);
        let mut held = 0;
        for _ in 0..100 {
            let found = slowdown(&simulated(&mut random, 300, 0.005), 0.95).unwrap();
            assert!(found.with_long, "{:?}", found.long);
            let interval = found.difference.interval;
            held += u32::from(interval.lo.unwrap() <= 275.0 && 275.0 <= interval.hi.unwrap());
        }
        // 95 of 100; fewer than 83 occur by chance less than once in 10^6.
        println!("{held} of 100 hold the truth");
        assert!(held >= 83, "{held}");
    }
}
