//! Compares runs of the meter on this machine with the published ones.

use undertick_estimate::scaled;
use undertick_report::reproduce::{Reproduction, Table};
use undertick_units::Estimate;

use super::both;
use super::items::item;
use crate::tables::words;

/// One run of the meter on this machine, for [`with_runs`].
#[derive(Clone, Debug, PartialEq)]
pub struct MeteredRun {
    /// The state of the machine, e.g. `nobody else`.
    pub name: String,
    /// Share of the machine's speed that was lost.
    pub mean_loss: Estimate,
    /// Share of the time, and slow-down, of each peak except the clean one, fastest first.
    pub peaks: Vec<(Estimate, Estimate)>,
}

/// Adds runs of the meter on this machine, beside the published losses: two configurations of one
/// machine, in analogy to interlace on and off.
pub fn with_runs(document: &mut Reproduction, runs: &[MeteredRun]) {
    if runs.is_empty() {
        return;
    }
    let mut rows = Vec::new();
    for run in runs {
        let mut measured = |id: String, quantity: String, unit: &str, estimate: &Estimate| {
            let mut added = item(&id, &quantity, unit, None, None);
            added.measured = Some(estimate.clone());
            document.items.push(added);
        };
        measured(
            format!("here/{}/loss", run.name),
            format!("mean loss here, {}", run.name),
            "1",
            &run.mean_loss,
        );
        let mut words = Vec::new();
        for (i, (share, slowdown)) in run.peaks.iter().enumerate() {
            let slowdown = scaled(slowdown.clone(), 1.0, "times");
            let which = i + 2;
            measured(
                format!("here/{}/time-share/{which}", run.name),
                format!("share of the time in peak {which} here, {}", run.name),
                "1",
                share,
            );
            measured(
                format!("here/{}/slowdown/{which}", run.name),
                format!("slow-down of peak {which} here, {}", run.name),
                "times",
                &slowdown,
            );
            words.push(format!(
                "{} of the time at {}",
                both(share),
                both(&slowdown)
            ));
        }
        rows.push(vec![
            run.name.clone(),
            (run.peaks.len() + 1).to_string(),
            match words.is_empty() {
                true => "–".to_owned(),
                false => words.join("; "),
            },
            both(&run.mean_loss),
        ]);
    }
    document.tables.push(Table {
        title: "On this machine".to_owned(),
        text: words(&[
            "Printed for comparison: with interlace 10 % at 1.07 times, 2 % lost at full load; without it 2.5 % at 1.19 and \
             6.9 % at 1.38 times, 3 % lost, at full load 5 %.",
        ]),
        columns: words(&["run", "peaks", "out of the clean peak", "mean loss"]),
        rows,
    });
}
