//! Tests with invented figures; the published ones are computed by hand.

use undertick_document::Report;
use undertick_report::reproduce::Item;

use super::super::invented::{about, interval, line, report};
use super::*;

const SAME: [(&str, &str); 1] = [("backend", "futex")];

fn item<'a>(found: &'a Reproduction, id: &str) -> &'a Item {
    let item = found.items.iter().find(|item| item.id == id);
    item.unwrap_or_else(|| panic!("no item {id}"))
}

fn turn(process: &str, number: u32, kept: f64, given: f64, counts: [u64; 2]) -> Turned {
    Turned {
        script: ONE_CPU.to_owned(),
        backend: "futex".to_owned(),
        turn: Turn {
            setting: 0,
            process: process.to_owned(),
            number,
            kept: Some(about(kept)),
            given: Some(about(given)),
            counts,
            needless: 0,
        },
    }
}

fn invented(one_way: f64) -> (Report, Vec<Turned>) {
    let small = |name, ns| interval("events", &SAME, "A", Some(1), name, ns);
    let wake = [("backend", "futex"), ("place", "same cpu as A")];
    let two = |n, ns| interval(TWO_CPUS, &SAME, "B", Some(n), "notify", ns);
    let intervals = vec![
        interval(ONE_CPU, &SAME, "A", Some(1), "wakeup B", 1.0),
        small("wait for nothing", 23.0),
        small("notify nobody", 50.0),
        small("add event", 25.0),
        small("delete event", 47.0),
        two(8, 40.0),
        two(13, 60.0),
        interval("wake", &wake, "", None, "wake-up, one way", one_way),
        interval("calls", &[], "caller", Some(5), "call sched_yield", 200.0),
    ];
    let lines = vec![
        line("notify", &[("backend", "futex")], 400.0, 8000.0, 0.5),
        line("notify", &[("backend", "eventfd")], 400.0, 9000.0, 1e-6),
        line("notify", &[("backend", "pipe")], 400.0, -10.0, 0.5),
    ];
    let turns = vec![
        turn("A", 1, 1000.0, 7000.0, [90, 10]),
        turn("B", 3, 1000.0, 7000.0, [80, 20]),
        turn("A", 2, 30.0, 5000.0, [0, 100]),
        turn("B", 10, 30.0, 2000.0, [0, 100]),
        turn("A", 11, 1500.0, 9000.0, [100, 0]),
    ];
    (report(intervals, lines), turns)
}

/// By hand: 895 us over 1 us; 1393 us over 5 us; 1454 us over 200 ns; 229 over
/// 25 ns; 25 + 2000 + 1500 ns for the three; 895 + 1393 = 2288.
#[test]
fn published_beside_measured() {
    let (report, turns) = invented(2500.0);
    let found = reproduction(&report, &turns);
    let near = |id: &str, published: f64, measured_us: f64| {
        let item = item(&found, id);
        assert_eq!(item.published, Some(published), "{id}");
        let measured = item.measured.as_ref().expect("measured");
        assert_eq!((item.unit.as_str(), measured.unit.as_str()), ("us", "us"));
        assert!(
            (measured.value - measured_us).abs() < 1e-9 * measured_us,
            "{id}: {measured:?}"
        );
        let ratio = item.ratio.expect("a ratio");
        assert!(
            (ratio - published / measured_us).abs() < 1e-9 * ratio,
            "{id}: {ratio}"
        );
    };
    near("traffic/wakeup/futex/same-cpu", 895.0, 1.0);
    near("traffic/block/futex/same-cpu", 1393.0, 5.0);
    near("traffic/wait/futex/same-cpu", 1277.0, 2.0);
    near("traffic/add-event/futex/same-cpu", 229.0, 0.025);
    near("traffic/notify-nobody/futex/same-cpu", 237.0, 0.05);
    near("traffic/delete-event/futex/same-cpu", 235.0, 0.047);
    near("traffic/quantum/oneself/A", 1454.0, 0.2);
    near("traffic/quantum/oneself/B", 1511.0, 0.2);
    near("traffic/block-wakeup/futex/same-cpu", 2000.0, 2.5);
    near("traffic/add-wait-notify/futex/same-cpu", 1800.0, 3.525);
    near("traffic/notify/a-waiter/futex", 100.0, 8.0);
    let both = item(&found, "traffic/block-wakeup/futex/same-cpu");
    assert_eq!(both.formula, Some(2288.0));
    assert!(
        item(&found, "traffic/wakeup/futex/same-cpu")
            .note
            .contains("879..911")
    );
    let hull = item(&found, "traffic/notify-nobody/futex/other-cpu");
    let within = &hull.measured.as_ref().expect("measured").interval;
    // 40 and 60 ns, each within 10 %.
    assert!(
        (within.lo.unwrap() - 0.036).abs() < 1e-12 && (within.hi.unwrap() - 0.066).abs() < 1e-12
    );
}

/// Each item has a published and a measured figure, or a reason why not.
#[test]
fn what_is_missing_has_a_reason() {
    let (report, turns) = invented(2500.0);
    let found = reproduction(&report, &turns);
    let missing: Vec<&Item> = found
        .items
        .iter()
        .filter(|i| i.measured.is_none())
        .collect();
    assert!(!missing.is_empty(), "pipe was not invented");
    assert!(
        missing
            .iter()
            .all(|i| i.note.contains("not measured") && i.ratio.is_none())
    );
    let bare: Vec<&Item> = found
        .items
        .iter()
        .filter(|i| i.published.is_none())
        .collect();
    assert!(bare.iter().all(|i| !i.note.is_empty() && i.ratio.is_none()));
}

#[test]
fn conclusions_follow_from_the_figures() {
    let said = |one_way: f64| {
        let (report, turns) = invented(one_way);
        reproduction(&report, &turns).findings.join("\n")
    };
    let still = said(2500.0);
    assert!(still.contains("futex 2.5; it holds for 1 of 1"), "{still}");
    // 30 of 200 wakeups.
    assert!(
        still.contains("futex: in 15 % of the wakeups of a process that waits, so it sometimes"),
        "{still}"
    );
    assert!(still.contains("all backends keep to it"), "{still}");
    assert!(still.contains("futex yes (8"), "{still}");
    assert!(
        still.contains("eventfd grows, but not by a constant"),
        "{still}"
    );
    assert!(still.contains("pipe does not surely grow"), "{still}");
    let no_longer = said(9000.0);
    assert!(
        no_longer.contains("futex 9.0 (no longer); it holds for 0 of 1"),
        "{no_longer}"
    );
}

#[test]
fn shorter_scripts_are_still_scripts() {
    for (run, repetitions) in [(Run::Full, 6), (Run::Quick, 4)] {
        let all = scripts(run, &[0, 1]);
        assert!(all.iter().any(|(name, _)| name == TWO_CPUS));
        assert!(scripts(run, &[0]).iter().all(|(name, _)| name != TWO_CPUS));
        let experiment = Experiment::new(all).expect("good scripts");
        assert!(experiment.settings().all(|(_, n)| n == repetitions));
    }
}
