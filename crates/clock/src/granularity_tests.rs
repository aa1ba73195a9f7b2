//! Simulated clocks with a known step, which the code under test must find.

use super::*;

/// SplitMix64, seeded: the same clocks in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn chance(&mut self, per_million: u64) -> bool {
        self.below(1_000_000) < per_million
    }
}

/// A clock that shows every `step`-th tick of a true count.
struct Simulated {
    step: u64,
    /// Reads are this far apart, plus up to `jitter`, ticks.
    read_cost: u64,
    jitter: u64,
    /// Reads per million that are off the grid.
    odd_per_million: u64,
    /// Reads per million that wait for an interrupt of up to 100 000 ticks.
    interrupted_per_million: u64,
}

impl Simulated {
    fn differences(&self, seed: u64, reads: usize) -> Vec<i64> {
        let random = &mut Random(seed);
        let mut truth = random.below(1 << 40);
        let mut shown = |random: &mut Random| {
            truth += self.read_cost + random.below(self.jitter + 1);
            if random.chance(self.interrupted_per_million) {
                truth += random.below(100_000);
            }
            // As in the guest: congruent to 13 modulo the step.
            let on_grid = truth / self.step * self.step + 13;
            let off = if random.chance(self.odd_per_million) {
                random.below(self.step)
            } else {
                0
            };
            (on_grid + off).cast_signed()
        };
        let mut last = shown(random);
        (0..reads)
            .map(|_| {
                let now = shown(random);
                let difference = now - last;
                last = now;
                difference
            })
            .collect()
    }
}

fn step(differences: &[i64], grid: Grid) -> f64 {
    step_of(differences, grid).unwrap().step_ticks
}

#[test]
fn a_step_of_26_is_found_with_jitter_odd_readings_and_interrupts() {
    // Each odd reading spoils two differences: 0.2 % make 0.4 % odd ones.
    for (odd_per_million, interrupted_per_million) in [(0, 0), (50, 1_000), (2_000, 10_000)] {
        for seed in 0..50 {
            let clock = Simulated {
                step: 26,
                read_cost: 22,
                jitter: 150,
                odd_per_million,
                interrupted_per_million,
            };
            let found = step_of(&clock.differences(seed, 20_000), Grid::Steady).unwrap();
            assert_eq!(
                found.step_ticks, 26.0,
                "seed {seed}, {odd_per_million} odd per million"
            );
            assert!(found.share >= 0.99);
            match odd_per_million {
                0 => assert!(found.share == 1.0),
                2_000 => assert!(found.share < 1.0, "the simulated clock is never odd"),
                _ => {}
            }
        }
    }
}

#[test]
fn many_steps_are_found() {
    for (step_ticks, read_cost) in [(1, 22), (2, 22), (3, 40), (10, 22), (25, 60), (1_000, 30)] {
        for seed in 0..20 {
            let clock = Simulated {
                step: step_ticks,
                read_cost,
                jitter: 150,
                // At a step of 1000 one difference in ten is not zero, so the
                // odd ones weigh ten times as much.
                odd_per_million: match step_ticks {
                    1 => 0,
                    1_000 => 50,
                    _ => 500,
                },
                interrupted_per_million: 100,
            };
            assert_eq!(
                step(&clock.differences(seed, 20_000), Grid::Steady),
                step_ticks as f64,
                "seed {seed}"
            );
        }
    }
}

#[test]
fn too_many_odd_differences_are_not_explained_away() {
    // 1 % odd readings make 2 % odd differences: 26 no longer fits enough of them. Half of the odd
    // values are even, so 2 still does; at 5 %, no step does.
    for (odd_per_million, step_ticks) in [(10_000, 2.0), (50_000, 1.0)] {
        let clock = Simulated {
            step: 26,
            read_cost: 22,
            jitter: 150,
            odd_per_million,
            interrupted_per_million: 0,
        };
        assert_eq!(
            step(&clock.differences(7, 20_000), Grid::Steady),
            step_ticks
        );
    }
}

#[test]
fn one_odd_difference_in_a_handful_is_enough_to_doubt() {
    let differences = [26, 26, 52, 26, 33, 26, 26, 78, 26, 26];
    assert_eq!(step(&differences, Grid::Steady), 1.0);
}

