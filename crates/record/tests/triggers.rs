//! Rules that make snapshots: of programs that are held up at known places.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{Row, alone, program, request, rows, settings};
use undertick_format::manifest::Manifest;
use undertick_format::schema::Kind;
use undertick_record::Overflow;
use undertick_record::record::{RecordingProgress, record};
use undertick_record::triggers::{SnapshotMade, Triggers};

const REQUEST: i32 = 11;
const NUMBER: i32 = 12;
/// Time for which the program is held up, and the limit of the rules, ns.
const STALL_NS: f64 = 8e6;
const LIMIT_NS: f64 = 4e6;

fn triggers(rules: &[&str]) -> Triggers {
    Triggers {
        rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
        before: Duration::from_millis(50),
        after: Duration::from_millis(5),
        at_most: (1000, Duration::from_secs(3600)),
        most_bytes: None,
    }
}

/// What a recording of `stalls.c` has left.
struct Recorded {
    manifest: Manifest,
    made: Vec<SnapshotMade>,
    /// Numbers of the requests that were held up.
    stalls: Vec<i64>,
}

fn recorded(dir: &Path, words: &[&str], triggers: Triggers) -> Recorded {
    let said = dir.join("said");
    let binary = program("stalls.c", &[]);
    let line = format!(
        "exec {} {} > {}",
        binary.display(),
        words.join(" "),
        said.display()
    );
    let mut request = request(
        &dir.join("run.ut"),
        &["sh", "-c", &line],
        settings(Overflow::Overwrite, 4 << 20, Some(64 << 20)),
    );
    request.triggers = Some(triggers);
    let mut made = Vec::new();
    let manifest = record(request, &mut |it| {
        if let RecordingProgress::Snapshot(snapshot) = it {
            made.push(snapshot.unwrap());
        }
    })
    .unwrap();
    assert_eq!(manifest.exit.unwrap().status, Some(0));
    let said = fs::read_to_string(said).unwrap();
    let number = |line: &str| line.strip_prefix("stall ").unwrap().parse().unwrap();
    Recorded {
        manifest,
        made,
        stalls: said.lines().map(number).collect(),
    }
}

/// Begin and end of the request with a number, and the first record of its thread.
fn request_of(rows: &[Row], number: i64) -> Option<(i64, i64, i64)> {
    let at = (rows.iter()).position(|row| row.event == NUMBER && row.payload == number)?;
    let ring = rows[at].ring;
    let of_ring = |row: &&Row| row.ring == ring;
    let is = |row: &Row, kind: Kind| row.event == REQUEST && row.kind == kind as i8;
    let begin = rows[..at]
        .iter()
        .rev()
        .filter(of_ring)
        .find(|row| is(row, Kind::Begin))?;
    let end = rows[at..]
        .iter()
        .filter(of_ring)
        .find(|row| is(row, Kind::End))?;
    let first = rows.iter().find(of_ring)?;
    Some((begin.ts, end.ts, first.ts))
}

/// Checks that each stall is in a snapshot with what came before it, and that each snapshot has a
/// reason that its own records show.
fn check(recorded: &Recorded, before_ns: f64) {
    let mut found = BTreeSet::new();
    for made in &recorded.made {
        let (manifest, rows) = rows(&made.trace);
        let ns = |ticks: i64| ticks as f64 * manifest.clock.ns_per_tick();
        let reason = manifest.triggered.first().expect("a reason");
        assert_eq!(made.why.as_ref(), Some(&reason.text));
        let began = reason.began_ts.unwrap();
        let is_there = |kind: Kind, ts: i64| {
            (rows.iter()).any(|row| row.ts == ts && row.event == REQUEST && row.kind == kind as i8)
        };
        assert!(
            is_there(Kind::Begin, began) && is_there(Kind::End, reason.ts),
            "{reason:?}"
        );
        let took = ns(reason.ts - began);
        assert!(
            (took - reason.took_ns.unwrap()).abs() <= 1.0,
            "{took} {reason:?}"
        );
        assert!(took > LIMIT_NS, "{reason:?}");
        for &number in &recorded.stalls {
            let Some((begin, end, first)) = request_of(&rows, number) else {
                continue;
            };
            assert!(
                ns(end - begin) >= 0.99 * STALL_NS,
                "{number}: {}",
                ns(end - begin)
            );
            // What came longer ago than is kept is not there.
            assert!(ns(began - first) <= 50e6 + 1.0, "{}", ns(began - first));
            if ns(begin - first) >= before_ns {
                found.insert(number);
            }
        }
    }
    let all: BTreeSet<i64> = recorded.stalls.iter().copied().collect();
    assert_eq!(found, all, "{:?}", recorded.made);
}

#[test]
fn each_stall_is_kept_with_what_came_before_it() {
    let _alone = alone();
    for kind in ["spin", "sleep", "lock"] {
        let dir = tempfile::tempdir().unwrap();
        let triggers = triggers(&["request > 4ms"]);
        let recorded = recorded(dir.path(), &["stalls", "8", "30", kind], triggers);
        assert_eq!(recorded.stalls.len(), 8);
        check(&recorded, 10e6);
        assert_eq!(recorded.manifest.triggered, []);
    }
}

