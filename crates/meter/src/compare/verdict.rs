//! The verdict on a figure.

use undertick_report::compare::{Row, Verdict};
use undertick_report::survey::{Better, Metric};
use undertick_units::Estimate;

use super::figures::Figure;

/// Figures within this share of each other are alike if the user gave no bound for a small
/// difference.
const ALIKE: f64 = 0.1;
/// Half-widths that must fit into the bound of a small difference, so that four in five equal
/// programs are called alike: (1.96 + 1.28) / 1.96, as the estimate itself is beyond 1.28 standard
/// errors in one of five.
const ROOM: f64 = 1.65;
/// With fewer runs the scatter is not known well enough to say how many more are needed.
const FEWEST_RUNS: u64 = 6;
/// No more runs than this are advised.
const MOST_RUNS: f64 = 2000.0;

/// The verdict on a figure.
pub(super) fn decide(
    figure: &Figure,
    differs: bool,
    bound: Option<f64>,
    within: Option<f64>,
) -> Verdict {
    let is_within = |share: f64| bound.is_some_and(|bound| bound <= share);
    match (differs, within) {
        (_, Some(within)) if is_within(within) => Verdict::Alike,
        (true, _) => direction(&figure.metric, figure.versus.difference.value),
        (false, None) if is_within(ALIKE) => Verdict::Alike,
        (false, _) => Verdict::CannotTell,
    }
}

/// Number of runs of each side that would probably show that nothing differs: the interval narrows
/// with the square root of the runs.
pub(super) fn runs_wanted(
    figure: &Figure,
    ratio: Option<&Estimate>,
    within: Option<f64>,
) -> Option<u64> {
    let runs = figure.runs.filter(|&runs| runs >= FEWEST_RUNS)?;
    let ratio = ratio?;
    let (lo, hi) = (ratio.interval.lo?, ratio.interval.hi?);
    let half = 0.5 * (hi / lo).ln();
    let room = (1.0 + within.unwrap_or(ALIKE)).ln() / ROOM;
    let wanted = (runs as f64 * (half / room).powi(2)).ceil();
    (wanted > runs as f64 && wanted <= MOST_RUNS).then_some(wanted as u64)
}

/// Maximum distance of the ratio from 1.
pub(super) fn bound(ratio: &Estimate) -> Option<f64> {
    let (lo, hi) = (ratio.interval.lo?, ratio.interval.hi?);
    Some((hi - 1.0).abs().max((1.0 - lo).abs()))
}

fn direction(metric: &Metric, difference: f64) -> Verdict {
    let is_of_speed = matches!(metric.estimate.unit.as_str(), "ns" | "GHz" | "1/s");
    let is_more = difference > 0.0;
    match (metric.better, is_of_speed) {
        (Better::Lower, true) if is_more => Verdict::Slower,
        (Better::Lower, true) => Verdict::Faster,
        (Better::Higher, true) if is_more => Verdict::Faster,
        (Better::Higher, true) => Verdict::Slower,
        _ if is_more => Verdict::More,
        _ => Verdict::Less,
    }
}

/// The verdict in words.
pub(super) fn words(row: &Row, level: f64) -> String {
    match row.verdict {
        Verdict::Alike => {
            let per_cent = row.bound.unwrap_or(0.0) * 100.0;
            format!("no difference larger than {} %", upwards(per_cent))
        }
        Verdict::CannotTell if row.p.is_none() => "cannot tell: no interval".to_owned(),
        Verdict::CannotTell => cannot_tell(row, level),
        verdict => of_difference(verdict, row.ratio.as_ref()),
    }
}

fn of_difference(verdict: Verdict, ratio: Option<&Estimate>) -> String {
    let by = ratio.map_or(String::new(), |ratio| match ratio.value {
        r if r >= 2.0 => format!(", {r:.1} times"),
        r if r <= 0.5 => format!(", {:.1} times less", 1.0 / r),
        r => format!(" by {:.1} %", (r - 1.0).abs() * 100.0),
    });
    match verdict {
        Verdict::Faster => format!("faster{}", by.replace(" less", "")),
        Verdict::Slower => format!("slower{}", by.replace(" less", "")),
        Verdict::Less => format!("less{}", by.replace(" less", "")),
        _ => format!("more{by}"),
    }
}

/// Says what is nearly known, and what would decide it.
fn cannot_tell(row: &Row, level: f64) -> String {
    let alone = match row.p {
        Some(p) if p <= 1.0 - level => ": differs if judged alone, not among all figures",
        _ => "",
    };
    match row.runs_wanted {
        Some(runs) => format!("cannot tell{alone}; about {runs} runs of each may suffice"),
        None => format!("cannot tell{alone}"),
    }
}

/// Rounded up to at most two digits.
fn upwards(per_cent: f64) -> String {
    // The ceiling of 0 is -0, which would be shown.
    let tenths = ((per_cent * 10.0 - 1e-9).ceil() + 0.0).max(0.0) / 10.0;
    match tenths {
        large if large >= 10.0 => format!("{:.0}", per_cent.ceil()),
        small => format!("{small:.1}"),
    }
}

#[cfg(test)]
mod tests;
