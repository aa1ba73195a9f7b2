//! The first screen: it fits, says what weighs most, and is harmless.

use undertick_document::{PathReport, Report, Warning};
use undertick_report::terminal::{self, Spans};
use unicode_width::UnicodeWidthStr;

use super::invented;

/// Most lines of a screen, whatever was recorded.
const MOST_LINES: usize = 40;

fn overview(report: &Report, spans: Spans, columns: usize) -> String {
    terminal::overview(report, spans, columns).plain()
}

/// Colours are all that a terminal adds, whatever names contain.
#[test]
fn colours_change_no_character() {
    for report in all() {
        let screen = terminal::overview(&report, Spans::Tree, 100);
        let coloured = screen.coloured();
        let mut plain = coloured.clone();
        for style in ["1", "1;31", "2", "0"] {
            plain = plain.replace(&format!("\u{1b}[{style}m"), "");
        }
        assert_eq!(plain, screen.plain());
        assert!(!plain.contains('\u{1b}'), "{plain:?}");
        let heading = match report.trace.lost {
            0 => "\u{1b}[1m",
            _ => "\u{1b}[1;31m",
        };
        let mut lines = coloured.lines();
        assert!(lines.next().unwrap().starts_with(heading));
        let reset = |line: &str| line.is_empty() || line.ends_with("\u{1b}[0m");
        assert!(lines.clone().any(|line| !reset(line)), "all has a colour");
        assert!(reset(lines.next_back().unwrap()));
    }
    // One of them lost events, and one did not.
    let lost = all().map(|report| report.trace.lost > 0);
    assert!(lost.contains(&true) && lost.contains(&false));
}

fn all() -> [Report; 4] {
    [
        invented::one(),
        invented::six(),
        invented::nasty(),
        invented::many(300),
    ]
}

#[test]
fn every_first_screen_fits() {
    for columns in [60, 80, 100, 137] {
        for report in all() {
            for spans in [Spans::Tree, Spans::Flat] {
                let text = overview(&report, spans, columns);
                for line in text.lines() {
                    assert!(line.width() <= columns, "{} columns: {line}", line.width());
                }
                if columns >= 100 {
                    assert!(text.lines().count() <= MOST_LINES, "{text}");
                }
            }
        }
    }
}

/// Findings beyond the first three give way to the lines of the screen.
#[test]
fn long_findings_give_way() {
    let report = Report {
        tasks: None,
        ..invented::six()
    };
    let lines = |columns| {
        let text = overview(&report, Spans::Tree, columns);
        (text.lines().count(), text)
    };
    let (narrow, text) = lines(60);
    assert!(narrow <= 25, "{narrow}: {text}");
    // With room for all, the last one is there.
    let (_, wide) = lines(137);
    let last = wide.lines().rev().nth(2).unwrap();
    let begin: String = last.chars().take(20).collect();
    assert!(!text.contains(&begin), "{begin}: {text}");
}

#[test]
fn no_control_character_reaches_the_terminal() {
    let nasty = invented::nasty();
    let throughout = invented::hostile_throughout(&invented::six());
    for report in [nasty, throughout] {
        let text = overview(&report, Spans::Tree, 100);
        assert!(
            !text.chars().any(|c| c != '\n' && c.is_control()),
            "{text:?}"
        );
        assert!(!text.contains('\u{202e}'), "{text:?}");
    }
}

/// A path: its name, the one around it, ms in all and in itself, its calls and its median, us.
fn path(
    (name, parent): (&str, Option<u32>),
    [total_ms, own_ms]: [f64; 2],
    calls: u64,
    median_us: f64,
) -> PathReport {
    let mut path = invented::paths(&[invented::one().intervals[0].clone()]).remove(0);
    let total = path.total.as_mut().unwrap();
    total.value = total_ms * 1e6;
    total.interval = undertick_units::Interval::new(total_ms * 0.999e6, total_ms * 1.001e6);
    PathReport {
        name: name.to_owned(),
        parent,
        depth: u32::from(parent.is_some()),
        calls,
        recursive_calls: 0,
        self_ns: Some(own_ms * 1e6),
        off_cpu_ns: Some(0.0),
        share: Some(total_ms / 1000.0),
        median_ns: Some(median_us * 1e3),
        p99_ns: Some(median_us * 2e3),
        max_ns: Some(median_us * 9e3),
        ..path
    }
}

