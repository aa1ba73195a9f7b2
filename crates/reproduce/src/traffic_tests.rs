//! Tests with invented figures; the published ones are computed by hand.

use undertick_document::Report;
use undertick_report::reproduce::Item;

use undertick_document::Warning;

use super::super::invented::{about, interval, line, report};
use super::*;

const SAME: [(&str, &str); 1] = [("backend", "futex")];
const FUTEX: [(&str, &str); 2] = [("backend", "futex"), ("policy", ORDERED)];

fn item<'a>(found: &'a Reproduction, id: &str) -> &'a Item {
    let item = found.items.iter().find(|item| item.id == id);
    item.unwrap_or_else(|| panic!("no item {id}"))
}

fn turn(policy: &str, process: &str, number: u32, ns: [f64; 2], counts: [u64; 2]) -> Turned {
    let [kept, given] = ns;
    Turned {
        script: ONE_CPU.to_owned(),
        backend: "futex".to_owned(),
        policy: policy.to_owned(),
        turn: Turn {
            setting: 0,
            process: process.to_owned(),
            number,
            kept: (counts[0] > 0).then(|| about(kept)),
            given: (counts[1] > 0).then(|| about(given)),
            counts,
            needless: u64::from(policy == DEFAULT && process == "A"),
            interrupted: 2 * u64::from(policy == DEFAULT && process == "B"),
        },
    }
}

fn ran_out(script: &str, process: &str, switch: f64, count: u64) -> RanOut {
    RanOut {
        script: script.to_owned(),
        run_out: RunOut {
            setting: 0,
            process: process.to_owned(),
            switch: (count > 3).then(|| about(switch)),
            quantum: (count > 3).then(|| about(4e6)),
            count,
        },
    }
}

/// A wakeup in the published order takes 1 us; `block` is the time to give the processor away, us.
fn invented(block_us: f64) -> (Report, Orders) {
    let small = |name, ns| interval("events", &SAME, "A", Some(1), name, ns);
    let two = |n, ns| interval(TWO_CPUS, &SAME, "A", Some(n), "notify", ns);
    let intervals = vec![
        interval(ONE_CPU, &FUTEX, "A", Some(1), "wakeup B", 1.0),
        small("wait for nothing", 23.0),
        small("notify nobody", 50.0),
        small("add event", 25.0),
        small("delete event", 47.0),
        two(11, 2000.0),
        interval("calls", &[], "caller", Some(5), "call sched_yield", 200.0),
    ];
    let of = |backend, policy| [("backend", backend), ("policy", policy)];
    let lines = vec![
        line("notify", &of("futex", DEFAULT), 400.0, 8000.0, 0.5),
        line("notify", &of("futex", ORDERED), 90.0, 500.0, 0.5),
        line("notify", &of("eventfd", ORDERED), 400.0, 9000.0, 1e-6),
        line("notify", &of("pipe", ORDERED), 400.0, -10.0, 0.5),
    ];
    let turns = vec![
        turn(DEFAULT, "A", 1, [1200.0, 7000.0], [60, 40]),
        turn(DEFAULT, "B", 3, [1200.0, 7000.0], [80, 20]),
        turn(ORDERED, "A", 1, [1000.0, 0.0], [100, 0]),
        turn(ORDERED, "B", 3, [1000.0, 0.0], [100, 0]),
        turn(ORDERED, "A", 2, [0.0, block_us * 1e3], [0, 100]),
        turn(ORDERED, "B", 10, [30.0, 2000.0], [1, 99]),
        turn(ORDERED, "A", 11, [1500.0, 0.0], [100, 0]),
    ];
    let run_outs = vec![
        ran_out("quantum-default", "A", 2000.0, 90),
        ran_out("quantum-default", "B", 3000.0, 80),
        ran_out("quantum-rr", "A", 2000.0, 3),
    ];
    let mut report = report(intervals, lines);
    report.warnings = vec![
        Warning {
            code: "policy_refused".to_owned(),
            text: format!("{ONE_CPU} policy={ORDERED} backend=pipe: performed with batch"),
        },
        Warning {
            code: "lacking".to_owned(),
            text: format!("{ONE_CPU} policy={ORDERED} backend=condvar: not performed: no condvar"),
        },
    ];
    (report, Orders { turns, run_outs })
}

/// By hand: 894 us over 1 us; 1393 us over 5 us; 1454 us over 2 us; 229 over 25 ns; 1 + 5 us for
/// block and wakeup; 25 + 2000 + 1500 ns for the three; 894 + 1393 = 2287.
#[test]
fn published_beside_measured() {
    let (report, orders) = invented(5.0);
    let found = reproduction(&report, &orders);
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
    crate::inventory::tests::is_whole(&found);
    near("traffic/wakeup/futex/same-cpu", 894.0, 1.0);
    near("traffic/block/futex/same-cpu", 1393.0, 5.0);
    near("traffic/wait/futex/same-cpu", 1277.0, 2.0);
    near("traffic/add-event/futex/same-cpu", 229.0, 0.025);
    near("traffic/notify-nobody/futex/same-cpu", 237.0, 0.05);
    near("traffic/delete-event/futex/same-cpu", 235.0, 0.047);
    near("traffic/quantum/run-out/default/A", 1454.0, 2.0);
    near("traffic/quantum/run-out/default/B", 1511.0, 3.0);
    near("traffic/block-wakeup/futex/same-cpu", 2000.0, 6.0);
    near("traffic/add-wait-notify/futex/same-cpu", 1800.0, 3.525);
    near("traffic/notify-nobody/futex/other-cpu", 237.0, 0.05);
    near("traffic/notify/a-waiter/futex", 100.0, 0.5);
    let both = item(&found, "traffic/block-wakeup/futex/same-cpu");
    assert_eq!(both.formula, Some(2287.0));
    assert!(
        item(&found, "traffic/wakeup/futex/same-cpu")
            .note
            .contains("877..911")
    );
}

