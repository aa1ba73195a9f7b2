use super::*;

fn record(kind: RecordKind, time: u64, cpu: i16, tid: i32, pid: i32) -> Record {
    Record {
        cpu,
        tid,
        pid,
        ..Record::new(kind, time)
    }
}

fn rows(sources: Sources, records: &[Record]) -> (Vec<Row>, Option<Comparison>, Balance) {
    let mut threads = Threads::new(sources, 100, 5);
    let mut out = Vec::new();
    for record in records {
        threads.take(record.time as i64, record, |row| out.push(row));
    }
    let found = threads.finish(1.0, |row| out.push(row));
    (out, found.comparison, found.balance)
}

fn short(rows: &[Row]) -> Vec<(i64, Kind, i32, i32, i16, i64)> {
    rows.iter()
        .map(|r| (r.ticks, r.kind, r.pid, r.tid, r.cpu, r.payload))
        .collect()
}

#[test]
fn perf_alone_names_switches_and_migrations() {
    let sources = Sources {
        perf: true,
        tracefs: false,
    };
    let preempted = Record {
        payload: 1,
        ..record(RecordKind::PerfOut, 30, 0, 11, 10)
    };
    let lost = Record {
        payload: 9,
        ..record(RecordKind::PerfLost, 60, 1, 0, 0)
    };
    let (rows, comparison, balance) = rows(
        sources,
        &[
            record(RecordKind::PerfOut, 10, 0, 10, 10),
            record(RecordKind::PerfIn, 20, 0, 11, 10),
            preempted,
            record(RecordKind::PerfIn, 40, 1, 11, 10),
            record(RecordKind::PerfIn, 50, 0, 10, 10),
            lost,
            record(RecordKind::PerfIn, 70, 0, 10, 10),
        ],
    );
    assert_eq!(
        short(&rows),
        [
            (10, Kind::SwitchOut, 10, 10, 0, 0),
            (20, Kind::SwitchIn, 10, 11, 0, 0),
            (30, Kind::SwitchOut, 10, 11, 0, 1),
            (40, Kind::Migrate, 10, 11, 1, 0),
            (40, Kind::SwitchIn, 10, 11, 1, 0),
            (50, Kind::SwitchIn, 10, 10, 0, 0),
            (60, Kind::KernelGap, 0, 0, 1, 9),
            (70, Kind::SwitchIn, 10, 10, 0, 0),
        ]
    );
    assert_eq!(comparison, None);
    let expected = Balance {
        switches_in: 4,
        switches_out: 2,
        missing_out: 1,
        missing_in: 0,
    };
    assert_eq!(balance, expected);
}

#[test]
fn tracefs_knows_whose_threads_are_ours() {
    let sources = Sources {
        perf: false,
        tracefs: true,
    };
    let thread = Record {
        a: 1,
        ..record(RecordKind::NewTask, 30, 0, 21, 20)
    };
    let state = |a, of: Record| Record { a, ..of };
    let interrupt = Record {
        a: 5,
        payload: 3,
        ..record(RecordKind::Interrupt, 45, 0, 20, 0)
    };
    let (rows, _, balance) = rows(
        sources,
        &[
            // A switch of the recorder itself, before the program exists.
            record(RecordKind::Switch, 5, 0, 20, 99),
            record(RecordKind::Exec, 10, 0, 20, 0),
            record(RecordKind::Fault, 12, 0, 20, 0),
            state(1, record(RecordKind::Switch, 15, 0, 20, 99)),
            record(RecordKind::Waking, 16, 1, 20, 98),
            record(RecordKind::Waking, 17, 1, 98, 20), // somebody else is woken
            record(RecordKind::Switch, 20, 0, 99, 20),
            thread,
            record(RecordKind::NewTask, 31, 0, 30, 20), // a child process
            record(RecordKind::NewTask, 32, 0, 50, 98), // not ours
            record(RecordKind::Switch, 40, 1, 98, 21),
            record(RecordKind::Switch, 42, 1, 21, 30),
            interrupt,
            record(RecordKind::Interrupt, 46, 0, 99, 0),
            record(RecordKind::Exit, 50, 1, 30, 0),
            state(0x20, record(RecordKind::Switch, 60, 1, 30, 50)),
        ],
    );
    assert_eq!(
        short(&rows),
        [
            (12, Kind::Fault, 20, 20, 0, -1),
            (15, Kind::SwitchOut, 20, 20, 0, 0),
            (16, Kind::Waking, 20, 20, 1, 98),
            (20, Kind::SwitchIn, 20, 20, 0, 0),
            (40, Kind::SwitchIn, 20, 21, 1, 0),
            (42, Kind::SwitchOut, 20, 21, 1, 1),
            (42, Kind::SwitchIn, 30, 30, 1, 0),
            (45, Kind::Interrupt, 20, 20, 0, 3),
            (60, Kind::SwitchOut, 30, 30, 1, 0),
        ]
    );
    assert_eq!(rows[7].event, 5);
    assert_eq!((balance.missing_in, balance.missing_out), (0, 0));
}

