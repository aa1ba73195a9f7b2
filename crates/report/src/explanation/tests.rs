use undertick_document::explanation::{SCHEMA_VERSION, TypicalCall};
use undertick_document::{StateCondition, StateFact};

use super::*;

fn part(cause: PartCause, of: Option<&str>, ns: f64, n: u64, typical_n: Option<f64>) -> Part {
    Part {
        cause,
        of: of.map(str::to_owned),
        conditions: Vec::new(),
        ns,
        n,
        typical_n,
    }
}

/// A text with plain spaces before its units.
fn plain(text: &str) -> String {
    text.replace('\u{a0}', " ")
}

fn explanation() -> Explanation {
    let waited = part(
        PartCause::Waited,
        Some("writer (8)"),
        900_000.0,
        2,
        Some(0.0),
    );
    let child = part(
        PartCause::Child,
        Some("look\u{1b}up"),
        90_000.0,
        3,
        Some(1.0),
    );
    let unexplained = part(PartCause::Unexplained, None, 10_000.0, 1, None);
    Explanation {
        schema_version: SCHEMA_VERSION,
        error_ns: 69.0,
        has_kernel_events: true,
        paths: vec![ExplainedPath {
            path: vec!["server".into(), "request".into()],
            calls: 48_211,
            typical: TypicalCall {
                looked_at: 8_000,
                n: 1_600,
                took_ns: 1_200.0,
                within_ns: [980.0, 1_310.0],
                parts: vec![
                    part(PartCause::Child, Some("lookup"), 800.0, 1, Some(1.0)),
                    part(PartCause::Own, None, 400.0, 1, Some(1.0)),
                ],
            },
            together: vec![
                Part {
                    n: 1,
                    typical_n: None,
                    ..waited.clone()
                },
                child.clone(),
                unexplained.clone(),
            ],
            slowest: vec![SlowCall {
                stacks: Vec::new(),
                waits: Vec::new(),
                start_ns: 413_210_000.0,
                took_ns: 1_001_200.0,
                excess_ns: 1_000_000.0,
                tid: 7,
                thread: Some("server".into()),
                cpu: Some(1),
                off_cpu_unseen: false,
                stolen_up_to_ns: None,
                parts: vec![waited, child, unexplained],
            }],
        }],
    }
}

#[test]
fn a_path_is_told_with_its_typical_call_and_each_slow_one() {
    let found = explanation();
    let text = plain(&path(&found, &found.paths[0], 100));
    let expected = "\
server/request: 48 211 calls. Typical: 1.20 us = 800 ns in \"lookup\" + 400 ns self time
(mean of 1 600 calls, the middle fifth by duration of 8 000 chosen at random: 980 ns to 1.31 us).

Excess of the slowest: 1.00 ms
    900 us   90 %  waiting, woken by writer (8); the largest part of 1
   90.0 us  9.0 %  in \"look\\u{1b}up\", 3 calls instead of 1; the largest part of 3
   10.0 us  1.0 %  unexplained; the largest part of 1

     began at      took  excess over the typical call, by cause
   0.413210 s   1.00 ms  900 us waiting, woken by writer (8), 100 us other

Error of one duration: 69.0 ns.
";
    assert_eq!(text, expected);
}

#[test]
fn narrow_terminals_get_the_largest_part_and_wide_ones_all() {
    let found = explanation();
    let last = |columns: usize| {
        let text = path(&found, &found.paths[0], columns);
        let line = text.lines().find(|line| line.contains("0.413210 s"));
        line.unwrap().to_owned()
    };
    assert!(last(60).chars().count() <= 60, "{}", last(60));
    assert!(last(200).contains("3 calls instead of 1"), "{}", last(200));
    assert!(last(200).ends_with(", 10.0\u{a0}us other"), "{}", last(200));
}

#[test]
fn all_paths_have_a_line_each() {
    let found = explanation();
    let text = plain(&paths(&found, 120));
    let line = text.lines().nth(1).unwrap();
    assert!(line.starts_with("server/request"), "{text}");
    assert!(
        line.ends_with("  1.00 ms: 90 % waiting, 9.0 % in \"look\\u{1b}up\", 3 calls instead of 1"),
        "{text}"
    );
}

#[test]
fn without_kernel_events_that_is_said() {
    let mut found = explanation();
    found.has_kernel_events = false;
    let text = path(&found, &found.paths[0], 100);
    assert!(text.contains("no kernel events"), "{text}");
}

#[test]
fn parts_in_words() {
    let state = Part {
        conditions: vec![StateCondition {
            fact: StateFact::Value,
            of: Some("size".into()),
            is: None,
            among: Vec::new(),
            from: Some(950.0),
            below: None,
        }],
        ..part(PartCause::State, None, 1.0, 1, None)
    };
    assert_eq!(words(&state), "usual where \"size\" is 950 or more");
    let faults = part(PartCause::Fault, None, 1.0, 12, Some(0.0));
    assert_eq!(words(&faults), "in 12 page faults");
    let hog = part(PartCause::Preempted, Some("hog (900)"), 1.0, 1, Some(0.0));
    assert_eq!(words(&hog), "preempted by hog (900)");
    let more = part(PartCause::Child, Some("x"), 1.0, 5, Some(1.53));
    assert_eq!(words(&more), "in \"x\", 5 calls instead of 1.5");
}
