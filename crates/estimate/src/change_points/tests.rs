use super::*;

/// Noise of the tests, from another generator than that of the permutations: sums of uniform numbers
/// by an xorshift, so no code of the estimator is in it.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Mean 0, standard deviation 1, nearly normal.
    fn next(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    /// Mean 0, with a long tail, as times of benchmarks have.
    fn skewed(&mut self) -> f64 {
        let uniform = self.uniform().max(1e-12);
        -uniform.ln() - 1.0
    }
}

fn one_group(values: impl IntoIterator<Item = f64>) -> Vec<Grouped> {
    let grouped = |value| Grouped { group: 0, value };
    values.into_iter().map(grouped).collect()
}

const OPTIONS: ChangeOptions = ChangeOptions {
    level: 0.95,
    alpha: 0.05,
    fewest: 3,
    seed: 7,
};

/// Of 400 series without a change, in normal and in skewed noise, at most as many have one as
/// binomial chance allows at 5 %: 20 expected, 44 or more with a chance below 10^-6.
#[test]
fn a_series_without_a_change_has_none() {
    for is_skewed in [false, true] {
        let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
        let found = (0..400)
            .filter(|_| {
                let values = one_group((0..40).map(|_| match is_skewed {
                    true => noise.skewed(),
                    false => noise.next(),
                }));
                !change_points(&values, &OPTIONS).is_empty()
            })
            .count();
        assert!((4..44).contains(&found), "{found} {is_skewed}");
    }
}

/// 300 series of 40 values with a step of 1.5 standard deviations at the 25th: those that are found
/// have their place and their size in the intervals in 95 %, give or take what chance does.
#[test]
fn a_step_is_found_at_its_place_with_its_size() {
    let mut noise = Noise(0x1234_5678_9abc_def1);
    let (mut found, mut placed, mut sized) = (0, 0, 0);
    for _ in 0..300 {
        let values = one_group((0..40).map(|i| noise.next() + if i < 25 { 0.0 } else { 1.5 }));
        let changes = change_points(
            &values,
            &ChangeOptions {
                alpha: 0.01,
                ..OPTIONS
            },
        );
        if let [change] = changes[..] {
            found += 1;
            placed += u32::from((change.within[0]..=change.within[1]).contains(&25));
            let [lo, hi] = change.interval;
            sized += u32::from(lo <= 1.5 && 1.5 <= hi);
            assert!(change.within[0] <= change.at && change.at <= change.within[1]);
            assert!(lo < change.difference && change.difference < hi);
        }
    }
    assert!(found >= 230, "{found}");
    // 95 % of 230 or more: below 88 % with a chance of 10^-6.
    let share = |held: u32| f64::from(held) / f64::from(found);
    assert!(share(placed) >= 0.88, "{placed} of {found}");
    assert!((0.88..0.995).contains(&share(sized)), "{sized} of {found}");
}

/// Three levels, the second short; each change is placed between its neighbours.
#[test]
fn several_steps() {
    let mut noise = Noise(77);
    let level = |i: usize| match i {
        0..30 => 10.0,
        30..38 => 12.0,
        _ => 11.0,
    };
    let values = one_group((0..60).map(|i| level(i) + 0.1 * noise.next()));
    let found = change_points(&values, &ChangeOptions::default());
    assert_eq!(found.iter().map(|of| of.at).collect::<Vec<_>>(), [30, 38]);
    assert!((found[0].difference - 2.0).abs() < 0.15, "{found:?}");
    assert!((found[1].difference + 1.0).abs() < 0.15, "{found:?}");
    assert!(found.iter().all(|of| of.p <= 0.001), "{found:?}");
}

/// Two machines, of which one is 30 % slower, measured in turn, with a step of 5 % in both; and one
/// machine that follows the other at the place of the step, which then says nothing.
#[test]
fn machines_are_not_mixed() {
    let mut noise = Noise(5);
    let mut value = |group: usize, i: usize| Grouped {
        group: 10 + group,
        value: 0.3 * group as f64 + if i < 20 { 0.0 } else { 0.05 } + 0.01 * noise.next(),
    };
    let in_turn: Vec<Grouped> = (0..40_usize)
        .map(|i| value(usize::from(i.is_multiple_of(3)), i))
        .collect();
    let found = change_points(&in_turn, &ChangeOptions::default());
    assert_eq!(found.iter().map(|of| of.at).collect::<Vec<_>>(), [20]);
    assert!((found[0].difference - 0.05).abs() < 0.015, "{found:?}");
    let replaced: Vec<Grouped> = (0..40).map(|i| value(usize::from(i >= 20), i)).collect();
    assert_eq!(change_points(&replaced, &ChangeOptions::default()), []);
    assert_eq!(newest(&replaced, 20, 0.0, 0.95), None);
}

/// Values that are all equal, few, none, or not finite.
#[test]
fn series_that_say_nothing() {
    let options = ChangeOptions::default();
    assert_eq!(change_points(&[], &options), []);
    assert_eq!(change_points(&one_group([1.0; 50]), &options), []);
    assert_eq!(
        change_points(&one_group([1.0, 1.0, 2.0, 2.0]), &options),
        []
    );
    let infinite = one_group((0..50).map(|i| if i == 20 { f64::NAN } else { 1.0 }));
    assert_eq!(change_points(&infinite, &options), []);
    assert_eq!(newest(&one_group([1.0]), 1, 0.0, 0.95), None);
    assert_eq!(newest(&one_group([1.0, 2.0]), 1, 0.0, 0.95), None);
}

/// Without scatter the change is exact. 10 values of 1 and 10 of 2.
#[test]
fn a_step_without_scatter() {
    let values = one_group((0..20).map(|i| if i < 10 { 1.0 } else { 2.0 }));
    let found = change_points(&values, &ChangeOptions::default());
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].at, found[0].within), (10, [10, 10]));
    assert!((found[0].difference - 1.0).abs() < 1e-9, "{found:?}");
}

/// The last value against nine of mean 10 and variance 0.75 (9.0, 9.5, ..., 11.0 and so on): by hand,
/// the two-sample t of one value 12.
#[test]
fn the_newest_value_is_compared_with_those_before() {
    let before = [9.0, 9.0, 10.0, 10.0, 10.0, 10.0, 10.0, 11.0, 11.0];
    let values = one_group(before.into_iter().chain([12.0]));
    let found = newest(&values, 1, 0.0, 0.95).unwrap();
    assert!((found.difference - 2.0).abs() < 1e-12);
    // Squares 4 over 8 degrees of freedom: variance 0.5; error sqrt(0.5 * (1 + 1 / 9)).
    let error = (0.5_f64 * 10.0 / 9.0).sqrt();
    // Student's t of 8 degrees: 2.306.
    let half = (found.interval[1] - found.interval[0]) / 2.0;
    assert!((half / error - 2.306).abs() < 0.001, "{half}");
    // t = 2.683: one-sided 0.0139 (tables: 2.449 for 0.02, 2.896 for 0.01).
    assert!((0.01..0.02).contains(&found.p_above), "{found:?}");
    // Higher by no more than 2 with a chance of one half.
    let allowed = newest(&values, 1, 2.0, 0.95).unwrap();
    assert!((allowed.p_above - 0.5).abs() < 1e-9, "{allowed:?}");
}
