use super::*;
use crate::{Experiment, Numbering};

/// Every script can be parsed and says what its figures include, and all of them fit into one
/// trace.
#[test]
fn all_scripts_are_whole() {
    let all = scripts(&[], &[0, 1]).unwrap();
    assert_eq!(all.len(), SCRIPTS.len() - 1 + WAITERS.len());
    let experiment = Experiment::new(all).unwrap_or_else(|(name, bad)| panic!("{name}:{bad}"));
    for (index, (setting, _)) in experiment.settings().enumerate() {
        let plan = &setting.plan;
        let steps = plan.processes.iter().flat_map(|p| &p.steps);
        let texts = (steps.map(|s| &s.includes))
            .chain(plan.processes.iter().map(|p| &p.includes))
            .chain(plan.intervals.iter().map(|i| &i.includes));
        assert!(
            texts.into_iter().any(|t| !t.is_empty()),
            "{}",
            experiment.label(index)
        );
        assert!(!experiment.title_of(index).is_empty());
    }
    Numbering::new(&experiment).unwrap();
}

#[test]
fn one_that_is_not_there_is_named() {
    let wrong = scripts(&["lock".to_owned()], &[0]).unwrap_err().to_string();
    assert!(
        wrong.contains("did you mean") && wrong.contains("locks"),
        "{wrong}"
    );
}
