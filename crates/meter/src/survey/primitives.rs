//! The selected primitives, and which of their figures are metrics.

mod chosen;

use std::collections::BTreeMap;

use undertick_document::{Repeated, Report};
use undertick_experiment::{Ended, Experiment, ExperimentProgress, Machine, Options, Outcome};
use undertick_report::survey::Metric;

use self::chosen::{CHOSEN, Chosen, Wanted};
use super::{KEEPING, PRIMITIVES, Request, SurveyResults};

/// Number of fresh processes for each setting, on which the interval is based.
const REPETITIONS: i64 = 10;
/// Same for a quick survey: the minimum with order statistics for 95 %.
const QUICK_REPETITIONS: i64 = 6;
/// Factor by which a repetition of a quick survey is shorter.
const QUICKER: f64 = 5.0;
/// Maximum number of warnings of the experiment that are passed on.
const MOST_WARNINGS: usize = 20;

/// Performs the primitives and adds their metrics.
pub(super) fn add(
    found: &mut SurveyResults,
    machine: &dyn Machine,
    request: Request<'_>,
    progress: &mut dyn FnMut(&'static str, f64),
) {
    let experiment = match experiment(request.quick) {
        Ok(experiment) => experiment,
        Err(why) => return fail(found, why),
    };
    let between = |from: f64, to: f64, share: f64| from + (to - from) * share;
    let outcome = tempfile::tempdir()
        .map_err(|e| format!("no temporary directory: {e}; set TMPDIR to one that can be written"))
        .and_then(|dir| {
            let options = Options {
                cull: None,
                confidence: request.level,
            };
            let mut on_progress = |update: ExperimentProgress| match update {
                ExperimentProgress::Repetition(done, all) => {
                    let share = done as f64 / all.max(1) as f64;
                    progress(PRIMITIVES.0, between(PRIMITIVES.1, KEEPING.1, share));
                }
                ExperimentProgress::Finalizing(share) => {
                    progress(KEEPING.0, between(KEEPING.1, super::INTERFERENCE.1, share))
                }
            };
            let trace = dir.path().join("survey.ut");
            undertick_experiment::perform(&experiment, machine, &trace, options, &mut on_progress)
                .map_err(|error| error.text)
        });
    match outcome {
        Ok(outcome) => figures(found, &experiment, &outcome),
        Err(why) => fail(found, why),
    }
}

fn fail(found: &mut SurveyResults, why: String) {
    lack_all(found, &why);
    found.failed = Some(why);
}

/// Reports all of these metrics as missing.
pub(super) fn lack_all(found: &mut SurveyResults, why: &str) {
    let Ok(experiment) = experiment(true) else {
        return found.lack("primitives.*", why);
    };
    for (index, (setting, _)) in experiment.settings().enumerate() {
        let parameters: BTreeMap<String, String> = setting.parameters.iter().cloned().collect();
        for wanted in wanted_of(experiment.script_of(index)).filter(|w| w.is_in(&parameters)) {
            let id = filled(&wanted.id, &parameters, slug);
            // There is one slope for several settings.
            if !found.missing.iter().any(|m| m.id == id) {
                found.lack(id, why);
            }
        }
    }
}

/// The experiment with the scripts and the chosen settings.
fn experiment(quick: bool) -> Result<Experiment, String> {
    let scripts = (CHOSEN.iter())
        .map(|chosen| Ok((chosen.script.clone(), chosen_text(chosen, quick)?)))
        .collect::<Result<Vec<_>, String>>()?;
    Experiment::new(scripts).map_err(|(name, bad)| format!("{name}:{bad}"))
}

/// The script of a group, with its sweep reduced to the chosen values.
fn chosen_text(chosen: &Chosen, quick: bool) -> Result<String, String> {
    let name = &chosen.script;
    let scripts = undertick_experiment::primitives::scripts(std::slice::from_ref(name), &[])
        .map_err(|e| e.to_string())?;
    let (_, text) = scripts.into_iter().next().ok_or("no script")?;
    let mut script: toml::Table = toml::from_str(&text).map_err(|e| format!("{name}: {e}"))?;
    for (parameter, wanted) in &chosen.sweep {
        let values = (script.get_mut("sweep"))
            .and_then(|sweep| sweep.get_mut(parameter)?.as_array_mut())
            .ok_or_else(|| format!("{name}: sweeps no {parameter}"))?;
        values.retain(|value| {
            let shown = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            wanted.contains(&shown)
        });
        if values.len() != wanted.len() {
            return Err(format!(
                "{name}: not every {parameter} of {wanted:?} is in it"
            ));
        }
    }
    let repetitions = if quick {
        QUICK_REPETITIONS
    } else {
        REPETITIONS
    };
    script.insert("repetitions".to_owned(), repetitions.into());
    if quick {
        shorten(&mut script);
    }
    toml::to_string(&script).map_err(|e| format!("{name}: {e}"))
}

fn shorten(script: &mut toml::Table) {
    if let Some(passes) = script.get("passes").and_then(toml::Value::as_integer) {
        let fewer = (passes as f64 / QUICKER).max(4.0) as i64;
        script.insert("passes".to_owned(), fewer.into());
    }
    if let Some(seconds) = script.get("seconds").and_then(toml::Value::as_float) {
        script.insert("seconds".to_owned(), (seconds / QUICKER).into());
    }
}

fn figures(found: &mut SurveyResults, experiment: &Experiment, outcome: &Outcome) {
    found.interrupted |= outcome.performed.interrupted;
    for (index, (setting, _)) in experiment.settings().enumerate() {
        let script = experiment.script_of(index);
        let parameters: BTreeMap<String, String> = setting.parameters.iter().cloned().collect();
        for wanted in wanted_of(script).filter(|w| w.line.is_none() && w.is_in(&parameters)) {
            let id = filled(&wanted.id, &parameters, slug);
            match repeated(&outcome.report, script, &parameters, &wanted.of) {
                Some(repeated) => found.add(metric(id, wanted, &parameters, repeated)),
                None => {
                    let why = why_not(outcome, index);
                    found.lack(id, why);
                }
            }
        }
    }
    for chosen in CHOSEN.iter() {
        for wanted in chosen.metrics.iter().filter(|w| w.line.is_some()) {
            slopes(found, chosen, wanted, outcome);
        }
    }
    let lacking = |code: &str| code == "lacking";
    let passed_on = outcome.report.warnings.iter().filter(|w| !lacking(&w.code));
    found
        .warnings
        .extend(passed_on.clone().take(MOST_WARNINGS).cloned());
    if passed_on.count() > MOST_WARNINGS {
        found.warn(
            "more_warnings",
            "more of the primitives' repetitions have warnings: undertick primitives shows all",
        );
    }
    failures(found, experiment, outcome);
}

/// Reports repetitions that failed or did not end, unless the user ended them.
fn failures(found: &mut SurveyResults, experiment: &Experiment, outcome: &Outcome) {
    if found.interrupted {
        return;
    }
    let is_bad = |ended: &Ended| matches!(ended, Ended::Failed(_) | Ended::TimedOut(_));
    let bad = (outcome.performed.repetitions.iter()).find(|r| is_bad(&r.ended));
    found.failed = bad.map(|r| {
        format!(
            "{} was not performed as asked: see the warnings",
            experiment.label(r.setting)
        )
    });
}

fn wanted_of(script: &str) -> impl Iterator<Item = &'static Wanted> {
    let of = CHOSEN.iter().find(|chosen| chosen.script == script);
    of.map_or(&[][..], |chosen| &chosen.metrics).iter()
}

