//! Tables 3a and 3b by simulation: six masters that want a lock all the time, on the bus of the event
//! card, whose stream goes through `undertick report` (`hw/event_card/sim/lock`). The simulation needs
//! Verilator, so its figures are kept here; `cargo xtask card` makes them again and compares.

use undertick_report::reproduce::{Item, Reproduction, Table};
use undertick_units::Estimate;

use super::summaries::{Row, rows, rows_of};
use crate::compared::bare;
use crate::tables::words;
use crate::verdict::beside;

/// Lock and unlock on the simulated board.
fn simulated() -> impl Iterator<Item = Row> {
    rows_of(include_str!("card.txt"), "board")
}

/// A figure of a row by its name.
fn figure(row: &Row, what: &str) -> Option<f64> {
    Some(match what {
        "min" => row.min.value,
        "mean" => row.mean.value,
        "median" => row.median?.value,
        _ => row.anomalies? as f64,
    })
}

/// Middle and half of the range of a figure over the seven published programs.
fn over_programs(table: &str, figure: impl Fn(&Row) -> Option<f64>) -> Option<(f64, f64)> {
    let values = || rows(table).filter_map(|row| figure(&row));
    let (lo, hi) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    Some((f64::midpoint(lo, hi), (hi - lo) / 2.0))
}

/// Adds the lock on the simulated board.
pub(super) fn lock(found: &mut Reproduction) {
    let mut lines = Vec::new();
    for (call, table) in simulated().zip(["3a", "3b"]) {
        for what in ["min", "mean", "median", "anomalies"] {
            let unit = if what == "anomalies" { "1" } else { "us" };
            let published = over_programs(table, |row| figure(row, what));
            let Some(value) = figure(&call, what) else {
                continue;
            };
            // As published, in 500 samples.
            let value = match what {
                "anomalies" => 500.0 * value / call.n as f64,
                _ => value,
            };
            let simulated = bare(value, unit, "on the simulated board", call.n);
            // A tick of the card, on either side.
            let judged = published
                .map(|(middle, half)| beside(middle, &simulated, half.max(TICK), of_unit(unit)));
            let (verdict, said) = judged.unzip();
            let note = match (what, call.name) {
                ("mean" | "median", "lock") => {
                    "fitted: how the code is divided, and for how long it is held"
                }
                _ => "",
            };
            let said = said.unwrap_or_default();
            lines.push(vec![
                call.name.to_owned(),
                what.to_owned(),
                published.map_or_else(|| "–".to_owned(), range),
                shown(&simulated),
                said.split(':').next().unwrap_or_default().to_owned(),
                note.to_owned(),
            ]);
            let notes = [said.as_str(), note]
                .into_iter()
                .filter(|note| !note.is_empty());
            found.items.push(Item {
                id: format!("trams/board/{}/{what}", call.name),
                quantity: format!(
                    "{}, {what}, six processes want the lock, simulated board",
                    call.name
                ),
                unit: unit.to_owned(),
                published: published.map(|(middle, _)| middle),
                simulated: Some(simulated),
                verdict,
                note: notes.collect::<Vec<_>>().join("; "),
                ..Item::default()
            });
        }
        lines.push(vec![
            call.name.to_owned(),
            "max".to_owned(),
            over_programs(table, |row| Some(row.max.value)).map_or_else(|| "–".to_owned(), range),
            format!("{:.0}", call.max.value),
            String::new(),
            format!(
                "of {} samples; published of 500 or 516 for each program",
                call.n
            ),
        ]);
    }
    found.tables.push(Table {
        title: "Tables 3a and 3b on the simulated board".to_owned(),
        text: words(&[
            "Eight masters on the bus of the event card at 10 MHz, six of which want the lock all the time: the code of \
             lock and unlock takes as long as the source says of calls that nobody else hinders, an attempt takes place \
             whenever the bus allows, and interrupts are as frequent and long as Table 3b shows. us; anomalies are over \
             ten times the minimum, in 500.",
        ]),
        columns: words(&["call", "figure", "published", "simulated", "verdict", "remark"]),
        rows: lines,
    });
}

/// The card's tick, us.
const TICK: f64 = 1.0;

fn of_unit(unit: &str) -> &str {
    match unit {
        "us" => " us",
        _ => "",
    }
}

fn range((middle, half): (f64, f64)) -> String {
    match half {
        0.0 => format!("{middle:.0}"),
        half => format!("{:.0}..{:.0}", middle - half, middle + half),
    }
}

fn shown(estimate: &Estimate) -> String {
    format!("{:.1}", estimate.value)
}

#[cfg(test)]
mod tests {
    use undertick_report::reproduce::{Reproduction, Verdict};

    use super::{lock, over_programs, simulated};

    /// By hand from Table 3a: means from 172.29 to 197.85.
    #[test]
    fn the_published_range() {
        let (middle, half) = over_programs("3a", |row| Some(row.mean.value)).expect("a range");
        assert!((middle - 185.07).abs() < 1e-9 && (half - 12.78).abs() < 1e-9);
    }

    /// Nobody can lock and unlock in less than the code takes, and nothing is over the longest.
    #[test]
    fn the_kept_figures_fit_together() {
        let all: Vec<_> = simulated().collect();
        assert_eq!(
            all.iter().map(|s| s.name).collect::<Vec<_>>(),
            ["lock", "unlock"]
        );
        for (s, least) in all.iter().zip([41.0, 16.0]) {
            let [min, median, max] = [s.min, s.median.expect("a median"), s.max].map(|f| f.value);
            let (mean, anomalies) = (s.mean.value, s.anomalies.expect("anomalies"));
            assert!(least - 1.0 <= min && min <= median && median <= max);
            assert!(min <= mean && mean <= max && anomalies < s.n / 10);
        }
    }

    /// What was not fitted: how many waits are anomalies, and the unlock.
    #[test]
    fn what_was_not_fitted_comes_out() {
        let mut found = Reproduction::new("trams", "");
        lock(&mut found);
        for id in [
            "lock/anomalies",
            "unlock/min",
            "unlock/mean",
            "unlock/anomalies",
        ] {
            let item = found
                .items
                .iter()
                .find(|i| i.id == format!("trams/board/{id}"));
            let item = item.unwrap_or_else(|| panic!("no {id}"));
            assert_eq!(item.verdict, Some(Verdict::Agrees), "{item:?}");
        }
    }
}
