use super::{EdgeSamples, EdgeShot};

fn shot(ticks: i64, polls: u64) -> EdgeShot {
    EdgeShot { ticks, polls }
}

/// Makes shots around nothing and of one activity alternate.
fn in_turns(nothing: &[EdgeShot], activity: &[EdgeShot]) -> EdgeSamples {
    let mut samples = EdgeSamples::new(1);
    for (&null, &shot) in nothing.iter().zip(activity) {
        samples.push(None, null);
        samples.push(Some(0), shot);
    }
    samples
}

/// Tick 1 ms, 1000 polls of 1 us: 950 are left after 50 us; over 1.3 ms, 700 of
/// the second tick. Polls twice as slow: half of each.
#[test]
fn by_hand() {
    for (null, of_activity, truth) in [
        (shot(1, 1000), shot(1, 950), 50_000.0),
        (shot(1, 1000), shot(2, 700), 1_300_000.0),
        (shot(1, 500), shot(1, 475), 50_000.0),
        (shot(2, 1000), shot(1, 475), 50_000.0),
    ] {
        let e = in_turns(&[null; 10], &[of_activity; 10])
            .estimate(0, 1e6, 0.9)
            .unwrap();
        assert!((e.value - truth).abs() < 1e-6, "{e:?}");
        // No scatter: only the two ends of a poll remain, 0.6838 of it.
        let poll_ns = 1e6 * null.ticks as f64 / null.polls as f64;
        assert!(
            (e.interval.half_width().unwrap() - 0.68377 * poll_ns).abs() < 0.1,
            "{e:?}"
        );
    }
}

/// Interrupts of 20 polls in four of ten waits of either kind: of 100
/// differences 36 + 16 are 50 us, 24 are 20 us less and 24 are 20 us more, so
/// the middle is 50 us, and at ranks 28 and 73 (50 - 1.645 * sqrt(100 * 21 / 12)
/// = 28.2) too.
#[test]
fn interrupts_by_hand() {
    let hit = |i: usize| if i % 5 < 2 { 20 } else { 0 };
    let nothing: Vec<_> = (0..10).map(|i| shot(1, 1000 - hit(i))).collect();
    let activity: Vec<_> = (0..10).map(|i| shot(1, 950 - hit(i + 3))).collect();
    let e = in_turns(&nothing, &activity).estimate(0, 1e6, 0.9).unwrap();
    assert!((e.value - 50_000.0).abs() < 1e-6, "{e:?}");
    let half = e.interval.half_width().unwrap();
    assert!((half - 683.772).abs() < 0.1, "{e:?}");
}

/// From 1000 polls in a tick to 500: a shot has the speed of the four around nothing before it
/// and the four after it. So of eight shots four are taken to be fast.
#[test]
fn the_speed_of_polling_is_that_nearby() {
    let mut samples = EdgeSamples::new(1);
    for i in 0..40 {
        let full = if i < 20 { 1000 } else { 500 };
        samples.push(None, shot(1, full));
        samples.push(Some(0), shot(1, full / 2));
    }
    let held = samples.held_ticks(Some(0));
    let off: Vec<usize> = (0..40).filter(|&i| held[i] != 0.5).collect();
    assert_eq!(off, [20, 21, 22, 23]);
    let nothing = samples.held_ticks(None);
    let off: Vec<usize> = (0..40).filter(|&i| nothing[i] != 0.0).collect();
    assert_eq!(off, [20, 21, 22, 23]);
    assert_eq!(samples.poll_cost_ns(1e6), Some(1000.0));
}

#[test]
fn too_little_is_none() {
    let few = in_turns(&[shot(1, 6); 3], &[shot(1, 5); 3]);
    assert_eq!(few.estimate(0, 1e6, 0.9), None);
    let enough = in_turns(&[shot(1, 6); 4], &[shot(1, 5); 4]);
    assert!(enough.estimate(0, 1e6, 0.9).is_some());
    assert_eq!(EdgeSamples::new(1).estimate(0, 1e6, 0.9), None);
    assert_eq!(EdgeSamples::new(1).poll_cost_ns(1e6), None);
}

#[test]
fn what_counts_is_counted() {
    let mut samples = EdgeSamples::new(2);
    samples.push(None, shot(1, 6));
    samples.push(Some(1), shot(1, 5));
    samples.push(Some(1), shot(1, 5));
    samples.drop_shot(Some(1));
    samples.drop_shot(None);
    assert_eq!((samples.shots(0), samples.shots(1)), (0, 2));
    assert_eq!((samples.dropped(0), samples.dropped(1)), (0, 1));
}
