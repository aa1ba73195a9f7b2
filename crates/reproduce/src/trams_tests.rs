//! Tests with invented figures; the published ones are computed by hand.

use std::collections::HashSet;

use undertick_report::reproduce::Item;

use super::super::invented::{interval, line, report};
use super::contended::CONTENDED;
use super::five::two_modes;
use super::*;
use undertick_experiment::Experiment;
use undertick_meter::traffic::{Anomaly, Cause, Samples};

fn item<'a>(found: &'a Reproduction, id: &str) -> &'a Item {
    let item = found.items.iter().find(|item| item.id == id);
    item.unwrap_or_else(|| panic!("no item {id}"))
}

fn samples() -> Samples {
    let anomaly = |ns: f64, cause, another_came| Anomaly {
        ns,
        cause,
        another_came,
    };
    let mut ns = vec![100.0; 94];
    let anomalies = vec![
        anomaly(9000.0, Some(Cause::Preempted), true),
        anomaly(8000.0, None, true),
        anomaly(7000.0, Some(Cause::Interrupt), false),
        anomaly(6000.0, None, false),
        anomaly(5000.0, Some(Cause::Waited), false),
        anomaly(1100.0, None, false),
    ];
    ns.extend(anomalies.iter().map(|a| a.ns));
    Samples {
        ns,
        anomalies,
        found_taken: 90,
    }
}

fn found(gettimeofday: f64, event64: f64) -> Reproduction {
    let one = [("readers", "1")];
    let spin = [("kind", "spin")];
    let intervals = vec![
        interval("recorder", &[], "A", Some(1), "record event", 15.0),
        interval("recorder", &[], "A", Some(3), "record event64", event64),
        interval(
            "clocks",
            &one,
            "reader",
            Some(1),
            "read gettimeofday",
            gettimeofday,
        ),
        interval("clocks", &one, "reader", Some(2), "read getrusage", 843.0),
        interval(
            "loop",
            &[],
            "A",
            Some(1),
            "10 000 turns of a loop",
            10_000.0,
        ),
        interval("locks", &spin, "A", Some(1), "lock and unlock", 8.0),
        interval("locks", &spin, "A", Some(2), "lock", 7.0),
        interval("locks", &spin, "A", Some(3), "unlock", 2.0),
        interval("fork-nothing", &[], "parent", Some(1), "fork", 90_000.0),
        interval(
            "fork-published",
            &[("kind", "shared"), ("bytes", "4351KB")],
            "parent",
            Some(2),
            "fork",
            205_000.0,
        ),
        interval(
            "memory-published",
            &[("kind", "sysv"), ("bytes", "33KB")],
            "A",
            Some(1),
            "allocate",
            9_000.0,
        ),
    ];
    let lines = vec![
        line(
            "fork-published",
            &[("kind", "shared")],
            90_000.0,
            5_000.0,
            0.5,
        ),
        line(
            "fork-published",
            &[("kind", "private")],
            90_000.0,
            32_000.0,
            0.5,
        ),
    ];
    let of = [("kind", "spin")];
    let contended = vec![
        interval(CONTENDED, &of, "A", Some(1), "lock", 460.0),
        interval(CONTENDED, &of, "A", Some(3), "unlock", 13.0),
    ];
    let locks = [
        Contended::from_samples(CONTENDED, ("spin", 2), &[samples()]),
        Contended::from_samples("contended-crowd", ("pthread", 5), &[samples()]),
    ];
    reproduction(
        &report(intervals, lines),
        &report(contended, Vec::new()),
        &locks,
        &report(
            vec![
                interval(
                    "",
                    &[],
                    "",
                    None,
                    "straight, constant or variable (period)",
                    18.0,
                ),
                interval(
                    "",
                    &[],
                    "",
                    None,
                    "for, constant or variable (period)",
                    20.0,
                ),
            ],
            Vec::new(),
        ),
    )
}

