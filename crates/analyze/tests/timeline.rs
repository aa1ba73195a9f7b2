//! The timeline of a second of a trace whose every span is known.

use std::path::Path;

use undertick_analyze::{Options, analyze, analyze_with_timeline};
use undertick_document::timeline::{LaneKind, Timeline};
use undertick_format::read::Trace;
use undertick_record::synthetic::SyntheticRing;
use undertick_ring::{DeschedFlag, Kind, Record};

use crate::support;

use support::made;

const OUTER: u16 = 1;
const INNER: u16 = 2;
const POINT: u16 = 3;
/// Ticks are microseconds.
const SECOND: i64 = 1_000_000;

fn record(ts: i64, event: u16, kind: Kind) -> Record {
    Record {
        ts: ts as u64,
        payload: 0,
        event,
        cpu: 0,
        kind,
        descheduled: DeschedFlag::No,
    }
}

/// Five seconds of turns of 1000 ticks: outer from 0 to 800, inner in it from 100 to 300, a point
/// at 900. In the third second one outer span may take 100 turns longer.
fn turns(slow_at: Option<i64>) -> Vec<Record> {
    let mut records = Vec::new();
    let mut turn = 0;
    while turn < 5 * SECOND {
        let long = slow_at == Some(turn);
        let end = turn + if long { 100_800 } else { 800 };
        records.push(record(turn, OUTER, Kind::Begin));
        records.push(record(turn + 100, INNER, Kind::Begin));
        records.push(record(turn + 300, INNER, Kind::End));
        records.push(record(end, OUTER, Kind::End));
        records.push(record(end + 100, POINT, Kind::Instant));
        turn = end + 200;
    }
    records
}

fn trace(dir: &Path) -> Trace {
    let path = dir.join("t.ut");
    let ring = |tid: i32, name: &str, records| SyntheticRing {
        pid: 1,
        tid,
        name: name.to_owned(),
        records,
        true_ns: Vec::new(),
    };
    let rings = [
        ring(7, "slow", turns(Some(2_400_000))),
        ring(8, "even", turns(None)),
    ];
    made::write_at(&path, SECOND as u64, &["outer", "inner", "point"], &rings);
    Trace::open(&path).unwrap()
}

fn timeline(trace: &Trace, second: Option<f64>) -> Timeline {
    let options = Options::default();
    let (report, timeline) = analyze_with_timeline(trace, &options, second, &mut |_| {}).unwrap();
    // The timeline changes no figure.
    assert_eq!(report, analyze(trace, options, &mut |_| {}).unwrap());
    timeline.unwrap()
}

/// Returns the sum of the shares of a row's columns, thousandths, and the number of spans that
/// began.
fn sums(timeline: &Timeline, lane: usize, row: u32) -> (u64, u64) {
    let rows = &timeline.lanes[lane].rows;
    let cells = rows
        .iter()
        .find(|r| r.row == row)
        .map_or(&[][..], |r| &r.cells);
    let sum = |field: usize| cells.chunks(4).map(|c| u64::from(c[field])).sum();
    (sum(2), sum(3))
}

#[test]
fn the_second_asked_for_holds_what_was_put_in() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    let found = timeline(&trace, Some(1e9));
    assert_eq!((found.from_ns, found.length_ns), (1e9, 1e9));
    assert_eq!(found.lanes.len(), 2);
    let names = |n: u32| found.names[n as usize].as_str();
    for lane in [0, 1] {
        assert_eq!(found.lanes[lane].kind, LaneKind::Thread);
        assert_eq!(found.lanes[lane].label, ["slow (7)", "even (8)"][lane]);
        // 1000 turns; an outer span of the previous turn touches neither end.
        assert_eq!(found.lanes[lane].spans, 2_000);
        assert!((found.lanes[lane].busy - 0.8).abs() < 1e-9);
        let columns = u64::from(found.columns);
        let close = |share: u64, of: u64| share.abs_diff(of * columns / 1000) <= columns;
        let (busy, began) = sums(&found, lane, 0);
        assert!(close(busy, 800_000) && began == 1_000, "{busy} {began}");
        let (busy, began) = sums(&found, lane, 1);
        assert!(close(busy, 200_000) && began == 1_000, "{busy} {began}");
    }
    assert_eq!((found.spans_all, found.instants), (4_000, 2_000));
    // All spans are listed: begin, length and name.
    assert_eq!(found.spans.len(), 4_000);
    let of_even: Vec<_> = found.spans.iter().filter(|s| s.0 == 1).collect();
    for (turn, pair) in of_even.chunks(2).enumerate() {
        let at = turn as f64 * 1e6;
        assert_eq!((pair[0].1, pair[0].2, pair[0].3), (0, at, 8e5));
        assert_eq!((pair[1].1, pair[1].2, pair[1].3), (1, at + 1e5, 2e5));
        assert_eq!((names(pair[0].4), names(pair[1].4)), ("outer", "inner"));
    }
}

