//! Matching, with every expected number by hand.

use crate::support;

use support::*;
use undertick_analyze::{Analysis, Cull, Error, Options, Table};
use undertick_document::{IntervalKind, Reads};
use undertick_format::manifest::{Manifest, Name};
use undertick_format::schema::Kind;

fn table(text: &str) -> Options {
    Options {
        table: Some(Table::parse(text, "t.toml").expect("valid table")),
        ..Options::default()
    }
}

/// 1 is 100..180 (80); 2 inside it is 110..130 and 140..150 (20 + 10).
#[test]
fn nested() {
    let r = plain(&[
        begin(100, 1),
        begin(110, 2),
        end(130, 2),
        begin(140, 2),
        end(150, 2),
        end(180, 1),
    ]);
    exact(&r, "event 1", (1, 80.0, 0, 0));
    exact(&r, "event 2", (2, 30.0, 0, 0));
    let two = interval(&r, "event 2");
    assert_eq!(
        (two.statistics.min, two.statistics.max),
        (Some(10.0), Some(20.0))
    );
    assert_eq!(two.statistics.sd, Some(50f64.sqrt()));
    assert_eq!((two.kind, two.reads), (IntervalKind::Nested, Reads::Plain));
    assert_eq!(two.mean.as_ref().unwrap().value, 15.0);
    let share = two.share_of.as_ref().unwrap();
    assert_eq!(share.of, "event 1");
    assert_eq!(share.share.as_ref().unwrap().value, 30.0 / 80.0);
    assert_eq!(interval(&r, "event 1").share_of, None);
    assert_eq!(r.trace.events, 6);
    assert_eq!(r.trace.events_span_ns, Some(80.0));
    assert_eq!(frequency(&r, "event 2").count, 2);
    let rate = frequency(&r, "event 2").per_second.as_ref().unwrap().value;
    assert!((rate - 2.0 / 80e-9).abs() < 1e-3, "{rate}");
}

/// 1 calls itself: 10..50 (40) contains 20..30 (10).
#[test]
fn recursive() {
    let r = plain(&[begin(10, 1), begin(20, 1), end(30, 1), end(50, 1)]);
    exact(&r, "event 1", (2, 50.0, 0, 0));
}

/// The start of 2 at 20 is never closed, because the end of 1 passes over it. Then an end of 2 has
/// nothing to close, and a start of 3 stays open.
#[test]
fn unmatched() {
    let r = plain(&[
        begin(10, 1),
        begin(20, 2),
        end(30, 1),
        end(40, 2),
        begin(50, 3),
    ]);
    exact(&r, "event 1", (1, 20.0, 0, 0));
    exact(&r, "event 2", (0, 0.0, 1, 1));
    exact(&r, "event 3", (0, 0.0, 1, 0));
    assert_eq!(interval(&r, "event 2").mean, None);
    let text = warned(&r, "unmatched").unwrap();
    assert!(
        text.starts_with("2 starts without an end (0 of them"),
        "{text}"
    );
    assert!(text.contains("1 ends without a start"), "{text}");
}

/// begin(a) 10, a to b 25, b to c 45, end(c) 80: 15, 20, 35.
#[test]
fn stages() {
    let r = plain(&[begin(10, 1), next(25, 1, 2), next(45, 2, 3), end(80, 3)]);
    exact(&r, "event 1", (1, 15.0, 0, 0));
    exact(&r, "event 2", (1, 20.0, 0, 0));
    exact(&r, "event 3", (1, 35.0, 0, 0));
    assert_eq!(interval(&r, "event 2").kind, IntervalKind::Stage);
    assert_eq!(frequency(&r, "event 3").count, 1);
}

/// A loop of two stages without begin: the first `next` ends nothing, and the last one opens a span
/// without end.
#[test]
fn stages_in_a_loop() {
    let r = plain(&[next(0, 2, 1), next(7, 1, 2), next(17, 2, 1), next(26, 1, 2)]);
    exact(&r, "event 1", (2, 7.0 + 9.0, 0, 0));
    exact(&r, "event 2", (1, 10.0, 1, 1));
}

/// Two rings with the same events, interleaved: 0 has 10..40, 1 has 15..20.
#[test]
fn rings_do_not_mix() {
    let r = plain(&[
        begin(10, 1),
        begin(15, 1).on(1),
        end(20, 1).on(1),
        end(40, 1),
    ]);
    exact(&r, "event 1", (2, 35.0, 0, 0));
    assert_eq!((r.trace.threads, r.trace.processes), (2, 1));
}