#[test]
fn rounded_nanoseconds_show_the_step_beneath() {
    // 26 ticks at 2596.13 MHz are 10.0149 ns; the kernel shows whole nanoseconds.
    let random = &mut Random(5);
    let mut truth_ns = 0.0;
    let mut last = 0;
    let differences: Vec<i64> = (0..20_000)
        .map(|_| {
            truth_ns += 20.0 + random.below(40) as f64;
            let now = ((truth_ns / 10.0149).floor() * 10.0149) as i64;
            let difference = now - last;
            last = now;
            difference
        })
        .collect();
    assert!(
        differences.iter().any(|d| d % 10 == 1),
        "the test shows no rounding"
    );
    for grid in [Grid::Steered, Grid::Steady] {
        let found = step(&differences, grid);
        assert!((found - 10.0149).abs() < 0.001, "{found}");
    }
}

/// A clock that moves `step` ticks at a time and shows whole ones.
struct Rounded {
    step: f64,
    /// Reads per million that show a tick more than the step's.
    more_per_million: u64,
    odd_per_million: u64,
    interrupted_per_million: u64,
}

impl Rounded {
    fn differences(&self, seed: u64, reads: usize) -> Vec<i64> {
        let random = &mut Random(seed);
        let mut truth = random.below(1 << 40) as f64;
        let mut shown = |random: &mut Random| {
            truth += 8.0 + random.below(1_500) as f64 / 10.0;
            if random.chance(self.interrupted_per_million) {
                truth += random.below(100_000) as f64;
            }
            let mut shown = ((truth / self.step).floor() * self.step) as i64;
            if random.chance(self.more_per_million) {
                shown += 1;
            }
            if random.chance(self.odd_per_million) {
                shown += random.below(self.step as u64).cast_signed();
            }
            shown
        };
        let mut last = shown(random);
        (0..reads)
            .map(|_| {
                let now = shown(random);
                now - std::mem::replace(&mut last, now)
            })
            .collect()
    }
}

/// 10 ns of a TSC of 2.445 GHz are 24.45 ticks: its readings differ by 24 or 25, by 48 or 49, and
/// so on, whose common divisor is 1.
#[test]
fn a_step_of_no_whole_number_of_ticks_is_found() {
    for step_ticks in [
        24.45, 24.5, 25.96, 26.013, 33.3, 19.95, 10.0149, 8.3, 1_000.4,
    ] {
        for (odd_per_million, interrupted_per_million) in [(0, 0), (50, 1_000), (500, 10_000)] {
            for seed in 0..20 {
                let clock = Rounded {
                    step: step_ticks,
                    more_per_million: 0,
                    // With long steps few differences are not zero.
                    odd_per_million: if step_ticks > 100.0 {
                        0
                    } else {
                        odd_per_million
                    },
                    interrupted_per_million,
                };
                let differences = clock.differences(seed, 20_000);
                let found = step_of(&differences, Grid::Steady).unwrap();
                let error = (found.step_ticks / step_ticks - 1.0).abs();
                assert!(error < 2e-4, "{step_ticks}, seed {seed}: {found:?}");
                assert!(found.share >= 0.99);
            }
        }
    }
}

/// Seen on a Zen 5 guest: about every thirteenth reading shows a tick more than the one before it,
/// and the next is on the step again.
#[test]
fn a_tick_more_within_a_step_is_none() {
    for seed in 0..20 {
        let clock = Rounded {
            step: 26.0,
            more_per_million: 70_000,
            odd_per_million: 50,
            interrupted_per_million: 1_000,
        };
        let differences = clock.differences(seed, 20_000);
        assert!(differences.contains(&1) && differences.contains(&27));
        let found = step(&differences, Grid::Steady);
        assert!((found - 26.0).abs() < 0.005, "seed {seed}: {found}");
    }
}

/// The same where a step is read many times: the extra tick comes and goes within it.
#[test]
fn a_tick_more_that_goes_again_is_none() {
    let random = &mut Random(9);
    let (mut truth, mut last) = (0, 0);
    let differences: Vec<i64> = (0..20_000)
        .map(|_| {
            truth += 20 + random.below(10);
            let more = u64::from(random.chance(70_000));
            let now = (truth / 1_000 * 1_000 + more).cast_signed();
            now - std::mem::replace(&mut last, now)
        })
        .collect();
    assert!(differences.contains(&-1) && differences.contains(&1));
    let found = step(&differences, Grid::Steady);
    assert!((found / 1_000.0 - 1.0).abs() < 2e-4, "{found}");
}

