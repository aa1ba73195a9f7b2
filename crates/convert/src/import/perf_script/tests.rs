use super::*;

#[test]
fn lines_of_several_forms() {
    let all = |line| {
        let s = sample(line).unwrap();
        (
            s.comm.to_owned(),
            s.pid,
            s.tid,
            s.cpu,
            s.ns,
            s.event.to_owned(),
        )
    };
    let is = |comm: &str, pid, tid, cpu, ns, event: &str| {
        (comm.to_owned(), pid, tid, cpu, ns, event.to_owned())
    };
    assert_eq!(
        all("            perf 12359 [001]  1105.679002: syscalls:sys_enter_write: fd: 0x3"),
        is(
            "perf",
            12359,
            12359,
            Some(1),
            1_105_679_002_000,
            "syscalls:sys_enter_write"
        )
    );
    assert_eq!(
        all(
            "      opt cgu.15 12287/12290 [000]  1105.679176001:     250000 cpu-clock:u:  7f46 x (lib)"
        ),
        is(
            "opt cgu.15",
            12287,
            12290,
            Some(0),
            1_105_679_176_001,
            "cpu-clock:u"
        )
    );
    assert_eq!(
        all("   18  1105.5:  cpu-clock: "),
        is("", 18, 18, None, 1_105_500_000_000, "cpu-clock")
    );
    assert_eq!(
        sample("  ffffffff813a2413 finish_task+0x93 ([kernel])"),
        None
    );
    assert_eq!(sample("1105.5: cycles:"), None, "no thread");
    assert_eq!(sample("sh 1 [000] 1.5: "), None, "no event");
}

#[test]
fn switches_of_both_forms() {
    let new = "prev_comm=a b prev_pid=12 prev_prio=120 prev_state=R+ ==> next_comm=c next_pid=0 next_prio=0";
    let old = "a b:12 [120] R+ ==> swapper/0:0 [120]";
    for text in [new, old] {
        let expected = Switch {
            out: 12,
            is_preempted: true,
            into: 0,
        };
        assert_eq!(switch(text), Some(expected), "{text}");
    }
    assert!(!switch("x:1 [120] S ==> y:2 [120]").unwrap().is_preempted);
    for bad in [
        "",
        "==>",
        "a ==> b",
        "prev_pid=x prev_state=R ==> next_pid=1",
    ] {
        assert_eq!(switch(bad), None, "{bad}");
    }
}

#[test]
fn losses_are_counted() {
    let line = "swapper 0 [000] 1.2: PERF_RECORD_LOST lost 17";
    assert_eq!(lost(&sample(line).unwrap()), Some(17));
}