fn repeated<'a>(
    report: &'a Report,
    script: &str,
    parameters: &BTreeMap<String, String>,
    name: &str,
) -> Option<&'a Repeated> {
    let named = report.intervals.iter().filter(|i| i.name == name);
    let mut repeated = named.filter_map(|i| i.repeated.as_ref());
    repeated.find(|r| r.script == script && r.parameters == *parameters)
}

fn metric(
    id: String,
    wanted: &Wanted,
    parameters: &BTreeMap<String, String>,
    repeated: &Repeated,
) -> Metric {
    let mut estimate = repeated.typical.clone();
    // The interval is based on the repetitions, regardless of their number of samples.
    let n = repeated.repetitions.len() as f64;
    estimate.n_effective = estimate.n_effective.min(n);
    let name = filled(&wanted.name, parameters, spoken);
    Metric {
        once_a_second: repeated.largest_per_second.clone(),
        ..Metric::new(id, &wanted.group, name, estimate, &repeated.includes)
    }
}

/// Adds the slopes of a line's metric, one for each value of the other parameters.
fn slopes(found: &mut SurveyResults, chosen: &Chosen, wanted: &Wanted, outcome: &Outcome) {
    let lines = (outcome.report.lines.iter())
        .filter(|line| line.script == chosen.script && wanted.line.as_ref() == Some(&line.name));
    let mut any = false;
    for line in lines.filter(|line| wanted.is_in(&line.parameters)) {
        any = true;
        found.add(Metric::new(
            filled(&wanted.id, &line.parameters, slug),
            &wanted.group,
            filled(&wanted.name, &line.parameters, spoken),
            line.slope.clone(),
            &line.includes,
        ));
    }
    if !any {
        let why = match found.interrupted {
            true => super::INTERRUPTED,
            false => "too few points for a line: see the warnings",
        };
        found.lack(&wanted.id, why);
    }
}

/// Why a setting has no figures.
fn why_not(outcome: &Outcome, setting: usize) -> String {
    let of = outcome
        .performed
        .repetitions
        .iter()
        .filter(|r| r.setting == setting);
    let mut why = of.map(|r| match &r.ended {
        Ended::Done => "its samples say nothing".to_owned(),
        Ended::Lacking(what) => what.clone(),
        Ended::TimedOut(at) => format!("timed out: {at}"),
        Ended::Failed(why) => why.clone(),
    });
    match why.next_back() {
        Some(why) => why,
        None if outcome.performed.interrupted => super::INTERRUPTED.to_owned(),
        None => "not performed".to_owned(),
    }
}

/// Replaces `{parameter}` by its value, in the form that `shown` returns.
fn filled(
    template: &str,
    parameters: &BTreeMap<String, String>,
    shown: fn(&str, &str) -> String,
) -> String {
    (parameters.iter()).fold(template.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), &shown(name, value))
    })
}

/// A value as part of a stable name.
fn slug(name: &str, value: &str) -> String {
    match (name, value.starts_with("same")) {
        ("place", true) => "same_cpu".to_owned(),
        ("place", false) => "other_cpu".to_owned(),
        _ => value.to_lowercase().replace(['-', ' '], "_"),
    }
}

/// A value in words.
fn spoken(name: &str, value: &str) -> String {
    match (name, value.starts_with("same")) {
        ("place", true) => "one CPU".to_owned(),
        ("place", false) => "two CPUs".to_owned(),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
#[path = "primitives_tests.rs"]
mod tests;
