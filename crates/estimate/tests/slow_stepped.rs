//! Phase stepping compared with plain counting, on loops whose truth is known.

use crate::slow_sim;

use slow_sim::{ACTIVITY, SimulatedLoop, band, five_parts};
use undertick_estimate::slow::{LoopCounts, Move, Stepper};

const TICK_NS: f64 = 1e6;
const TRUTH_NS: f64 = 50_000.0;
const LEVEL: f64 = 0.9;
/// Half-width of (14) at n = 20 691 independent cycles, ns: 3.2897 / 2 times
/// sqrt(0.05 * 0.95 / 20 691) ticks.
const PLANNED_HALF_NS: f64 = 2492.2;

/// Runs `cycles` cycles. `disturb` receives the begin of a stretch of the run, and returns when and
/// for how long another program ran in it; delays are multiplied by `stretched`.
fn drive(
    simulated: &mut SimulatedLoop,
    stepper: &mut Stepper,
    cycles: u64,
    stretched: f64,
    mut disturb: impl FnMut(&mut SimulatedLoop, f64) -> Option<(f64, f64)>,
) {
    let (mut run, mut gone) = (0, false);
    while run < cycles {
        let begin = simulated.now;
        match stepper.next_move() {
            Move::Align => {
                simulated.now = begin.floor() + 1.0;
                let disturbance = disturb(simulated, begin);
                gone = waited(simulated, disturbance);
                stepper.aligned(simulated.now.floor() as i64);
            }
            Move::Cycle { delay_ticks } => {
                simulated.wait(stretched * delay_ticks);
                let readings = simulated.cycle();
                run += 1;
                if let Some((_, lasted)) = disturb(simulated, begin) {
                    simulated.wait(lasted);
                    gone = true;
                }
                if gone {
                    stepper.disturbed();
                } else {
                    stepper.push(&readings);
                }
            }
            Move::Hold { until } => {
                simulated.now = begin.max(until as f64);
                let disturbance = disturb(simulated, begin);
                if waited(simulated, disturbance) {
                    stepper.disturbed();
                } else {
                    stepper.held();
                }
            }
        }
    }
}

/// Waits until the loop has its CPU again after a disturbance.
fn waited(simulated: &mut SimulatedLoop, disturbance: Option<(f64, f64)>) -> bool {
    if let Some((at, lasted)) = disturbance {
        simulated.now = at + lasted;
    }
    disturbance.is_some()
}

fn undisturbed(_: &mut SimulatedLoop, _: f64) -> Option<(f64, f64)> {
    None
}

/// Returns the hits, and the mean half-width in ns.
fn stepped(period: f64, jitter: f64, cycles: u64, repetitions: u64) -> (u64, f64) {
    let (mut hits, mut half) = (0, 0.0);
    for seed in 0..repetitions {
        let mut simulated = SimulatedLoop::new(seed, &five_parts(period), jitter);
        let mut stepper = Stepper::new(5, cycles, seed);
        drive(&mut simulated, &mut stepper, cycles, 1.0, undisturbed);
        let result = stepper
            .blocks()
            .activities(TICK_NS, LEVEL)
            .swap_remove(ACTIVITY);
        let interval = result.estimate.interval;
        hits += u64::from((interval.lo.unwrap()..=interval.hi.unwrap()).contains(&TRUTH_NS));
        half += interval.half_width().unwrap() / repetitions as f64;
    }
    (hits, half)
}

/// With an eighth of the cycles of (14) at a jitter of up to 0.2 % of the tick, and half of them at
/// 1 %, the half-width is reached, and it covers. Plain counting refuses the round period.
#[test]
fn stepping_needs_fewer_cycles() {
    for period in [2.5, 2.333_33, 2.618] {
        for (jitter, fewer) in [(0.0, 8), (0.0005, 8), (0.002, 8), (0.01, 2)] {
            let repetitions = 150;
            let (hits, half) = stepped(period, jitter, 20_691 / fewer, repetitions);
            println!(
                "period {period} jitter {jitter}, {fewer} times fewer: half-width {:.3} of \
                 planned, covered {hits} of {repetitions}",
                half / PLANNED_HALF_NS
            );
            assert!(half <= PLANNED_HALF_NS, "{period} {jitter}: {half}");
            // 90 %, with 1 false alarm in 10^6 over all cells; more is allowed.
            assert!(
                hits >= band(repetitions, 0.9, 1e-7).0,
                "{period} {jitter}: {hits}"
            );
        }
    }
}

