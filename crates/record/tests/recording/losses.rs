//! Every event is in the trace, or is counted as lost: rings that grow or overflow, readers that
//! open a trace too early, and programs that are killed.

use undertick_format::TraceError;
use undertick_format::schema::Kind;
use undertick_record::Overflow;

use crate::common::{alone, killed, payloads, rows, settings};
use crate::{MIB, assert_complete, recorded};

#[test]
fn one_and_two_million_events_in_every_growth() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    for (name, arguments, n) in [
        ("count", "3000000", 3_000_000),
        ("wide", "1000001", 1_000_001),
    ] {
        let trace = dir.path().join(format!("{name}.ut"));
        let (_, said) = recorded(
            &trace,
            &[name, arguments],
            settings(Overflow::Grow, 256 * 1024, None),
        );
        let rows = assert_complete(&trace, &said);
        let payloads: Vec<i64> = rows
            .iter()
            .filter(|row| row.event == 1)
            .map(|row| row.payload)
            .collect();
        assert_eq!(payloads.len(), n);
        for (i, payload) in payloads.iter().enumerate() {
            let expected = if name == "wide" {
                (i as i64) << 32 | i64::from(!(i as u32))
            } else {
                i as i64
            };
            assert_eq!(*payload, expected);
        }
    }
}

#[test]
fn every_overflow_policy_accounts_for_every_event() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let n = 3_000_000u64;
    for (overflow, budget) in [
        (Overflow::Drop, None),
        (Overflow::Overwrite, None),
        (Overflow::Block, None),
        (Overflow::Grow, Some(MIB)), // grows to 1 MiB, then drops
    ] {
        let trace = dir.path().join(format!("{overflow:?}.ut"));
        let (manifest, _) = recorded(
            &trace,
            &["count", &n.to_string()],
            settings(overflow, 256 * 1024, budget),
        );
        let (_, rows) = rows(&trace);
        let ring = manifest.rings[0];
        assert_eq!(ring.written, n, "{overflow:?}");
        assert_eq!(
            ring.received + ring.dropped + ring.overwritten,
            n,
            "{overflow:?}"
        );
        assert_eq!(manifest.lost, ring.dropped + ring.overwritten);
        let events: Vec<i64> = rows
            .iter()
            .filter(|row| row.kind != Kind::Gap as i8)
            .map(|row| row.payload)
            .collect();
        assert_eq!(events.len() as u64, ring.received);
        assert!(events.is_sorted_by(|a, b| a < b));
        match overflow {
            Overflow::Block => assert_eq!(manifest.lost, 0),
            Overflow::Overwrite => {
                // Two segments of 8192 records: the last events only.
                assert!(ring.overwritten > 0 && *events.last().unwrap() as u64 == n - 1);
                assert_eq!(events.len() as i64, events.last().unwrap() - events[0] + 1);
            }
            _ => {
                // A gap row reports each hole in the numbers, at its place and time.
                assert!(rows.is_sorted_by_key(|row| row.ts), "{overflow:?}");
                let mut told = 0;
                let mut expected = 0i64;
                for row in &rows {
                    if row.kind == Kind::Gap as i8 {
                        told += row.payload;
                        expected += row.payload;
                    } else {
                        assert_eq!(row.payload, expected, "{overflow:?}");
                        expected += 1;
                    }
                }
                assert!(
                    told as u64 <= ring.dropped,
                    "what was dropped last has no gap row after it"
                );
            }
        }
    }
}

/// A reader that opens a trace repeatedly while it is recorded and finalized learns that it is
/// being recorded, and then gets all of it: no two processes may finish it at once.
#[test]
fn a_trace_opened_while_it_is_kept() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let mut refused = 0;
    for round in 0..12 {
        let trace = dir.path().join(format!("{round}.ut"));
        let opened = std::thread::scope(|scope| {
            let opener = scope.spawn(|| {
                let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
                let mut refused = 0;
                loop {
                    let is_trace = trace.join("manifest.json").exists();
                    match undertick_format::read::Trace::open(&trace) {
                        Ok(opened) => return (opened.manifest, refused),
                        Err(TraceError::Recording(_)) => refused += 1,
                        Err(error) => assert!(!is_trace, "{error}"),
                    }
                    assert!(std::time::Instant::now() < end, "never complete");
                }
            });
            recorded(
                &trace,
                &["count", "400000"],
                settings(Overflow::Grow, MIB, None),
            );
            opener.join().unwrap()
        });
        refused += opened.1;
        let (manifest, rows) = rows(&trace);
        assert_eq!(
            (manifest.events, rows.len()),
            (400_000, 400_000),
            "round {round}"
        );
        assert_eq!(opened.0, manifest, "round {round}");
    }
    assert!(refused > 100, "it was hardly ever open: {refused}");
}

#[test]
fn two_hundred_kills_lose_nothing_that_was_written() {
    let _alone = alone();
    killed("writer.c", 200, |killed| {
        let round = killed.round;
        let got = payloads(&killed.rows);
        for &(tid, published) in &killed.published {
            let events = got.get(&(tid, 1)).map_or(&[][..], Vec::as_slice);
            assert!(
                events.len() as u64 >= published,
                "round {round}: {} of {published} kept",
                events.len()
            );
            // One more event than was counted may be there, and none may be torn.
            assert!(events.len() as u64 <= published + 1, "round {round}");
            assert!(
                events
                    .iter()
                    .enumerate()
                    .all(|(i, &payload)| payload == i as i64),
                "round {round}: torn"
            );
        }
        assert_eq!(killed.manifest.lost, 0);
    });
}
