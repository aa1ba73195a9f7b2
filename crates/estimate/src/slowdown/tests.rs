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
