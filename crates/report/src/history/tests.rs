use undertick_units::Interval;

use super::*;
use crate::html;

fn ratio(value: f64, lo: f64, hi: f64) -> Estimate {
    Estimate {
        value,
        interval: Interval::new(lo, hi),
        level: 0.95,
        unit: "1".into(),
        method: "test".into(),
        n: 20,
        n_effective: 20.0,
        notes: Vec::new(),
    }
}

fn history() -> History {
    let point = |i: usize| HistoryPoint {
        unix_s: 1e9 + i as f64,
        version: format!("v{i}"),
        machine: if i.is_multiple_of(2) { "a" } else { "<b>" }.to_owned(),
        time_ns: if i < 6 { 1500.0 } else { 1650.0 },
        processes: 5,
        level_ns: if i < 6 { 1500.0 } else { 1650.0 },
    };
    let benchmark = |name: &str, verdict| BenchmarkHistory {
        suite: "parser".into(),
        name: name.into(),
        points: (0..10).map(point).collect(),
        changes: vec![HistoryChange {
            at: 6,
            version: "v6".into(),
            before: "v5".into(),
            within: ["v5".into(), "v7".into()],
            ratio: ratio(1.1, 1.08, 1.12),
            p: 0.0005,
        }],
        newest: Some(NewestVersion {
            version: "v9".into(),
            ratio: ratio(1.0, 0.98, 1.02),
            p: 0.9,
            adjusted_p: 0.9,
            verdict,
            allowed_p: 0.5,
            is_too_slow: false,
        }),
        not_judged: None,
    };
    History {
        schema_version: SCHEMA_VERSION,
        kind: KIND.into(),
        directory: "history".into(),
        versions: 10,
        machines: 2,
        newest: Some("v9".into()),
        level: 0.95,
        false_share: 0.05,
        allow: 0.0,
        benchmarks: vec![
            benchmark("sort", NewestVerdict::NoChangeFound),
            benchmark("<script>", NewestVerdict::Slower),
        ],
    }
}

#[test]
fn the_terminal_names_the_last_change_and_what_is_slower_now() {
    let text = render(&history(), 100);
    assert!(
        text.starts_with("history: 2 benchmarks, 10 versions, 2 machines\n"),
        "{text}"
    );
    assert!(text.contains("+10.0 % [+8.0, +12.0]"), "{text}");
    assert!(
        text.contains("parser: <script> is slower in v9: +0.0 % [-2.0, +2.0]"),
        "{text}"
    );
    assert!(!text.contains("sort is"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
}

/// Two plots with the points of two machines each; names are text.
#[test]
fn the_page_draws_each_benchmark() {
    let page = html::history::render(&history());
    assert_eq!(page.matches("<figure class=\"plot\">").count(), 2);
    assert!(page.contains("level on a"), "{page}");
    assert!(
        page.contains("from v6 on, or between v5 and v7: +10.0 % [+8.0, +12.0]."),
        "{page}"
    );
    assert!(!page.contains("<script>:"), "a name is markup");
    assert!(!page.contains("<b>"), "a machine is markup");
}

#[test]
fn nothing_was_measured() {
    let mut empty = history();
    empty.benchmarks.clear();
    assert!(render(&empty, 80).ends_with("Intervals are 95 % CIs.\n"));
    assert!(html::history::render(&empty).contains("All benchmarks"));
}