/// Each item has a published and a measured figure, or a reason why not.
#[test]
fn what_is_missing_has_a_reason() {
    let (report, orders) = invented(5.0);
    let found = reproduction(&report, &orders);
    let missing: Vec<&Item> = found
        .items
        .iter()
        .filter(|i| i.measured.is_none())
        .collect();
    assert!(!missing.is_empty(), "pipe was not invented");
    let note = |id: &str| item(&found, id).note.clone();
    let why = note("traffic/wakeup/condvar/same-cpu");
    assert!(why.contains("not performed: no condvar"), "{why}");
    let why = note("traffic/wakeup/pipe/same-cpu");
    assert!(
        why.contains("no repetition has five"),
        "not that another policy was used: {why}"
    );
    let why = note("traffic/quantum/run-out/rr/A");
    assert!(why.contains("3 times is too few"), "{why}");
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

/// Every value is in a figure, and each figure says of how many it is.
#[test]
fn each_order_has_its_share() {
    let (report, orders) = invented(5.0);
    let found = reproduction(&report, &orders);
    let note = |id: &str| item(&found, id).note.clone();
    assert!(note("traffic/wakeup/futex/same-cpu").contains("of all 200 values"));
    assert!(note("traffic/wait/futex/same-cpu").contains("of 99.0 % of 100 values"));
    let [keeps, preempted] = ["keeps", "preempted"]
        .map(|kind| item(&found, &format!("traffic/wakeup/futex/default/{kind}")));
    assert!(
        keeps.note.contains("of 70.0 % of 200 values"),
        "{}",
        keeps.note
    );
    assert!(
        keeps.note.contains(
            "beside them 1 wakeups of a process that did not wait; beside them 2 with another process's run"
        ),
        "{}",
        keeps.note
    );
    assert!(
        preempted.note.contains("of 30.0 % of 200 values"),
        "{}",
        preempted.note
    );
    let us = |item: &Item| item.measured.as_ref().expect("measured").value;
    assert!((us(keeps) - 1.2).abs() < 1e-9 && (us(preempted) - 7.0).abs() < 1e-9);
    let slope = item(&found, "traffic/notify/a-waiter/futex/default");
    assert!((us(slope) - 8.0).abs() < 1e-9 && slope.published.is_none());
}

#[test]
fn conclusions_follow_from_the_figures() {
    let said = |block_us: f64| {
        let (report, orders) = invented(block_us);
        reproduction(&report, &orders).findings.join("\n")
    };
    // 1 us and 1.5 us are 2.5 times a wakeup.
    let still = said(1.5);
    assert!(still.contains("futex 2.5; it holds for 1 of 1"), "{still}");
    // 60 of 200 wakeups.
    assert!(
        still.contains(
            "with the default policy: futex 30.0 %; with the policy fifo else batch: futex 0.0 %."
        ),
        "{still}"
    );
    assert!(still.contains("all backends keep to it"), "{still}");
    assert!(still.contains("futex yes (500"), "{still}");
    assert!(
        still.contains("eventfd grows, but not by a constant"),
        "{still}"
    );
    assert!(still.contains("pipe does not surely grow"), "{still}");
    let no_longer = said(8.0);
    assert!(
        no_longer.contains("futex 9.0 (no longer); it holds for 0 of 1"),
        "{no_longer}"
    );
}

/// What may as well be 0 divides nothing.
#[test]
fn no_conclusion_divides_by_what_may_be_0() {
    let (report, orders) = invented(1.5);
    let found = reproduction(&report, &orders);
    let said = |items: &[Item]| conclusions::conclusions(items, &report, &orders.turns).join("\n");
    let twice = "Is block + wakeup still about twice";
    assert!(said(&found.items).contains(twice));
    let mut items = found.items;
    for item in items
        .iter_mut()
        .filter(|item| item.id.starts_with("traffic/wakeup/"))
    {
        if let Some(measured) = &mut item.measured {
            measured.interval.lo = Some(-1.0);
        }
    }
    assert!(!said(&items).contains(twice));
}

#[test]
fn shorter_scripts_are_still_scripts() {
    for (run, repetitions) in [(Run::Full, 6), (Run::Quick, 4)] {
        let all = scripts(run, &[0, 1]);
        assert!(all.iter().any(|(name, _)| name == TWO_CPUS));
        assert!(scripts(run, &[0]).iter().all(|(name, _)| name != TWO_CPUS));
        let experiment = Experiment::new(all).expect("good scripts");
        assert!(experiment.settings().all(|(_, n)| n == repetitions));
        let policies = |script: &str| {
            let of =
                |(_, (setting, _)): &(usize, (&undertick_experiment::script::Setting, u32))| {
                    setting
                        .parameters
                        .iter()
                        .find(|(name, _)| name == "policy")
                        .cloned()
                };
            let settings = experiment.settings().enumerate();
            (settings
                .filter(|(i, _)| experiment.script_of(*i) == script)
                .filter_map(|s| of(&s)))
            .map(|(_, value)| value)
            .collect::<std::collections::BTreeSet<_>>()
        };
        for script in [ONE_CPU, "notify"] {
            assert_eq!(
                policies(script),
                [ORDERED, DEFAULT].map(str::to_owned).into(),
                "{script}"
            );
        }
    }
}
