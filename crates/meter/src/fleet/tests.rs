//! Simulated fleets of surveys, in which the bad machines are known.

mod simulated;

use undertick_report::html;
use undertick_report::survey::{GROUPS, Survey};
use undertick_units::Interval;

use self::simulated::{Bad, Source, gathered, quantities, survey};
use super::*;

/// Seven bad machines of three kinds among a thousand.
const BAD: [(usize, Bad); 7] = [
    (17, Bad::SlowCpu),
    (180, Bad::SlowCpu),
    (333, Bad::Noisy),
    (444, Bad::Noisy),
    (555, Bad::ClockFallback),
    (678, Bad::ClockFallback),
    (999, Bad::SlowCpu),
];

fn thousand(seed: u64, with_bad: bool) -> Gathered {
    gathered((0..1000).map(|i| {
        let bad = BAD
            .iter()
            .find(|(at, _)| *at == i && with_bad)
            .map_or(Bad::No, |(_, bad)| *bad);
        survey(
            &format!("node{i:04}"),
            "Model 1",
            seed * 10_000 + i as u64,
            bad,
        )
    }))
}

fn bad_name(i: usize) -> String {
    format!("node{i:04}")
}

fn words_of<'a>(fleet: &'a Fleet, host: &str) -> Vec<&'a str> {
    let of = fleet.outliers.iter().find(|o| o.host == host);
    of.map_or(vec![], |o| {
        o.reasons.iter().map(|r| r.metric.as_str()).collect()
    })
}

/// In each of twenty fleets all seven are found, each for its fault, and at most one other; the
/// page is small.
#[test]
fn seven_bad_of_a_thousand() {
    let (mut others, mut largest, mut slow_in_all) = (0, 0, 0);
    for seed in 0..20 {
        let fleet = of_gathered(thousand(seed, true), None, 0.95);
        let names: Vec<&str> = fleet.outliers.iter().map(|o| o.host.as_str()).collect();
        for (at, bad) in BAD {
            let name = bad_name(at);
            assert!(
                names.contains(&name.as_str()),
                "seed {seed}: {name} is not in {names:?}"
            );
            let reasons = words_of(&fleet, &name);
            let has = |what: &str| reasons.iter().any(|r| r.starts_with(what));
            match bad {
                Bad::SlowCpu => {
                    assert!(has("slowness") || has("speed.typical"), "{reasons:?}");
                    slow_in_all += usize::from(has("slowness"));
                }
                Bad::Noisy => assert!(has("noise"), "{reasons:?}"),
                _ => assert!(
                    reasons.len() == 8 && reasons.iter().all(|r| r.starts_with("clock.read")),
                    "{reasons:?}"
                ),
            }
        }
        let false_alarms = names.len() - BAD.len();
        assert!(false_alarms <= 1, "seed {seed}: {names:?}");
        others += false_alarms;
        if seed < 2 {
            let page = html::fleet::render(&fleet);
            largest = largest.max(page.len());
            assert!(page.len() < 3_000_000, "{}", page.len());
            let slowest: Vec<&str> = fleet.slowest(3).iter().map(|h| h.host.as_str()).collect();
            let mut slow = vec!["node0017", "node0180", "node0999"];
            slow.retain(|s| !slowest.contains(s));
            assert!(slow.is_empty(), "{slowest:?}");
            assert!(
                fleet.slowest(1)[0]
                    .slowness
                    .is_some_and(|s| (1.3..1.7).contains(&s))
            );
            let noisiest = fleet.noisiest(2);
            assert!(
                noisiest
                    .iter()
                    .all(|h| ["node0333", "node0444"].contains(&h.host.as_str())),
                "{noisiest:?}"
            );
        }
    }
    assert!(slow_in_all >= 50, "{slow_in_all} of 60");
    println!(
        "{others} false alarms in 20 fleets; {slow_in_all} of 60 slow in all; the page has {largest} bytes"
    );
}

/// Without a bad machine one is found in at most 5 % of fleets: more than 11 of 40 then have a
/// probability below 1e-6.
#[test]
fn nobody_is_bad() {
    let alarms = (0..40).filter(|seed| {
        let now = gathered((0..200).map(|i| {
            survey(
                &format!("n{i}"),
                "Model 1",
                77_000_000 + seed * 1000 + i,
                Bad::No,
            )
        }));
        !of_gathered(now, None, 0.95).outliers.is_empty()
    });
    let alarms = alarms.count();
    println!("an alarm in {alarms} of 40 fleets of 200");
    assert!(alarms <= 11, "{alarms}");
}

