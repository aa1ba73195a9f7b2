use undertick_format::read::Trace;
use undertick_format::schema;
use undertick_ring::DeschedFlag;

use super::*;

fn description() -> SyntheticTrace {
    SyntheticTrace {
        host: Host {
            name: "simulated".to_owned(),
            kernel: String::new(),
            arch: "none".to_owned(),
            cpus: 50,
            cpu_model: String::new(),
        },
        command: vec!["script".to_owned()],
        clock: Clock {
            name: "a clock of 2 us".to_owned(),
            ticks_per_second_numerator: 500_000,
            ticks_per_second_denominator: 1,
            rate_source: "definition".to_owned(),
            rate_error_ppb: 0.0,
            granularity_ticks: 1.0,
            read_cost_ns_median: 300_000.0,
            anchors: Vec::new(),
            across_cpus: None,
        },
        names: Vec::new(),
        started_unix_ns: 5,
        duration_ns: 1_000_000_000,
        warnings: Vec::new(),
    }
}

fn ring(pid: i32, events: u64) -> SyntheticRing {
    let record = |i: u64| Record {
        ts: 3 * i,
        payload: i as u32,
        event: 7,
        cpu: 2,
        kind: Kind::Next,
        descheduled: DeschedFlag::No,
    };
    SyntheticRing {
        pid,
        tid: pid,
        name: format!("process {pid}"),
        records: (0..events).map(record).collect(),
        true_ns: (0..events as i64).map(|i| 6001 * i).collect(),
    }
}

#[test]
fn what_was_made_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("made.ut");
    // More than a block.
    let rings = [ring(11, 20_000), ring(12, 5), SyntheticRing::default()];
    let manifest = write(&trace, description(), &rings, &mut |_| {}).unwrap();
    assert_eq!((manifest.events, manifest.lost), (20_005, 0));
    let read = Trace::open(&trace).unwrap();
    assert_eq!(read.manifest, manifest);
    assert_eq!(read.manifest.threads.len(), 2);
    let mut times = Vec::new();
    for batch in read.batches() {
        let batch = batch.unwrap();
        let column = batch.column(schema::TS).as_primitive::<Int64Type>();
        times.extend(column.values().iter().copied());
    }
    let wanted: Vec<i64> = (0..20_000).chain(0..5).map(|i| 3 * i).collect();
    assert_eq!(times, wanted);
    let times = truth(&trace).unwrap().unwrap();
    let wanted: Vec<TrueTime> = [(0, 20_000), (1, 5)]
        .into_iter()
        .flat_map(|(ring, rows)| {
            (0..rows).map(move |row| TrueTime {
                ring,
                row,
                ts: 3 * row,
                true_ns: 6001 * row,
            })
        })
        .collect();
    assert_eq!(times, wanted);
    std::fs::write(trace.join(TRUTH_FILE), "no parquet").unwrap();
    assert_eq!(truth(&trace).unwrap_err().exit_status(), 2);
    std::fs::remove_file(trace.join(TRUTH_FILE)).unwrap();
    assert_eq!(truth(&trace).unwrap(), None);
    // A second trace of that name is refused and changes nothing.
    let error = write(&trace, description(), &rings, &mut |_| {}).unwrap_err();
    assert_eq!(error.exit_status(), 2);
    assert!(Trace::open(&trace).is_ok());
}

/// A change of a manifest does not undo what another process has changed since it was read.
#[test]
fn a_manifest_is_changed_as_it_is_now() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("made.ut");
    write(&trace, description(), &[ring(11, 5)], &mut |_| {}).unwrap();
    let add = |text: &str| {
        let text = text.to_owned();
        crate::finish::change_manifest(&trace, |manifest| manifest.warnings.push(text)).unwrap()
    };
    add("first");
    assert_eq!(add("second").warnings, ["first", "second"]);
    assert_eq!(
        Trace::open(&trace).unwrap().manifest.warnings,
        ["first", "second"]
    );
}