/// Instants at 0, 10, 40 of event 5: periods 10 and 30. Another event between
/// them changes nothing.
#[test]
fn periods() {
    let r = plain(&[
        instant(0, 5, 9),
        instant(3, 6, 0),
        instant(10, 5, 1),
        instant(40, 5, 2),
    ]);
    exact(&r, "event 5 (period)", (2, 40.0, 0, 0));
    assert_eq!(interval(&r, "event 5 (period)").kind, IntervalKind::Period);
    assert!(r.intervals.iter().all(|i| i.name != "event 6 (period)"));
}

#[test]
fn pairs() {
    let rows: Vec<Row> = [20, 22, 21]
        .iter()
        .enumerate()
        .map(|(i, &d)| row(Kind::Pair, 100 * i as i64, 4, d))
        .collect();
    let r = plain(&rows);
    exact(&r, "event 4 (pair)", (3, 63.0, 0, 0));
    assert_eq!(interval(&r, "event 4 (pair)").kind, IntervalKind::Pair);
}

/// A gap while 1 and 2 are open: both starts are unmatched by loss, their ends close nothing, and
/// no period crosses it.
#[test]
fn a_gap_closes_nothing() {
    let r = plain(&[
        instant(0, 5, 0),
        begin(10, 1),
        begin(20, 2),
        row(Kind::Gap, 25, 0, 17),
        end(30, 2),
        end(40, 1),
        instant(45, 5, 0),
        instant(50, 5, 0),
        begin(60, 1),
        end(64, 1),
    ]);
    exact(&r, "event 1", (1, 4.0, 1, 1));
    exact(&r, "event 2", (0, 0.0, 1, 1));
    exact(&r, "event 5 (period)", (1, 5.0, 0, 0));
    assert_eq!(interval(&r, "event 1").unmatched_by_loss, 1);
    assert_eq!(r.trace.events, 9);
    assert!(
        warned(&r, "lost_events")
            .unwrap()
            .starts_with("17 events were lost in 1 places")
    );
}

/// The clock steps back by 5 inside 1, and the sample stays negative.
#[test]
fn negative_samples_are_kept() {
    let r = plain(&[begin(100, 1), end(95, 1), begin(200, 1), end(211, 1)]);
    exact(&r, "event 1", (2, 6.0, 0, 0));
    let i = interval(&r, "event 1");
    assert_eq!((i.statistics.min, i.negative), (Some(-5.0), 1));
    assert!(warned(&r, "clock_stepped_back").is_some());
}

#[test]
fn names_group_rings_and_processes() {
    let own = |pid, event, name: &str| Name {
        pid: Some(pid),
        event,
        name: name.into(),
    };
    let m = Manifest {
        names: vec![own(1, 7, "commit"), own(2, 9, "commit"), own(2, 7, "bind")],
        ..manifest()
    };
    let r = report(
        &m,
        &Options::default(),
        &[
            begin(0, 7).in_process(1),
            end(3, 7).in_process(1),
            begin(0, 9).in_process(2).on(1),
            end(5, 9).in_process(2).on(1),
            begin(6, 7).in_process(2).on(1),
            end(7, 7).in_process(2).on(1),
        ],
    );
    exact(&r, "commit", (2, 8.0, 0, 0));
    exact(&r, "bind", (1, 1.0, 0, 0));
    assert_eq!((r.trace.threads, r.trace.processes), (2, 2));
}

