use super::*;
use undertick_experiment::script::{Placement, Setting, Step, Verb};

fn with(setting: &Setting) -> BTreeMap<String, String> {
    setting.parameters.iter().cloned().collect()
}

/// A rival of a lock runs on another CPU, and each of the two holds the lock for at least ten times as
/// long as it lets it alone: the other mostly finds it taken.
#[test]
fn holds_of_a_lock_with_a_rival_overlap() {
    let experiment = experiment(false).unwrap_or_else(|e| panic!("{e}"));
    let mut checked = 0;
    for (setting, _) in experiment.settings() {
        let is_of_rivals = |p: &undertick_experiment::script::Process| {
            p.steps.iter().any(|step| step.name == "lock with a rival")
        };
        let plan = &setting.plan;
        let Some(first) = plan.processes.iter().position(is_of_rivals) else {
            continue;
        };
        checked += 1;
        assert_eq!(plan.processes.len(), 2);
        let rival = &plan.processes[1 - first];
        assert_eq!(rival.place, Placement::OtherCpu(first));
        assert!(rival.background);
        for process in &plan.processes {
            let [lock, hold, unlock, alone] = &process.steps[..] else {
                panic!("{:?}", process.steps);
            };
            assert!(matches!(lock.verb, Verb::Lock { .. }), "{lock:?}");
            assert!(matches!(unlock.verb, Verb::Unlock { .. }), "{unlock:?}");
            let ns = |step: &Step| match step.verb {
                Verb::Work { ns } => ns,
                _ => panic!("{step:?}"),
            };
            assert!(ns(hold) >= 10.0 * ns(alone), "{process:?}");
        }
    }
    assert!(checked >= 3, "{checked}");
}

/// Every metric is a figure of its script at every setting; every id is unique.
#[test]
fn what_is_wanted_is_there() {
    for quick in [false, true] {
        let experiment = experiment(quick).unwrap_or_else(|e| panic!("{e}"));
        let mut ids = std::collections::HashSet::new();
        for (index, (setting, repetitions)) in experiment.settings().enumerate() {
            assert_eq!(repetitions, if quick { 6 } else { 10 });
            let plan = &setting.plan;
            let names: Vec<&str> = (plan.processes.iter())
                .flat_map(|p| {
                    p.steps
                        .iter()
                        .map(|s| s.name.as_str())
                        .chain([p.pass.as_str()])
                })
                .chain(plan.intervals.iter().map(|i| i.name.as_str()))
                .collect();
            let lines: Vec<&str> = plan.lines.iter().map(|l| l.name.as_str()).collect();
            for wanted in wanted_of(experiment.script_of(index)) {
                match &wanted.line {
                    Some(line) => assert!(lines.contains(&line.as_str()), "{line} of {lines:?}"),
                    None => assert!(
                        names.contains(&wanted.of.as_str()),
                        "{} of {names:?}",
                        wanted.of
                    ),
                }
                if wanted.line.is_some() || !wanted.is_in(&with(setting)) {
                    continue;
                }
                let id = filled(&wanted.id, &with(setting), slug);
                assert!(!id.contains(['{', ' ']), "{id}");
                assert!(!filled(&wanted.name, &with(setting), spoken).contains('{'));
                assert!(ids.insert(id.clone()), "{id} twice");
            }
        }
        for id in [
            "call.getppid",
            "pipe.round_trip.same_cpu",
            "wake.futex.one_way.other_cpu",
            "fork.33kb",
            "lock.mcs.rivals",
            "sleep.1ms",
        ] {
            assert!(ids.contains(id), "{id} is not in {ids:?}");
        }
    }
}

/// The settings are exactly those chosen.
#[test]
fn sweeps_are_cut_down() {
    let experiment = experiment(false).unwrap();
    let of = |script: &str| {
        let settings = experiment.settings().enumerate();
        settings
            .filter(|(i, _)| experiment.script_of(*i) == script)
            .count()
    };
    assert_eq!(
        (of("messages"), of("wake"), of("fork"), of("clocks")),
        (8, 6, 3, 1)
    );
    let seconds = |quick| {
        let text = chosen_text(
            CHOSEN.iter().find(|c| c.script == "messages").unwrap(),
            quick,
        );
        toml::from_str::<toml::Table>(&text.unwrap()).unwrap()["seconds"]
            .as_float()
            .unwrap()
    };
    assert!((seconds(false) - 0.02).abs() < 1e-12 && (seconds(true) - 0.004).abs() < 1e-12);
}

#[test]
fn a_value_that_is_not_swept_is_refused() {
    let wrong = Chosen {
        script: "messages".to_owned(),
        sweep: [("kind".to_owned(), vec!["pigeon".to_owned()])].into(),
        metrics: Vec::new(),
    };
    assert!(chosen_text(&wrong, false).unwrap_err().contains("pigeon"));
}
