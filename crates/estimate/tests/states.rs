//! Planted causes of scatter: the right one is found, none is invented, and the figures of the states
//! hold the truth. No estimator of this crate makes the expected values.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use undertick_estimate::states::{Condition, Fact, Observed, States, states};

/// Facts that the samples below have, by index.
const NEIGHBOUR: usize = 0;
const SIZE: usize = 1;
const CALLER: usize = 2;
const FIRST: usize = 3;
const CHILD: usize = 4;

struct Source(ChaCha8Rng);

impl Source {
    fn uniform(&mut self) -> f64 {
        1.0 - self.0.random::<f64>()
    }
    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
    fn is(&mut self, share: f64) -> bool {
        self.uniform() <= share
    }
}

/// Samples of a simulated span.
struct Samples {
    times: Vec<f64>,
    values: Vec<f64>,
    facts: Vec<Fact>,
}

impl Samples {
    fn states(&self) -> Option<States> {
        let observed = Observed {
            times: &self.times,
            values: &self.values,
            step: 1.0,
            facts: &self.facts,
        };
        states(&observed, 0.95, "ns")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Nothing,
    Neighbour,
    Size,
    Caller,
    First,
    Phase,
    Child,
}

/// How the samples scatter beside their cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noise {
    LogNormal,
    /// A Pareto tail on top: 1 of 50 is many times as long.
    Tail,
    /// Neighbours are alike for some 200 samples.
    Wandering,
    /// The same, with only some 5 such stretches in all.
    Drifting,
}

const NOISES: [Noise; 4] = [
    Noise::LogNormal,
    Noise::Tail,
    Noise::Wandering,
    Noise::Drifting,
];

/// Samples of 1000 ns in the median without a cause, and twice as long with it.
fn simulated(seed: u64, n: usize, cause: Cause, noise: Noise) -> Samples {
    let mut r = Source(ChaCha8Rng::seed_from_u64(seed));
    let (mut neighbour, mut cpu, mut level) = (false, 0_u32, 0.0);
    let (mut times, mut values) = (Vec::new(), Vec::new());
    let mut facts: [Vec<f64>; 6] = Default::default();
    for i in 0..n {
        // A neighbour that comes and goes, and a thread that moves rarely.
        neighbour ^= r.is(1.0 / 150.0);
        if r.is(1.0 / 900.0) {
            cpu = (r.uniform() * 3.99) as u32;
        }
        let size = (r.uniform() * 5.0).exp();
        let caller = f64::from(r.is(0.4));
        let first = f64::from(r.is(0.03));
        let child = f64::from(r.is(1.0 / 64.0));
        let memory: f64 = match noise {
            Noise::Drifting => 1.0 - 5.0 / n as f64,
            _ => 1.0 - 1.0 / 200.0,
        };
        level = memory * level + (1.0 - memory * memory).sqrt() * 0.3 * r.normal();
        let scatter = match noise {
            Noise::LogNormal => 0.2 * r.normal(),
            Noise::Tail if r.is(0.02) => r.uniform().powf(-1.0).ln() + 1.0,
            Noise::Tail => 0.2 * r.normal(),
            Noise::Wandering | Noise::Drifting => level + 0.1 * r.normal(),
        };
        let is_slow = match cause {
            Cause::Nothing => false,
            Cause::Neighbour => neighbour,
            Cause::Size => size > 30.0,
            Cause::Caller => caller > 0.0,
            Cause::First => first > 0.0,
            Cause::Phase => i as f64 > 0.37 * n as f64,
            Cause::Child => child > 0.0,
        };
        let factor = match (is_slow, cause) {
            (false, _) => 1.0,
            (true, Cause::Child | Cause::First) => 6.0,
            (true, _) => 2.0,
        };
        times.push(i as f64 * 1e4);
        values.push(1000.0 * scatter.exp() * factor);
        let each = [
            f64::from(neighbour),
            size,
            caller,
            first,
            child,
            f64::from(cpu),
        ];
        facts
            .iter_mut()
            .zip(each)
            .for_each(|(all, one)| all.push(one));
    }
    let facts = (facts.into_iter().enumerate())
        .map(|(fact, all)| match fact {
            SIZE => Fact::Number(all),
            _ => Fact::Kind(all.iter().map(|kind| *kind as u32).collect()),
        })
        .collect();
    Samples {
        times,
        values,
        facts,
    }
}

/// The fact of the first condition; `None`: the time.
fn first_fact(states: &States) -> Option<usize> {
    match states.states[0].conditions[0] {
        Condition::Among { fact, .. } | Condition::Within { fact, .. } => Some(fact),
        Condition::During { .. } => None,
    }
}

