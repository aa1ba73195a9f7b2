use super::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn anchor(ns: i64, ticks: i64) -> Anchor {
    Anchor {
        ticks,
        ns,
        error_ns: 20,
    }
}

#[test]
fn anchors_lines_and_what_lies_outside() {
    let times = Times::new(&[anchor(1000, 5000), anchor(2000, 8000)], 3.0);
    assert_eq!(times.ticks(1000), 5000);
    assert_eq!(times.ticks(1500), 6500);
    assert_eq!(times.ticks(2000), 8000);
    assert_eq!(times.ticks(900), 4700);
    assert_eq!(times.ticks(2100), 8300);
    assert_eq!(times.error_ns(), 20.0 + 1.0 / 3.0);
    // 100 outside of 1000, ends uncertain by 20 each: 4 more.
    assert_eq!(times.error_at_ns(2100), times.error_ns() + 4.0);
    assert_eq!(times.error_at_ns(900), times.error_ns() + 4.0);
    assert_eq!(times.error_at_ns(1900), times.error_ns());
    let only = Times::new(&[anchor(1000, 5000)], 3.0);
    assert_eq!(only.ticks(1100), 5300);
    assert_eq!(Times::new(&[], 3.0).ticks(7), 0);
    assert!(Times::new(&[], 3.0).error_at_ns(7).is_infinite());
}

#[test]
fn a_bend_widens_the_bound() {
    // The middle one lies 300 ticks, 100 ns, below the line.
    let bent = [anchor(0, 0), anchor(1000, 2700), anchor(2000, 6000)];
    let times = Times::new(&bent, 3.0);
    assert_eq!(times.error_ns(), 20.0 + 301.0 / 3.0);
    // An anchor that went back is not used.
    let times = Times::new(&[anchor(0, 0), anchor(500, -1), anchor(1000, 3000)], 3.0);
    assert_eq!(times.ticks(500), 1500);
}

/// A clock whose rate wanders by 50 ppm within ten seconds, brackets that are
/// off by up to their bound: every time in between is within the bound.
#[test]
fn the_truth_lies_within_the_bound() {
    let mut random = ChaCha8Rng::seed_from_u64(4);
    for _ in 0..200 {
        let phase = random.random_range(0.0..6.3);
        let truth = |ns: i64| {
            let s = ns as f64 / 1e9;
            let turn = std::f64::consts::TAU / 10.0;
            let wander = 50e-6 / turn * (s * turn + phase).sin();
            ((s + wander) * 2.6e9).round() as i64
        };
        let anchors: Vec<Anchor> = (0..=10)
            .map(|s| {
                let ns = s * 1_000_000_000;
                let off = random.random_range(-18..=18);
                anchor(ns, truth(ns + off))
            })
            .collect();
        let times = Times::new(&anchors, 2.6);
        let bound = times.error_ns();
        for _ in 0..500 {
            let ns = random.random_range(0..10_000_000_000_i64);
            let off_ns = (times.ticks(ns) - truth(ns)) as f64 / 2.6;
            assert!(off_ns.abs() <= bound, "{off_ns} {bound}");
        }
        // A bound of a millisecond would be no achievement.
        assert!(bound < 60_000.0, "{bound}");
    }
}
