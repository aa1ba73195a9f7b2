use super::*;

fn switch(ticks: i64, tid: i32, into: bool) -> Switch {
    Switch {
        ticks,
        tid,
        cpu: 1,
        into,
        runnable: false,
    }
}

#[test]
fn one_missing_in_each() {
    let mut compare = Compare::new(1000, 10);
    let mut alone = Vec::new();
    let mut take = |source, switch: Switch| {
        compare.pass(switch.ticks, |s| alone.push(s.ticks));
        compare.take(source, switch);
    };
    // Every 500 ticks. The second source is 4 later, lacks the switch at 2000, and records
    // another cause for the one at 1000; the first source lacks 4000.
    for ticks in (0..8000).step_by(500) {
        if ticks != 4000 {
            take(SwitchSource::First, switch(ticks, 7, false));
        }
        if ticks != 2000 {
            let mut second = switch(ticks + 4, 7, false);
            second.runnable = ticks == 1000;
            take(SwitchSource::Second, second);
        }
    }
    // Something came in between: the record is nearer to the next switch, yet not of it.
    take(SwitchSource::First, switch(8100, 7, false));
    take(SwitchSource::Second, switch(8190, 7, false));
    take(SwitchSource::First, switch(8230, 7, false));
    take(SwitchSource::Second, switch(8234, 7, false));
    // Another CPU, direction or thread: not the same switch.
    take(SwitchSource::First, switch(8500, 7, true));
    take(SwitchSource::Second, switch(8501, 8, true));
    take(
        SwitchSource::Second,
        Switch {
            cpu: 0,
            ..switch(8502, 7, true)
        },
    );
    let found = compare.finish(["a", "b"], 0.5, |s| alone.push(s.ticks));
    assert_eq!((found.first, found.second, found.both), (18, 19, 16));
    assert_eq!(
        (found.causes_differ, found.added, found.added_in),
        (1, 3, 2)
    );
    alone.sort_unstable();
    assert_eq!(alone, [4004, 8501, 8502]);
    assert_eq!((found.later_ns_median, found.later_ns_p99), (2.0, 45.0));
}

/// Clocks that may differ by more than lies between two switches: a record that came late is still
/// that of the first of them, if another one follows for the second. Where the second source lost
/// one, its records belong to the switches that they are near.
#[test]
fn a_late_record_is_not_taken_for_the_next_switch() {
    let matched = |first: &[i64], second: &[i64]| {
        let mut compare = Compare::new(250_000_000, 5_000);
        for &ticks in first {
            compare.take(SwitchSource::First, switch(ticks, 7, true));
        }
        for &ticks in second {
            compare.take(SwitchSource::Second, switch(ticks, 7, true));
        }
        let found = compare.finish(["a", "b"], 1.0, |_| {});
        (found.both, found.added, found.later_ns_p99)
    };
    assert_eq!(matched(&[0, 5_500], &[3_000, 5_800]), (2, 0, 3_000.0));
    assert_eq!(
        matched(&[0, 5_500, 40_000], &[3_000, 5_800, 40_300]),
        (3, 0, 3_000.0)
    );
    assert_eq!(
        matched(&[0, 5_500, 11_000], &[5_800, 11_300]),
        (2, 0, 300.0)
    );
    assert_eq!(matched(&[0, 5_500], &[5_800]), (1, 0, 300.0));
}
