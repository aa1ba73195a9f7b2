//! Figures 16 and 17: latency of messages and time of remote calls, against the number of words
//! accessed and the number of pairs, by the script `experiments/cmstar-messages.toml` on the simulated
//! machine.

use undertick_document::{IntervalReport, Report};
use undertick_estimate::scaled;
use undertick_report::plot::{Axis, Curve, Plot, Point, Style};
use undertick_report::reproduce::{Reproduction, Table};
use undertick_units::Estimate;

use super::published::{CALL_US_PER_WORD, LATENCY_US, WORDS};
use super::{item_near, stated};
use crate::Run;
use crate::compared::Figures;
use crate::tables::words;

/// The script of [`message_scripts`], and the machine that it is written for.
const MESSAGES: &str = "cmstar-messages";
/// The simulated machine on which it is performed, as `undertick run --machine` names it.
pub const MACHINE: &str = "cmstar:staros";

/// Messages and remote calls as a script for the simulated machine: 512 of each, as published.
#[must_use]
pub fn message_scripts(run: Run) -> Vec<(String, String)> {
    let text = include_str!("../scripts/cmstar-messages.toml");
    let text = match run {
        Run::Full => (text.replace("passes = 60", "passes = 64"))
            .replace("repetitions = 4", "repetitions = 8"),
        Run::Quick => text.to_owned(),
    };
    vec![(MESSAGES.to_owned(), text)]
}

/// Adds Figures 16 and 17 from the report of [`message_scripts`].
pub fn with_messages(found: &mut Reproduction, report: &Report) {
    let figures = Figures(report);
    let (mut rows, mut latencies, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for (published, pairs) in LATENCY_US.iter().zip(1..) {
        let number = format!("{pairs}");
        let (mut latency, mut call) = (Vec::new(), Vec::new());
        for words in WORDS {
            // Each of both sides accesses half of them.
            let each = (words / 2).to_string();
            let mut cells = vec![number.clone(), words.to_string()];
            for (name, interval, to) in [
                ("latency", "latency", &mut latency),
                ("call", "rpc", &mut call),
            ] {
                let with = [("pairs", number.as_str()), ("each", &each)];
                let interval = figures.named(MESSAGES, &with, interval);
                let mean = interval.and_then(mean_us);
                let sd_us = interval.and_then(sd_us);
                cells.push(mean.as_ref().map_or_else(|| "–".to_owned(), stated));
                cells.push(sd_us.map_or_else(|| "–".to_owned(), |us| format!("{us:.0}")));
                if let Some(mean) = &mean {
                    to.push(Point {
                        x: f64::from(words),
                        y: mean.value,
                        within: sd_us.map(|sd| [mean.value - sd, mean.value + sd]),
                    });
                }
                let is_published = name == "latency" && words == 0;
                found.items.push(item_near(
                    format!("{name}/{pairs}/{words}"),
                    format!(
                        "{name}, {} in a cluster, {words} words",
                        pairs_in_words(pairs)
                    ),
                    "us",
                    is_published.then_some(*published),
                    mean,
                    "",
                ));
            }
            rows.push(cells);
        }
        slope(found, report, pairs);
        latencies.push(Curve::line(pairs_in_words(pairs), latency));
        latencies.push(Curve {
            name: format!("published, {}", pairs_in_words(pairs)),
            style: Style::Published,
            points: vec![Point::new(0.0, *published)],
            is_of_previous: false,
        });
        calls.push(Curve::line(pairs_in_words(pairs), call));
    }
    found.tables.push(Table {
        title: "Messages and remote calls (StarOS)".to_owned(),
        text: words(&[
            "Published: a latency of 7050, 7960 and 9615 us with 1, 2 and 3 pairs in each cluster, that falls a \
             little as more words are accessed; the call takes 49.9 us more for each word. Simulated: \
             experiments/cmstar-messages.toml, by the simulated clock, less the null step.",
        ]),
        columns: words(&["pairs", "words", "latency, us", "sd", "call, us", "sd"]),
        rows,
    });
    let axis = || Axis::new("words accessed", "1");
    found.plots.push(Plot {
        title: "Figure 16: latency of messages".to_owned(),
        text: words(&["The bars are one standard deviation of single results, as printed."]),
        x: axis(),
        y: Axis::new("latency", "us"),
        curves: latencies,
    });
    found.plots.push(Plot {
        title: "Figure 17: time of a remote call".to_owned(),
        text: Vec::new(),
        x: axis(),
        y: Axis::new("call", "us"),
        curves: calls,
    });
}

pub(crate) fn pairs_in_words(pairs: usize) -> String {
    match pairs {
        1 => "1 pair".to_owned(),
        n => format!("{n} pairs"),
    }
}

/// The mean over all repetitions, us.
fn mean_us(interval: &IntervalReport) -> Option<Estimate> {
    Some(scaled(interval.mean.clone()?, 1e-3, "us"))
}

/// Standard deviation of single results within the repetitions, us.
fn sd_us(interval: &IntervalReport) -> Option<f64> {
    let each = &interval.repeated.as_ref()?.repetitions;
    let squares: Option<f64> = each.iter().map(|r| Some(r.sd_ns?.powi(2))).sum();
    Some((squares? / each.len() as f64).sqrt() / 1e3)
}

/// The time that a word adds to a call.
fn slope(found: &mut Reproduction, report: &Report, pairs: usize) {
    let line = Figures(report).line(MESSAGES, &[("pairs", &pairs.to_string())]);
    // The paper prints the slope of one curve: one pair in each cluster.
    found.items.push(item_near(
        format!("call-slope/{pairs}"),
        format!(
            "what a word adds to a remote call, {} in a cluster",
            pairs_in_words(pairs)
        ),
        "us",
        (pairs == 1).then_some(CALL_US_PER_WORD),
        // One more word of each side is two words more.
        line.map(|line| scaled(line.slope.clone(), 1e-3 / 2.0, "us")),
        "",
    ));
}
