//! Imports of files written by hand, and round trips.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use rand::{RngExt as _, SeedableRng as _};
use undertick_convert::export::otlp::FileForm;
use undertick_convert::import::{Source, import};
use undertick_format::manifest::Manifest;
use undertick_format::read::Trace;
use undertick_format::schema;

use super::support::{exported, spans};

/// Thread, name, kind, time and payload of a row.
type Row = (String, String, i8, i64, i64);

const INSTANT: i8 = 0;
const BEGIN: i8 = 1;
const END: i8 = 2;

fn imported(dir: &Path, bytes: &[u8]) -> (Manifest, Trace) {
    let (file, out) = (dir.join("file"), dir.join("imported.ut"));
    let _ = std::fs::remove_dir_all(&out);
    std::fs::write(&file, bytes).unwrap();
    let manifest = import(&file, None, &out, &mut |_| {}).unwrap();
    (manifest, Trace::open(&out).unwrap())
}

/// All rows, with the names of threads (their numbers where they have none).
fn rows(trace: &Trace) -> Vec<Row> {
    let manifest = &trace.manifest;
    let mut rows = Vec::new();
    for batch in trace.batches() {
        let batch = batch.unwrap();
        let i32s = |c: usize| batch.column(c).as_primitive::<Int32Type>().clone();
        let i64s = |c: usize| batch.column(c).as_primitive::<Int64Type>().clone();
        let kind = batch
            .column(schema::KIND)
            .as_primitive::<Int8Type>()
            .clone();
        let (tid, event) = (i32s(schema::TID), i32s(schema::EVENT));
        let (ts, payload) = (i64s(schema::TS), i64s(schema::PAYLOAD));
        for i in 0..batch.num_rows() {
            let thread = manifest.threads.iter().find(|t| t.tid == tid.value(i));
            let name = manifest
                .names
                .iter()
                .find(|n| i32::from(n.event) == event.value(i));
            rows.push((
                thread.map_or_else(|| tid.value(i).to_string(), |t| t.name.clone()),
                name.unwrap().name.clone(),
                kind.value(i),
                ts.value(i),
                payload.value(i),
            ));
        }
    }
    rows
}

fn row(thread: &str, name: &str, kind: i8, ns: i64, payload: i64) -> Row {
    (thread.to_owned(), name.to_owned(), kind, ns, payload)
}

/// Two documents: a request with two children that overlap each other, the second one longer than
/// the first; and a span of thread 4 with one inside it. The text follows the examples of the OTLP
/// specification: identifiers in hexadecimal digits, 64-bit numbers as texts.
const FILE: &str = r#"{"resourceSpans":[{"resource":{"attributes":[
 {"key":"service.name","value":{"stringValue":"shop"}},{"key":"x","value":{"boolValue":true}}]},
 "scopeSpans":[{"scope":{"name":"lib"},"spans":[
  {"traceId":"0000000000000001000000000000000a","spanId":"0000000000000002","parentSpanId":"0000000000000001",
   "name":"first","kind":3,"startTimeUnixNano":"2000","endTimeUnixNano":"5000",
   "links":[{"traceId":"0000000000000001000000000000000b","spanId":"0000000000000009"}]},
  {"traceId":"0000000000000001000000000000000a","spanId":"0000000000000001","name":"request",
   "startTimeUnixNano":"1000","endTimeUnixNano":"9000","status":{"code":2},
   "attributes":[{"key":"http.method","value":{"stringValue":"GET"}}],
   "events":[{"timeUnixNano":"1500","name":"log","attributes":[{"key":"n","value":{"intValue":"-3"}}]}]},
  {"traceId":"0000000000000001000000000000000a","spanId":"0000000000000003","parentSpanId":"0000000000000001",
   "name":"second","startTimeUnixNano":"3000","endTimeUnixNano":"8000"},
  {"traceId":"0000000000000001000000000000000a","spanId":"0000000000000004","name":"backwards",
   "startTimeUnixNano":"3000","endTimeUnixNano":"2999"}]}]}]}
{"resourceSpans":[{"resource":{"attributes":[{"key":"process.pid","value":{"intValue":"3"}}]},
 "scopeSpans":[{"spans":[
  {"traceId":"0000000000000001000000000000000c","spanId":"0000000000000005","name":"outer",
   "startTimeUnixNano":"100","endTimeUnixNano":"200","droppedEventsCount":6,
   "attributes":[{"key":"thread.id","value":{"intValue":"4"}},
                 {"key":"thread.name","value":{"stringValue":"main"}}]},
  {"traceId":"0000000000000001000000000000000c","spanId":"0000000000000006","parentSpanId":"0000000000000005",
   "name":"inner","startTimeUnixNano":"100","endTimeUnixNano":"200",
   "attributes":[{"key":"thread.id","value":{"intValue":"4"}}]}]}]}]}
