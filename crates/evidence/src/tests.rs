use super::*;

fn evidence(rows: &[(Kind, i32, i64, i64)]) -> Evidence {
    let mut evidence = Evidence::with_error(0, 5);
    for &(kind, tid, ts, payload) in rows {
        evidence.push(kind as i8, 1, tid, ts, payload);
    }
    evidence
}

fn causes(found: &SampleCauses) -> Vec<Cause> {
    (Cause::ALL.into_iter()).filter(|c| found.has(*c)).collect()
}

#[test]
fn each_cause_with_its_time() {
    let mut e = evidence(&[
        (Kind::SwitchOut, 7, 100, 1),
        (Kind::SwitchIn, 7, 150, 0),
        (Kind::SwitchOut, 7, 200, 0),
        (Kind::SwitchIn, 7, 280, 0),
        (Kind::Interrupt, 7, 300, 20),
        (Kind::SoftInterrupt, 7, 310, 5),
        (Kind::Migrate, 7, 400, 1),
        (Kind::Fault, 7, 500, -1),
        (Kind::SwitchOut, 7, 600, 2),
        (Kind::SwitchIn, 7, 640, 0),
    ]);
    e.select(7);
    for (start, end, cause, ticks) in [
        (90, 110, Cause::Preempted, 10),
        (110, 190, Cause::Preempted, 40),
        (190, 290, Cause::Waited, 80),
        (390, 410, Cause::Migrated, 0),
        (490, 510, Cause::Fault, 0),
        (590, 700, Cause::Switched, 40),
    ] {
        let found = e.causes_in(start, end);
        assert_eq!(causes(&found), [cause], "{start}");
        assert_eq!(found.ticks[cause as usize], ticks, "{start}");
        assert_eq!(found.ticks.iter().sum::<i64>(), ticks, "{start}");
        assert_eq!(found.taken(), ticks, "{start}");
        let by_others = if cause.disturbs() { ticks } else { 0 };
        assert_eq!(found.by_others(), by_others, "{start}");
    }
    let both = e.causes_in(305, 312);
    assert_eq!(causes(&both), [Cause::Interrupt, Cause::SoftInterrupt]);
    assert_eq!(both.ticks[Cause::Interrupt as usize], 7);
    assert_eq!(both.ticks[Cause::SoftInterrupt as usize], 2);
    // The soft interrupt lies inside the interrupt: 7 ticks in all, not 9.
    assert_eq!((both.taken(), both.by_others()), (7, 7));
    assert_eq!(both.disturbance(), Some(Cause::Interrupt));
    // Of 95 to 320: preempted 50, waited 80, interrupted 20.
    let long = e.causes_in(95, 320);
    assert_eq!((long.taken(), long.by_others()), (150, 70));
    assert!(e.causes_in(151, 199).is_empty() && e.causes_in(700, 1000).is_empty());
}

/// A long absence that overlaps short interrupts at other times: the search backward must not
/// stop at the short ones.
#[test]
fn outer_samples_and_long_absences() {
    let mut rows = vec![(Kind::SwitchOut, 7, 10, 0), (Kind::SwitchIn, 7, 1000, 0)];
    rows.extend((1..50).map(|i| (Kind::Interrupt, 7, 1000 + 10 * i, 2)));
    let mut e = evidence(&rows);
    e.select(7);
    // Inner samples first, as they end.
    assert_eq!(causes(&e.causes_in(1490, 1491)), [Cause::Interrupt]);
    assert!(e.causes_in(1493, 1495).is_empty());
    let outer = e.causes_in(5, 2000);
    assert_eq!(causes(&outer), [Cause::Interrupt, Cause::Waited]);
    assert_eq!(outer.ticks[Cause::Interrupt as usize], 49 * 2);
    assert_eq!(outer.ticks[Cause::Waited as usize], 990);
    assert_eq!(outer.disturbance(), Some(Cause::Interrupt));
    // Back in time: another ring of the same thread.
    assert_eq!(causes(&e.causes_in(20, 30)), [Cause::Waited]);
    assert_eq!(e.causes_in(20, 30).disturbance(), None);
}