/// A clock that is read by a trap shows thousands of differences, each only once: the search is
/// bounded.
#[test]
fn differences_that_are_all_different_show_no_step() {
    let random = &mut Random(3);
    for least in [20, 1_000, 100_000] {
        let differences: Vec<i64> = (0..20_000)
            .map(|_| (least + random.below(1 << 24)).cast_signed())
            .collect();
        for grid in [Grid::Steady, Grid::Steered] {
            assert_eq!(step(&differences, grid), 1.0, "{least}");
        }
    }
}

/// Even and odd steps of less than four units look alike where rounding is a unit.
#[test]
fn small_steps_are_whole() {
    for (step_ticks, least) in [(2.5, 1.0), (3.5, 1.0), (1.9, 1.0)] {
        let clock = Rounded {
            step: step_ticks,
            more_per_million: 0,
            odd_per_million: 0,
            interrupted_per_million: 0,
        };
        for seed in 0..20 {
            let differences = clock.differences(seed, 20_000);
            assert_eq!(step(&differences, Grid::Steady), least, "{step_ticks}");
        }
    }
}

#[test]
fn a_steered_coarse_clock_shows_its_tick() {
    // 250 Hz, steered by up to 100 ppm; now and then two ticks are seen as one.
    let random = &mut Random(11);
    let differences: Vec<i64> = (0..12)
        .map(|n| {
            let ticks = if n % 5 == 4 { 2 } else { 1 };
            ticks * (4_000_000 + random.below(401).cast_signed() - 200)
        })
        .collect();
    let found = step(&differences, Grid::Steered);
    assert!((3_999_700.0..=4_000_300.0).contains(&found), "{found} ns");
}

#[test]
fn a_clock_with_a_step_of_one_unit_is_not_given_a_grid() {
    for (read_cost, jitter) in [(20, 60), (350, 100), (5_000, 900)] {
        let clock = Simulated {
            step: 1,
            read_cost,
            jitter,
            odd_per_million: 0,
            interrupted_per_million: 1_000,
        };
        for seed in 0..20 {
            let differences = clock.differences(seed, 5_000);
            assert_eq!(step(&differences, Grid::Steered), 1.0, "cost {read_cost}");
            assert_eq!(step(&differences, Grid::Steady), 1.0, "cost {read_cost}");
        }
    }
}

#[test]
fn a_clock_that_hardly_moves_has_no_step() {
    assert_eq!(step_of(&[], Grid::Steady), None);
    assert_eq!(step_of(&[0; 1_000], Grid::Steady), None);
    assert_eq!(step_of(&[26; 7], Grid::Steady), None);
    assert!(step_of(&[26; 8], Grid::Steady).is_some());
}

#[test]
fn steps_back_are_counted_and_not_hidden() {
    let mut differences = vec![26; 100];
    differences[40] = -26;
    differences[41] = -1;
    let found = step_of(&differences, Grid::Steady).unwrap();
    assert_eq!(
        (found.step_ticks, found.differences, found.backward),
        (26.0, 98, 2)
    );
}

#[test]
fn extreme_differences_end_in_an_answer() {
    let differences = [
        i64::MAX,
        i64::MIN,
        1,
        i64::MAX,
        3,
        i64::MAX - 1,
        5,
        7,
        11,
        13,
    ];
    assert_eq!(step(&differences, Grid::Steady), 1.0);
    assert_eq!(step(&differences, Grid::Steered), 1.0);
    assert!(step_of(&[i64::MAX; 8], Grid::Steady).is_some());
}

#[test]
fn every_clock_here_gets_a_step_or_none_and_no_step_is_zero() {
    for clock in ClockId::ALL {
        let Ok(source) = Source::open(clock) else {
            continue;
        };
        let Some(found) = measure(source) else {
            assert_eq!(clock, ClockId::MonotonicCoarse, "{clock} hardly moves");
            continue;
        };
        assert!(found.step_ticks >= 1.0 && found.differences >= FEWEST_DIFFERENCES);
        assert!(found.share >= SHARE_ON_GRID);
    }
}