/// It is never worse than plain counting: half-widths are at most 5 % above those of counts with
/// random phases, at any number of cycles and any jitter.
#[test]
#[ignore = "long: cargo xtask test --all"]
fn stepping_is_never_worse() {
    for cycles in [400, 2000, 20_000] {
        for jitter in [0.002, 0.05, 0.2] {
            let repetitions = 150;
            let (hits, half) = stepped(2.5, jitter, cycles, repetitions);
            let mut plain = 0.0;
            for seed in 0..repetitions {
                let mut simulated = SimulatedLoop::new(seed, &five_parts(2.5), jitter);
                let mut counts = LoopCounts::new(5);
                for _ in 0..cycles {
                    let wait = simulated.source.uniform();
                    simulated.wait(wait);
                    counts.push(&simulated.cycle(), false);
                }
                let results = counts.results(TICK_NS, LEVEL);
                let interval = results.activities[ACTIVITY].estimate.interval;
                plain += interval.half_width().unwrap() / repetitions as f64;
            }
            println!(
                "cycles {cycles} jitter {jitter}: half-width {:.3} of plain counting's, covered {hits} of {repetitions}",
                half / plain
            );
            assert!(
                half <= 1.05 * plain,
                "{cycles} {jitter}: {half} against {plain}"
            );
            assert!(
                hits >= band(repetitions, 0.9, 1e-7).0,
                "{cycles} {jitter}: {hits}"
            );
        }
    }
}

/// The delay gives about a golden step: 2.5 + 0.118 ticks.
#[test]
fn the_stepper_learns_the_loop() {
    let mut simulated = SimulatedLoop::new(3, &five_parts(2.5), 0.0005);
    let mut stepper = Stepper::new(5, 4000, 3);
    drive(&mut simulated, &mut stepper, 4000, 1.0, undisturbed);
    assert!((stepper.loop_ticks().unwrap() - 2.5).abs() < 1e-3);
    assert!((stepper.step_delay_ticks() - 0.118_034).abs() < 0.01);
}

/// Delays that are 30 % too long are noticed in the counts.
#[test]
fn wrong_delays_are_corrected() {
    let mut simulated = SimulatedLoop::new(4, &five_parts(2.5), 0.0005);
    let mut stepper = Stepper::new(5, 8000, 4);
    let (mut before, mut steps) = (0.0, Vec::new());
    drive(&mut simulated, &mut stepper, 8000, 1.3, |simulated, _| {
        steps.push(simulated.now - before);
        before = simulated.now;
        None
    });
    // The median step lies within a block.
    steps.sort_by(f64::total_cmp);
    let step = steps[steps.len() / 2];
    assert!((step - 2.618_034).abs() < 0.01, "{step}");
}

/// Every block begins at a new random phase, evenly over the tick: the first reading of 4000 blocks
/// of one cycle.
#[test]
fn blocks_begin_at_random_phases() {
    let mut stepper = Stepper::new(1, 64, 5);
    let (mut phases, mut edge) = (Vec::new(), 0);
    while phases.len() < 4000 {
        match stepper.next_move() {
            Move::Align => {
                edge += 10;
                stepper.aligned(edge);
            }
            Move::Cycle { delay_ticks } => {
                if edge > 0 {
                    phases.push(delay_ticks);
                }
                stepper.disturbed();
            }
            Move::Hold { .. } => unreachable!("every cycle is disturbed"),
        }
    }
    // 20 cells: the sum of squares over 200 is chi-squared with 19 degrees, and
    // exceeds 66 once in 10^6.
    let mut cells = [0.0_f64; 20];
    phases
        .iter()
        .for_each(|p| cells[(p * 20.0) as usize] += 1.0);
    let chi: f64 = cells.iter().map(|c| (c - 200.0).powi(2) / 200.0).sum();
    assert!(chi < 66.0, "{chi}");
}