"#;

#[test]
fn spans_nest_in_their_parents_and_overlap_in_lanes() {
    let dir = tempfile::tempdir().unwrap();
    let (manifest, trace) = imported(dir.path(), FILE.as_bytes());
    let of = |thread: &str| {
        let all = rows(&trace).into_iter();
        all.filter(|row| row.0 == thread).collect::<Vec<_>>()
    };
    let (high, low, parent, span) = (
        "otel.trace_id.high",
        "otel.trace_id.low",
        "otel.parent_span_id",
        "otel.span_id",
    );
    let first = "shop async 1";
    assert_eq!(
        of(first),
        [
            row(first, "request", BEGIN, 1000, 0),
            row(first, high, INSTANT, 1000, 1),
            row(first, low, INSTANT, 1000, 10),
            row(first, parent, INSTANT, 1000, 0),
            row(first, span, INSTANT, 1000, 1),
            row(first, "log", INSTANT, 1500, -3),
            row(first, "first", BEGIN, 2000, 0),
            row(first, span, INSTANT, 2000, 2),
            row(first, "first", END, 5000, 0),
            row(first, "request", END, 9000, 0),
        ]
    );
    let second = "shop async 2";
    assert_eq!(
        of(second),
        [
            row(second, "second", BEGIN, 3000, 0),
            row(second, high, INSTANT, 3000, 1),
            row(second, low, INSTANT, 3000, 10),
            row(second, parent, INSTANT, 3000, 1),
            row(second, span, INSTANT, 3000, 3),
            row(second, "second", END, 8000, 0),
        ]
    );
    assert_eq!(
        of("main"),
        [
            row("main", "outer", BEGIN, 100, 0),
            row("main", high, INSTANT, 100, 1),
            row("main", low, INSTANT, 100, 12),
            row("main", parent, INSTANT, 100, 0),
            row("main", span, INSTANT, 100, 5),
            row("main", "inner", BEGIN, 100, 0),
            row("main", span, INSTANT, 100, 6),
            row("main", "inner", END, 200, 0),
            row("main", "outer", END, 200, 0),
        ]
    );
    let said = manifest.warnings.join("\n");
    for words in [
        "kept: 5 spans, 1 events; 3 of the spans in lanes",
        "1 x span that ends before it begins",
        "1 x attribute of a span",
        "1 x attribute of a resource",
        "1 x link of a span",
        "1 x status of a span",
        "1 x kind of a span",
    ] {
        assert!(said.contains(words), "{words:?} is not in: {said}");
    }
    assert_eq!(manifest.lost, 6);
    assert_eq!(manifest.command, ["shop"]);
}

