use undertick_report::compare::{Source, render};
use undertick_report::survey::{Host, Metric};
use undertick_units::{Estimate, Interval};

use super::*;

fn metric(id: &str, group: &str, value: f64, half: f64) -> Metric {
    Metric::new(
        id,
        group,
        id.replace('.', " "),
        Estimate {
            value,
            interval: Interval::new(value - half, value + half),
            level: 0.95,
            unit: "ns".into(),
            method: String::new(),
            n: 1000,
            n_effective: 9.0,
            notes: vec![],
        },
        "",
    )
}

fn side(name: &str, metrics: Vec<Metric>) -> Side {
    Side {
        about: Source {
            file: format!("{name}.json"),
            kind: "survey".into(),
            host: Host {
                name: name.into(),
                cpus: 2,
                cpu_model: "m".into(),
                ..Host::default()
            },
            begun_unix_s: 0.0,
            runs: None,
        },
        metrics,
        paths: Vec::new(),
        interrupted: false,
        is_one_run: false,
    }
}

/// By hand, with half-widths of 2 %: with 8 degrees a standard error is 0.02 / 2.306 = 0.87 %, that
/// of both 1.23 %. 100 to 130: 21 of them, slower. 100 to 100.5: within ln 1.005 +- 2.83 %, so
/// 0.977 .. 1.034, no difference larger than 3.4 %. With half-widths of 40 %: cannot tell.
#[test]
fn three_by_hand() {
    let a = side(
        "a",
        vec![
            metric("x", "calls", 100.0, 2.0),
            metric("y", "calls", 100.0, 2.0),
            metric("z", "locks", 100.0, 40.0),
        ],
    );
    let b = side(
        "b",
        vec![
            metric("x", "calls", 130.0, 2.6),
            metric("y", "calls", 100.5, 2.0),
            metric("z", "locks", 120.0, 40.0),
        ],
    );
    let found = compare(a.clone(), b, 0.95).unwrap();
    let verdicts: Vec<Verdict> = found.rows.iter().map(|r| r.verdict).collect();
    assert_eq!(
        verdicts,
        [Verdict::Slower, Verdict::Alike, Verdict::CannotTell]
    );
    assert_eq!(found.rows[0].words, "slower by 30.0 %");
    assert_eq!(found.rows[1].words, "no difference larger than 3.4 %");
    assert_eq!(found.rows[2].words, "cannot tell");
    let ratio = found.rows[0].ratio.as_ref().unwrap();
    assert!((ratio.value - 1.3).abs() < 1e-12);
    // The root of 2 times ln 1.02: 2.80 %; to the lower side ln 0.98: 2.86 %.
    assert!(
        (ratio.interval.lo.unwrap() - 1.3 * (-0.028_29_f64).exp()).abs() < 5e-4,
        "{ratio:?}"
    );
    let s = found.summary;
    assert_eq!((s.compared, s.differ, s.better, s.worse), (3, 1, 0, 1));
    assert_eq!((s.alike, s.cannot_tell), (1, 1));
    assert!((s.expected_by_chance - 0.15).abs() < 1e-12);
    // The other way round it is faster.
    let back = compare(side("b", vec![metric("x", "calls", 130.0, 2.6)]), a, 0.95).unwrap();
    assert_eq!(back.rows[0].verdict, Verdict::Faster);
    assert_eq!(back.only_in_b, ["y", "z"]);
}

/// Two figures of 0, whose intervals contain it: their ratio is unknown, whatever number a division
/// gives.
#[test]
fn what_may_be_0_has_no_ratio() {
    let of =
        |name: &str, value: f64, half: f64| side(name, vec![metric("x", "calls", value, half)]);
    for (value, half, has_one) in [
        (1e-12, 2.0, false),
        (3.0, 3.0, false),
        (3.0, 2.9, true),
        (3.0, f64::NAN, false),
    ] {
        let mut a = of("a", value, half);
        if half.is_nan() {
            a.metrics[0].estimate.interval = Interval { lo: None, hi: None };
        }
        let found = compare(a, of("b", 4000.0, 1.0), 0.95).unwrap();
        assert_eq!(found.rows[0].ratio.is_some(), has_one, "{value} {half}");
        let words = &found.rows[0].words;
        assert!(has_one || !words.contains("times"), "{words}");
        assert!(!render(&found, 100).contains("e1"));
    }
}