/// The window contains every cycle wherever its random delay places it.
#[test]
fn the_window_holds_the_block() {
    let mut simulated = SimulatedLoop::new(6, &five_parts(2.5), 0.002);
    let mut stepper = Stepper::new(5, 400, 6);
    let (mut windows, mut outside) = (0, 0);
    for _ in 0..4100 {
        match stepper.next_move() {
            Move::Align => {
                simulated.now = simulated.now.floor() + 1.0;
                stepper.aligned(simulated.now as i64);
            }
            Move::Cycle { delay_ticks } => {
                simulated.wait(delay_ticks);
                let readings = simulated.cycle();
                stepper.push(&readings);
            }
            Move::Hold { until } => {
                windows += 1;
                outside += u64::from(simulated.now > until as f64);
                simulated.now = simulated.now.max(until as f64);
                stepper.held();
            }
        }
    }
    assert!(windows >= 20 && outside == 0, "{outside} of {windows}");
}

/// The disturbance keeps step with the clock: every fourth tick, just after its edge, it falls into
/// the loop with that probability. Such a cycle always contains an edge, so dropping only these
/// cycles makes the mean too low.
#[test]
fn disturbances_in_step_with_the_clock_do_not_bias() {
    for probability in [0.06, 0.6] {
        no_bias(|simulated, begin| {
            let at = crossed(begin, simulated.now, 4.0, 0.02)?;
            (simulated.source.uniform() < probability).then_some((at, 3.0))
        });
    }
}

/// A hog on the same CPU: the loop runs for four ticks and waits for four, in step with the clock;
/// or for three, or five and a half.
#[test]
fn time_slices_do_not_bias() {
    for (slice, phase) in [(4.0, 0.0), (4.0, 0.3), (4.0, 0.77), (3.0, 0.5), (5.5, 0.1)] {
        no_bias(|simulated, begin| {
            let at = crossed(begin, simulated.now, 2.0 * slice, phase)?;
            Some((at, slice))
        });
    }
}

/// Returns the time between `begin` and `now` that has phase `phase` in `every`, if any.
fn crossed(begin: f64, now: f64, every: f64, phase: f64) -> Option<f64> {
    let at = ((now - phase) / every).floor() * every + phase;
    (at > begin).then_some(at)
}

/// 200 runs of 8000 cycles with disturbances, for the activity of 0.05 ticks and for the cycle of
/// 0.5: the bias is within chance, and intervals cover.
#[track_caller]
fn no_bias(mut disturb: impl FnMut(&mut SimulatedLoop, f64) -> Option<(f64, f64)>) {
    let (cycles, repetitions) = (8000, 200);
    let truth = [0.05 * TICK_NS, 0.5 * TICK_NS];
    let (mut sum, mut square, mut hits, mut whole) = ([0.0; 2], [0.0; 2], [0; 2], 0);
    for seed in 0..repetitions {
        let mut simulated = SimulatedLoop::new(seed, &[0.05, 0.12, 0.33], 0.002);
        let mut stepper = Stepper::new(3, cycles, seed);
        drive(&mut simulated, &mut stepper, cycles, 1.0, &mut disturb);
        let blocks = stepper.blocks();
        whole += blocks.whole() as u64 / repetitions;
        let results = [
            blocks.activities(TICK_NS, LEVEL).swap_remove(0),
            blocks.cycle(TICK_NS, LEVEL),
        ];
        for (i, result) in results.iter().enumerate() {
            let interval = result.estimate.interval;
            let bounds = interval.lo.unwrap()..=interval.hi.unwrap();
            hits[i] += u64::from(bounds.contains(&truth[i]));
            let off = result.estimate.value - truth[i];
            sum[i] += off;
            square[i] += off * off;
        }
    }
    let n = repetitions as f64;
    for i in 0..2 {
        let mean = sum[i] / n;
        let sd = (square[i] / n - mean * mean).sqrt();
        let z = mean / (sd / n.sqrt());
        println!(
            "in step: off by {mean:.0} ns (one run {sd:.0}), z {z:.1}, covered {} of {repetitions}; {whole} blocks",
            hits[i]
        );
        // 1 false alarm in 10^6 each.
        assert!(z.abs() < 4.9, "z {z}");
        assert!(hits[i] >= band(repetitions, 0.9, 1e-6).0, "{}", hits[i]);
    }
}