#[test]
fn the_planted_cause_comes_first() {
    let causes = [
        (Cause::Neighbour, Some(NEIGHBOUR)),
        (Cause::Size, Some(SIZE)),
        (Cause::Caller, Some(CALLER)),
        (Cause::First, Some(FIRST)),
        (Cause::Child, Some(CHILD)),
        (Cause::Phase, None),
    ];
    for (cause, fact) in causes {
        for noise in [Noise::LogNormal, Noise::Tail] {
            let found = (0..20)
                .filter(|&seed| {
                    let states = simulated(seed, 6000, cause, noise).states();
                    states.is_some_and(|states| first_fact(&states) == fact)
                })
                .count();
            assert!(found >= 19, "{cause:?} beside {noise:?}: {found} of 20");
        }
    }
}

/// One sample in twenty is long by its size, and one in a hundred by something unknown.
#[test]
fn a_number_is_cut_where_the_samples_change() {
    const LARGE: f64 = 950.0;
    for seed in 0..20 {
        let mut r = Source(ChaCha8Rng::seed_from_u64(7000 + seed));
        let n = 8000;
        let sizes: Vec<f64> = (0..n).map(|_| (r.uniform() * 999.9).floor()).collect();
        let values = (sizes.iter())
            .map(|&size| match (size >= LARGE, r.is(0.01)) {
                (_, true) => 300_000.0,
                (true, _) => 60_000.0,
                _ => 1000.0 * (0.2 * r.normal()).exp(),
            })
            .collect();
        let samples = Samples {
            times: (0..n).map(|at| f64::from(at) * 1e4).collect(),
            values,
            facts: vec![Fact::Number(sizes.clone())],
        };
        let found = samples.states().expect("states");
        let from = (found.states.iter())
            .filter_map(|state| match state.conditions[0] {
                Condition::Within { from, .. } => from,
                _ => None,
            })
            .fold(f64::NEG_INFINITY, f64::max);
        let of = |is_large: bool| {
            let all = sizes.iter().filter(|size| (**size >= LARGE) == is_large);
            let above = all.clone().filter(|size| **size >= from).count();
            above as f64 / all.count() as f64
        };
        assert!(
            of(true) > 0.97,
            "{seed}: {} of the large from {from} on",
            of(true)
        );
        assert!(
            of(false) < 0.01,
            "{seed}: {} of the others from {from} on",
            of(false)
        );
    }
}

#[test]
fn no_cause_is_invented() {
    for noise in NOISES {
        let mut false_causes = 0;
        for seed in 0..200 {
            let found = simulated(1000 + seed, 6000, Cause::Nothing, noise).states();
            let names_a_fact = found.is_some_and(|found| {
                (found.states.iter().flat_map(|state| &state.conditions))
                    .any(|condition| !matches!(condition, Condition::During { .. }))
            });
            false_causes += usize::from(names_a_fact);
        }
        assert!(false_causes <= 4, "{noise:?}: {false_causes} of 200");
    }
}

/// What came of the intervals of states whose truth is known.
#[derive(Default)]
struct Held {
    /// Simulations without states.
    without: u32,
    held: u32,
    all: u32,
    /// States without an interval.
    open: u32,
    /// The sum of half-widths as shares of the truth.
    width: f64,
}

/// Intervals of the states that one cause with two kinds makes, over `simulations` of 6000 samples.
fn held(cause: Cause, noise: Noise, simulations: u64) -> Held {
    let (its, factor) = match cause {
        Cause::Neighbour => (NEIGHBOUR, 2.0),
        Cause::Caller => (CALLER, 2.0),
        Cause::First => (FIRST, 6.0),
        other => unreachable!("{other:?} has no two kinds"),
    };
    // Of the tail, 2 in 100 lie above all others: the median is the 50/98 quantile of those.
    let middle = match noise {
        Noise::Tail => 1000.0 * (0.2_f64 * 0.025_580_6).exp(),
        _ => 1000.0,
    };
    let mut counted = Held::default();
    for seed in 0..simulations {
        let found = simulated(5000 + seed, 6000, cause, noise).states();
        let Some(found) = found else {
            counted.without += 1;
            continue;
        };
        for state in &found.states {
            let kind = state.conditions.iter().find_map(|one| match one {
                Condition::Among { fact, kinds } if *fact == its => Some(kinds[0]),
                _ => None,
            });
            // What was split further by time is a stretch of this run, of which no truth is known.
            if state.conditions.len() != 1 {
                continue;
            }
            let truth = middle * if kind == Some(1) { factor } else { 1.0 };
            let interval = state.median.as_ref().map(|median| &median.interval);
            let (Some(lo), Some(hi)) = (
                interval.and_then(|interval| interval.lo),
                interval.and_then(|interval| interval.hi),
            ) else {
                counted.open += 1;
                continue;
            };
            counted.all += 1;
            counted.held += u32::from((lo..=hi).contains(&truth));
            counted.width += (hi - lo) / 2.0 / truth;
        }
    }
    counted
}