/// Perf's switches that tracefs lacks are added, and a switch that both recorded appears once.
#[test]
fn a_switch_that_only_perf_tells_is_added() {
    let sources = Sources {
        perf: true,
        tracefs: true,
    };
    let (rows, comparison, balance) = rows(
        sources,
        &[
            record(RecordKind::PerfOut, 4, 0, 20, 20),
            record(RecordKind::Exec, 10, 0, 20, 0),
            record(RecordKind::Switch, 20, 0, 20, 0),
            record(RecordKind::PerfOut, 21, 0, 20, 20),
            record(RecordKind::PerfIn, 900, 0, 20, 20),
            record(RecordKind::Switch, 2000, 0, 20, 0),
            record(RecordKind::PerfOut, 2001, 0, 20, 20),
            record(RecordKind::Switch, 3000, 0, 0, 20),
            record(RecordKind::PerfIn, 3002, 0, 20, 20),
            record(RecordKind::Exit, 4000, 0, 20, 0),
            record(RecordKind::PerfOut, 4100, 0, 20, 20),
            record(RecordKind::Switch, 4200, 0, 20, 0),
        ],
    );
    let kinds: Vec<_> = rows.iter().map(|row| (row.ticks, row.kind)).collect();
    assert_eq!(
        kinds,
        [
            (20, Kind::SwitchOut),
            (900, Kind::SwitchIn),
            (2000, Kind::SwitchOut),
            (3000, Kind::SwitchIn),
            (4200, Kind::SwitchOut),
        ]
    );
    let comparison = comparison.unwrap();
    assert_eq!((comparison.first, comparison.second), (3, 4));
    assert_eq!((comparison.both, comparison.added), (3, 1));
    assert_eq!((balance.missing_in, balance.missing_out), (0, 0));
}

/// One thread hands its CPU to another, and the hypervisor takes that CPU away for 60 ms between
/// the records of tracefs and of perf.
#[test]
fn a_switch_that_the_hypervisor_interrupts_is_one() {
    let sources = Sources {
        perf: true,
        tracefs: true,
    };
    let mut threads = Threads::new(sources, APART_NS, EARLY_NS);
    let mut out = Vec::new();
    let thread = Record {
        a: 1,
        ..record(RecordKind::NewTask, 15, 0, 21, 20)
    };
    let ms = 1_000_000;
    let records = [
        record(RecordKind::Exec, 10, 0, 20, 0),
        thread,
        record(RecordKind::Switch, 20, 0, 20, 21),
        record(RecordKind::PerfOut, 60 * ms, 0, 20, 20),
        record(RecordKind::PerfIn, 60 * ms + 1_000, 0, 21, 20),
        record(RecordKind::Switch, 61 * ms, 0, 21, 20),
        record(RecordKind::PerfOut, 61 * ms + 300, 0, 21, 20),
        record(RecordKind::PerfIn, 61 * ms + 1_000, 0, 20, 20),
    ];
    for record in &records {
        threads.take(record.time as i64, record, |row| out.push(row));
    }
    let Found {
        comparison,
        balance,
        ..
    } = threads.finish(1.0, |row| out.push(row));
    let shown: Vec<_> = (out.iter().map(|row| (row.tid, row.kind, row.ticks))).collect();
    let expected = [
        (20, Kind::SwitchOut, 20),
        (21, Kind::SwitchIn, 20),
        (21, Kind::SwitchOut, 61_000_000),
        (20, Kind::SwitchIn, 61_000_000),
    ];
    assert_eq!(shown, expected);
    let comparison = comparison.unwrap();
    assert_eq!((comparison.both, comparison.added), (4, 0));
    assert_eq!((balance.missing_in, balance.missing_out), (0, 0));
}

/// The row names the thread that takes the CPU of one that could have run on.
#[test]
fn the_thread_that_takes_a_cpu_is_named() {
    let sources = Sources {
        perf: false,
        tracefs: true,
    };
    let mut threads = Threads::new(sources, APART_NS, EARLY_NS);
    let mut out = Vec::new();
    let of_name = |tid: i32, text: &str, time: u64| {
        let mut name = [0; Record::NAME_BYTES];
        name[..text.len()].copy_from_slice(text.as_bytes());
        Record::of_name(tid, &name, time)
    };
    let waits = Record {
        a: 1,
        ..record(RecordKind::Switch, 50, 0, 20, 78)
    };
    let records = [
        record(RecordKind::Exec, 10, 0, 20, 0),
        of_name(77, "hog", 19),
        of_name(20, "program", 19),
        of_name(78, "exactly16letters", 19),
        record(RecordKind::Switch, 20, 0, 20, 77),
        record(RecordKind::Switch, 30, 0, 77, 20),
        record(RecordKind::Switch, 40, 0, 20, 79),
        record(RecordKind::Switch, 45, 0, 79, 20),
        waits,
    ];
    for record in &records {
        threads.take(record.time as i64, record, |row| out.push(row));
    }
    let found = threads.finish(1.0, |row| out.push(row));
    let left: Vec<_> = (out.iter())
        .filter(|row| row.kind == Kind::SwitchOut)
        .map(|row| (row.ticks, row.event))
        .collect();
    assert_eq!(left, [(20, 77), (40, 79), (50, 78)]);
    // 79 has no name; 78 came when the thread waited, and took nothing from it.
    let hog = OtherThread {
        tid: 77,
        name: "hog".into(),
    };
    assert_eq!(found.others, [hog]);
    assert_eq!(records[3].name(), "exactly16letters");
}
