//! Exports to files.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use undertick_convert::export::otlp::{FileForm, Only};

use super::support::{exported, named, spans, trace, value};

/// Two threads: an outer span with an inner one and points; a span that never ends with one in it,
/// whose end comes by the outer; a point in no span; an end without a begin.
const EVENTS: &str = r#"
    {"ph":"M","name":"process_name","pid":7,"args":{"name":"/usr/bin/shop"}},
    {"ph":"M","name":"thread_name","pid":7,"tid":8,"args":{"name":"worker"}},
    {"ph":"B","name":"outer","pid":7,"tid":8,"ts":1},
    {"ph":"i","name":"point","pid":7,"tid":8,"ts":1.5,"args":{"n":-9}},
    {"ph":"B","name":"inner","pid":7,"tid":8,"ts":2},
    {"ph":"i","name":"deep","pid":7,"tid":8,"ts":2.25},
    {"ph":"E","name":"inner","pid":7,"tid":8,"ts":3},
    {"ph":"B","name":"cut","pid":7,"tid":8,"ts":4},
    {"ph":"E","name":"outer","pid":7,"tid":8,"ts":5.001},
    {"ph":"i","name":"alone","pid":7,"tid":8,"ts":6,"args":{"n":44}},
    {"ph":"E","name":"never","pid":7,"tid":8,"ts":7},
    {"ph":"B","name":"open","pid":7,"tid":9,"ts":8}"#;

#[test]
fn every_span_is_there_with_its_parent_and_its_points() {
    for form in [FileForm::JsonLines, FileForm::Delimited] {
        let dir = tempfile::tempdir().unwrap();
        let trace = trace(dir.path(), EVENTS);
        let (exported, requests) = exported(&trace, dir.path(), form, None);
        let counts = exported.counts;
        assert_eq!((counts.spans, counts.unfinished), (4, 2), "{counts:?}");
        assert_eq!((counts.points, counts.points_alone), (2, 1), "{counts:?}");
        assert_eq!((counts.without_begin, counts.too_deep), (1, 0));
        let spans = spans(&requests);
        assert_eq!(spans.len(), 5);
        let [outer, inner, cut, open, alone] =
            ["outer", "inner", "cut", "open", "alone"].map(|name| named(&spans, name));
        let times = |name: &str| {
            let span = named(&spans, name);
            (span.start_time_unix_nano, span.end_time_unix_nano)
        };
        assert_eq!(times("outer"), (1000, 5001));
        assert_eq!(times("inner"), (2000, 3000));
        assert_eq!(times("cut"), (4000, 5001));
        assert_eq!(times("open"), (8000, 8000));
        assert_eq!(times("alone"), (6000, 6000));
        // Parents.
        assert_eq!(inner.parent_span_id, outer.span_id);
        assert_eq!(cut.parent_span_id, outer.span_id);
        for root in [outer, open, alone] {
            assert!(root.parent_span_id.is_empty(), "{root:?}");
        }
        for of_outer in [inner, cut] {
            assert_eq!(of_outer.trace_id, outer.trace_id);
        }
        let mut traces = [outer, open, alone]
            .map(|span| span.trace_id.clone())
            .to_vec();
        traces.sort();
        traces.dedup();
        assert_eq!(traces.len(), 3);
        assert!(
            spans
                .iter()
                .all(|span| span.trace_id.len() == 16 && span.span_id.len() == 8)
        );
        // Points.
        let point = &outer.events[0];
        assert_eq!((outer.events.len(), point.time_unix_nano), (1, 1500));
        assert_eq!(point.name, "point");
        assert_eq!(
            value(&point.attributes, "undertick.payload"),
            Some(Value::IntValue(-9))
        );
        assert_eq!(inner.events[0].name, "deep");
        assert_eq!(
            value(&alone.attributes, "undertick.payload"),
            Some(Value::IntValue(44))
        );
        assert_eq!(
            value(&alone.attributes, "undertick.instant"),
            Some(Value::BoolValue(true))
        );
        // What is not finished says so, and nothing else does.
        for span in &spans {
            let says = value(&span.attributes, "undertick.unfinished").is_some();
            assert_eq!(
                says,
                ["cut", "open"].contains(&span.name.as_str()),
                "{span:?}"
            );
        }
        // Thread and resource.
        assert_eq!(
            value(&inner.attributes, "thread.id"),
            Some(Value::IntValue(8))
        );
        let worker = Some(Value::StringValue("worker".to_owned()));
        assert_eq!(value(&inner.attributes, "thread.name"), worker);
        let resource = requests[0].resource_spans[0].resource.clone().unwrap();
        let shop = Some(Value::StringValue("shop".to_owned()));
        assert_eq!(value(&resource.attributes, "service.name"), shop);
        assert_eq!(
            value(&resource.attributes, "process.pid"),
            Some(Value::IntValue(7))
        );
        assert!(value(&resource.attributes, "host.name").is_some());
    }
}

