//! Table 17 as printed, recomputed, simulated, and measured on this machine.

mod here;

use undertick_estimate::slow::spread_of_repetitions;
use undertick_report::reproduce::{Item, Reproduction, Table, Verdict};
use undertick_units::{Estimate, Interval};

use super::ping_pong::Run;
use super::simulated;
use super::tables::words;
use super::verdict::{agrees, by_formula};
use here::{Here, Measured};
use undertick_meter::slow::published::{CYCLES, Row, TABLE_17, TICK_US};

/// Number of simulated repetitions of the published experiment.
const SIMULATED: usize = 200;

/// Adds the items and tables of table 17.
pub(super) fn published_and_measured(found: &mut Reproduction, run: &Run, level: f64) {
    let here = Here::from_run(run, level);
    let simulated = simulated_spreads(level);
    let mut published = Vec::new();
    let mut measured = Vec::new();
    for (index, row) in TABLE_17.iter().enumerate() {
        published.push(published_row(row, &simulated[index]));
        measured.push(here.row(index, &row.name));
        found
            .items
            .extend(items(row, &simulated[index], &here.of_interval[index]));
    }
    found.tables.push(Table {
        title: "Table 17: the published counts".to_owned(),
        text: vec![format!(
            "Means and standard deviations (us) as printed, and again from the counts of 17a: {}. \
             Simulated: the standard deviation of a repetition's mean if the phase were random in \
             each cycle, which is what (10a) assumes.",
            agreement(&*TABLE_17)
        )],
        columns: words(&[
            "interval",
            "ticks",
            "mean",
            "again",
            "(10a)",
            "again",
            "observed",
            "again",
            "simulated",
            "remark",
        ]),
        rows: published,
    });
    found.tables.push(Table {
        title: "The experiment on this machine".to_owned(),
        text: here.introduction(run),
        columns: words(&[
            "interval",
            "kind",
            "ticks",
            "mean",
            "true mean",
            "error",
            "interval of it",
            "(10a)",
            "(11)",
            "observed",
            "of error",
            "remark",
        ]),
        rows: measured,
    });
    found.findings.extend(here.findings(run));
}

/// Whether what is printed follows from the counts.
fn agreement(rows: &[Row]) -> String {
    let differing: Vec<String> = (rows.iter())
        .flat_map(|row| {
            let again = row.recomputed();
            let sum = f64::from(row.ticks.iter().sum::<u32>());
            let figures = [
                ("ticks", f64::from(row.sum), sum, 0.0),
                ("mean", f64::from(row.mean_us), again.mean_us, 0.5),
                ("(10a)", row.predicted_us, again.predicted_us, 0.005),
                ("observed", row.observed_us, again.observed_us, 0.005),
            ];
            figures
                .into_iter()
                .filter_map(|(what, printed, computed, half_digit)| {
                    let is_same = agrees(printed, computed, half_digit);
                    (!is_same)
                        .then(|| format!("{what} of {} is {computed:.2}, not {printed}", row.name))
                })
        })
        .collect();
    match differing.is_empty() {
        true => format!("all {} rows agree to the last printed digit", rows.len()),
        false => format!("the rows do not all agree: {}", differing.join(", ")),
    }
}

/// Simulated standard deviations of the mean with independent phases, us.
fn simulated_spreads(level: f64) -> Vec<Estimate> {
    let parts: Vec<f64> = TABLE_17[1..]
        .iter()
        .map(|row| row.recomputed().mean_us / TICK_US)
        .collect();
    let runs = simulated::mean_counts(&parts, CYCLES, SIMULATED);
    (0..TABLE_17.len())
        .map(|index| {
            let means: Vec<f64> = runs.iter().map(|run| run[index] * TICK_US).collect();
            spread_of_repetitions(&means, level, "us").unwrap_or_else(|| bare(0.0, "us", "none"))
        })
        .collect()
}

fn published_row(row: &Row, simulated: &Estimate) -> Vec<String> {
    let again = row.recomputed();
    vec![
        row.name.clone(),
        row.sum.to_string(),
        row.mean_us.to_string(),
        format!("{:.1}", again.mean_us),
        format!("{:.2}", row.predicted_us),
        format!("{:.2}", again.predicted_us),
        format!("{:.2}", row.observed_us),
        format!("{:.2}", again.observed_us),
        format!("{:.2}", simulated.value),
        published_remark(row),
    ]
}