#[test]
fn threads_are_apart_and_the_error_reaches_further() {
    let mut e = evidence(&[
        (Kind::Interrupt, 7, 100, 10),
        (Kind::Interrupt, 8, 500, 10),
        (Kind::SwitchOut, 8, 900, 0),
    ]);
    e.select(8);
    assert!(e.causes_in(90, 120).is_empty());
    assert!(!e.causes_in(490, 505).is_empty());
    // The thread never came back.
    assert!(e.causes_in(5000, 6000).has(Cause::Waited));
    e.select(7);
    assert!(e.causes_in(80, 99).is_empty() && e.causes_in(111, 120).is_empty());
    e.select(9);
    assert!(e.causes_in(0, 1000).is_empty());
    let mut e = Evidence::with_error(15, 5);
    e.push(Kind::Interrupt as i8, 0, 7, 100, 10);
    e.select(7);
    assert!(e.causes_in(70, 84).is_empty() && e.causes_in(126, 130).is_empty());
    for (start, end) in [(70, 85), (125, 130)] {
        let found = e.causes_in(start, end);
        assert!(found.has(Cause::Interrupt), "{start}");
        assert_eq!(found.ticks, [0; CAUSES], "{start}");
    }
}

/// Vector 3 receives from the network. At 100 it comes from a call of the thread itself. At 218
/// it comes right after an interrupt, and at 232 after that; at 300 another thread was
/// interrupted. Vector 1 is the timer's, which no call raises.
#[test]
fn what_its_own_calls_raise_is_its_own() {
    let mut e = Evidence::with_error(0, 5);
    for (kind, event, tid, ts, ticks) in [
        (Kind::SoftInterrupt, 3, 7, 100, 20),
        (Kind::Interrupt, 5, 7, 200, 10),
        (Kind::SoftInterrupt, 3, 7, 218, 5),
        (Kind::SoftInterrupt, 3, 7, 232, 5),
        (Kind::Interrupt, 5, 8, 290, 5),
        (Kind::SoftInterrupt, 3, 7, 300, 5),
        (Kind::SoftInterrupt, 1, 7, 400, 5),
        (Kind::SoftInterrupt, 7, 7, 500, 5),
    ] {
        e.push(kind as i8, event, tid, ts, ticks);
    }
    e.select(7);
    for (start, cause) in [
        (100, Cause::OwnSoftInterrupt),
        (218, Cause::SoftInterrupt),
        (232, Cause::SoftInterrupt),
        (300, Cause::OwnSoftInterrupt),
        (400, Cause::SoftInterrupt),
        (500, Cause::SoftInterrupt),
    ] {
        let found = e.causes_in(start - 2, start + 4);
        assert_eq!(causes(&found), [cause], "{start}");
        let disturbance = (cause == Cause::SoftInterrupt).then_some(cause);
        assert_eq!(found.disturbance(), disturbance, "{start}");
    }
}

/// 5 ticks are a microsecond. Without an interrupt's 10 ticks a sample has to be 100 long, 20
/// times the unobserved microsecond; 500 where it was preempted or migrated. What the thread does
/// itself requires nothing.
#[test]
fn what_is_long_beside_a_disturbance_stays() {
    let mut e = evidence(&[
        (Kind::Interrupt, 7, 1_000, 10),
        (Kind::SwitchOut, 7, 2_000, 1),
        (Kind::SwitchIn, 7, 3_000, 0),
        (Kind::Migrate, 7, 5_000, 1),
        (Kind::SwitchOut, 7, 7_000, 0),
        (Kind::SwitchIn, 7, 7_500, 0),
    ]);
    e.select(7);
    for (start, ticks, by_others, dropped_for) in [
        (995, 109, 10, Some(Cause::Interrupt)),
        (995, 110, 10, None),
        (1_900, 1_499, 1_000, Some(Cause::Preempted)),
        (1_900, 1_500, 1_000, None),
        // All of it was taken.
        (2_000, 1_000, 1_000, Some(Cause::Preempted)),
        (4_990, 499, 0, Some(Cause::Migrated)),
        (4_990, 500, 0, None),
        (6_999, 502, 0, None),
    ] {
        let found = e.causes_in(start, start + ticks);
        assert_eq!(found.by_others(), by_others, "{start} {ticks}");
        assert_eq!(found.dropped_for(), dropped_for, "{start} {ticks}");
    }
}

