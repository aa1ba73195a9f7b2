//! Merges traces of simulated hosts whose true times are known. The oracle is a formula for each
//! clock, without code of the merge.

mod simulated;

use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use simulated::{Simulated, exchanges, hosts, moment, write_exchanges};
use undertick_format::TraceError;
use undertick_format::manifest::Manifest;
use undertick_format::read::Trace;
use undertick_hosts::merge::{Merge, merge};

fn open(path: &Path) -> Trace {
    Trace::open(path).unwrap()
}

fn merged(
    traces: &[PathBuf],
    sync: &[PathBuf],
    wander_ppm: Option<f64>,
    out: &Path,
) -> Result<Manifest, TraceError> {
    let traces: Vec<Trace> = traces.iter().map(|path| open(path)).collect();
    let asked = Merge {
        traces: &traces,
        sync,
        messages: Vec::new(),
        wander_ppm,
    };
    merge(&asked, out, &mut |_| {})
}

/// Returns the rows of the event file: ts, ring, pid, tid, event, payload, host, ts_local.
fn rows(trace: &Path) -> Vec<[i64; 8]> {
    let file = std::fs::File::open(trace.join("events.parquet")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let mut rows = Vec::new();
    for batch in reader.build().unwrap() {
        let batch = batch.unwrap();
        let i64s = |name: &str| {
            let column = batch.column_by_name(name).unwrap();
            column.as_primitive::<Int64Type>().values().to_vec()
        };
        let i32s = |name: &str| -> Vec<i64> {
            let column = batch.column_by_name(name).unwrap();
            let values = column.as_primitive::<Int32Type>().values();
            values.iter().map(|v| i64::from(*v)).collect()
        };
        let host = batch.column_by_name("host").unwrap();
        let host = host.as_primitive::<Int16Type>().values();
        for i in 0..batch.num_rows() {
            rows.push([
                i64s("ts")[i],
                i32s("ring")[i],
                i32s("pid")[i],
                i32s("tid")[i],
                i32s("event")[i],
                i64s("payload")[i],
                i64::from(host[i]),
                i64s("ts_local")[i],
            ]);
        }
    }
    rows
}

/// Asserts that every row's time is the first host's reading at the row's true time, within the
/// half-width of the manifest. Returns the median half-width of each host, ns.
#[track_caller]
fn the_truth_is_inside(out: &Path, manifest: &Manifest, hosts: &[Simulated]) -> Vec<f64> {
    let mut widths: Vec<Vec<f64>> = vec![Vec::new(); hosts.len()];
    let rows = rows(out);
    assert_eq!(rows.len(), 800 * hosts.len());
    for [ts, _, _, _, _, row, host, local] in rows {
        let of = &hosts[host as usize];
        let true_s = moment(row as u32);
        assert_eq!(local, of.shows(true_s), "the raw reading of {}", of.name);
        let truth = hosts[0].shows(true_s);
        let half_width = match &manifest.hosts[host as usize].map {
            None => 0,
            Some(map) => {
                let (mapped, half_width) = map.at(local).unwrap();
                assert_eq!(mapped, ts);
                // The half-width is the same when it is looked up by the first clock's reading.
                assert!(map.half_width_at(ts).abs_diff(half_width) <= 2);
                half_width
            }
        };
        let error = (ts - truth).abs();
        assert!(
            error <= half_width,
            "{}: {error} ticks, {half_width}",
            of.name
        );
        widths[host as usize].push(half_width as f64 / 2.0);
    }
    (widths.iter_mut())
        .map(|widths| {
            widths.sort_unstable_by(f64::total_cmp);
            widths[widths.len() / 2]
        })
        .collect()
}

#[test]
fn two_hosts_become_one_trace() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = hosts();
    let traces = [hosts[0].trace(dir.path()), hosts[1].trace(dir.path())];
    let sync = exchanges(1, &hosts[0], &hosts[1], dir.path());
    // Exchanges that lie inside a trace are found there.
    let inside = traces[1].join("sync");
    std::fs::create_dir(&inside).unwrap();
    std::fs::rename(&sync, inside.join("sync.json")).unwrap();
    let out = dir.path().join("all.ut");
    let manifest = merged(&traces, &[], None, &out).unwrap();
    let widths = the_truth_is_inside(&out, &manifest, &hosts[..2]);
    assert!(
        widths[0] == 0.0 && (20e3..25e3).contains(&widths[1]),
        "{widths:?}"
    );

    assert_eq!(open(&out).manifest, manifest);
    assert_eq!((manifest.events, manifest.lost), (1600, 0));
    assert_eq!(manifest.command, ["work-a", "+", "work-b"]);
    let map = manifest.hosts[1].map.as_ref().unwrap();
    assert_eq!(
        (map.compared_with, map.messages, map.is_wander_raised),
        (0, [900; 2], false)
    );
    assert_eq!(
        map.sources,
        [inside.join("sync.json").display().to_string()]
    );
    assert!(
        map.half_width_ns_median >= 20e3 && map.half_width_ns_max < 40e3,
        "{map:?}"
    );

    // Rings are separate, each ascending, one after the other; processes differ.
    let rows = rows(&out);
    let rings: Vec<i64> = rows.iter().map(|row| row[1]).collect();
    assert!(rings.is_sorted());
    assert_eq!(
        manifest.rings.iter().map(|r| r.ring).collect::<Vec<_>>(),
        [0, 1, 2, 3]
    );
    for ring in 0..4 {
        let of: Vec<_> = rows.iter().filter(|row| row[1] == ring).collect();
        assert_eq!(of.len(), 400);
        assert!(of.is_sorted_by_key(|row| row[0]), "ring {ring}");
        let shift = if ring < 2 { 0 } else { 1 << 22 };
        assert!(
            of.iter()
                .all(|row| row[2] == 4000 + shift && row[3] == 4000 + ring % 2 + shift)
        );
    }
    // Each host has its own names, also those that hold for all of its processes.
    let name = |pid: i32, event: u16| {
        let of = manifest
            .names
            .iter()
            .find(|n| (n.pid, n.event) == (Some(pid), event));
        of.unwrap().name.as_str()
    };
    let b = 4000 + (1 << 22);
    assert_eq!((name(4000, 7), name(b, 7)), ("seven of a", "seven of b"));
    assert_eq!((name(4000, 8), name(b, 8)), ("eight of a", "eight of b"));
    let thread = manifest.threads.iter().find(|t| t.tid == b + 1).unwrap();
    assert_eq!((thread.pid, thread.name.as_str()), (b, "thread 1 of b"));
    for warning in ["host 0 (a): mind a", "host 1 (b): mind b"] {
        assert!(
            manifest.warnings.iter().any(|w| w == warning),
            "{:?}",
            manifest.warnings
        );
    }
    // 8 s less the last 10 ms, in ticks of host a.
    let duration_ns = manifest.duration_ns.unwrap();
    assert!(
        (7_989_900_000..7_990_100_000).contains(&duration_ns),
        "{duration_ns}"
    );
    // A merged trace cannot be merged again.
    let again = [out, traces[0].clone()];
    let error = merged(&again, &[], None, &dir.path().join("again.ut")).unwrap_err();
    assert!(error.to_string().contains("is merged already"), "{error}");
}

