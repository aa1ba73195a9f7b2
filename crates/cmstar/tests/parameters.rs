//! The parameter file, and the messages for wrong ones.

use undertick_cmstar::{Os, Parameters, Use};

fn error(change: impl Fn(&str) -> String) -> String {
    let text = change(Parameters::published_text());
    assert!(text != Parameters::published_text(), "nothing was changed");
    Parameters::parse(&text).unwrap_err().to_string()
}

#[test]
fn the_published_ones_are_right() {
    let parameters = Parameters::published();
    assert_eq!(
        parameters.topology.clusters * parameters.topology.cms_per_cluster,
        50
    );
    assert_eq!(parameters.topology.clocks.len(), 3);
    assert!(parameters.system(Os::StarOs).interrupts.is_some());
    assert!(parameters.system(Os::Medusa).interrupts.is_none());
    let range_hours = 2f64.powi(32) * parameters.clock.tick_us / 3.6e9;
    assert!((range_hours - 2.386).abs() < 0.001);
}

#[test]
fn every_figure_is_fitted_to_or_checked_and_named_once() {
    let parameters = Parameters::published();
    let mut names: Vec<&str> = parameters.figures.iter().map(|f| f.name.as_str()).collect();
    assert!(names.len() > 30);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), parameters.figures.len());
    let checked = parameters
        .figures
        .iter()
        .filter(|f| f.used_for == Use::Check);
    assert!(checked.count() >= 15);
    assert!(
        parameters
            .figures
            .iter()
            .all(|f| f.to.is_none_or(|to| to > f.value))
    );
    assert_eq!(parameters.figure("latency_3").unwrap().value, 9615.0);
    assert!(parameters.figure("latency_4").is_none());
}

#[test]
fn wrong_ones_are_named() {
    let replaced = |from: &'static str, to: &'static str| move |text: &str| text.replace(from, to);
    for (from, to, part) in [
        ("tick_us = 2.0", "tick_us = 0.0", "clock.tick_us = 0"),
        (
            "tick_us = 2.0",
            "tick_us = 2.00001",
            "clock.tick_us = 2.00001",
        ),
        ("word_bits = 16", "word_bits = 40", "clock: a wide clock"),
        (
            "clusters = 5 ",
            "clusters = 4 ",
            "Cm14: there is no Cm 10 in a cluster 5",
        ),
        (
            "cms_per_cluster = 10",
            "cms_per_cluster = 0",
            "topology.cms_per_cluster",
        ),
        (
            "memory = 3.0",
            "memory = 1e9",
            "reference.memory = 1000000000",
        ),
        ("local = 3.5", "local = nan", "reference.local = NaN"),
        ("local = 3.5", "local = 0.0", "reference.local = 0"),
        ("slocal = 2.0", "slocal = -2.0", "reference.slocal = -2"),
        (
            "speed_range = 0.046",
            "speed_range = 4.6",
            "cm.speed_range = 4.6",
        ),
        ("contexts = 4", "contexts = 0", "staros.contention.contexts"),
        ("again = 60.0", "again = 0.0", "staros.contention.again = 0"),
        (
            "handler = 320.0",
            "handler = 20000.0",
            "before the next interrupt",
        ),
        ("reading = 126.0", "reading = 0.0", "medusa.reading = 0"),
        (
            "quantum = 50000.0",
            "quantum = 0.0",
            "staros.scheduling.quantum = 0",
        ),
        ("capacity = 16", "capacity = 0", "staros.messages.capacity"),
        ("clock = 0 ", "clock = 3 ", "workload.clock = 3"),
        ("[2, 3, 4, 5]", "[2, 3, 4, 6]", "no cluster 6"),
        (
            "kind = \"queue\"",
            "kind = \"guess\"",
            "unknown variant `guess`",
        ),
        ("slocal = 2.0", "slokal = 2.0", "unknown field `slokal`"),
        ("slocal = 2.0", "", "missing field `slocal`"),
        ("slocal = 2.0", "slocal = two", "line"),
    ] {
        let text = error(replaced(from, to));
        assert!(text.contains(part), "{from} -> {to}: {text}");
    }
}