/// The remark on the cycle, which is contiguous, so its counts are far from independent.
fn published_remark(row: &Row) -> String {
    if row.name != "(1,1)" {
        return String::new();
    }
    let others: Vec<f64> = (row.ticks[1..].iter())
        .map(|&t| f64::from(t) / CYCLES as f64 * TICK_US)
        .collect();
    let sd = spread_of_repetitions(&others, 0.95, "us").map_or(f64::NAN, |e| e.value);
    format!(
        "contiguous, so (10c) holds: {:.2} + the cycles' scatter; without repetition 1, {sd:.2} observed",
        TICK_US / 6.0_f64.sqrt() / CYCLES as f64
    )
}

/// A figure as an estimate without an interval.
fn bare(value: f64, unit: &str, method: &str) -> Estimate {
    Estimate {
        value,
        interval: Interval { lo: None, hi: None },
        level: 0.95,
        unit: unit.to_owned(),
        method: method.to_owned(),
        n: 1,
        n_effective: 1.0,
        notes: Vec::new(),
    }
}

fn items(row: &Row, simulated: &Estimate, here: &Measured) -> Vec<Item> {
    let again = row.recomputed();
    let name = &row.name;
    let item = |what: &str, quantity: String, published: Option<f64>, formula: Option<f64>| {
        let half_digit = match what {
            "ticks" => 0.0,
            "mean" => 0.5,
            _ => 0.005,
        };
        let item = Item {
            id: format!("table-17/{name}/{what}"),
            quantity,
            unit: "us".to_owned(),
            published,
            formula,
            ..Item::default()
        };
        by_formula(item, half_digit, Verdict::Differs)
    };
    let total = row.ticks.iter().sum::<u32>();
    let (sum, printed) = (f64::from(total), f64::from(row.sum));
    let mut all = vec![
        Item {
            unit: "1".to_owned(),
            measured: Some(bare(here.ticks as f64, "1", "ticks counted")),
            ..item(
                "ticks",
                format!("ticks in {name}, all repetitions"),
                Some(printed),
                Some(sum),
            )
        },
        Item {
            measured: Some(here.mean.clone()),
            note: format!(
                "here: another machine; its own truth is {:.2} us, the error {:+.2} us",
                here.truth.value, here.error.value
            ),
            ..item(
                "mean",
                format!("mean of {name}"),
                Some(f64::from(row.mean_us)),
                Some(again.mean_us),
            )
        },
        Item {
            measured: Some(here.truth.clone()),
            ..item(
                "true-mean",
                format!("true mean of {name} by the fine clock"),
                None,
                None,
            )
        },
        Item {
            measured: Some(here.error.clone()),
            ..item(
                "error",
                format!("mean of {name} less the true one"),
                None,
                None,
            )
        },
        Item {
            simulated: Some(simulated.clone()),
            measured: Some(bare(
                here.predicted,
                "us",
                "eq. 10a at the mean measured here",
            )),
            ..item(
                "predicted-sd",
                format!("standard deviation of a repetition's mean of {name}, predicted (10a)"),
                Some(row.predicted_us),
                Some(again.predicted_us),
            )
        },
        Item {
            simulated: Some(simulated.clone()),
            measured: Some(here.observed.clone()),
            note: published_remark(row),
            ..item(
                "observed-sd",
                format!("standard deviation of a repetition's mean of {name}, observed"),
                Some(row.observed_us),
                Some(again.observed_us),
            )
        },
        Item {
            measured: Some(here.error_spread.clone()),
            ..item(
                "error-sd",
                format!("standard deviation of a repetition's error of {name}, observed"),
                None,
                None,
            )
        },
    ];
    if !here.is_ordered() {
        for item in &mut all {
            item.measured = None;
            item.note = format!(
                "not measured: the points did not come in the order of the figure in {:.1} % of the cycles",
                100.0 * here.disordered
            );
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{TABLE_17, agreement};

    #[test]
    fn a_wrong_digit_in_table_17_does_not_agree() {
        assert_eq!(
            agreement(&*TABLE_17),
            "all 13 rows agree to the last printed digit"
        );
        let mut rows = TABLE_17.clone();
        rows[3].mean_us += 1;
        rows[4].observed_us += 0.01;
        rows[5].sum += 1;
        assert_eq!(
            agreement(&rows),
            "the rows do not all agree: mean of (3,4) is 184.38, not 185, observed of (4,5) is 2.75, not \
             2.76, ticks of (5,6) is 8688.00, not 8689"
        );
    }
}