#[test]
fn intervals_of_states_hold_the_truth() {
    let found = held(Cause::Neighbour, Noise::LogNormal, 400);
    // 95 % of 800, at 1 in 10^6 on either side.
    assert_eq!((found.all, found.open, found.without), (800, 0, 0));
    assert!((727..=788).contains(&found.held), "{}", found.held);
    let width = found.width / f64::from(found.all);
    assert!(width < 0.03, "{width}");
    // Neighbours that are alike for 200 samples, of 6000: some 15 independent values. 93 % of those that
    // are given (`prints_coverage`), at 1 in 10^6.
    let found = held(Cause::Caller, Noise::Wandering, 400);
    assert!(found.all > 600, "{}", found.all);
    let share = f64::from(found.held) / f64::from(found.all);
    assert!(share > 0.88, "{share}");
}

/// For the book: the share of intervals that hold the truth.
#[test]
#[ignore = "prints a table"]
fn prints_coverage() {
    for cause in [Cause::Neighbour, Cause::Caller, Cause::First] {
        for noise in NOISES {
            let found = held(cause, noise, 2000);
            println!(
                "{cause:?} {noise:?}: {:.2} % of {}, {} not given, half-width {:.2} %; {} without states",
                100.0 * f64::from(found.held) / f64::from(found.all),
                found.all,
                found.open,
                100.0 * found.width / f64::from(found.all),
                found.without
            );
        }
    }
}

#[test]
fn what_a_cause_explains_is_its_share_of_the_scatter() {
    // 1 ln 2 apart, half and half, beside 0.2: (ln 2 / 2)^2 of that and 0.04.
    let share = (2.0_f64.ln() / 2.0).powi(2);
    let expected = share / (share + 0.04);
    let mean = (0..20)
        .map(|seed| {
            let samples = simulated(9000 + seed, 6000, Cause::Neighbour, Noise::LogNormal);
            samples.states().expect("a state").explained
        })
        .sum::<f64>()
        / 20.0;
    assert!((mean - expected).abs() < 0.02, "{mean} for {expected}");
}

#[test]
fn two_causes_give_a_state_for_each_combination() {
    let mut samples = simulated(77, 8000, Cause::Neighbour, Noise::LogNormal);
    let Fact::Kind(callers) = &samples.facts[CALLER] else {
        unreachable!()
    };
    for (value, caller) in samples.values.iter_mut().zip(callers) {
        *value *= if *caller == 1 { 4.0 } else { 1.0 };
    }
    let found = samples.states().expect("two causes");
    assert_eq!(found.states.len(), 4, "{found:#?}");
    let mut medians: Vec<f64> = (found.states.iter())
        .map(|state| state.median.as_ref().unwrap().value)
        .collect();
    medians.sort_by(f64::total_cmp);
    for (median, truth) in medians.iter().zip([1000.0, 2000.0, 4000.0, 8000.0]) {
        assert!((median / truth - 1.0).abs() < 0.05, "{medians:?}");
    }
    // Each sample is of one state, whose conditions it fulfils.
    let mut all: Vec<usize> = found
        .states
        .iter()
        .flat_map(|state| state.samples.clone())
        .collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..8000));
    for state in &found.states {
        assert!(state.samples.is_sorted());
        for condition in &state.conditions {
            let Condition::Among { fact, kinds } = condition else {
                panic!("{condition:?}")
            };
            let Fact::Kind(of) = &samples.facts[*fact] else {
                unreachable!()
            };
            assert!(state.samples.iter().all(|&at| kinds.contains(&of[at])));
        }
    }
}

#[test]
fn what_lasts_for_too_few_blocks_is_no_state() {
    // The last 2 of 64 blocks are slow, then the last 16.
    for (last, has_states) in [(2, false), (16, true)] {
        let mut samples = simulated(5, 6400, Cause::Nothing, Noise::LogNormal);
        let from = 6400 - 100 * last;
        samples.values[from..]
            .iter_mut()
            .for_each(|value| *value *= 3.0);
        let found = samples.states();
        assert_eq!(found.is_some(), has_states, "{last}: {found:#?}");
        let states = found.iter().flat_map(|found| &found.states);
        assert!(states.into_iter().all(|state| state.median.is_some()));
    }
}

#[test]
fn too_few_samples_or_none_that_scatter_have_no_states() {
    assert_eq!(
        simulated(1, 500, Cause::Caller, Noise::LogNormal).states(),
        None
    );
    let mut same = simulated(1, 6000, Cause::Caller, Noise::LogNormal);
    same.values.fill(20.0);
    assert_eq!(same.states(), None);
    let mut odd = simulated(1, 6000, Cause::Caller, Noise::LogNormal);
    odd.times.pop();
    assert_eq!(odd.states(), None);
}
