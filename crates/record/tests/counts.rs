//! Every published event is in the trace or among the losses, once. The programs are killed, or
//! write faster than the recorder can read.
//!
//! For a longer run: UNDERTICK_SATURATED_SECONDS=30.

mod common;

use std::collections::HashMap;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type};
use common::{alone, program, run, settings};
use undertick_format::manifest::Manifest;
use undertick_format::read::Trace;
use undertick_format::schema::{self, Kind};
use undertick_record::Overflow;

const MIB: u64 = 1 << 20;
/// Number of threads of a child that is killed.
const THREADS: usize = 8;

/// Calls `each` with ring, kind, event and payload of each row, ring by ring, in order.
fn each_row(trace: &Path, mut each: impl FnMut(i32, i8, i32, i64)) -> Manifest {
    let trace = Trace::open(trace).unwrap();
    for batch in trace.batches() {
        let batch = batch.unwrap();
        let ring = batch.column(schema::RING).as_primitive::<Int32Type>();
        let kind = batch.column(schema::KIND).as_primitive::<Int8Type>();
        let event = batch.column(schema::EVENT).as_primitive::<Int32Type>();
        let payload = batch.column(schema::PAYLOAD).as_primitive::<Int64Type>();
        for i in 0..batch.num_rows() {
            each(
                ring.value(i),
                kind.value(i),
                event.value(i),
                payload.value(i),
            );
        }
    }
    trace.manifest
}

/// Rows of a ring that `count` of counted.c wrote: their number, and the first wrong one.
#[derive(Default)]
struct Counted {
    events: u64,
    wrong: Option<(u64, i32, i64)>,
}

impl Counted {
    fn take(&mut self, event: i32, payload: i64) {
        let i = self.events;
        let expected = if i % 3 == 2 {
            (2, (i << 32 | u64::from(!(i as u32))) as i64)
        } else {
            (1, i as i64)
        };
        if (event, payload) != expected {
            self.wrong.get_or_insert((i, event, payload));
        }
        self.events += 1;
    }
}

#[test]
#[ignore = "long: cargo xtask test --all"]
fn a_thousand_kills_over_eight_threads() {
    let _alone = alone();
    let binary = program("counted.c", &[]);
    let (recordings, children) = (25, 40);
    let (mut checked, mut behind) = (0u64, 0u64);
    for recording in 0..recordings {
        let dir = tempfile::tempdir().unwrap();
        let trace = dir.path().join("k.ut");
        let cells = tempfile::tempfile_in(dir.path()).unwrap();
        cells.set_len(16 * (THREADS * children) as u64).unwrap();
        let path = format!("/proc/{}/fd/{}", std::process::id(), cells.as_raw_fd());
        let command = [
            binary.to_str().unwrap(),
            "kills",
            &children.to_string(),
            &(recording + 1).to_string(),
            &path,
        ];
        let manifest = run(
            &trace,
            &command,
            settings(Overflow::Grow, MIB, Some(512 * MIB)),
        )
        .unwrap();
        assert_eq!(manifest.exit.unwrap().status, Some(0));
        let mut of_rings = HashMap::<i32, Counted>::new();
        let manifest = each_row(&trace, |ring, kind, event, payload| {
            assert_eq!(
                kind,
                Kind::Instant as i8,
                "nothing is lost, so there is no gap"
            );
            of_rings.entry(ring).or_default().take(event, payload);
        });
        assert_eq!(manifest.lost, 0, "{:?}", manifest.warnings);
        // The kernel may reuse a process number, but not within so few processes.
        let of_threads: HashMap<i32, i32> =
            (manifest.rings.iter().map(|ring| (ring.tid, ring.ring))).collect();
        assert_eq!(of_threads.len(), manifest.rings.len());
        for cell in 0..THREADS * children {
            let (published, tid) = (word(&cells, 2 * cell), word(&cells, 2 * cell + 1));
            let what = format!("recording {recording}, cell {cell}, thread {tid}");
            let ring = of_threads.get(&(tid as i32));
            let counted = ring.and_then(|ring| of_rings.get(ring));
            let kept = counted.map_or(0, |counted| counted.events);
            assert_eq!(
                counted.and_then(|c| c.wrong),
                None,
                "{what}: torn, twice or out of order"
            );
            // A thread may have been killed between publishing an event and counting it.
            assert!(
                (published..=published + 1).contains(&kept),
                "{what}: {kept} of {published}"
            );
            checked += published;
            behind += kept - published;
        }
    }
    println!(
        "{} kills, {checked} events counted, {behind} in flight",
        recordings * children as u64
    );
    assert!(checked > 100_000, "the programs hardly ran");
}

fn word(file: &fs::File, index: usize) -> u64 {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, 8 * index as u64).unwrap();
    u64::from_le_bytes(bytes)
}