#[test]
fn a_host_is_reached_through_another_one_and_rings_are_closed() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = hosts();
    let traces = hosts.each_ref().map(|host| host.trace(dir.path()));
    let ab = exchanges(2, &hosts[0], &hosts[1], dir.path());
    let cb = exchanges(3, &hosts[2], &hosts[1], dir.path());
    let out = dir.path().join("chain.ut");
    let manifest = merged(&traces, &[ab.clone(), cb.clone()], None, &out).unwrap();
    let widths = the_truth_is_inside(&out, &manifest, &hosts);
    // The half-widths of both links add up.
    assert!((40e3..50e3).contains(&widths[2]), "{widths:?}");
    let map = manifest.hosts[2].map.as_ref().unwrap();
    assert_eq!((map.compared_with, map.messages), (1, [900; 2]));
    assert_eq!(manifest.closures, []);

    // Host c is mapped by the direct link, and the longer route is a check.
    let ac = exchanges(4, &hosts[0], &hosts[2], dir.path());
    let out = dir.path().join("ring.ut");
    let manifest = merged(&traces, &[ab.clone(), cb.clone(), ac], None, &out).unwrap();
    let widths = the_truth_is_inside(&out, &manifest, &hosts);
    assert!((20e3..25e3).contains(&widths[2]), "{widths:?}");
    let [closure] = &manifest.closures[..] else {
        panic!("{:?}", manifest.closures);
    };
    assert!(
        closure.holds && closure.error_ns < closure.allowed_ns,
        "{closure:?}"
    );
    assert_eq!(closure.hosts, [2, 1]);

    // These exchanges come from a clock that was shifted by 1 ms between a and c only.
    let mut shifted = hosts[2].clone();
    shifted.start += 1_000_000;
    let ac = exchanges(4, &hosts[0], &shifted, dir.path());
    let out = dir.path().join("broken.ut");
    let manifest = merged(&traces, &[ab, cb, ac], None, &out).unwrap();
    let closure = &manifest.closures[0];
    assert!(!closure.holds && closure.error_ns > 0.9e6, "{closure:?}");
    let warned = |w: &String| w.contains("the maps are wrong, or the clocks wander more");
    assert!(
        manifest.warnings.iter().any(warned),
        "{:?}",
        manifest.warnings
    );
}