/// Table: from instant 1 to instant 2, inside spans of event 3. Inside
/// 10..30: 12..17 (5). Outside: 40..44. One more start at 50 never ends.
#[test]
fn table_nested_within() {
    let o = table(
        "[[interval]]\nname='loop'\nstart=3\nend=3\n[[interval]]\nname='i'\nstart=1\nend=2\nwithin='loop'\n[[frequency]]\nname='ones'\nevent=1\nwithin='loop'\n",
    );
    let r = report(
        &manifest(),
        &o,
        &[
            begin(10, 3),
            instant(12, 1, 0),
            instant(17, 2, 0),
            end(30, 3),
            instant(40, 1, 0),
            instant(44, 2, 0),
            instant(50, 1, 0),
        ],
    );
    exact(&r, "loop", (1, 20.0, 0, 0));
    exact(&r, "i", (1, 5.0, 1, 0));
    let i = interval(&r, "i");
    assert!(
        i.notes.iter().any(|n| n.starts_with("1 more lay outside")),
        "{:?}",
        i.notes
    );
    let share = i.share_of.as_ref().unwrap();
    assert_eq!(
        (share.of.as_str(), share.share.as_ref().unwrap().value),
        ("loop", 0.25)
    );
    assert_eq!(
        r.intervals
            .iter()
            .map(|i| i.name.as_str())
            .collect::<Vec<_>>(),
        ["loop", "i"]
    );
    let f = frequency(&r, "ones");
    assert_eq!(f.count, 1);
    assert_eq!(
        f.share_of.as_ref().unwrap().share.as_ref().unwrap().value,
        1.0 / 3.0
    );
}

/// The outer interval ends and begins anew while the inner one is open: the inner one lies in
/// neither.
#[test]
fn inside_one_instance_only() {
    let o = table(
        "[[interval]]\nname='loop'\nstart=3\nend=3\n[[interval]]\nname='i'\nstart=1\nend=2\nwithin='loop'\n",
    );
    let r = report(
        &manifest(),
        &o,
        &[
            begin(10, 3),
            instant(12, 1, 0),
            end(14, 3),
            begin(16, 3),
            instant(17, 2, 0),
            end(30, 3),
        ],
    );
    exact(&r, "i", (0, 0.0, 0, 0));
    assert!(interval(&r, "i").notes[0].starts_with("1 more lay outside"));
}

/// One boundary shared by both ends and both starts: the inner interval ends
/// before, and starts after, the outer one.
#[test]
fn shared_boundaries_nest() {
    let o = table(
        "[[interval]]\nname='i'\nstart=1\nend=1\nwithin='o'\n[[interval]]\nname='o'\nstart=1\nend=1\n",
    );
    let r = report(
        &manifest(),
        &o,
        &[instant(0, 1, 0), instant(4, 1, 0), instant(10, 1, 0)],
    );
    exact(&r, "o", (2, 10.0, 0, 0));
    exact(&r, "i", (2, 10.0, 0, 0));
    assert_eq!(interval(&r, "o").kind, IntervalKind::Period);
}

/// Keys within a thread: 7 is 0..30, 8 is 10..15; a second start of 9 replaces
/// the first; an end of 6 has none. Keys use all 64 bits.
#[test]
fn table_key() {
    let o = table("[[interval]]\nname='k'\nstart=1\nend=2\nmatch='key'\n");
    let wide = 1_i64 << 40;
    let r = report(
        &manifest(),
        &o,
        &[
            instant(0, 1, 7),
            instant(10, 1, 7 + wide),
            instant(15, 2, 7 + wide),
            instant(30, 2, 7),
            instant(40, 1, 9),
            instant(50, 1, 9),
            instant(58, 2, 9),
            instant(60, 2, 6),
            // Another thread's end of an open key does not match.
            instant(61, 1, 5),
            instant(62, 2, 5).on(1),
        ],
    );
    exact(&r, "k", (3, 30.0 + 5.0 + 8.0, 1 + 1, 1 + 1));
}

/// Sent in ring 0, received in ring 1, whichever side comes first. The same key twice matches in
/// order; key 3 is never received, key 4 never sent.
#[test]
fn table_message_either_order() {
    let o = table("[[interval]]\nname='m'\nstart='send'\nend='receive'\nmatch='message'\n");
    let m = named(&[(1, "send"), (2, "receive")]);
    let sends = [
        instant(0, 1, 1),
        instant(10, 1, 1),
        instant(20, 1, 2),
        instant(30, 1, 3),
    ];
    let receives = [
        instant(5, 2, 1),
        instant(17, 2, 1),
        instant(29, 2, 2),
        instant(31, 2, 4),
    ]
    .map(|r| r.on(1));
    for rows in [[sends, receives].concat(), [receives, sends].concat()] {
        let r = report(&m, &o, &rows);
        exact(&r, "m", (3, 5.0 + 7.0 + 9.0, 1, 1));
        let m = interval(&r, "m");
        assert_eq!(m.kind, IntervalKind::Message);
        assert!(m.notes[0].contains("different threads"), "{:?}", m.notes);
    }
}