#[test]
fn without_a_wish_it_is_the_one_with_the_slowest() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    let found = timeline(&trace, None);
    let (from, to) = (found.from_ns, found.from_ns + found.length_ns);
    assert!(from <= 2.4e9 && to >= 2.5008e9, "{from} to {to}");
    assert!(found.chosen.contains("most time beyond"));
    let detail = found.detail.as_ref().unwrap();
    let (lane, row, start, length, name, _) = detail.slowest;
    assert_eq!((lane, row, length), (0, 0, 1.008e8));
    assert!((found.from_ns + start - 2.4e9).abs() < 1.0);
    assert_eq!(found.names[name as usize], "outer");
    assert!(
        (detail.over_median_ns - 1e8).abs() < 1.0,
        "{}",
        detail.over_median_ns
    );
    // Every span of the window, and no other.
    assert_eq!(detail.shorter_left_out_ns, None);
    assert!(detail.spans.contains(&detail.slowest));
    let (begin, end) = (detail.from_ns, detail.from_ns + detail.length_ns);
    let touches = |s: &&undertick_document::timeline::Span| s.2 < end && s.2 + s.3 >= begin;
    let expected = found.spans.iter().filter(touches).count();
    assert_eq!(detail.spans.len(), expected);
    assert_eq!(
        found.spans_all,
        found.spans.len() as u64,
        "few enough for all to be there"
    );
}

#[test]
fn a_second_beyond_the_end_is_refused_with_its_length() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    let error =
        analyze_with_timeline(&trace, &Options::default(), Some(6e9), &mut |_| {}).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("--second") && text.contains("5.000 s"),
        "{text}"
    );
    // The last second is shorter.
    let last = timeline(&trace, Some(4.5e9));
    assert!((last.length_ns - 0.5e9).abs() < 2e6, "{}", last.length_ns);
}

#[test]
fn every_warning_has_its_chapter() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    let source = read("crates/analyze/src/warnings.rs");
    let source = source.split("#[cfg(test)]").next().unwrap();
    let mut codes: Vec<String> = (source.split(".add(").skip(1))
        .filter_map(|rest| rest.trim_start().strip_prefix('"'))
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect();
    let experiment = read("crates/experiment/src/combine.rs");
    for code in ["timed_out", "failed", "lacking"] {
        assert!(experiment.contains(&format!("\"{code}\"")));
        codes.push(code.to_owned());
    }
    assert!(codes.len() >= 25, "{codes:?}");
    for code in &codes {
        let chapter = undertick_document::chapters::for_code(code);
        let chapter = chapter.unwrap_or_else(|| panic!("{code} has no chapter"));
        let text = read(&format!("docs/book/{}", chapter.file));
        assert_eq!(
            text.lines().next().unwrap(),
            format!("# {}", chapter.title),
            "{code}"
        );
    }
    for (code, chapter) in undertick_document::chapters::CHAPTERS {
        assert!(codes.iter().any(|c| c == code), "{code} is nobody's");
        let reading = read("docs/book/reading-the-page.md");
        if chapter.file == "reading-the-page.md" {
            assert!(
                reading.contains(&format!("`{code}`")),
                "{code} is not told of"
            );
        }
    }
}