/// Machines of another type are not outliers, and are not compared where there are few of them.
#[test]
fn types_are_compared_within() {
    let mut surveys: Vec<Survey> = (0..30)
        .map(|i| survey(&format!("a{i}"), "Model 1", i, Bad::No))
        .collect();
    surveys.extend((0..15).map(|i| {
        let mut other = survey(&format!("b{i}"), "Model 2", 100 + i, Bad::SlowCpu);
        other.host.tool_version = "0.2.0".into();
        other
    }));
    surveys.extend((0..4).map(|i| survey(&format!("c{i}"), "", 200 + i, Bad::ClockFallback)));
    let fleet = of_gathered(gathered(surveys), None, 0.95);
    assert!(fleet.outliers.is_empty(), "{:?}", fleet.outliers);
    let types: Vec<(&str, u64, bool)> = fleet
        .types
        .iter()
        .map(|t| (t.cpu_model.as_str(), t.hosts, t.compared))
        .collect();
    assert_eq!(
        types,
        [("Model 1", 30, true), ("Model 2", 15, true), ("", 4, false)]
    );
    assert_eq!(
        fleet.versions,
        [("0.1.0".to_owned(), 34), ("0.2.0".to_owned(), 15)]
    );
    let text = undertick_report::fleet::render(&fleet, 100);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("Undertick 0.2.0 on 15 machines: b0, b1"),
        "{text}"
    );
    assert!(text.contains("4 machines of 1 type with fewer"), "{text}");
    assert!(fleet.metrics[0].by_type.len() == 3 && fleet.metrics[0].by_type[2].scatter.is_none());
    assert!(
        fleet
            .hosts
            .iter()
            .all(|h| h.slowness.is_some() == (h.of_type < 2))
    );
}

/// By hand: the calls of all machines cost 10 % more, and a reading of one machine's clock takes 4
/// times as long.
#[test]
fn drift_against_last_week() {
    let then: Vec<Survey> = (0..60)
        .map(|i| survey(&format!("n{i}"), "Model 1", i, Bad::No))
        .collect();
    let mut source = Source::seeded(9);
    let now: Vec<Survey> = (then[2..].iter().cloned())
        .map(|mut survey| {
            for metric in &mut survey.metrics {
                let error = if metric.group == "clocks" { 0.0 } else { 0.02 };
                let mut factor = (error * source.normal()).exp();
                if metric.group == "calls" {
                    factor *= 1.1;
                }
                if survey.host.name == "n40" && metric.group == "reading" {
                    factor *= 4.0;
                }
                let e = &mut metric.estimate;
                e.value *= factor;
                e.interval = Interval::new(
                    e.interval.lo.unwrap() * factor,
                    e.interval.hi.unwrap() * factor,
                );
            }
            survey
        })
        .chain([survey("new", "Model 1", 999, Bad::No)])
        .collect();
    let fleet = of_gathered(gathered(now), Some(gathered(then)), 0.95);
    let drift = fleet.drift.as_ref().unwrap();
    assert_eq!((drift.hosts, drift.only_now, drift.only_then), (58, 1, 2));
    let changed: Vec<&str> = drift
        .metrics
        .iter()
        .filter(|m| m.changed)
        .map(|m| m.id.as_str())
        .collect();
    for call in ["call.0", "call.1", "call.2", "call.3"] {
        assert!(changed.contains(&call), "{changed:?}");
        let metric = drift.metrics.iter().find(|m| m.id == call).unwrap();
        assert!((metric.change / 1.1 - 1.0).abs() < 0.02, "{metric:?}");
        let [lo, hi] = metric.interval.map(Option::unwrap);
        assert!(
            lo < metric.change && metric.change < hi && hi / lo < 1.05,
            "{metric:?}"
        );
    }
    assert!(changed.len() <= 6, "{changed:?}");
    let step = drift.metrics.iter().find(|m| m.id == "clock.step").unwrap();
    assert_eq!((step.change, step.changed), (1.0, false));
    let hosts: Vec<&str> = drift.changed.iter().map(|o| o.host.as_str()).collect();
    assert_eq!(hosts, ["n40"]);
    assert!(
        drift.changed[0]
            .reasons
            .iter()
            .all(|r| r.metric.starts_with("clock.read"))
    );
    let page = html::fleet::render(&fleet);
    assert!(page.contains("Against before") && page.contains("n40"));
}