#[test]
fn a_second_export_has_the_same_identifiers_and_another_recording_others() {
    let dir = tempfile::tempdir().unwrap();
    let first = trace(dir.path(), EVENTS);
    let all =
        |trace, dir: &std::path::Path| spans(&exported(trace, dir, FileForm::Delimited, None).1);
    let once = all(&first, dir.path());
    assert_eq!(once, all(&first, dir.path()));
    let other_dir = tempfile::tempdir().unwrap();
    let other = trace(
        other_dir.path(),
        &EVENTS.replace("/usr/bin/shop", "/usr/bin/other"),
    );
    let others = all(&other, other_dir.path());
    for (one, other) in once.iter().zip(&others) {
        assert_eq!(one.name, other.name);
        assert_ne!(one.span_id, other.span_id);
        assert_ne!(one.trace_id, other.trace_id);
    }
}

/// As a processor of spans records them: identifiers after the begin, and a span that ends in
/// another thread.
const IDENTIFIED: &str = r#"
    {"ph":"B","name":"root","pid":7,"tid":8,"ts":1},
    {"ph":"i","name":"otel.trace_id.high","pid":7,"tid":8,"ts":1,"args":{"n":72623859790382856}},
    {"ph":"i","name":"otel.trace_id.low","pid":7,"tid":8,"ts":1,"args":{"n":-2}},
    {"ph":"i","name":"otel.parent_span_id","pid":7,"tid":8,"ts":1,"args":{"n":77}},
    {"ph":"i","name":"otel.span_id","pid":7,"tid":8,"ts":1,"args":{"n":5}},
    {"ph":"B","name":"child","pid":7,"tid":8,"ts":2},
    {"ph":"i","name":"otel.span_id","pid":7,"tid":8,"ts":2,"args":{"n":6}},
    {"ph":"i","name":"moved new","pid":7,"tid":8,"ts":2.5,"args":{"n":9}},
    {"ph":"i","name":"otel.trace_id.high","pid":7,"tid":8,"ts":2.5,"args":{"n":1}},
    {"ph":"i","name":"otel.trace_id.low","pid":7,"tid":8,"ts":2.5,"args":{"n":2}},
    {"ph":"i","name":"otel.parent_span_id","pid":7,"tid":8,"ts":2.5,"args":{"n":5}},
    {"ph":"E","name":"child","pid":7,"tid":8,"ts":3},
    {"ph":"i","name":"other new","pid":7,"tid":8,"ts":3.5,"args":{"n":3}},
    {"ph":"E","name":"root","pid":7,"tid":8,"ts":4},
    {"ph":"i","name":"moved closed","pid":7,"tid":9,"ts":6,"args":{"n":9}}"#;

#[test]
fn identifiers_of_the_program_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path(), IDENTIFIED);
    let (exported, requests) = exported(&trace, dir.path(), FileForm::JsonLines, None);
    let spans = spans(&requests);
    assert_eq!((exported.counts.spans, exported.counts.points), (3, 1));
    let id = |number: u64| number.to_be_bytes().to_vec();
    let [root, child, moved] = ["root", "child", "moved"].map(|name| named(&spans, name));
    let trace_id = [&[1, 2, 3, 4, 5, 6, 7, 8][..], &[0xff; 7], &[0xfe]].concat();
    assert_eq!(root.trace_id, trace_id);
    assert_eq!((&root.span_id, &root.parent_span_id), (&id(5), &id(77)));
    assert_eq!(child.trace_id, trace_id);
    assert_eq!((&child.span_id, &child.parent_span_id), (&id(6), &id(5)));
    assert_eq!(moved.trace_id, [id(1), id(2)].concat());
    assert_eq!((&moved.span_id, &moved.parent_span_id), (&id(9), &id(5)));
    assert_eq!(
        (moved.start_time_unix_nano, moved.end_time_unix_nano),
        (2500, 6000)
    );
    // A point of such a name that no identifiers follow is a point.
    assert_eq!(root.events.len(), 1);
    assert_eq!(root.events[0].name, "other new");
}