/// Thread 7 is taken off its CPU six times: for thread 8, which hands it back; for another
/// program; for 8, after which another program had it; for 8, and continues elsewhere; for
/// another program and then for 8; for 8 until the recording ends. The waiting of 8 is its own.
#[test]
fn a_thread_of_the_program_is_no_disturbance() {
    let mut e = evidence(&[
        (Kind::SwitchOut, 7, 100, 1),
        (Kind::SwitchIn, 8, 100, 0),
        (Kind::SwitchOut, 8, 150, 0),
        (Kind::SwitchIn, 7, 150, 0),
        (Kind::SwitchOut, 7, 1_000, 1),
        (Kind::SwitchIn, 7, 1_050, 0),
        (Kind::SwitchOut, 7, 2_000, 1),
        (Kind::SwitchIn, 8, 2_000, 0),
        (Kind::SwitchOut, 8, 2_020, 0),
        (Kind::SwitchIn, 7, 2_050, 0),
        (Kind::SwitchOut, 7, 3_000, 1),
        (Kind::SwitchIn, 8, 3_000, 0),
        (Kind::Migrate, 7, 3_050, 1),
        (Kind::SwitchIn, 7, 3_050, 0),
        (Kind::SwitchOut, 8, 4_000, 0),
        (Kind::SwitchOut, 7, 4_200, 1),
        (Kind::SwitchIn, 8, 4_230, 0),
        (Kind::SwitchOut, 8, 4_250, 0),
        (Kind::SwitchIn, 7, 4_250, 0),
        (Kind::SwitchOut, 7, 5_000, 1),
        (Kind::SwitchIn, 8, 5_000, 0),
    ]);
    e.select(7);
    for (start, expected) in [
        (90, &[Cause::OwnThread][..]),
        (990, &[Cause::Preempted]),
        (1_990, &[Cause::Preempted]),
        (2_990, &[Cause::Migrated, Cause::OwnThread]),
        (4_190, &[Cause::Preempted]),
        (4_990, &[Cause::OwnThread]),
    ] {
        let found = e.causes_in(start, start + 100);
        assert_eq!(causes(&found), expected, "{start}");
        assert!(found.was_off(), "{start}");
        let by_others = if expected[0] == Cause::Preempted {
            50
        } else {
            0
        };
        assert_eq!(found.by_others(), by_others, "{start}");
    }
    e.select(8);
    assert_eq!(causes(&e.causes_in(160, 1_000)), [Cause::Waited]);
}

/// 5 ticks are a microsecond. The timer's interrupt takes 40 ticks before the kernel knows of it
/// and 10 after it, give or take 7. Of a sample from 900 to 2 000 it had 40 + 30 + 10. A sample
/// of 140 other ticks is long enough for the unknown part, one of 139 is not. Another interrupt
/// may take those 50 in addition to its own 30: it needs 1000.
#[test]
fn a_timer_takes_more_than_the_kernel_knows() {
    let timer = Timer {
        event: 9,
        before: 40,
        after: 10,
        spread: 7,
    };
    let mut e = Evidence::with_error(0, 5).with_timer(Some(timer));
    for (event, ts) in [(9, 1_000), (3, 3_000)] {
        e.push(Kind::Interrupt as i8, event, 7, ts, 30);
    }
    e.select(7);
    for (start, end, by_others, is_dropped) in [
        (900, 2_000, 80, false),
        (900, 900 + 80 + 140, 80, false),
        (900, 900 + 80 + 139, 80, true),
        // The samples end or begin while the kernel does not yet, or no longer, know of the
        // interrupt.
        (500, 970, 10, false),
        (1_035, 2_000, 5, false),
        (1_041, 2_000, 0, false),
        (2_000, 2_000 + 30 + 1_000, 30, false),
        (2_001, 2_000 + 30 + 1_000, 30, true),
    ] {
        let found = e.causes_in(start, end);
        assert_eq!(found.by_others(), by_others, "{start} {end}");
        assert_eq!(found.dropped_for().is_some(), is_dropped, "{start} {end}");
    }
}

#[test]
fn what_is_of_no_thread_is_added_up() {
    let e = evidence(&[
        (Kind::Steal, 0, 10, 400),
        (Kind::Steal, 0, 20, 100),
        (Kind::KernelGap, 0, 30, 7),
        (Kind::Frequency, 0, 40, 2_800_000),
        (Kind::SwitchIn, 7, 50, 0),
    ]);
    assert_eq!((e.stolen_ns, e.lost, e.rows), (500, 7, 0));
    assert!(!e.is_there());
}