#[test]
fn what_cannot_be_merged_is_said_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = hosts();
    let traces = hosts.each_ref().map(|host| host.trace(dir.path()));
    let out = dir.path().join("out.ut");
    let refused = |traces: &[PathBuf], sync: &[PathBuf], wander, words: &[&str]| {
        let error = merged(traces, sync, wander, &out).unwrap_err();
        assert_eq!(error.exit_status(), 2, "{error}");
        for word in words {
            assert!(
                error.to_string().contains(word),
                "{word:?} is not in: {error}"
            );
        }
        assert!(!out.exists());
    };
    let two = &traces[..2];
    refused(&traces[..1], &[], None, &["1 traces: give 2 to 512"]);
    refused(
        &[traces[0].clone(), traces[0].clone()],
        &[],
        None,
        &["given twice"],
    );
    refused(
        two,
        &[],
        None,
        &[
            "b (",
            "no messages between",
            "undertick sync --listen",
            "--table",
        ],
    );
    // The exchanges belong to other hosts.
    let ac = exchanges(5, &hosts[0], &hosts[2], dir.path());
    refused(
        two,
        std::slice::from_ref(&ac),
        None,
        &[
            "no messages between",
            "not both clocks of these traces: left out",
        ],
    );
    refused(&traces, &[ac], None, &["b (", "no messages between"]);
    // A clock was set: in the second half b shows one second more.
    let mut stamps = Vec::new();
    for i in 0..100 {
        let set = if i < 50 { 0 } else { 2_893_202_000 };
        let at = 1.0 + 0.08 * f64::from(i);
        let (a, b) = (|s: f64| hosts[0].shows(s), |s: f64| hosts[1].shows(s) + set);
        stamps.push([a(at), b(at + 20e-6), b(at + 25e-6), a(at + 45e-6)]);
    }
    let set = write_exchanges(&hosts[0], &hosts[1], &stamps, dir.path());
    refused(
        two,
        &[set],
        None,
        &["contradict one another", "s into the trace of b"],
    );
    let ab = exchanges(6, &hosts[0], &hosts[1], dir.path());
    refused(
        two,
        std::slice::from_ref(&ab),
        Some(-1.0),
        &["--wander -1", "not below 0"],
    );
    refused(
        two,
        &[dir.path().join("none.json")],
        None,
        &["none.json", "cannot read"],
    );
    // An existing output directory stays unchanged.
    std::fs::create_dir(&out).unwrap();
    let error = merged(two, &[ab], None, &out).unwrap_err().to_string();
    assert!(error.contains("exists already"), "{error}");
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0);
}

/// Rates that change by 20 ppm: 2 are contradicted, 40 are enough.
#[test]
fn a_wander_is_an_input_and_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = hosts();
    let traces = [hosts[0].trace(dir.path()), hosts[1].trace(dir.path())];
    let mut stamps = Vec::new();
    for i in 0..2000 {
        let at = 0.5 + 0.0045 * f64::from(i);
        let b = |s: f64| {
            let more = if s < 5.0 {
                20e-6 * (s - 5.0)
            } else {
                -20e-6 * (s - 5.0)
            };
            hosts[1].shows(s + more)
        };
        let a = |s: f64| hosts[0].shows(s);
        stamps.push([a(at), b(at + 10e-6), b(at + 12e-6), a(at + 22e-6)]);
    }
    let sync = [write_exchanges(&hosts[0], &hosts[1], &stamps, dir.path())];
    let map = |wander, name: &str| {
        let manifest = merged(&traces, &sync, wander, &dir.path().join(name)).unwrap();
        let map = manifest.hosts[1].map.clone().unwrap();
        let warned = manifest
            .warnings
            .iter()
            .any(|w| w.contains("contradict the wander"));
        assert_eq!(warned, map.is_wander_raised);
        map
    };
    let raised = map(None, "two.ut");
    assert!(
        raised.is_wander_raised && raised.wander_ppm >= 4.0,
        "{}",
        raised.wander_ppm
    );
    let enough = map(Some(45.0), "forty.ut");
    assert!(!enough.is_wander_raised && (enough.wander_ppm - 45.0).abs() < 1e-6);
    assert!(enough.half_width_ns_median > 10e3 && enough.half_width_ns_median < 14e3);
}