/// A span that began as one of its thread and ended in another, whose rows come first or last.
#[test]
fn a_span_that_ended_elsewhere_has_its_own_end() {
    for other in [3, 9] {
        let dir = tempfile::tempdir().unwrap();
        let events = format!(
            r#"{{"ph":"B","name":"task","pid":7,"tid":8,"ts":1}},
            {{"ph":"i","name":"otel.trace_id.high","pid":7,"tid":8,"ts":1,"args":{{"n":1}}}},
            {{"ph":"i","name":"otel.trace_id.low","pid":7,"tid":8,"ts":1,"args":{{"n":2}}}},
            {{"ph":"i","name":"otel.span_id","pid":7,"tid":8,"ts":1,"args":{{"n":5}}}},
            {{"ph":"i","name":"otel.ended_elsewhere","pid":7,"tid":8,"ts":7,"args":{{"n":5}}}},
            {{"ph":"E","name":"task","pid":7,"tid":8,"ts":7}},
            {{"ph":"X","name":"next","pid":7,"tid":8,"ts":8,"dur":1}},
            {{"ph":"i","name":"task new","pid":7,"tid":8,"ts":10,"args":{{"n":6}}}},
            {{"ph":"i","name":"otel.trace_id.high","pid":7,"tid":8,"ts":10,"args":{{"n":1}}}},
            {{"ph":"i","name":"otel.trace_id.low","pid":7,"tid":8,"ts":10,"args":{{"n":3}}}},
            {{"ph":"i","name":"task closed","pid":7,"tid":{other},"ts":4,"args":{{"n":5}}}},
            {{"ph":"i","name":"task closed","pid":7,"tid":{other},"ts":13,"args":{{"n":6}}}},
            {{"ph":"i","name":"task closed","pid":7,"tid":{other},"ts":14,"args":{{"n":99}}}}"#
        );
        let trace = trace(dir.path(), &events);
        let (exported, requests) = exported(&trace, dir.path(), FileForm::Delimited, None);
        let counts = exported.counts;
        assert_eq!((counts.spans, counts.unfinished), (3, 0), "{counts:?}");
        // The end that belongs to no begin.
        assert_eq!((counts.points, counts.points_alone), (0, 1), "{counts:?}");
        let mut found: Vec<_> = (spans(&requests).iter())
            .filter(|span| span.name == "task")
            .map(|span| {
                let ids = (span.trace_id[15], span.span_id[7]);
                (span.start_time_unix_nano, span.end_time_unix_nano, ids)
            })
            .collect();
        found.sort_unstable();
        assert_eq!(found, [(1000, 4000, (2, 5)), (10_000, 13_000, (3, 6))]);
        let next = spans(&requests);
        assert!(named(&next, "next").parent_span_id.is_empty());
    }
}

/// Ten requests, of 1 to 10 us, each with a part in it, in a thread that lasts.
fn requests_of_growing_length() -> String {
    let mut events = vec![r#"{"ph":"B","name":"all","pid":1,"tid":1,"ts":0}"#.to_owned()];
    for us in 1..=10 {
        let ts = us * 100;
        events.push(format!(
            r#"{{"ph":"X","name":"request","pid":1,"tid":1,"ts":{ts},"dur":{us}}},
            {{"ph":"X","name":"part","pid":1,"tid":1,"ts":{ts},"dur":0.5}}"#
        ));
    }
    events.push(r#"{"ph":"E","name":"all","pid":1,"tid":1,"ts":2000}"#.to_owned());
    events.join(",")
}

#[test]
fn only_slow_spans_with_what_is_inside_them() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path(), &requests_of_growing_length());
    for (only, slow, limit) in [
        ("request > 7us", 3, 7000),
        ("request > p80", 2, 8000),
        ("request > 2 x median", 0, 10_000),
        ("request > 10us", 0, 10_000),
    ] {
        let (exported, requests) = exported(&trace, dir.path(), FileForm::Delimited, Some(only));
        let chosen = exported.chosen.unwrap();
        assert_eq!((chosen.of_name, chosen.slow), (10, slow), "{only}");
        assert!(
            chosen.limit_ns.abs_diff(limit) <= limit / 1000 + 1,
            "{only}: {chosen:?}"
        );
        let spans = spans(&requests);
        assert_eq!(spans.len() as u64, 2 * slow, "{only}");
        assert_eq!(chosen.left_out, 21 - 2 * slow, "{only}");
        for request in spans.iter().filter(|span| span.name == "request") {
            assert!(request.end_time_unix_nano - request.start_time_unix_nano > limit);
            // The span around it is not there, so it is a root.
            assert!(request.parent_span_id.is_empty());
            let parts = spans
                .iter()
                .filter(|span| span.parent_span_id == request.span_id);
            assert_eq!(parts.count(), 1);
        }
    }
}

#[test]
fn a_choice_that_is_none_is_refused() {
    for (text, word) in [
        ("event request", "NAME > LIMIT"),
        ("request > much", "^"),
        ("request", "^"),
    ] {
        let error = text.parse::<Only>().unwrap_err();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn points_of_a_span_are_bounded_and_the_rest_counted() {
    let dir = tempfile::tempdir().unwrap();
    let points: Vec<String> = (0..4100)
        .map(|n| format!(r#"{{"ph":"i","name":"p","pid":1,"tid":1,"ts":{}}}"#, n + 1))
        .collect();
    let events = format!(
        r#"{{"ph":"B","name":"s","pid":1,"tid":1,"ts":0}},{},{{"ph":"E","name":"s","pid":1,"tid":1,"ts":9000}}"#,
        points.join(",")
    );
    let trace = trace(dir.path(), &events);
    let (exported, requests) = exported(&trace, dir.path(), FileForm::Delimited, None);
    let spans = spans(&requests);
    assert_eq!(
        (spans[0].events.len(), spans[0].dropped_events_count),
        (4096, 4)
    );
    assert_eq!(
        (exported.counts.points, exported.counts.points_dropped),
        (4096, 4)
    );
}
