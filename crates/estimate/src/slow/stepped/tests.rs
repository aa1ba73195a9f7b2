use super::*;

/// Runs a loop of 2.5 ticks and its delays until it has to hold. Returns the edge, the moment of
/// the hold, and the number of cycles in between.
fn until_held(stepper: &mut Stepper, now: &mut f64) -> (i64, i64, u64) {
    let (mut edge, mut cycles) = (0, 0);
    loop {
        match stepper.next_move() {
            Move::Align => {
                *now = now.floor() + 1.0;
                edge = *now as i64;
                stepper.aligned(edge);
                cycles = 0;
            }
            Move::Cycle { delay_ticks } => {
                *now += delay_ticks;
                let readings = [*now, *now + 0.4, *now + 2.5].map(|t| t.floor() as i64);
                *now += 2.5;
                stepper.push(&readings);
                cycles += 1;
            }
            Move::Hold { until } => return (edge, until, cycles),
        }
    }
}

/// A window contains the random delay of up to a tick, the cycles and their delays, and little
/// more.
#[test]
fn a_window_holds_its_block() {
    let mut stepper = Stepper::new(2, 2000, 7);
    let mut now = 0.25;
    for _ in 0..10 {
        let (edge, until, cycles) = until_held(&mut stepper, &mut now);
        let delays = (cycles - 1) as f64 * stepper.step_delay_ticks();
        let needed = 1.0 + cycles as f64 * stepper.loop_ticks().unwrap() + delays;
        let room = (until - edge) as f64;
        assert!(
            room >= needed && room <= 1.2 * needed + 1.0,
            "{room} {needed}"
        );
        assert!((stepper.loop_ticks().unwrap() - 2.5).abs() < 0.1);
        now = now.max(until as f64);
        stepper.held();
    }
    assert_eq!(stepper.blocks().whole(), 10);
    assert_eq!(
        (stepper.blocks().dropped(), stepper.blocks().disturbances()),
        (0, 0)
    );
}

/// Three cycles of the pilot and the disturbed one; then a block of which five were run, and one
/// disturbed after its last.
#[test]
fn what_is_left_out_is_counted() {
    let mut stepper = Stepper::new(2, 2000, 7);
    for at in [0, 2, 5] {
        assert!(matches!(stepper.next_move(), Move::Cycle { .. }));
        stepper.push(&[at, at, at + 2]);
    }
    stepper.disturbed();
    assert_eq!(
        (stepper.blocks().dropped(), stepper.blocks().disturbances()),
        (4, 1)
    );
    let mut now = 10.5;
    let (_, until, _) = until_held(&mut stepper, &mut now);
    now = now.max(until as f64);
    stepper.held();
    assert!(matches!(stepper.next_move(), Move::Align));
    stepper.aligned(now as i64 + 1);
    for i in 0..5 {
        assert!(matches!(stepper.next_move(), Move::Cycle { .. }));
        stepper.push(&[3 * i, 3 * i, 3 * i + 2]);
    }
    stepper.disturbed();
    assert_eq!(
        (stepper.blocks().dropped(), stepper.blocks().disturbances()),
        (10, 2)
    );
    let (_, _, cycles) = until_held(&mut stepper, &mut now);
    stepper.disturbed();
    // All cycles of the block were run: no further one was disturbed.
    assert_eq!(stepper.blocks().dropped(), 10 + cycles);
    assert_eq!(stepper.blocks().whole(), 1);
}

/// 12 and 14 ticks in blocks of 10: mean 1.3, sqrt(2 * (1 + 1)) / 20 = 0.1,
/// t(0.975; 1) = 12.7062, and 0.3 * 0.7 / 0.1^2 = 21 independent cycles.
#[test]
fn blocks_by_hand() {
    let of = |ticks: &[i64]| Activity {
        blocks: (ticks.iter())
            .map(|&ticks| Block { ticks, cycles: 10 })
            .collect(),
        ticks: ticks.iter().sum(),
        cycles: 10 * ticks.len() as u64,
    };
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-3, "{a} {b}");
    let e = of(&[12, 14]).result(1000.0, 0.95).estimate;
    close(e.value, 1300.0);
    close(e.interval.lo.unwrap(), 1300.0 - 1270.62);
    close(e.interval.hi.unwrap(), 1300.0 + 1270.62);
    close(e.n_effective, 21.0);
    let result = of(&[12, 14]).result(1000.0, 0.95);
    close(result.sd_ns, 100.0);
    close(result.predicted_sd_ns, 1000.0 * (0.21_f64 / 20.0).sqrt());
    // Blocks that all agree may be a tick off: t(0.975; 2) / 30.
    let e = of(&[12, 12, 12]).result(1000.0, 0.95).estimate;
    close(e.value, 1200.0);
    close(e.interval.half_width().unwrap(), 4302.653 / 30.0);
    close(e.n_effective, 30.0);
    let e = of(&[12]).result(1000.0, 0.95).estimate;
    assert_eq!((e.interval.lo, e.interval.hi), (None, None));
}

#[test]
fn delays_add_up() {
    let mut stepper = Stepper::new(2, 2000, 7);
    let (mut all, mut at) = (0.0, 0);
    for _ in 0..300 {
        match stepper.next_move() {
            Move::Align => stepper.aligned(at),
            Move::Cycle { delay_ticks } => {
                all += delay_ticks;
                stepper.push(&[at, at, at + 2]);
            }
            Move::Hold { .. } => stepper.held(),
        }
        at += 3;
    }
    assert!(
        all > 1.0 && (stepper.delayed_ticks() - all).abs() < 1e-9,
        "{all}"
    );
}

/// Steps are fractions of the block, coprime to it and near the golden section.
#[test]
fn steps_by_hand() {
    assert!(coprime(8, 13) && !coprime(6, 9) && coprime(1, 4));
    for cycles in [8, 13, 21, 50, 200] {
        let (m, step) = lattice(cycles, 0.05);
        let around = (cycles / 20).clamp(1, 4);
        assert!(m.abs_diff(cycles) <= around, "{cycles}: {m}");
        let a = step * m as f64;
        assert!(
            (a - a.round()).abs() < 1e-9 && coprime(a.round() as u64, m),
            "{cycles}"
        );
        assert!(
            (step - GOLDEN).abs() < NEAR + 0.5 / m as f64,
            "{cycles}: {step}"
        );
    }
}
