//! Parts, whole and the known sum; preempted cycles; contiguous cycles.

use crate::slow_sim;

use slow_sim::{ACTIVITY, SimulatedLoop, Source, band, five_parts};
use undertick_estimate::slow::{Joint, LoopCounts, count_sd};

const LEVEL: f64 = 0.9;

/// Each part is counted in a separate pass, and contiguous cycles give the cycle: the parts are
/// corrected to add up. The gain is that of the theory, sd_j^2 - sd_j^4 / sum sd^2, and no part
/// becomes wider.
#[test]
fn separate_passes_gain_by_adding_up() {
    let (cycles, repetitions) = (2000, 400);
    let parts = five_parts(2.618);
    let sds: Vec<f64> = parts.iter().map(|&t| count_sd(t, cycles)).collect();
    let total: f64 = sds.iter().map(|sd| sd * sd).sum();
    let (mut single, mut joint_squares) = ([0.0; 5], [0.0; 5]);
    for seed in 0..repetitions {
        let mut source = Source::new(seed);
        let means: Vec<f64> = (parts.iter())
            .map(|&length| {
                let ticks: f64 = (0..cycles)
                    .map(|_| (source.uniform() + length).floor())
                    .sum();
                ticks / cycles as f64
            })
            .collect();
        let estimated: Vec<f64> = means.iter().map(|&m| count_sd(m, cycles)).collect();
        let mut joint = Joint::independent(&means, &estimated).unwrap();
        let whole_sd = 0.41 / cycles as f64;
        let off = joint.constrain(&[1.0; 5], 2.618, whole_sd).unwrap();
        assert!(off.abs() < 6.0, "seed {seed}: {off}");
        for (j, sd) in joint.sds().into_iter().enumerate() {
            assert!(sd <= estimated[j], "wider: part {j}");
            single[j] += (means[j] - parts[j]).powi(2);
            joint_squares[j] += (joint.values()[j] - parts[j]).powi(2);
        }
    }
    for j in 0..5 {
        let (seen, theory) = (joint_squares[j] / single[j], 1.0 - sds[j].powi(2) / total);
        println!("part {j}: variance {seen:.3} of a single estimate's, theory {theory:.3}");
        // The ratio of two variances of 400 correlated values: 5 sigma.
        assert!(
            (seen / theory - 1.0).abs() < 0.36,
            "part {j}: {seen} {theory}"
        );
    }
}

/// Counted in the same cycles, parts and whole add up identically.
#[test]
fn the_same_cycles_add_up_already() {
    let mut simulated = SimulatedLoop::new(1, &five_parts(2.618), 0.01);
    let mut counts = LoopCounts::new(5);
    for _ in 0..1000 {
        counts.push(&simulated.cycle(), true);
    }
    let parts: i64 = counts.activities().iter().map(|a| a.ticks()).sum();
    assert_eq!(parts, counts.cycle().ticks());
}

/// Contiguous cycles: the error is that of the two ends and the scatter of the cycles. The period
/// varies between repetitions, so that the ends are even.
#[test]
#[ignore = "long: cargo xtask test --all"]
fn contiguous_cycles_cover() {
    for (jitter, cycles) in [(0.0, 100), (0.002, 2000), (0.05, 500), (0.2, 2000)] {
        let repetitions = 1000;
        let (mut hits, mut half) = (0, 0.0);
        for seed in 0..repetitions {
            let period = 2.4 + 0.4 * Source::new(seed + 1_000_000).uniform();
            let mut simulated = SimulatedLoop::new(seed, &five_parts(period), jitter);
            let mut counts = LoopCounts::new(5);
            for _ in 0..cycles {
                counts.push(&simulated.cycle(), true);
            }
            let interval = counts.results(1.0, LEVEL).cycle.estimate.interval;
            hits += u64::from((interval.lo.unwrap()..=interval.hi.unwrap()).contains(&period));
            half += interval.half_width().unwrap() / repetitions as f64;
        }
        let n = cycles as f64;
        let normal = 1.645 * (jitter * jitter / n + 1.0 / (6.0 * n * n)).sqrt();
        println!(
            "contiguous, jitter {jitter}, {cycles} cycles: covered {hits} of {repetitions}, \
             half-width {:.3} of the normal one",
            half / normal
        );
        let (lo, hi) = band(repetitions, 0.9, 1e-6);
        assert!(
            (lo..=hi.max(970)).contains(&hits),
            "{jitter} {cycles}: {hits}"
        );
        assert!(half < 1.15 * normal, "{half} {normal}");
    }
}

/// Another program takes the CPU for 4 ticks in a share of the cycles, in the activity or outside
/// it. If these cycles count, the activity is too long; if evidence drops them, it is right. With
/// one cycle in ten the rest says too little about the dropped ones: refused.
#[test]
fn preempted_cycles_are_dropped() {
    let (cycles, repetitions) = (4000, 200);
    // 0.05 + 0.01 * 4 / 5 = 0.058 ticks, and 0.05 + 0.1 * 4 / 5 = 0.13.
    for (share, times, refused) in [(0.01, 1.16, false), (0.1, 2.6, true)] {
        preempted(share, times, refused, cycles, repetitions);
    }
}

fn preempted(share: f64, times: f64, refused: bool, cycles: u64, repetitions: u64) {
    let (mut hits, mut plain) = (0, 0.0);
    for seed in 0..repetitions {
        let mut simulated = SimulatedLoop::new(seed, &five_parts(2.618), 0.01);
        let mut kept = LoopCounts::new(5);
        let mut all = LoopCounts::new(5);
        for _ in 0..cycles {
            let hit = simulated.source.uniform() < share;
            // Each part is hit with the same probability.
            let part = (simulated.source.uniform() * 5.0) as usize;
            if hit {
                simulated.parts[part] += 4.0;
            }
            let readings = simulated.cycle();
            if hit {
                simulated.parts[part] -= 4.0;
                kept.drop_cycle();
            } else {
                kept.push(&readings, true);
            }
            all.push(&readings, true);
        }
        assert_eq!(kept.dropped() + kept.cycle().n(), cycles);
        let result = &kept.results(1e6, LEVEL).activities[ACTIVITY];
        assert_eq!(result.refused.is_some(), refused, "seed {seed}");
        let interval = result.estimate.interval;
        // A refusal gives no interval.
        assert_eq!(interval.lo.is_none(), refused);
        let holds =
            (interval.lo.zip(interval.hi)).is_some_and(|(lo, hi)| lo <= 50_000.0 && 50_000.0 <= hi);
        hits += u64::from(holds);
        plain += all.activities()[ACTIVITY].mean() / 0.05 / repetitions as f64;
    }
    println!("preempted: covered {hits} of {repetitions}; counted in, {plain:.2} times the truth");
    assert!(refused || hits >= band(repetitions, 0.9, 1e-6).0, "{hits}");
    assert!((plain - times).abs() < 0.05, "{plain} {times}");
}
