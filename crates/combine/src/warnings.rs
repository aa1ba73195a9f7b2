//! Combines the notes and warnings of the runs of a set.

use std::collections::BTreeMap;

use undertick_document::{IntervalReport, RunFigures, Warning};
use undertick_estimate::median_of_runs;

use super::{OfRuns, Run};

/// Runs that begin within this are alike: with 1 to 4 s between them the correlation of
/// neighbours was 0.1 to 0.5 (six programs, a guest of two CPUs), from 12 s on about 0.
pub(super) const CLOSE_S: f64 = 10.0;

pub(super) fn missing(of_runs: &OfRuns<'_>, runs: usize) -> Option<String> {
    let has = of_runs.of.len();
    match (has, runs) {
        (1, 1) => Some("one run: what runs differ by is not known; record --runs 5".to_owned()),
        (has, runs) if has < runs => Some(format!("in {has} of {runs} runs only")),
        _ => None,
    }
}

/// Time from the begin of the first run to the end of the last, if known, ns.
pub(super) fn within_ns(runs: &[Run]) -> Option<i64> {
    let traces = || runs.iter().map(|run| &run.report.trace);
    let begun = traces().map(|trace| trace.started_unix_ns).min()?;
    let ends: Option<Vec<i64>> = traces()
        .map(|trace| trace.started_unix_ns.checked_add(trace.duration_ns?))
        .collect();
    let within = ends?.into_iter().max()?.checked_sub(begun)?;
    Some(within).filter(|&within| begun > 0 && within > 0)
}

/// The warning for runs that follow one another so closely that they share the machine's state.
pub(super) fn close(runs: &[Run]) -> Option<Warning> {
    let mut begins: Vec<i64> = (runs.iter())
        .map(|run| run.report.trace.started_unix_ns)
        .collect();
    begins.sort_unstable();
    let mut apart: Vec<i64> = (begins.windows(2))
        .map(|two| two[1].saturating_sub(two[0]))
        .collect();
    apart.sort_unstable();
    let median_s = *apart.get(apart.len() / 2)? as f64 / 1e9;
    // Imported runs may lack the time of their begin.
    (median_s > 0.0 && median_s < CLOSE_S).then(|| Warning {
        code: "runs_close".into(),
        text: format!(
            "the runs began {median_s:.1} s apart: what the machine does for some seconds several \
             of them share, so intervals are too narrow; record --runs --apart 15s spreads them"
        ),
    })
}

/// A run lies far off if the interval would be this many times narrower without it: of five
/// normal runs 1.3 % do, of four 3 %.
pub(super) const FAR_OFF: f64 = 4.0;
/// Fewest runs of which one can lie far off.
pub(super) const FEWEST_RUNS: usize = 5;

/// The warning that names the run farthest from the others in most spans, if that run makes their
/// intervals wide.
pub(super) fn far_off(intervals: &[IntervalReport], level: f64) -> Option<Warning> {
    let mut found: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for interval in intervals {
        if let Some((run, times)) = farthest(&interval.by_run, level) {
            found.entry(run).or_default().push(times);
        }
    }
    let (run, times) = found.into_iter().max_by_key(|(_, times)| times.len())?;
    let spans = times.len();
    let [least, most] = [f64::min, f64::max].map(|of| times.iter().copied().fold(times[0], of));
    let by = match least < most {
        true => format!("{least:.2} to {most:.2}"),
        false => format!("{least:.2}"),
    };
    Some(Warning {
        code: "run_far_off".into(),
        text: format!(
            "run {run} lies far from the others: its mean is {by} times the runs' median in {spans} \
             of {} spans; the median hardly moves for it, but the interval is over {FAR_OFF} times \
             as wide",
            intervals.len()
        ),
    })
}

/// Returns the run that widens the interval of the mean, and its mean over the median of all.
pub(super) fn farthest(by_run: &[RunFigures], level: f64) -> Option<(&str, f64)> {
    let half = |means: &[f64]| median_of_runs(means, level)?.interval.half_width();
    let runs: Option<Vec<(&str, f64)>> = (by_run.iter())
        .map(|figures| Some((&*figures.run, figures.mean_ns?)))
        .collect();
    let runs = runs.filter(|runs| runs.len() >= FEWEST_RUNS)?;
    let means: Vec<f64> = runs.iter().map(|(_, mean)| *mean).collect();
    let median = median_of_runs(&means, level)?.value;
    let off = |mean: f64| (mean - median).abs();
    let (run, far) = *(runs.iter()).max_by(|a, b| off(a.1).total_cmp(&off(b.1)))?;
    let others: Vec<f64> = (runs.iter().filter(|other| other.0 != run))
        .map(|(_, mean)| *mean)
        .collect();
    (median > 0.0 && half(&means)? > FAR_OFF * half(&others)?).then_some((run, far / median))
}

/// A remark without its figures: the part that runs have in common.
pub(super) fn without_figures(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_ascii_digit() && !matches!(c, '.' | '-' | ' '))
        .collect()
}

/// The remarks of runs. Those that differ only in their figures appear once, with the number of
/// runs that have one.
pub(super) fn notes<T>(
    of: &[(&str, T)],
    notes: impl Fn(&T) -> &Vec<String>,
    runs: usize,
) -> Vec<String> {
    let mut found: Vec<(String, &str, &String, usize)> = Vec::new();
    for (run, item) in of {
        for note in notes(item) {
            let key = without_figures(note);
            match found.iter_mut().find(|(known, ..)| *known == key) {
                Some((.., times)) => *times += 1,
                None => found.push((key, run, note, 1)),
            }
        }
    }
    (found.into_iter())
        .map(|(_, run, note, times)| match times {
            times if times == runs && !note.contains(|c: char| c.is_ascii_digit()) => note.clone(),
            times => format!("{note} (run {run}; {times} of {runs} runs)"),
        })
        .collect()
}

/// The warnings of runs, each kind once.
pub(super) fn warnings(runs: &[Run]) -> Vec<Warning> {
    let mut found: Vec<(&Warning, &str, usize)> = Vec::new();
    for run in runs {
        for warning in &run.report.warnings {
            match found
                .iter_mut()
                .find(|(known, ..)| known.code == warning.code)
            {
                Some((.., times)) => *times += 1,
                None => found.push((warning, &run.name, 1)),
            }
        }
    }
    (found.into_iter())
        .map(|(warning, run, times)| Warning {
            code: warning.code.clone(),
            text: format!(
                "{} (run {run}; {times} of {} runs)",
                warning.text,
                runs.len()
            ),
        })
        .collect()
}