/// The ring of a thread that has ended is read to its end before its memory is given to another.
#[test]
fn the_last_request_of_a_thread_is_kept() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let recorded = recorded(dir.path(), &["threads", "12"], triggers(&["request > 4ms"]));
    assert_eq!(recorded.stalls.len(), 12);
    check(&recorded, 0.0);
}

/// While a snapshot is made, the rings of threads that have ended stay: they are not judged again.
#[test]
fn a_request_is_found_once_while_rings_are_held() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("run.ut");
    let recorded = std::thread::scope(|scope| {
        // As a snapshot does: a shared lock on the session's control page.
        scope.spawn(|| {
            let session = loop {
                let text = fs::read_to_string(trace.join("manifest.json")).unwrap_or_default();
                let manifest = serde_json::from_str::<Manifest>(&text);
                match manifest.ok().and_then(|manifest| manifest.session) {
                    Some(session) => break session,
                    None => std::thread::sleep(Duration::from_millis(1)),
                }
            };
            let control = fs::File::open(Path::new(&session).join("control")).unwrap();
            rustix::fs::flock(&control, rustix::fs::FlockOperation::LockShared).unwrap();
            std::thread::sleep(Duration::from_millis(400));
        });
        let triggers = Triggers {
            after: Duration::from_secs(3600),
            ..triggers(&["request > 4ms"])
        };
        recorded(dir.path(), &["threads", "10"], triggers)
    });
    // One snapshot at the end, with all reasons.
    assert_eq!(recorded.made.len(), 1, "{:?}", recorded.made);
    let (manifest, _) = rows(&recorded.made[0].trace);
    let found: BTreeSet<(Option<i32>, i64)> = (manifest.triggered.iter())
        .map(|reason| (reason.tid, reason.ts))
        .collect();
    assert_eq!(
        found.len(),
        manifest.triggered.len(),
        "{:?}",
        manifest.triggered
    );
    assert!(found.len() >= 10, "{:?}", manifest.triggered);
    assert_eq!(manifest.triggered_more, 0);
}

/// The snapshot is made while the span is open, and says what its thread waits for.
#[test]
fn a_span_that_does_not_end_is_kept_before_it_ends() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let triggers = triggers(&["request open for 100ms", "request > 1s"]);
    let recorded = recorded(dir.path(), &["open", "3000"], triggers);
    let rules = |made: &SnapshotMade| {
        let manifest = rows(&made.trace).0;
        let rules = manifest.triggered.iter().map(|of| of.rule.clone());
        rules.collect::<Vec<_>>()
    };
    assert_eq!(recorded.made.len(), 2, "{:?}", recorded.made);
    assert_eq!(rules(&recorded.made[0]), ["request open for 100ms"]);
    assert_eq!(rules(&recorded.made[1]), ["request > 1s"]);
    let (manifest, before) = rows(&recorded.made[0].trace);
    assert_eq!(
        request_of(&before, recorded.stalls[0]),
        None,
        "it has ended already"
    );
    let reason = &manifest.triggered[0];
    assert!(reason.took_ns.unwrap() < 2e9, "{reason:?}");
    assert_eq!(
        reason.state.as_ref().unwrap().state,
        "sleeping",
        "{reason:?}"
    );
    assert!(reason.text.contains("was open for"), "{reason:?}");
    let (_, after) = rows(&recorded.made[1].trace);
    assert!(request_of(&after, recorded.stalls[0]).is_some());
}

/// An event that comes once; a rule about a name that nobody gives.
#[test]
fn an_event_is_kept_and_an_unknown_name_is_said() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let triggers = triggers(&["event error", "reqest > 1ms"]);
    let recorded = recorded(dir.path(), &["events", "1000"], triggers);
    assert_eq!(recorded.made.len(), 1, "{:?}", recorded.made);
    assert_eq!(recorded.made[0].why.as_deref(), Some("error came"));
    let unknown = "no event has the name in the rule reqest > 1ms: it was never met";
    assert!(
        recorded
            .manifest
            .warnings
            .iter()
            .any(|warning| warning == unknown)
    );
}

/// One snapshot an hour, and then snapshots of one byte, of which each replaces the one before.
#[test]
fn their_number_and_size_are_limited() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let once = Triggers {
        at_most: (1, Duration::from_secs(3600)),
        ..triggers(&["request > 4ms"])
    };
    let words = ["stalls", "4", "100", "sleep"];
    let limited = recorded(dir.path(), &words, once);
    assert_eq!(limited.made.len(), 1);
    let said = |warning: &String| warning.contains("--at-most allows 1 in 3600s");
    assert!(
        limited.manifest.warnings.iter().any(said),
        "{:?}",
        limited.manifest.warnings
    );

    let dir = tempfile::tempdir().unwrap();
    let small = Triggers {
        most_bytes: Some(1),
        ..triggers(&["request > 4ms"])
    };
    let replaced = recorded(dir.path(), &words, small);
    let made: Vec<&PathBuf> = replaced.made.iter().map(|made| &made.trace).collect();
    let (last, earlier) = made.split_last().unwrap();
    assert!(!earlier.is_empty() && last.exists());
    for trace in earlier {
        assert!(!trace.exists(), "{}", trace.display());
    }
    let removed: Vec<&PathBuf> = replaced
        .made
        .iter()
        .flat_map(|made| &made.removed)
        .collect();
    assert_eq!(removed, earlier);
}