/// By hand: 3 us over 15 ns; 410 ms over 205 us; 72 ms over 9 us; 4.5 us over a ten
/// thousandth of 10 us; 6 anomalies in 100 are 30 in 500.
#[test]
fn published_beside_measured() {
    let found = found(843.0, 25.0);
    for (id, published, measured, ratio) in [
        ("record/constant", 3.0, 0.015, 200.0),
        ("figure-4", 6.0, 0.018, 6000.0 / 18.0),
        ("figure-13", 9.0, 0.02, 450.0),
        ("clock/gettimeofday/median", 649.0, 0.843, 649.0 / 0.843),
        ("lock/alone", 35.0, 0.007, 5000.0),
        ("unlock/alone", 11.0, 0.002, 5500.0),
        ("lock-unlock/alone", 46.0, 0.008, 5750.0),
        ("fork/0", 90.0, 0.09, 1000.0),
        ("fork/4351KB", 410.0, 0.205, 2000.0),
        ("table-5b/33/mean", 72.0, 0.009, 8000.0),
        ("five/anomalies/spin", 24.5, 30.0, 24.5 / 30.0),
        ("five/max/spin", 2477.0, 9.0, 2477.0 / 9.0),
        ("five/unlock/spin", 13.0, 0.013, 1000.0),
    ] {
        let item = item(&found, &format!("trams/{id}"));
        assert_eq!(item.published, Some(published), "{id}");
        let value = item.measured.as_ref().expect("measured").value;
        assert!((value - measured).abs() < 1e-9 * measured, "{id}: {value}");
        let is = item.ratio.expect("a ratio");
        assert!((is - ratio).abs() < 1e-9 * ratio, "{id}: {is}");
    }
    let turn = item(&found, "trams/loop");
    assert_eq!((turn.published, turn.ratio), (None, None));
    assert!((turn.measured.as_ref().expect("measured").value - 0.001).abs() < 1e-12);
    // Figures 2 to 13, three for each construct.
    let figures = found
        .items
        .iter()
        .filter(|item| item.id.starts_with("trams/figure-"));
    assert_eq!(figures.count(), 12);
    assert_eq!(found.plots.len(), 4);
    // What is measured with more processes than CPUs is not taken for the published measurement.
    let crowd = found
        .tables
        .iter()
        .find(|t| t.title.contains("than there are CPUs"));
    assert!(crowd.expect("its table").text[0].contains("time slices"));
    let crowded = found
        .items
        .iter()
        .filter(|i| i.id.starts_with("trams/crowd/"));
    assert!(crowded.clone().count() > 0);
    assert!(crowded.clone().all(|item| item.published.is_none()));
    for item in &found.items {
        let reason = !item.note.is_empty();
        assert!(
            item.measured.is_some()
                || item.simulated.is_some()
                || item.note.contains("not measured"),
            "{}",
            item.id
        );
        assert!(
            item.published.is_some()
                || (item.formula.is_some() && reason)
                || item.note.contains("not published"),
            "{}",
            item.id
        );
    }
}

/// Least squares of the seven published points, computed separately: the mean size is 11062/7 KB,
/// the mean 1619/7 ms.
#[test]
fn the_published_slope() {
    let (n, x, y) = (7.0, 11_062.0, 1_619.0);
    let xy = 33.0 * 130.0
        + 125.0 * 137.0
        + 490.0 * 161.0
        + 1096.0 * 198.0
        + 1941.0 * 254.0
        + 3026.0 * 329.0
        + 4351.0 * 410.0;
    let xx = 33.0_f64.powi(2)
        + 125.0_f64.powi(2)
        + 490.0_f64.powi(2)
        + 1096.0_f64.powi(2)
        + 1941.0_f64.powi(2)
        + 3026.0_f64.powi(2)
        + 4351.0_f64.powi(2);
    let slope = (n * xy - x * y) / (n * xx - x * x);
    let found = found(843.0, 25.0);
    let is = item(&found, "trams/fork/slope/shared")
        .formula
        .expect("by formula");
    assert!((is - slope * 1024.0).abs() < 1e-6, "{is} {slope}");
    assert!((is - 66.7).abs() < 0.1, "{is}");
    let at_0 = item(&found, "trams/fork/at-0/shared")
        .formula
        .expect("by formula");
    assert!((at_0 - (y - slope * x) / n).abs() < 1e-6, "{at_0}");
}

#[test]
fn anomalies_are_put_down_to_one_cause_each() {
    let found = Contended::from_samples(CONTENDED, ("spin", 2), &[samples(), samples()]);
    assert_eq!(found.ns.len(), 200);
    let counts = [
        found.anomalies,
        found.waiter_off,
        found.another_came,
        found.hit,
        found.in_turn,
        found.unexplained(),
    ];
    assert_eq!(counts, [12, 4, 2, 2, 2, 2]);
    assert_eq!(found.median(), 100.0);
    // 9400 in the usual samples, 36100 in the slow ones.
    assert!((found.share_of_time - 36_100.0 / 45_500.0).abs() < 1e-12);
    assert!((found.mean() - 455.0).abs() < 1e-9);
}

