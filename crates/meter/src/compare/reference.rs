//! Divides figures by a reference span of the same run, which the change does not touch.
//!
//! What slows a whole run (where its memory lies, how fast its core runs) slows the reference as
//! well. The ratio to the reference therefore scatters less from run to run than the figure itself.

use std::collections::BTreeSet;

use undertick_document::Warning;
use undertick_report::survey::Metric;

use super::input::{Input, Run};
use crate::only;

/// Maximum number of names that an error lists.
const MOST_NAMED: usize = 8;

/// Divides the durations of each run by the relative duration of the reference in it. This is its
/// duration in the run over its average in all runs of both sides. The reference itself is not
/// divided.
///
/// # Errors
/// The two are not sets of runs, no figure or more than one has a name that matches, or a run lacks
/// it.
pub fn hold_against(a: &mut Input, b: &mut Input, form: &str) -> Result<Warning, String> {
    let (Input::Runs(a), Input::Runs(b)) = (a, b) else {
        return Err(
            "--reference is for sets of runs: a span of the same run is held against, and one run \
             says nothing of others; make sets with --runs"
                .to_owned(),
        );
    };
    let runs = || a.runs.iter().chain(&b.runs);
    let named: BTreeSet<&str> = (runs().flat_map(|run| &run.metrics))
        .filter(|metric| fits(metric, form))
        .map(|metric| metric.id.as_str())
        .collect();
    let id = match named.len() {
        1 => named
            .first()
            .map_or_else(String::new, |id| (*id).to_owned()),
        0 => {
            return Err(format!(
                "--reference {form}: no duration of that name; `undertick compare` without it shows all"
            ));
        }
        _ => {
            let some: Vec<&str> = named.into_iter().take(MOST_NAMED).collect();
            return Err(format!(
                "--reference {form}: several have such a name ({}); give the one that the change does not touch",
                some.join(", ")
            ));
        }
    };
    let all: Option<Vec<f64>> = runs().map(|run| taken(run, &id)).collect();
    let Some(all) = all else {
        return Err(format!(
            "--reference {form}: a run lacks {id}; take a span that every run has"
        ));
    };
    let usual = (all.iter().map(|ns| ns.ln()).sum::<f64>() / all.len() as f64).exp();
    let runs = a.runs.iter_mut().chain(&mut b.runs);
    for (run, own) in runs.zip(all) {
        let factor = usual / own;
        for path in run.paths.iter_mut().filter(|path| path.name != id) {
            path.side.call_ns = path.side.call_ns.map(|ns| ns * factor);
        }
        let others = (run.metrics.iter_mut()).filter(|m| m.id != id && m.estimate.unit == "ns");
        for metric in others {
            let estimate = &mut metric.estimate;
            estimate.value *= factor;
            estimate.interval.lo = estimate.interval.lo.map(|lo| lo * factor);
            estimate.interval.hi = estimate.interval.hi.map(|hi| hi * factor);
        }
    }
    Ok(Warning {
        code: "reference".to_owned(),
        text: format!(
            "durations are held against {id} of the same run: what slows both is in none of them, \
             and if the change touches {id} itself they are all wrong by as much"
        ),
    })
}

fn fits(metric: &Metric, form: &str) -> bool {
    metric.estimate.unit == "ns"
        && (only::matches(form, &metric.id) || only::matches(form, &metric.name))
}

/// Duration of the reference in a run, ns.
fn taken(run: &Run, id: &str) -> Option<f64> {
    let metric = run.metrics.iter().find(|metric| metric.id == id)?;
    Some(metric.estimate.value).filter(|ns| ns.is_finite() && *ns > 0.0)
}
