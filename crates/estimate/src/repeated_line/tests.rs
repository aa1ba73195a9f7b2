use super::*;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Sum of twelve uniform numbers less six: approximately normal.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
}

const X: [f64; 6] = [0.0, 50.0, 100.0, 150.0, 200.0, 2000.0];

/// Points on a line (or bent by `bend` at the last), whose repetitions share an
/// offset and scatter by 2 % and 1.
fn points(random: &mut ChaCha8Rng, bend: f64) -> Vec<(f64, Vec<f64>)> {
    let offsets: Vec<f64> = (0..8).map(|_| 3.0 * normal(random)).collect();
    (X.iter())
        .map(|&x| {
            let truth = 700.0 + 4.5 * x;
            let bent = truth * if x == 2000.0 { 1.0 + bend } else { 1.0 };
            let y = |offset: &f64| bent + offset + (1.0 + 0.02 * truth) * normal(random);
            (x, offsets.iter().map(y).collect())
        })
        .collect()
}

#[test]
fn a_line_by_hand() {
    let points = [
        (0.0, vec![1.0, 2.0, 1.0, 2.0]),
        (1.0, vec![3.0, 4.0, 3.0, 4.0]),
        (2.0, vec![5.0, 6.0, 5.0, 6.0]),
    ];
    let line = repeated_line(&points, 0.95).unwrap();
    assert!((line.slope.value - 2.0).abs() < 1e-12);
    assert!((line.intercept.value - 1.5).abs() < 1e-12);
    assert!(line.lack_of_fit.unwrap().worst_share < 1e-12);
}

#[test]
fn what_is_no_line_has_none() {
    let four = vec![1.0, 2.0, 3.0, 4.0];
    assert_eq!(repeated_line(&[], 0.95), None);
    assert_eq!(
        repeated_line(&[(1.0, four.clone()), (1.0, four.clone())], 0.95),
        None
    );
    assert_eq!(
        repeated_line(&[(1.0, four.clone()), (2.0, vec![1.0])], 0.95),
        None
    );
    let three = vec![1.0, 2.0, 3.0];
    assert_eq!(
        repeated_line(&[(1.0, three.clone()), (2.0, three)], 0.95),
        None
    );
}

/// 2000 experiments: of 95 % intervals of eight repetitions 92.5..97.5 % contain the truth
/// (binomial, one false alarm in 10^6 if it is 95 %), and the test for bends is wrong in at
/// most 8 %.
#[test]
fn intervals_cover_and_lines_are_not_called_bent() {
    let mut random = ChaCha8Rng::seed_from_u64(20_261_121);
    let (mut slopes, mut levels, mut bent) = (0, 0, 0);
    for _ in 0..2000 {
        let line = repeated_line(&points(&mut random, 0.0), 0.95).unwrap();
        let holds = |e: &Estimate, truth: f64| {
            e.interval.lo.unwrap() <= truth && truth <= e.interval.hi.unwrap()
        };
        slopes += u32::from(holds(&line.slope, 4.5));
        levels += u32::from(holds(&line.intercept, 700.0));
        bent += u32::from(line.lack_of_fit.unwrap().p < 0.05);
    }
    println!("slopes {slopes}, intercepts {levels}, called bent {bent} of 2000");
    assert!((1850..=1950).contains(&slopes), "{slopes}");
    assert!((1850..=1950).contains(&levels), "{levels}");
    assert!(bent <= 160, "{bent}");
}

#[test]
fn a_bend_is_seen_and_placed() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    // Weighted, the far point decides the slope: the others show the bend.
    for _ in 0..100 {
        let found = repeated_line(&points(&mut random, 0.3), 0.95).unwrap();
        let lack = found.lack_of_fit.unwrap();
        assert!(lack.p < 1e-3, "{lack:?}");
        assert!(lack.worst_share > 0.02, "{lack:?}");
    }
}
