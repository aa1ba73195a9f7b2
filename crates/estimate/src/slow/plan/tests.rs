use super::*;

fn question(ratio: f64, level: f64, precision: f64) -> Question {
    Question {
        duration_ns: 50_000.0,
        tick_ns: 50_000.0 * ratio,
        level,
        precision,
        loop_ns: None,
        poll_ns: 50.0,
    }
}

/// By hand: (3.30 / 0.1)^2 * 19 = 20 691; with the quantile 1.644854,
/// (3.289707 / 0.1)^2 * 19 = 20 562.1.
#[test]
fn cycles_by_hand() {
    assert_eq!(cycles_needed(3.30, 0.1, 20.0).round(), 20_691.0);
    assert_eq!(
        Plan::for_question(&question(20.0, 0.9, 0.1))
            .unwrap()
            .cycles,
        20_563
    );
    // 1.3 ticks: (3.3 / 0.1)^2 (1 - 1/1.3) (2/1.3 - 1) = 135.3.
    assert!((cycles_needed(3.30, 0.1, 1.0 / 1.3) - 135.313).abs() < 0.01);
    // Two whole ticks have no scatter.
    assert!(cycles_needed(3.30, 0.1, 0.5).abs() < 1e-9);
}

/// 3.25 + 0.25 = 3.5, 3.25 + 0.125 = 3.375; 3.75 + 0.125 = 4 - 0.125.
#[test]
fn delays_by_hand() {
    assert_eq!(delay_to(3.25, 0.5), 0.25);
    assert_eq!(delay_to(3.25, 0.375), 0.125);
    assert_eq!(delay_to(3.25, 0.25), 0.0);
    assert_eq!(delay_to(3.75, 0.125), 0.125);
}

#[test]
fn round_loops_are_warned_of() {
    for (loop_us, locked) in [(2500.0, true), (2333.33, true), (2618.0, false)] {
        let q = Question {
            loop_ns: Some(loop_us * 1e3),
            ..question(20.0, 0.9, 0.1)
        };
        let plan = Plan::for_question(&q).unwrap();
        assert_eq!(
            !plan.warnings.is_empty(),
            locked,
            "{loop_us}: {:?}",
            plan.warnings
        );
    }
    // 2.5 + 0.118034 = 2.618034 ticks.
    let q = Question {
        loop_ns: Some(2.5e6),
        ..question(20.0, 0.9, 0.1)
    };
    let plan = Plan::for_question(&q).unwrap();
    assert!((plan.delay_ns.unwrap() - 118_034.0).abs() < 1.0);
    assert!(
        plan.warnings[0].contains("2 cycles take 5 ticks"),
        "{:?}",
        plan.warnings
    );
    assert!(plan.stepped_cycles * 8 <= plan.cycles, "{plan:?}");
    assert!((plan.seconds.unwrap() - 20_563.0 * 2.5e-3).abs() < 1e-6);
}

/// Seconds are cycles of the loop and its delay; shots of a slow poll, 50 us:
/// (2 * 1.644854 * 50 us / sqrt(3) / 5 us)^2 = 1082.2 / 3 = 360.7, each of 3.5
/// ticks and the activity.
#[test]
fn times_and_shots_by_hand() {
    let plan = Plan::for_question(&Question {
        loop_ns: Some(2.5e6),
        poll_ns: 50_000.0,
        ..question(20.0, 0.9, 0.1)
    })
    .unwrap();
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
    close(plan.seconds.unwrap(), plan.cycles as f64 * 2.5e-3);
    let each = 2.5e-3 + plan.delay_ns.unwrap() / 1e9;
    close(
        plan.stepped_seconds.unwrap(),
        plan.stepped_cycles as f64 * each,
    );
    assert_eq!(plan.edge_samples, 361);
    close(plan.edge_seconds, 361.0 * (50_000.0 + 3.5e6) / 1e9);
    let quick = Plan::for_question(&question(20.0, 0.9, 0.1)).unwrap();
    assert_eq!((quick.edge_samples, quick.seconds), (24, None));
}

#[test]
fn nonsense_is_none() {
    for q in [
        question(0.0, 0.9, 0.1),
        question(20.0, 1.0, 0.1),
        question(20.0, 0.9, -0.1),
        question(f64::NAN, 0.9, 0.1),
    ] {
        assert_eq!(Plan::for_question(&q), None);
    }
}