/// A speed is better the higher it is; for what is neither time nor speed the verdict is more or
/// less.
#[test]
fn directions() {
    let of = |better, unit: &str, scale| {
        let make = |value: f64| {
            let mut m = metric("x", "speed", value, 0.01);
            m.better = better;
            m.scale = scale;
            m.estimate.unit = unit.into();
            m
        };
        let found = compare(side("a", vec![make(3.0)]), side("b", vec![make(2.0)]), 0.95).unwrap();
        (
            found.rows[0].verdict,
            found.summary.better,
            found.summary.worse,
        )
    };
    assert_eq!(
        of(Better::Higher, "GHz", Scale::Ratio),
        (Verdict::Slower, 0, 1)
    );
    assert_eq!(
        of(Better::Lower, "ns", Scale::Ratio),
        (Verdict::Faster, 1, 0)
    );
    assert_eq!(
        of(Better::Lower, "1", Scale::Difference),
        (Verdict::Less, 1, 0)
    );
    assert_eq!(
        of(Better::Neither, "1e-6", Scale::Difference),
        (Verdict::Less, 0, 0)
    );
}

/// 80 figures, of which 40 have p just below 0.05 by chance alone and would be called different one
/// by one. Of 80 equal ones with evenly spread p-values none is called so.
#[test]
fn eighty_with_control() {
    // Evenly spread p-values: the i-th pair is apart as its t quantile says.
    use undertick_estimate::normal_quantile;
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for i in 0..80 {
        let p = (f64::from(i) + 0.5) / 80.0;
        // Many degrees of freedom: normal. Half-widths of 1 %, standard errors of 0.51 %.
        let apart = normal_quantile(1.0 - p) * 0.01 / 1.96 * 2.0_f64.sqrt();
        let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
        let group = ["calls", "locks", "messages", "wakeup"][i as usize / 20];
        let mut one = metric(&format!("m{i}"), group, 100.0, 1.0);
        let mut other = metric(&format!("m{i}"), group, 100.0 * (sign * apart).exp(), 1.0);
        one.estimate.n_effective = 1e7;
        other.estimate.n_effective = 1e7;
        a.push(one);
        b.push(other);
    }
    let found = compare(side("a", a.clone()), side("b", b.clone()), 0.95).unwrap();
    assert_eq!(found.summary.differ_alone, 4, "{:?}", found.summary);
    assert_eq!(found.summary.differ, 0);
    assert!((found.summary.expected_by_chance - 4.0).abs() < 1e-9);
    // Five that really differ are found among them, and marked.
    for other in b.iter_mut().take(5) {
        other.estimate.value *= 1.5;
        let bounds = other.estimate.interval;
        other.estimate.interval = Interval::new(bounds.lo.unwrap() * 1.5, bounds.hi.unwrap() * 1.5);
    }
    let found = compare(side("a", a), side("b", b), 0.95).unwrap();
    assert!(
        (5..=6).contains(&found.summary.differ),
        "{:?}",
        found.summary
    );
    assert!(
        found
            .rows
            .iter()
            .take(5)
            .all(|r| r.verdict == Verdict::Slower)
    );
    let text = render(&found, 100);
    let differs = text.find("What differs").unwrap();
    assert!(differs < text.find("the rest").unwrap(), "{text}");
    assert!(
        text.lines().nth(2).is_some() && text.contains("of 80 figures differ"),
        "{text}"
    );
    assert!(
        text.lines().count() < 130 && text.lines().all(|l| l.chars().count() <= 100),
        "{text}"
    );
}

#[test]
fn without_an_interval_nothing_is_told() {
    let mut x = metric("x", "calls", 100.0, 1.0);
    x.estimate.interval = Interval { lo: None, hi: None };
    let found = compare(
        side("a", vec![x.clone()]),
        side("b", vec![metric("x", "calls", 900.0, 1.0)]),
        0.95,
    )
    .unwrap();
    assert_eq!(
        (found.rows[0].verdict, found.rows[0].p),
        (Verdict::CannotTell, None)
    );
    assert!(found.rows[0].words.contains("no interval"));
    assert_eq!(found.summary.expected_by_chance, 0.0);
    let mut other_unit = metric("x", "calls", 1.0, 0.1);
    other_unit.estimate.unit = "GHz".into();
    let found = compare(side("a", vec![x]), side("b", vec![other_unit]), 0.95).unwrap();
    assert!(found.rows.is_empty() && found.warnings.iter().any(|w| w.code == "units"));
}

#[test]
fn two_kinds_are_refused_and_other_machines_said() {
    let a = side("a", vec![]);
    let mut b = side("b", vec![]);
    b.about.host.cpu_model = "other".into();
    let found = compare(a.clone(), b.clone(), 0.95).unwrap();
    assert!(found.warnings.iter().any(|w| w.text.contains("CPU model")));
    assert!(render(&found, 80).contains("No figure is in both"));
    b.about.kind = "report".into();
    assert!(compare(a, b, 0.95).unwrap_err().contains("two of a kind"));
}