/// A program of two requests, each of which parses.
fn two_callers() -> Report {
    let mut report = invented::report(Vec::new());
    report.trace.lost = 0;
    report.paths = vec![
        path(("get", None), [600.0, 200.0], 1000, 590.0),
        path(("parse", Some(0)), [400.0, 400.0], 1000, 390.0),
        path(("put", None), [400.0, 380.0], 1000, 395.0),
        path(("parse", Some(2)), [20.0, 20.0], 1000, 19.0),
    ];
    report
}

#[test]
fn the_tree_shows_what_lies_in_what() {
    let text = overview(&two_callers(), Spans::Tree, 100);
    let rows: Vec<Vec<&str>> = (text.lines().skip_while(|line| !line.starts_with("span")))
        .take(5)
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[1][..6], ["get", "60", "%", "600", "ms", "200"]);
    assert_eq!(rows[2][..3], ["`-", "parse", "40"]);
    assert_eq!(rows[3][..2], ["put", "40"]);
    assert_eq!(rows[4][..5], ["`-", "parse", "2.0", "%", "20.0"]);
}

/// The same in three threads that have one name, and one of another.
#[test]
fn roles_are_the_roots_of_the_tree() {
    let mut report = two_callers();
    for path in &mut report.paths {
        path.parent = Some(path.parent.map_or(0, |outer| outer + 1));
        path.depth += 1;
    }
    let role = |name, total: f64, threads| PathReport {
        threads: Some(threads),
        self_ns: None,
        median_ns: None,
        p99_ns: None,
        max_ns: None,
        ..path((name, None), [total, 0.0], 0, 0.0)
    };
    report.paths.insert(0, role("worker", 1000.0, 3));
    report.paths.push(role("flusher", 500.0, 1));
    report
        .paths
        .push(path(("flush", Some(5)), [500.0, 500.0], 70, 7000.0));
    report.paths[6].depth = 1;
    let text = overview(&report, Spans::Tree, 100);
    let rows: Vec<&str> = (text.lines().skip_while(|line| !line.starts_with("span")))
        .take(8)
        .collect();
    let words = |at: usize| -> Vec<&str> { rows[at].split_whitespace().collect() };
    assert!(rows[1].starts_with("worker (3 threads)"), "{text}");
    assert_eq!(
        words(1)[3..],
        ["100", "%", "1.00", "s", "-", "-", "-", "-", "-", "-"]
    );
    assert!(
        rows[2].starts_with("|- get") && rows[3].starts_with("|  `- parse"),
        "{text}"
    );
    assert_eq!(words(6)[..3], ["flusher", "50", "%"]);
    assert!(rows[7].starts_with("`- flush"), "{text}");
    // A role is no span that takes time or that others lie in.
    assert!(
        text.contains("\"parse\" takes 19.0 us in \"put\" and 390 us in \"get\""),
        "{text}"
    );
    assert_eq!(report.short_name(3), "put");
    // Of two roles with the same path it says which.
    report.paths[6].name = "get".to_owned();
    report.paths[6].median_ns = Some(5e6);
    report.paths[6].self_ns = Some(100e6);
    let text = overview(&report, Spans::Tree, 100);
    assert!(
        text.contains("\"get\" takes 590 us in \"worker\" and 5.00 ms in \"flusher\""),
        "{text}"
    );
    assert_eq!(
        (report.short_name(1), report.short_name(2)),
        ("worker/get".to_owned(), "get/parse".to_owned())
    );
    assert_eq!(report.paths_named("get/parse"), [2]);
    assert_eq!(report.paths_named("get").len(), 2);
    assert_eq!(report.paths_named("worker/get"), [1]);
    // A role is no path that can be asked for, whatever its name.
    report.paths[0].name = "parse".to_owned();
    assert_eq!(report.paths_named("parse"), [2, 4]);
    assert_eq!(report.paths_named("put/parse"), [4]);
}