/// A table by name, with the stage that `next` enters or leaves: 1 to 2 at 10, 2 to 3 at 25.
#[test]
fn table_over_stages() {
    let o = table("[[interval]]\nname='s'\nstart='two'\nend=2\n[[name]]\nevent=2\nname='two'\n");
    let r = report(
        &manifest(),
        &o,
        &[begin(0, 1), next(10, 1, 2), next(25, 2, 3), end(30, 3)],
    );
    exact(&r, "s", (1, 15.0, 0, 0));
    assert_eq!(r.settings.table.as_deref(), Some("t.toml"));
}

#[test]
fn a_table_that_only_renames_keeps_the_rest() {
    let o = table("[[name]]\nevent=1\nname='work'\n");
    exact(
        &report(&manifest(), &o, &[begin(0, 1), end(4, 1)]),
        "work",
        (1, 4.0, 0, 0),
    );
}

#[test]
fn an_unknown_event_is_named_with_the_nearest() {
    let o = table("[[interval]]\nname='i'\nstart='comit'\nend=2\n");
    let e = Analysis::new(&named(&[(1, "commit"), (2, "bind")]), o)
        .unwrap_err()
        .to_string();
    assert_eq!(
        e,
        "t.toml:3: no event named \"comit\" in this trace; did you mean \"commit\"?"
    );
}

/// Meaningless codes are counted, not matched, and do not stop the rest.
#[test]
fn bad_rows() {
    let bad = |kind: i8, event: i32, payload: i64| Row {
        kind,
        ..row(Kind::Instant, 5, event, payload)
    };
    let r = plain(&[
        begin(0, 1),
        bad(99, 1, 0),
        bad(-1, 1, 0),
        bad(1, -1, 0),
        bad(2, 65_536, 0),
        bad(3, 1, 65_536),
        bad(3, 1, -1),
        Row {
            mode: 1,
            ..begin(6, 1)
        },
        end(9, 1),
    ]);
    exact(&r, "event 1", (1, 9.0, 0, 0));
    assert!(warned(&r, "bad_rows").unwrap().starts_with("6 rows"));
    assert_eq!(r.trace.events, 2);
}

#[test]
fn nothing_at_all() {
    let r = plain(&[]);
    assert!(r.intervals.is_empty() && r.frequencies.is_empty());
    assert!(warned(&r, "no_intervals").is_some());
    assert_eq!(r.trace.events_span_ns, None);
}

#[test]
fn passes_must_be_fed() {
    let o = Options {
        cull: Cull::Ratio(4.0),
        ..Options::default()
    };
    let mut a = Analysis::new(&manifest(), o).unwrap();
    assert_eq!(a.passes(), 2);
    a.push(&batch(&[begin(0, 1)])).unwrap();
    a.finish_pass();
    assert!(matches!(
        a.finish(),
        Err(Error::Passes { needed: 2, done: 1 })
    ));
}

#[test]
fn a_batch_of_another_shape_is_refused() {
    let mut a = Analysis::new(&manifest(), Options::default()).unwrap();
    let good = batch(&[begin(0, 1)]);
    let few = good.project(&[0, 1, 2]).unwrap();
    assert!(
        a.push(&few)
            .unwrap_err()
            .to_string()
            .contains("column 3 (tid) is missing")
    );
    let mixed = good.project(&[0, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10]).unwrap();
    let e = a.push(&mixed).unwrap_err().to_string();
    assert!(
        e.contains("column 1 (ring) is Int64, it must be Int32"),
        "{e}"
    );
}

/// With events lost, messages with repeated keys may pair wrongly: a warning reports it, only in
/// that case.
#[test]
fn loss_among_messages_is_said() {
    let o = table("[[interval]]\nname='m'\nstart=1\nend=2\nmatch='message'\n");
    let rows = [
        instant(0, 1, 1),
        instant(5, 2, 1).on(1),
        row(Kind::Gap, 6, 0, 1),
    ];
    let r = report(&manifest(), &o, &rows);
    assert!(
        warned(&r, "messages_after_loss")
            .unwrap()
            .contains("lost event m may")
    );
    let r = report(&manifest(), &o, &rows[..2]);
    assert!(warned(&r, "messages_after_loss").is_none());
}
