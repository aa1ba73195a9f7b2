use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Looks;
use crate::paired_runs_versus;

#[test]
fn looks_grow_and_end_at_the_most() {
    let at = |most| Looks::new(most).at().collect::<Vec<usize>>();
    assert_eq!(at(60), [8, 12, 18, 27, 41, 60]);
    assert_eq!(at(8), [8]);
    assert_eq!(at(3), [3]);
    assert!(Looks::new(60).is_due(41) && !Looks::new(60).is_due(42));
}

/// What all looks spend is what there is, also where one was not planned.
#[test]
fn all_is_spent_and_no_more() {
    for most in [3, 8, 9, 60, 500] {
        let looks = Looks::new(most);
        let mut spent = 0.0;
        for at in looks.at().flat_map(|at| [at - 1, at]) {
            spent += looks.chance(at, spent, 0.01);
        }
        assert!((spent - 0.01).abs() < 1e-15, "{spent} of {most}");
        assert_eq!(looks.chance(most, spent, 0.01), 0.0);
    }
    // Half of the runs: an eighth of the chance, less that before.
    let looks = Looks::new(24);
    let before = looks.chance(8, 0.0, 0.08);
    assert!((before - 0.08 / 27.0).abs() < 1e-15, "{before}");
    assert!((looks.chance(12, before, 0.08) - 0.08 * (0.125 - 1.0 / 27.0)).abs() < 1e-15);
}

/// Rounds of equal programs on a machine whose speed walks: a look at each number of runs at the full
/// chance raises many false alarms, these looks as few as they promise.
#[test]
fn false_alarms_are_as_rare_as_promised() {
    const MOST: usize = 60;
    const ALPHA: f64 = 0.05;
    const TRIALS: u32 = 2000;
    let looks = Looks::new(MOST);
    let (mut alarms, mut naive) = (0, 0);
    for seed in 0..TRIALS {
        let mut random = ChaCha8Rng::seed_from_u64(u64::from(seed));
        let mut speed = 1.0;
        let (mut a, mut b) = (Vec::new(), Vec::new());
        let (mut is_alarm, mut is_naive, mut spent) = (false, false, 0.0);
        for runs in 1..=MOST {
            speed *= 1.0 + random.random_range(-0.01..0.01);
            for of in [&mut a, &mut b] {
                of.push(100.0 * speed * (1.0 + random.random_range(-0.02..0.02)));
            }
            if !looks.is_due(runs) {
                continue;
            }
            let p = paired_runs_versus(&a, &b, 0.95).unwrap().p.unwrap();
            let chance = looks.chance(runs, spent, ALPHA);
            spent += chance;
            is_alarm |= p <= chance;
            is_naive |= p <= ALPHA;
        }
        alarms += u32::from(is_alarm);
        naive += u32::from(is_naive);
    }
    // At most 5 %: above 146 of 2000 by chance in less than one of a million series of trials.
    assert!(alarms <= 146, "{alarms}");
    // They spend most of it: fewer than 40 would be half of it.
    assert!(alarms >= 40, "{alarms}");
    assert!(naive > 200, "{naive}");
}
