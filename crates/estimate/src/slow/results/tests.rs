use super::*;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

fn counted(counts: impl Iterator<Item = i64>) -> ActivityCounts {
    let mut of = ActivityCounts::default();
    counts.for_each(|count| of.push(count));
    of
}

/// 2.3 ticks in a cycle of 0.6: the phase that disturbs is in 0.6 of the cycles, at most half of
/// which count one more; in a cycle of 0.2 all may.
#[test]
fn what_dropping_may_shift_by_hand() {
    for (cycle, up) in [(0.6, 0.002), (5.0, 0.0), (1.0, 0.0), (0.2, 0.007)] {
        let (down, found) = selection(2.3, cycle, 0.01);
        assert!(close(down, 0.003) && close(found, up), "{cycle}: {found}");
    }
    assert_eq!((share(0, 0), share(1, 3), share(5, 5)), (0.0, 0.25, 0.5));
    assert!(close(count_sd(2.3, 100), 0.0021_f64.sqrt()));
}

/// With independent counts the score interval is Wilson's, in closed form.
#[test]
fn bounds_are_wilsons() {
    for (p, n, z) in [
        (0.3, 100.0, 1.645),
        (0.02, 50.0, 1.96),
        (0.5, 10_000.0, 1.0),
    ] {
        let variance = |t: f64| {
            let t: f64 = t - t.floor();
            t * (1.0 - t) / n
        };
        let middle = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
        let half = z / (1.0 + z * z / n) * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
        let lo = bound(4.0 + p, z, &variance, -1.0) - 4.0;
        let hi = bound(4.0 + p, z, &variance, 1.0) - 4.0;
        assert!((lo - (middle - half)).abs() < 1e-6, "{p}: {lo}");
        assert!((hi - (middle + half)).abs() < 1e-6, "{p}: {hi}");
    }
    // A variance that is the same everywhere: z standard deviations.
    assert!((bound(0.5, 1.5, &|_| 0.0004, 1.0) - 0.53).abs() < 1e-6);
    assert!((bound(0.5, 1.5, &|_| 0.0004, -1.0) - 0.47).abs() < 1e-6);
}

/// 30 ones in 100: pulled to 32 of 104, 0.3077 of a tick. 0 and 2 in irregular turns: all of their
/// variance of 1 exceeds that of a fixed length.
#[test]
fn an_activity_by_hand() {
    let counts = counted((0..100).map(|i| i64::from(i * 37 % 100 < 30)));
    let found = activity(&counts, None, None, 10.0, 0.9);
    let p = 32.0 / 104.0;
    let sd = (p * (1.0 - p) / 100.0_f64).sqrt();
    assert!(close(found.estimate.value, 3.0) && found.ticks == 30);
    assert!(close(found.sd_ns, 10.0 * sd), "{}", found.sd_ns);
    assert!(close(found.predicted_sd_ns, 10.0 * 0.0021_f64.sqrt()));
    assert!(close(found.estimate.n_effective, 0.21 / (sd * sd)));
    let (lo, hi) = (
        found.estimate.interval.lo.unwrap(),
        found.estimate.interval.hi.unwrap(),
    );
    assert!(
        lo < 3.0 && (hi - lo) / 2.0 > 1.5 * found.sd_ns * 0.98,
        "{lo} {hi}"
    );

    let counts = counted((0..100).map(|i| 2 * i64::from(i * 37 % 100 < 50)));
    let found = activity(&counts, None, None, 10.0, 0.9);
    let p = 2.0 / 104.0;
    let sd = (p * (1.0 - p) / 100.0 + 0.01_f64).sqrt();
    assert!(close(found.sd_ns, 10.0 * sd), "{}", found.sd_ns);
    // One count has no interval.
    let one = activity(&counted([3].into_iter()), None, None, 10.0, 0.9);
    assert_eq!(
        (one.estimate.interval.lo, one.estimate.interval.hi),
        (None, None)
    );
}

/// 32 zeros, 32 ones in turns: batches scatter far more than independent
/// counts; 0 and 1 in turns do not.
#[test]
fn swinging_counts_are_seen() {
    let swings = counted((0..1024).map(|i| i / 32 % 2));
    let (variance, degrees) = more_than_modelled(&swings, 0.25 / 1024.0).unwrap();
    let (ratio, same) = batch_ratio(&swings, 0.25).unwrap();
    assert!(close(variance, ratio * 0.25 / 1024.0) && degrees == same);
    assert_eq!(more_than_modelled(&swings, 2.0 * variance), None);
    assert_eq!(more_than_modelled(&swings, variance), None);
    // Four times the modelled variance is not due to chance with 15 degrees or more.
    assert!(degrees >= 15.0 && more_than_modelled(&swings, variance / 4.0).is_some());
    let found = activity(&swings, None, None, 10.0, 0.9);
    assert!(close(found.sd_ns, 10.0 * variance.sqrt()));
    let half = student(0.9, degrees) * variance.sqrt() * 10.0;
    let hi = found.estimate.interval.hi.unwrap();
    let lo = found.estimate.interval.lo.unwrap();
    assert!(close(hi, 5.0 + half) && close(lo, 5.0 - half), "{lo} {hi}");
    let balances = counted((0..1024).map(|i| i % 2));
    assert_eq!(more_than_modelled(&balances, 0.25 / 1024.0), None);
}