/// A span that lies in another one of its thread by time alone, as those of async tasks do.
#[test]
fn a_span_within_one_that_is_not_its_parent_gets_a_lane() {
    let dir = tempfile::tempdir().unwrap();
    let span = |id: u64, parent: u64, name: &str, start: u64, end: u64| {
        format!(
            r#"{{"traceId":"0000000000000001000000000000000c","spanId":"{id:016x}","parentSpanId":"{parent:016x}",
            "name":"{name}","startTimeUnixNano":"{start}","endTimeUnixNano":"{end}",
            "attributes":[{{"key":"thread.id","value":{{"intValue":"4"}}}}]}}"#
        )
    };
    let all = [
        span(1, 0, "long", 100, 900),
        span(2, 0, "unrelated", 200, 300),
        span(3, 1, "child", 250, 400),
    ];
    let file = format!(
        r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{}]}}]}}]}}"#,
        all.join(",")
    );
    let (_, trace) = imported(dir.path(), file.as_bytes());
    let rows = rows(&trace);
    let of = |thread: &str| {
        let of_thread = rows
            .iter()
            .filter(|row| row.0 == thread && row.2 != INSTANT);
        of_thread
            .map(|row| (row.1.as_str(), row.2, row.3))
            .collect::<Vec<_>>()
    };
    let nested = [
        ("long", BEGIN, 100),
        ("child", BEGIN, 250),
        ("child", END, 400),
        ("long", END, 900),
    ];
    assert_eq!(of("4"), nested);
    assert_eq!(
        of("async 1"),
        [("unrelated", BEGIN, 200), ("unrelated", END, 300)]
    );
}

/// The messages of a file, sorted, without what an import leaves out.
fn sorted(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| (span.start_time_unix_nano, span.span_id.clone()));
    spans
}

#[test]
fn all_forms_are_the_same_and_identifiers_survive() {
    let dir = tempfile::tempdir().unwrap();
    let (_, trace) = imported(dir.path(), FILE.as_bytes());
    let (result, requests) = exported(&trace, dir.path(), FileForm::Delimited, None);
    assert_eq!((result.counts.spans, result.counts.unfinished), (5, 0));
    let once = sorted(spans(&requests));
    let ids = |span: &Span| {
        let low = |id: &[u8]| id.last().copied();
        (
            span.name.clone(),
            low(&span.trace_id),
            low(&span.span_id),
            low(&span.parent_span_id),
        )
    };
    let found: Vec<_> = once.iter().map(ids).collect();
    let expected = [
        ("outer", Some(12), Some(5), None),
        ("inner", Some(12), Some(6), Some(5)),
        ("request", Some(10), Some(1), None),
        ("first", Some(10), Some(2), Some(1)),
        ("second", Some(10), Some(3), Some(1)),
    ]
    .map(|(name, trace, span, parent)| (name.to_owned(), trace, span, parent));
    assert_eq!(found, expected);
    // As the collector's file exporter writes protobuf, and as we do, and as JSON.
    let collectors: Vec<u8> = (requests.iter())
        .flat_map(|request| {
            let bytes = request.encode_to_vec();
            [&(bytes.len() as u32).to_be_bytes()[..], &bytes].concat()
        })
        .collect();
    let delimited = std::fs::read(dir.path().join("out")).unwrap();
    let json = exported(&trace, dir.path(), FileForm::JsonLines, None);
    assert_eq!(json.1, requests);
    let json = std::fs::read(dir.path().join("out")).unwrap();
    let pretty: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let pretty = serde_json::to_vec_pretty(&pretty).unwrap();
    for bytes in [collectors, delimited, json, pretty] {
        let (_, trace) = imported(dir.path(), &bytes);
        let again = exported(&trace, dir.path(), FileForm::Delimited, None).1;
        assert_eq!(sorted(spans(&again)), once);
    }
}

