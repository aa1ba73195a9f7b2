//! Tests for parts of the model that the other tests do not cover, each for one part.

use crate::slow_sim;

use slow_sim::{ACTIVITY, SimulatedLoop, Source, band, five_parts};
use undertick_estimate::slow::{LoopCounts, Move, Plan, Question, Refused, Stepper, two_ends};

const TICK_NS: f64 = 1e6;

/// The phase's change in a dropped cycle is no scatter of the loop, and no part of its period.
#[test]
fn a_dropped_cycle_breaks_the_walk() {
    let mut simulated = SimulatedLoop::new(11, &[0.3, 2.318], 0.0);
    let mut counts = LoopCounts::new(2);
    for cycle in 1..=9700 {
        counts.push(&simulated.cycle(), false);
        if cycle % 97 == 0 {
            let jump = simulated.source.uniform();
            simulated.wait(jump);
            counts.drop_cycle();
        }
    }
    let walk = counts.results(TICK_NS, 0.9).walk.unwrap();
    // With the jumps the period would be 2.623, the scatter 0.03 a cycle.
    assert!((walk.period - 2.618).abs() < 1e-3, "{}", walk.period);
    assert!(walk.jitter[1] < 0.005, "{:?}", walk.jitter);
    assert_eq!(counts.walk().pieces(), 100);
}

/// A lock that adds little is no reason for a refusal: 31 cycles always take 78 ticks, and a mean
/// is off by at most a 31st of a tick, less than independent counts scatter in 300 cycles. The
/// interval contains it.
#[test]
fn a_weak_lock_is_not_refused() {
    for seed in 0..60 {
        let mut simulated = SimulatedLoop::new(seed, &five_parts(78.0 / 31.0), 1e-6);
        let mut counts = LoopCounts::new(5);
        (0..300).for_each(|_| counts.push(&simulated.cycle(), false));
        let results = counts.results(TICK_NS, 0.9);
        let result = &results.activities[ACTIVITY];
        assert_eq!(results.lock.map(|l| (l.ticks, l.cycles)), Some((78, 31)));
        assert_eq!(result.refused, None, "seed {seed}");
        let interval = result.estimate.interval;
        let bounds = interval.lo.unwrap()..=interval.hi.unwrap();
        assert!(bounds.contains(&50_000.0), "seed {seed}: {interval:?}");
    }
}

/// Runs a loop that is often preempted, each time for some ticks after which it continues at its
/// phase. Returns whether it is refused, and whether the interval contains the activity.
fn disturbed_loop(
    seed: u64,
    period: f64,
    jitter: f64,
    (cycles, every): (u64, u64),
) -> (Option<Refused>, bool) {
    let mut simulated = SimulatedLoop::new(seed, &five_parts(period), jitter);
    let mut counts = LoopCounts::new(5);
    for cycle in 1..=cycles {
        counts.push(&simulated.cycle(), false);
        if cycle % every == 0 {
            let ticks = (1.0 + 6.0 * simulated.source.uniform()).floor();
            let late = 1e-4 * simulated.source.normal();
            simulated.wait(ticks + late);
            counts.drop_cycle();
        }
    }
    let result = &counts.results(TICK_NS, 0.9).activities[ACTIVITY];
    let interval = result.estimate.interval;
    let holds =
        interval.lo.is_none_or(|lo| lo <= 50_000.0) && interval.hi.is_none_or(|hi| hi >= 50_000.0);
    (result.refused, holds)
}

/// A locked loop is refused however often it is disturbed. The pieces between two preemptions leave
/// its period less certain, which is no evidence that it moves.
#[test]
fn a_lock_is_seen_between_disturbances() {
    let periods = [2.0, 3.0, 2.5, 7.0 / 3.0, 2.2, 16.0 / 7.0];
    for (period, every) in periods.into_iter().zip([52, 55, 55, 60, 80, 130]) {
        for seed in 0..5 {
            let (refused, holds) = disturbed_loop(seed, period, 1e-6, (60_000, every));
            assert!(
                refused.is_some(),
                "{period} every {every}, seed {seed}: holds {holds}"
            );
        }
    }
}

/// A loop that moves evenly over the tick is not refused because of disturbances, and 90 % of the
/// intervals contain the truth (band of 1 false alarm in 10^6).
#[test]
fn a_disturbed_loop_that_moves_is_answered() {
    let mut held = 0;
    for seed in 0..200 {
        let (refused, holds) = disturbed_loop(seed, 2.618_034, 0.002, (8000, 100));
        assert_eq!(refused, None, "seed {seed}");
        held += u64::from(holds);
    }
    let (lo, _) = band(200, 0.9, 1e-6);
    assert!(held >= lo, "{held} of 200");
}

/// Two ends and a scatter together, compared with 400 000 draws: the share within the half-width
/// has a standard error of 0.0005, of which 6 are allowed.
#[test]
fn two_ends_and_scatter_together() {
    for (sd, level) in [(0.1, 0.9), (0.3, 0.9), (0.3, 0.99), (1.0, 0.95)] {
        let half = two_ends(sd, f64::INFINITY, level);
        let mut source = Source::new(17);
        let draws = 400_000;
        let within = (0..draws)
            .filter(|_| {
                let error = source.uniform() - source.uniform() + sd * source.normal();
                error.abs() <= half
            })
            .count();
        let share = within as f64 / f64::from(draws);
        assert!((share - level).abs() < 0.003, "{sd} {level}: {share}");
    }
}

/// The planned number of stepped cycles gives the requested width: 5 % of 50 us to either side,
/// within a tenth.
#[test]
fn the_planned_width_is_reached() {
    let plan = Plan::for_question(&Question {
        duration_ns: 50_000.0,
        tick_ns: TICK_NS,
        level: 0.9,
        precision: 0.1,
        loop_ns: Some(2.5e6),
        poll_ns: 50.0,
    })
    .unwrap();
    let (cycles, repetitions) = (plan.stepped_cycles, 60);
    let mut half = 0.0;
    for seed in 0..repetitions {
        let mut simulated = SimulatedLoop::new(seed, &five_parts(2.5), 0.002);
        let mut stepper = Stepper::new(5, cycles, seed);
        let mut run = 0;
        while run < cycles {
            match stepper.next_move() {
                Move::Align => {
                    simulated.now = simulated.now.floor() + 1.0;
                    stepper.aligned(simulated.now as i64);
                }
                Move::Cycle { delay_ticks } => {
                    simulated.wait(delay_ticks);
                    stepper.push(&simulated.cycle());
                    run += 1;
                }
                Move::Hold { until } => {
                    simulated.now = simulated.now.max(until as f64);
                    stepper.held();
                }
            }
        }
        let result = stepper
            .blocks()
            .activities(TICK_NS, 0.9)
            .swap_remove(ACTIVITY);
        half += result.estimate.interval.half_width().unwrap() / repetitions as f64;
    }
    println!("{cycles} cycles: half-width {half:.0} ns of 2500");
    // Observed: 1.07 of it.
    assert!((0.9..1.1).contains(&(half / 2500.0)), "{cycles}: {half}");
    // A delay that brings the loop from 2.5 to a golden step: 0.118 ticks.
    assert!((plan.delay_ns.unwrap() - 118_034.0).abs() < 1.0);
}