/// More was subtracted for recording than the span itself took: it took no more than the intervals
/// leave.
#[test]
fn a_self_time_that_is_not_known_has_a_bound() {
    let mut report = two_callers();
    report.paths[0].self_ns = None;
    let most = report.most_self_ns(0).unwrap();
    assert!((most - 201e6).abs() < 1.0, "600.6 less 399.6 ms: {most}");
    assert_eq!(
        (report.most_self_ns(1), report.most_self_ns(9)),
        (None, None)
    );
    let text = overview(&report, Spans::Tree, 100);
    assert!(text.contains("600 ms  <201 ms  1 000"), "{text}");
    assert!(undertick_report::html::render(&report).contains("&lt;201\u{a0}ms"));
    // Without a bound of what lies inside there is none.
    report.paths[1].total.as_mut().unwrap().interval.lo = None;
    assert_eq!(report.most_self_ns(0), None);
}

/// A span whose points were off at times was called more often than was recorded.
#[test]
fn what_was_off_at_times_is_marked() {
    let mut report = two_callers();
    report.paths[0].self_ns = None;
    report.paths[1].is_switched = true;
    let text = overview(&report, Spans::Tree, 110);
    let rows: Vec<String> = (text.lines())
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for row in [
        "`- parse (off at times) 40 % >400 ms 400 ms >1 000 400 us",
        "get 60 % 600 ms <201 ms 1 000",
    ] {
        assert!(rows.iter().any(|shown| shown.starts_with(row)), "{text}");
    }
    assert!(undertick_report::html::render(&report).contains("parse (off at times)"));
}

#[test]
fn findings_come_by_their_weight() {
    let mut report = two_callers();
    let text = overview(&report, Spans::Tree, 100);
    let dominant =
        "\"parse\" takes most: 42 % of the time in spans is its own, in 2 places together.";
    let callers = "\"parse\" takes 19.0 us in \"put\" and 390 us in \"get\" (medians).";
    let at = |words: &str| {
        text.find(words)
            .unwrap_or_else(|| panic!("no {words:?} in {text}"))
    };
    assert!(at(dominant) < at(callers));
    assert!(!text.contains("lost:") && text.contains("none lost"));
    report.trace.lost = 1000;
    report.trace.events = 9000;
    let text = overview(&report, Spans::Tree, 100);
    let lost = text
        .find("1 000 of 10 000 events (10 %) were lost")
        .unwrap();
    assert!(lost < text.find(dominant).unwrap());
}

/// Callers that take the same time are no finding, and neither is a path called a few times.
#[test]
fn what_does_not_differ_is_not_said() {
    let mut report = two_callers();
    report.paths[3].median_ns = Some(380e3);
    assert!(!overview(&report, Spans::Tree, 100).contains("(medians)"));
    let mut report = two_callers();
    report.paths[3].calls = 19;
    assert!(!overview(&report, Spans::Tree, 100).contains("(medians)"));
}

#[test]
fn waiting_is_counted_where_it_happens() {
    let mut report = two_callers();
    report.paths[0].off_cpu_ns = Some(300e6);
    report.paths[1].off_cpu_ns = Some(290e6);
    let text = overview(&report, Spans::Tree, 100);
    assert!(
        text.contains("\"get/parse\" waits, sleeps or has yielded for 290 ms of its 400 ms."),
        "{text}"
    );
}

#[test]
fn long_trees_are_cut_and_say_so() {
    let text = overview(&invented::many(300), Spans::Tree, 100);
    assert!(text.contains("\n... and 286 shorter"), "{text}");
    let text = overview(&invented::many(300), Spans::Flat, 100);
    assert!(text.contains("\n... and 286 shorter"), "{text}");
}

#[test]
fn warnings_are_counted() {
    let mut report = two_callers();
    let warning = Warning {
        code: "a".to_owned(),
        text: "b".to_owned(),
    };
    report.warnings = vec![warning.clone(), warning];
    assert!(overview(&report, Spans::Tree, 100).contains("--full (2 warnings)"));
}

#[test]
fn a_trace_without_spans_says_so() {
    let report = invented::report(Vec::new());
    assert!(
        overview(&report, Spans::Tree, 100)
            .contains("Nothing in the trace has a start and an end.")
    );
}

/// A document may be made by hand: its paths lead in no circle.
#[test]
fn paths_in_a_circle_are_none() {
    let mut report = two_callers();
    report.paths[0].parent = Some(1);
    let text = overview(&report, Spans::Tree, 100);
    assert!(!text.contains("parse"), "{text}");
    assert!(!undertick_report::html::render(&report).contains("Call tree"));
}