#[test]
fn a_cut_file_is_read_as_far_as_it_goes_and_a_damaged_one_refused_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let (_, trace) = imported(dir.path(), FILE.as_bytes());
    let requests = exported(&trace, dir.path(), FileForm::Delimited, None).1;
    let one = requests[0].encode_length_delimited_to_vec();
    let twice = [&one[..], &one[..one.len() - 1]].concat();
    for cut in [&twice[..], &FILE.as_bytes()[..FILE.len() - 5]] {
        let (manifest, trace) = imported(dir.path(), cut);
        assert!(!rows(&trace).is_empty());
        let said = manifest.warnings.join("\n");
        assert!(said.contains("cut short"), "{said}");
    }
    let refused = |bytes: &[u8], words: &[&str]| {
        let (file, out) = (dir.path().join("bad"), dir.path().join("bad.ut"));
        std::fs::write(&file, bytes).unwrap();
        let error = import(&file, Some(Source::Otlp), &out, &mut |_| {}).unwrap_err();
        assert_eq!(error.exit_status(), 2, "{error}");
        assert!(!out.exists());
        for word in words {
            assert!(
                error.to_string().contains(word),
                "{word:?} is not in: {error}"
            );
        }
    };
    let place = format!("byte {}", one.len());
    // A length beyond all bounds, a message that is none, and a span whose name is no text.
    refused(
        &[&one[..], &[0xff, 0xff, 0xff, 0x7f]].concat(),
        &[&place, "64 MiB"],
    );
    refused(
        &[&one[..], &[2, 0x20, 1]].concat(),
        &[&place, "without spans"],
    );
    // As a file of zeros is: it would have messages without end.
    refused(&[&one[..], &[0]].concat(), &[&place, "without spans"]);
    let bad_span = [9, 0x0a, 7, 0x12, 5, 0x12, 3, 0x2a, 1, 0xff];
    refused(
        &[&one[..], &bad_span].concat(),
        &[&place, "no span of OTLP"],
    );
    refused(
        br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":7}]}]}]}"#,
        &["byte", "no spans of OTLP"],
    );
    refused(br#"{"resourceSpans":[7]}"#, &["byte 18"]);
    refused(br#"{"resourceSpans":[]}"#, &["holds no event"]);
}

/// Small texts and messages that would become large structures, were they decoded whole.
#[test]
fn a_small_file_does_not_become_a_large_structure() {
    let dir = tempfile::tempdir().unwrap();
    let empty = 1 << 20;
    let scope = [&b"\x12\x00".repeat(empty)[..]].concat();
    let mut bytes = Vec::new();
    for (field, inner) in [(0x12u8, scope.len()), (0x0a, scope.len() + 5)] {
        let mut head = vec![field];
        prost::encode_length_delimiter(inner, &mut head).unwrap();
        bytes = [head, bytes].concat();
    }
    bytes.extend_from_slice(&scope);
    let whole = [ExportTraceServiceRequest::default().encode_to_vec(), bytes].concat();
    let mut file = Vec::new();
    prost::encode_length_delimiter(whole.len(), &mut file).unwrap();
    file.extend_from_slice(&whole);
    let (path, out) = (dir.path().join("file"), dir.path().join("t.ut"));
    std::fs::write(&path, file).unwrap();
    let error = import(&path, Some(Source::Otlp), &out, &mut |_| {})
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&format!("{empty} x span without a begin")),
        "{error}"
    );
}

/// A file that was changed, cut or joined at random is imported, or refused with a message.
#[test]
fn no_bytes_stop_it() {
    let dir = tempfile::tempdir().unwrap();
    let (_, trace) = imported(dir.path(), FILE.as_bytes());
    exported(&trace, dir.path(), FileForm::Delimited, None);
    let delimited = std::fs::read(dir.path().join("out")).unwrap();
    for seed in 0..400u64 {
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let whole = [FILE.as_bytes(), &delimited][seed as usize % 2];
        let mut bytes = whole.to_vec();
        for _ in 0..random.random_range(1..6) {
            let at = random.random_range(0..bytes.len());
            match random.random_range(0..4) {
                0 => bytes[at] = random.random(),
                1 => bytes[at] ^= 1 << random.random_range(0..8),
                2 => bytes.truncate(at.max(1)),
                _ => {
                    let piece = whole[random.random_range(0..whole.len())..].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        let (file, out) = (
            dir.path().join("file"),
            dir.path().join(format!("{seed}.ut")),
        );
        std::fs::write(&file, &bytes).unwrap();
        match import(&file, Some(Source::Otlp), &out, &mut |_| {}) {
            Ok(manifest) => {
                let rows = rows(&Trace::open(&out).unwrap()).len() as u64;
                assert_eq!(rows, manifest.events, "seed {seed}");
            }
            Err(error) => assert_eq!(error.exit_status(), 2, "seed {seed}: {error}"),
        }
    }
}