#[test]
fn conclusions_follow_from_the_figures() {
    let said = |gettimeofday, event64| {
        let findings = found(gettimeofday, event64).findings.join("\n");
        findings.replace("\u{a0}", " ")
    };
    // 30/25 and 843/25.
    let here = said(30.0, 25.0);
    assert!(
        here.contains(
            "gettimeofday is no dearer (1.2 times), getrusage one order dearer (34 times)"
        ),
        "{here}"
    );
    // 3000/25.
    let there = said(3000.0, 25.0);
    assert!(
        there.contains("gettimeofday is still about two orders dearer (120 times)"),
        "{there}"
    );
    // 8 ns over a turn of 1 ns.
    assert!(here.contains("8.0 here, as then"), "{here}");
    // The waits of 455 ns in the mean are less than the time for which the other holds the lock.
    assert!(
        here.contains("Where 2 processes want it on as many CPUs, 90 % of the waits found it taken, and passing it on costs nothing"),
        "{here}"
    );
    assert!(here.contains("of private memory: no longer."), "{here}");
    assert!(
        here.contains("spin: yes; mean 455 ns and median 100 ns (4.5 times"),
        "{here}"
    );
    let grain = |mean_ns: f64, found_taken| {
        let waits = Contended {
            ns: vec![mean_ns; 100],
            found_taken,
            ..Contended::from_samples(CONTENDED, ("spin", 3), &[])
        };
        conclusions::grain(8.0, 1.0, Some(&waits), None)
    };
    // By hand: two others hold it for 2000 ns each and it is let alone for 200, so 3860 ns are two
    // hand-overs of 30 ns, and 3900 ns two of 50, which is over four times 8 ns.
    assert!(grain(3860.0, 95).contains("costs 30 turns beside holding it: grain matters little"));
    assert!(
        grain(3900.0, 95).contains("costs 50 turns beside holding it: coarse grain is advised")
    );
    assert!(grain(3900.0, 70).contains("70 % of the waits found it taken, which is too few"));
    let even = Contended {
        ns: vec![100.0; 50],
        anomalies: 0,
        share_of_time: 0.0,
        ..Contended::from_samples(CONTENDED, ("spin", 2), &[])
    };
    assert!(two_modes(&even).expect("samples").contains("spin: no;"));
    // Of two repetitions one has no slow waits; that its mean is 1.6 times the median is another matter.
    let calm = Samples {
        ns: [vec![100.0; 60], vec![250.0; 40]].concat(),
        anomalies: Vec::new(),
        found_taken: 90,
    };
    let mixed = Contended::from_samples(CONTENDED, ("spin", 2), &[samples(), calm]);
    let said = two_modes(&mixed).expect("samples");
    assert!(said.contains("spin: in 1 of 2 repetitions;"), "{said}");
}

#[test]
fn scripts_are_scripts() {
    for run in [Run::Full, Run::Quick] {
        Experiment::new(scripts(run, &[0, 1])).expect("good scripts");
        for (cpus, wanted) in [
            (1, vec![5]),
            (2, vec![2, 5]),
            (3, vec![3, 5]),
            (5, vec![5]),
            (9, vec![5]),
        ] {
            let cpus: Vec<usize> = (0..cpus).collect();
            let experiment = Experiment::new(contended_scripts(run, &cpus)).expect("good scripts");
            let mut found: Vec<usize> = (experiment.settings())
                .map(|(setting, _)| setting.plan.processes.len())
                .collect();
            found.dedup();
            assert_eq!(found, wanted);
            // No two share a CPU where there are as many, and none has one where there are not.
            for (index, (setting, _)) in experiment.settings().enumerate() {
                let places = setting.plan.processes.iter().map(|process| &process.place);
                let different: HashSet<String> = places.map(|place| format!("{place:?}")).collect();
                let wanted = match experiment.script_of(index) == CONTENDED {
                    true => setting.plan.processes.len(),
                    false => 1,
                };
                assert_eq!(different.len(), wanted, "{different:?}");
            }
        }
    }
}

/// What may as well be 0 divides nothing: neither is there a number of times, nor a conclusion from it.
#[test]
fn no_conclusion_divides_by_what_may_be_0() {
    let found = found(843.0, 25.0);
    let with = |id: &str| {
        let mut items = found.items.clone();
        let of = items
            .iter_mut()
            .find(|item| item.id == id)
            .expect("an item");
        of.measured.as_mut().expect("measured").interval.lo = Some(-1.0);
        conclusions::conclusions(&items, &[]).join("\n")
    };
    let fork = "of private memory: that cannot be told";
    assert!(with("trams/fork/slope/private").contains(fork));
    let all = conclusions::conclusions(&found.items, &[]).join("\n");
    assert!(!all.contains(fork), "{all}");
    let (clocks, grain) = ("Are software clocks", "Is coarse grain");
    assert!(all.contains(clocks) && all.contains(grain), "{all}");
    let told = "cannot be told";
    assert!(!all.contains(told), "{all}");
    for (id, question) in [
        ("trams/record/both", clocks),
        ("trams/loop", grain),
        ("trams/lock-unlock/alone", grain),
    ] {
        let said = with(id);
        let of = said.lines().find(|line| line.starts_with(question));
        assert!(of.expect("an answer").contains(told), "{id}: {said}");
    }
}