/// Where the phase is lost and the spectra are those of independent counts, the latter are used;
/// with ten times the variance, or a phase that is kept, they are not.
#[test]
fn the_spectrum_by_hand() {
    for (jitter, n, method) in [
        (0.5, 1000, "independent"),
        (0.5, 100, "walking phase"),
        (0.1, 1000, "walking phase"),
    ] {
        let spectrum = || Spectrum::independent(n);
        let model = Model {
            facts: WalkFacts::known(1000, 2.618, jitter),
            spectra: [spectrum(), spectrum(), spectrum()],
            independent: Spectrum::independent(1000),
        };
        let (chosen, how) = model.choose(2.3);
        assert!(how.ends_with(method), "{jitter} {n}: {how}");
        assert!(close(chosen.variance(2.3), 0.21 / n as f64));
    }
}

/// Ten cycles of 2 and 3 ticks end to end, a jitter of 0.1: the ends' variance
/// of 1/6 and a scatter of 0.1 over all ten; three more stretches add 3/6.
#[test]
fn contiguous_cycles_by_hand() {
    let facts = WalkFacts::known(10, 2.5, 0.1);
    for (breaks, further) in [(false, 0.0_f64), (true, 0.5)] {
        let mut counts = LoopCounts::new(1);
        let mut at = 0;
        for i in 0..10 {
            let next = at + 2 + i % 2;
            counts.push(&[at, next], true);
            at = next + i64::from(breaks && i % 3 == 0 && i < 9);
        }
        let found = contiguous(&counts, Some(facts), 10.0, 0.9);
        assert!(close(found.estimate.value, 25.0) && found.ticks == 25);
        let sd = (0.1 + 1.0 / 6.0 + further).sqrt() / 10.0;
        assert!(close(found.sd_ns, 10.0 * sd), "{}", found.sd_ns);
        let half = two_ends((0.1 + further).sqrt(), f64::INFINITY, 0.9);
        assert!(close(found.estimate.interval.half_width().unwrap(), half));
        assert!(close(found.predicted_sd_ns, 10.0 * 0.025_f64.sqrt()));
        assert_eq!(found.estimate.n_effective, 10.0);
    }
    let mut counts = LoopCounts::new(1);
    counts.push(&[0, 2], true);
    let unknown = contiguous(&counts, None, 10.0, 0.9);
    assert_eq!(unknown.estimate.interval.lo, None);
}

/// A loop of 2.5 ticks sees only two phases: there is no interval. At 2.618 ticks it sees all.
#[test]
fn a_locked_loop_is_refused() {
    for (period, is_locked) in [(2.5, true), (2.618_034, false)] {
        let mut counts = LoopCounts::new(2);
        for i in 0..2000 {
            let at = 0.1 + period * f64::from(i);
            let readings = [at, at + 0.3, at + period].map(|t| t.floor() as i64);
            counts.push(&readings, true);
        }
        let found = results(&counts, 10.0, 0.9);
        assert_eq!(found.lock.is_some(), is_locked, "{period}");
        let small = &found.activities[0];
        assert_eq!(small.refused.is_some(), is_locked, "{period}");
        assert_eq!(small.estimate.interval.lo.is_none(), is_locked, "{period}");
    }
}

/// Two dropped cycles of a hundred are accepted, three are not.
#[test]
fn too_many_disturbed_cycles_are_refused() {
    for (dropped, is_refused) in [(0, false), (2, false), (3, true), (50, true)] {
        let mut counts = LoopCounts::new(1);
        for i in 0..100 - dropped {
            let at = 2.618_034 * f64::from(i);
            counts.push(&[at, at + 0.4].map(|t| t.floor() as i64), true);
        }
        (0..dropped).for_each(|_| counts.drop_cycle());
        let found = results(&counts, 10.0, 0.9);
        let disturbed = |r: &ActivityResult| matches!(r.refused, Some(Refused::Disturbed { .. }));
        assert_eq!(disturbed(&found.activities[0]), is_refused, "{dropped}");
        assert_eq!(disturbed(&found.cycle), is_refused, "{dropped}");
    }
}

/// Sixteen cycles in two stretches are measured end to end, in three by counts.
#[test]
fn stretches_decide_how_the_cycle_is_found() {
    for (breaks, method) in [(1, "contiguous cycles"), (2, "tick counts")] {
        let mut counts = LoopCounts::new(1);
        let mut at = 0;
        for i in 0..16 {
            let next = at + 2 + i % 2;
            counts.push(&[at, next], true);
            at = next + i64::from(i < breaks);
        }
        let found = results(&counts, 10.0, 0.9).cycle.estimate.method;
        assert!(found.starts_with(method), "{breaks}: {found}");
    }
    let text = Refused::Disturbed { share: 0.25 }.to_string();
    assert!(text.contains("25"), "{text}");
}

#[test]
fn bounds_move_out_and_not_below_nothing() {
    let counts = counted((0..100).map(|i| i64::from(i * 37 % 100 < 30)));
    let mut found = activity(&counts, None, None, 10.0, 0.9);
    let before = found.estimate.interval;
    found.widen((0.01, 0.02), 10.0);
    let after = found.estimate.interval;
    assert!(close(after.lo.unwrap(), before.lo.unwrap() - 0.1));
    assert!(close(after.hi.unwrap(), before.hi.unwrap() + 0.2));
    found.widen((100.0, 0.0), 10.0);
    assert_eq!(found.estimate.interval.lo, Some(0.0));
}