/// Files as they come from a thousand jobs: torn, of another version, with NaN, of another kind,
/// empty, hostile. None is fatal, and each is reported with its mend.
#[test]
fn files_that_are_no_surveys() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    for i in 0..12 {
        let survey = survey(&format!("n{i}"), "Model 1", i, Bad::No);
        write(
            &format!("n{i}.json"),
            &serde_json::to_string(&survey).unwrap(),
        );
    }
    let good = serde_json::to_string(&survey("x", "Model 1", 50, Bad::No)).unwrap();
    write("torn.json", &good[..good.len() / 2]);
    write(
        "newer.json",
        &good.replacen("\"schema_version\":1", "\"schema_version\":7", 1),
    );
    write(
        "nan.json",
        &good.replacen("\"took_s\":60.0", "\"took_s\":NaN", 1),
    );
    write("empty.json", "");
    write("audit.json", r#"{"schema_version": 1, "clocks": []}"#);
    write("notes.txt", "not looked at");
    std::fs::write(dir.path().join("bytes.json"), [0xff, 0xfe, 0x00]).unwrap();
    std::fs::create_dir(dir.path().join("dir.json")).unwrap();
    let mut hostile = survey(
        "<script>alert(1)</script>\u{1b}[2J\u{202e}",
        "Model <b>",
        60,
        Bad::No,
    );
    hostile.metrics.truncate(10);
    hostile.missing = vec![undertick_report::survey::Missing {
        id: "fork.*".into(),
        why: "<img src=x>\u{1b}]0;".into(),
    }];
    write("hostile.json", &serde_json::to_string(&hostile).unwrap());
    let mut double = survey("n3", "Model 1", 70, Bad::No);
    double.interrupted = true;
    write("second-n3.json", &serde_json::to_string(&double).unwrap());
    let fleet = fleet(dir.path(), None, 0.95).unwrap();
    let why = |file: &str| {
        let of = fleet.unreadable.iter().find(|u| u.file == file);
        of.unwrap_or_else(|| panic!("{file} is not in {:?}", fleet.unreadable))
            .why
            .clone()
    };
    for (file, word) in [
        ("torn.json", "torn"),
        ("newer.json", "version 7"),
        ("nan.json", "line 1, column"),
        ("empty.json", "empty"),
        ("audit.json", "audit of clocks"),
        ("bytes.json", "UTF-8"),
        ("dir.json", "is a directory"),
    ] {
        assert!(
            why(file).contains(word) && why(file).contains(file),
            "{}",
            why(file)
        );
    }
    assert_eq!((fleet.unreadable.len(), fleet.hosts.len()), (7, 14));
    let codes: Vec<&str> = fleet.warnings.iter().map(|w| w.code.as_str()).collect();
    assert_eq!(codes, ["not_json", "same_name", "interrupted"]);
    assert!(fleet.hosts.iter().any(|h| h.host == "n3 (second-n3.json)"));
    assert_eq!(fleet.lacking.len(), 1);
    assert!(fleet.lacking[0].metrics.len() == quantities().len() - 10);
    let text = undertick_report::fleet::render(&fleet, 100);
    assert!(
        !text.contains(['\u{1b}', '\u{202e}']) && text.contains("torn.json"),
        "{text}"
    );
    let page = html::fleet::render(&fleet);
    assert!(!page.contains(['\u{1b}', '\u{202e}']));
    assert!(
        !page.contains("<script>alert") && !page.contains("<img") && !page.contains("Model <b>")
    );
    assert!(page.contains("&lt;script&gt;alert"));
}

#[test]
fn a_directory_without_surveys() {
    let dir = tempfile::tempdir().unwrap();
    let why = fleet(dir.path(), None, 0.95).unwrap_err();
    assert!(
        why.contains("none of 0 .json files") && why.contains("survey --json"),
        "{why}"
    );
    std::fs::write(dir.path().join("a.json"), "{").unwrap();
    let why = fleet(dir.path(), None, 0.95).unwrap_err();
    assert!(why.contains("a.json") && why.contains("torn"), "{why}");
    let why = fleet(&dir.path().join("nowhere"), None, 0.95).unwrap_err();
    assert!(
        why.contains("nowhere") && why.contains("give the directory"),
        "{why}"
    );
}

/// Three machines are shown without a verdict.
#[test]
fn a_few_machines() {
    let fleet = of_gathered(
        gathered((0..3).map(|i| survey(&format!("n{i}"), "Model 1", i, Bad::No))),
        None,
        0.95,
    );
    assert!(fleet.outliers.is_empty() && fleet.warnings.iter().any(|w| w.code == "too_few"));
    assert!(undertick_report::fleet::render(&fleet, 100).contains("too few"));
    assert!(
        GROUPS
            .iter()
            .any(|(group, _)| *group == fleet.metrics[0].group)
    );
}
