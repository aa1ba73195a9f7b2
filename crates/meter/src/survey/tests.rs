use std::path::Path;

use undertick_units::{Estimate, Interval};

use super::*;
use undertick_experiment::script::Plan;
use undertick_experiment::{Experiment, ExperimentError, ExperimentProgress, Performed};

/// A machine that can perform nothing.
struct Broken;

impl Machine for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn processors(&self) -> usize {
        1
    }

    fn lacks(&self, _: &Plan) -> Option<String> {
        None
    }

    fn perform(
        &self,
        _: &Experiment,
        _: &Path,
        _: &mut dyn FnMut(ExperimentProgress),
    ) -> Result<Performed, ExperimentError> {
        Err(ExperimentError::machine("there is no room for the trace"))
    }
}

/// Everything that does not need the primitives is there; the rest gives a reason.
#[test]
fn without_the_primitives() {
    let stop = AtomicBool::new(false);
    let request = Request {
        level: 0.95,
        quick: true,
        meter: None,
        stop: &stop,
    };
    let mut shares = Vec::new();
    let found = run(&Broken, request, &mut |_, share| shares.push(share));
    assert_eq!(
        found.failed.as_deref(),
        Some("there is no room for the trace")
    );
    let survey = found.survey;
    assert!(survey.metrics.iter().any(|m| m.id == "clock.step"));
    let why = survey
        .missing
        .iter()
        .find(|m| m.id == "call.getppid")
        .unwrap();
    assert_eq!(why.why, "there is no room for the trace");
    assert!(survey.missing.iter().any(|m| m.id == "interference.*"));
    survey.check().unwrap();
    assert!(
        shares.windows(2).all(|s| s[0] <= s[1]) && shares.last() == Some(&1.0),
        "{shares:?}"
    );
}

/// Stopped while the clocks are read: the rest is reported as missing.
#[test]
fn stopped_at_once() {
    let stop = AtomicBool::new(true);
    let request = Request {
        level: 0.95,
        quick: true,
        meter: None,
        stop: &stop,
    };
    let found = run(&Broken, request, &mut |_, _| {});
    assert!(found.survey.interrupted && found.failed.is_none());
    assert!(
        found
            .survey
            .missing
            .iter()
            .any(|m| m.why.contains("interrupted"))
    );
}

#[test]
fn what_has_no_interval_is_missing() {
    let mut found = SurveyResults::default();
    let metric = |lo, hi| {
        Metric::new(
            "x",
            "calls",
            "x",
            Estimate {
                value: 1.0,
                interval: Interval { lo, hi },
                level: 0.95,
                unit: "ns".into(),
                method: String::new(),
                n: 1,
                n_effective: 1.0,
                notes: vec![],
            },
            "",
        )
    };
    found.add(metric(Some(0.5), None));
    assert!(found.metrics.is_empty() && found.missing[0].why.contains("too few repetitions"));
    found.add(metric(Some(0.5), Some(2.0)));
    assert_eq!(found.metrics.len(), 1);
}
