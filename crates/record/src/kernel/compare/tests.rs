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