/// Counts the rows of saturated writers, which number their events 0, 1, 2, ...: the low 32 bits
/// are the payload, the rest is the event less 1.
#[derive(Default)]
struct Flood {
    events: u64,
    /// Smallest possible next number.
    next: u64,
    /// Events that the gaps report, and events that are missing from the numbers.
    told: u64,
    missing: u64,
    backward: u64,
}

impl Flood {
    fn take(&mut self, kind: i8, event: i32, payload: i64) {
        if kind == Kind::Gap as i8 {
            self.told += payload as u64;
            return;
        }
        self.events += 1;
        let number = (event as u64 - 1) << 32 | u64::from(payload as u32);
        let Some(ahead) = number.checked_sub(self.next) else {
            self.backward += 1;
            return;
        };
        self.missing += ahead;
        self.next = number + 1;
    }
}

/// The counts that the threads of a saturated program reported, by thread; the trace's account; and
/// the rows of the trace, by ring.
struct Saturated {
    said: HashMap<i32, u64>,
    manifest: Manifest,
    floods: HashMap<i32, Flood>,
}

fn saturated(
    trace: &Path,
    threads: usize,
    settings: undertick_record::session::Settings,
) -> Saturated {
    let seconds: f64 = std::env::var("UNDERTICK_SATURATED_SECONDS")
        .map_or(0.5, |text| text.parse().expect("a number"));
    let binary = program("counted.c", &[]);
    let file = tempfile::NamedTempFile::new().unwrap();
    let command = [
        "sh",
        "-c",
        "out=$1; shift; exec \"$@\" >>\"$out\"",
        "sh",
        file.path().to_str().unwrap(),
        binary.to_str().unwrap(),
        "saturate",
        &threads.to_string(),
        &format!("{}", (seconds * 1000.0) as u64),
    ];
    run(trace, &command, settings).unwrap();
    let said = (fs::read_to_string(file.path()).unwrap().lines())
        .map(|line| line.split_once(' ').unwrap())
        .map(|(tid, n)| (tid.parse().unwrap(), n.parse().unwrap()))
        .collect();
    let mut floods = HashMap::<i32, Flood>::new();
    let manifest = each_row(trace, |ring, kind, event, payload| {
        floods.entry(ring).or_default().take(kind, event, payload);
    });
    Saturated {
        said,
        manifest,
        floods,
    }
}

#[test]
fn saturated_writers_are_accounted_for_exactly() {
    let _alone = alone();
    for threads in [2, 8] {
        for (overflow, ring, budget) in [
            (Overflow::Drop, 256 * 1024, None),
            (Overflow::Overwrite, MIB, None),
            (Overflow::Block, 256 * 1024, None),
            (Overflow::Grow, 256 * 1024, Some(8 * MIB)), // then drops
        ] {
            let dir = tempfile::tempdir().unwrap();
            let trace = dir.path().join("s.ut");
            let what = format!("{overflow:?}, {threads} threads");
            let Saturated {
                said,
                manifest,
                mut floods,
            } = saturated(&trace, threads, settings(overflow, ring, budget));
            assert_eq!(
                (said.len(), manifest.rings.len()),
                (threads, threads),
                "{what}"
            );
            for ring in &manifest.rings {
                // A thread that found the budget used up has no row.
                let flood = floods.entry(ring.ring).or_default();
                let what = format!("{what}: {ring:?}");
                assert_eq!(ring.written, said[&ring.tid], "{what}");
                assert_eq!(
                    ring.received + ring.dropped + ring.overwritten,
                    ring.written,
                    "{what}"
                );
                assert_eq!(flood.events, ring.received, "{what}");
                assert_eq!(flood.backward, 0, "{what}: in order, and none twice");
                // Only the account has what was lost after the last received event.
                let after = ring.written - flood.next;
                let lost = ring.dropped + ring.overwritten;
                assert_eq!(flood.missing + after, lost, "{what}");
                if ring.overwritten == 0 {
                    assert!(flood.told <= flood.missing, "{what}");
                }
            }
            let sum = |of: fn(&undertick_format::manifest::Ring) -> u64| {
                manifest.rings.iter().map(of).sum::<u64>()
            };
            let (written, received) = (sum(|r| r.written), sum(|r| r.received));
            assert_eq!(manifest.lost, written - received, "{what}");
            assert_eq!(manifest.events, received, "{what}");
            match overflow {
                Overflow::Block => assert_eq!(manifest.lost, 0, "{what}"),
                Overflow::Overwrite | Overflow::Drop => assert!(manifest.lost > 0, "{what}"),
                Overflow::Grow => {}
            }
            println!(
                "{what}: {written} written, {received} received, {} lost",
                manifest.lost
            );
        }
    }
}
