use undertick_units::Interval;

use super::*;

pub(crate) fn estimate(value: f64, lo: f64, hi: f64, unit: &str) -> Estimate {
    Estimate {
        value,
        interval: Interval::new(lo, hi),
        level: 0.95,
        unit: unit.into(),
        method: "median of 8 repetitions".into(),
        n: 8000,
        n_effective: 8.0,
        notes: vec![],
    }
}

pub(crate) fn metric(id: &str, group: &str, estimate: Estimate) -> Metric {
    Metric::new(
        id,
        group,
        id.replace('.', " "),
        estimate,
        format!("all of {id}"),
    )
}

pub(crate) fn survey(metrics: Vec<Metric>) -> Survey {
    Survey {
        schema_version: SCHEMA_VERSION,
        kind: KIND.into(),
        host: Host {
            name: "node1".into(),
            cpus: 2,
            cpu_model: "Model 1".into(),
            arch: "x86_64".into(),
            kernel: "6.1".into(),
            hypervisor: Some("KVM".into()),
            memory_bytes: Some(8 << 30),
            clock: "tsc".into(),
            tool_version: "0.1.0".into(),
        },
        begun_unix_s: 1_777_000_000.0,
        took_s: 61.0,
        confidence: 0.95,
        interrupted: false,
        metrics,
        warnings: vec![],
        missing: vec![Missing {
            id: "interference.*".into(),
            why: "not measured".into(),
        }],
    }
}

fn two() -> Survey {
    let mut speed = metric("speed.cpu.3", "speed", estimate(3.21, 3.1, 3.3, "GHz"));
    speed.cpu = Some(3);
    speed.better = Better::Higher;
    survey(vec![
        metric("call.getppid", "calls", estimate(98.0, 97.0, 99.5, "ns")),
        speed,
    ])
}

/// A trace does not record whether there was a hypervisor, so nothing is said of it.
#[test]
fn a_trace_says_nothing_of_hypervisors() {
    let mut host = two().host;
    assert!(machine(&host).contains(", a guest of KVM, Linux 6.1"));
    host.hypervisor = None;
    assert!(machine(&host).contains(", no hypervisor seen, Linux 6.1"));
    host.memory_bytes = None;
    assert!(machine(&host).contains("(2 CPUs, Model 1, Linux 6.1, "));
}

#[test]
fn reads_back_what_it_wrote() {
    let text = serde_json::to_string(&two()).unwrap();
    assert_eq!(serde_json::from_str::<Survey>(&text).unwrap(), two());
}

/// Names that external programs rely on (version 1).
#[test]
fn keeps_the_published_names() {
    let json = serde_json::to_value(two()).unwrap();
    for pointer in [
        "/schema_version",
        "/kind",
        "/host/name",
        "/host/cpus",
        "/host/cpu_model",
        "/host/kernel",
        "/host/hypervisor",
        "/host/memory_bytes",
        "/host/clock",
        "/host/tool_version",
        "/begun_unix_s",
        "/took_s",
        "/confidence",
        "/interrupted",
        "/metrics/0/id",
        "/metrics/0/group",
        "/metrics/0/name",
        "/metrics/0/estimate/interval/0",
        "/metrics/0/includes",
        "/metrics/0/better",
        "/metrics/0/scale",
        "/metrics/1/cpu",
        "/warnings",
        "/missing/0/id",
        "/missing/0/why",
    ] {
        assert!(json.pointer(pointer).is_some(), "{pointer} is missing");
    }
    assert_eq!(json["metrics"][1]["better"], "higher");
    assert_eq!(json["metrics"][0]["scale"], "ratio");
}

/// Fields that an older or a simpler writer leaves out.
#[test]
fn little_is_enough() {
    let text = r#"{"schema_version": 1, "host": {"name": "a", "cpus": 1, "cpu_model": "", "kernel": "6",
        "hypervisor": null, "memory_bytes": null, "clock": "tsc", "tool_version": "0.0"},
        "begun_unix_s": 0, "took_s": 1, "metrics": [], "warnings": [], "missing": []}"#;
    let found: Survey = serde_json::from_str(text).unwrap();
    assert_eq!((found.confidence, found.interrupted), (0.95, false));
    assert!(render(&found, 80).contains("CPU model not known"));
}

#[test]
fn what_is_broken_is_named() {
    let good = two();
    assert_eq!(good.check(), Ok(()));
    let broken = |change: fn(&mut Metric)| {
        let mut survey = two();
        change(&mut survey.metrics[1]);
        survey.check().unwrap_err()
    };
    assert!(broken(|m| m.id = "call.getppid".into()).contains("metrics[1]"));
    assert!(broken(|m| m.id.clear()).contains("no id"));
    assert!(broken(|m| m.estimate.value = f64::NAN).contains("finite"));
    assert!(broken(|m| m.estimate.interval = Interval::new(3.0, 2.0)).contains("ends before"));
    assert!(broken(|m| m.estimate.level = 0.0).contains("level"));
}

#[test]
fn a_terminal_gets_every_figure_and_nothing_harmful() {
    let mut survey = two();
    survey.host.name = "evil\x1b[2J\u{202e}host".into();
    survey.metrics[0].name = "call\x07 getppid".into();
    survey.missing[0].why = "no\x1b]0;title".into();
    let text = render(&survey, 100);
    assert!(!text.contains(['\x1b', '\x07', '\u{202e}']), "{text:?}");
    for part in [
        "98.0 ns",
        "[97.0, 99.5]",
        "3.21 GHz",
        "8 000",
        "a guest of KVM",
        "8.0 GiB",
        "not measured: interference.*",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(
        text.lines().all(|line| crate::text::columns(line) <= 100),
        "{text}"
    );
}

/// A figure outside its interval, a missing one and a duration below 0 are each listed as missing,
/// with the reason. A metric compared by differences may be below 0; a bound may not.
#[test]
fn impossible_figures_are_missing() {
    let of =
        |id: &str, value: f64, lo: f64, hi: f64| metric(id, "calls", estimate(value, lo, hi, "ns"));
    let mut difference = of("difference", -3.0, -5.0, -1.0);
    difference.scale = Scale::Difference;
    let mut once = of("once", 8.0, 7.0, 9.0);
    once.once_a_second = Some(estimate(-2.0, -3.0, 1.0, "ns"));
    let given = survey(vec![
        of("good", 8.0, 7.0, 9.0),
        of("outside", 80.0, 7.0, 9.0),
        of("no number", f64::NAN, 7.0, 9.0),
        of("below", -8.0, -9.0, 9.0),
        of("reaches below", 8.0, -1.0, 9.0),
        difference,
        once,
    ]);
    let found = given.without_impossible();
    let ids: Vec<&str> = found.metrics.iter().map(|m| m.id.as_str()).collect();
    assert_eq!(ids, ["good", "reaches below", "difference", "once"]);
    assert_eq!(found.metrics[1].estimate.interval, Interval::new(0.0, 9.0));
    assert_eq!(found.metrics[2].estimate.value, -3.0);
    assert_eq!(found.metrics[3].once_a_second, None);
    let missing: Vec<(&str, &str)> = (found.missing.iter())
        .map(|m| (m.id.as_str(), m.why.rsplit(": ").next().unwrap_or("")))
        .collect();
    let expected = [
        ("interference.*", "not measured"),
        ("outside", "outside its own interval"),
        ("no number", "not a number"),
        ("below", "below 0"),
    ];
    assert_eq!(missing, expected);
}
