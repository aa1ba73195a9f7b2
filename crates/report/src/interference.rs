//! The document of `undertick interference`, the cost of other users of the memory and the CPU, and
//! its rendering for a terminal.

mod document;

use serde_json::Value;
use undertick_document::figures::{self, Figure};
use undertick_units::Estimate;

use crate::first_screen::LINES;
use crate::table::terminal::draw;
use crate::table::{Cell, Columns};
use crate::text::{clean, wrap};

pub use document::{
    Compared, Disturber, Interference, Interruption, Line, Loss, Peak, Prediction, Probe,
    RateHistogram, Suspect,
};

/// A share as `12.3 % [11, 14]`.
fn share(estimate: &Estimate) -> String {
    let figure = figures::figure(estimate);
    format!("{} {}", figure.value_and_unit(), figure.interval())
}

fn times(estimate: &Estimate) -> String {
    let figure = figures::plain(estimate);
    format!("{} {}", figure.value, figure.interval())
}

/// The document as text in at most `columns` columns.
#[must_use]
pub fn render(found: &Interference, columns: usize) -> String {
    let mut parts = vec![headline(found, columns)];
    parts.push(draw(&peaks(), &found.peaks, columns));
    let place_of_bars = parts.len();
    parts.push(draw(&losses(found), &found.losses, columns));
    if !found.predictions.is_empty() {
        parts.push(draw(&predictions(), &found.predictions, columns));
    }
    if let Some(compared) = &found.compared {
        parts.push(compared_in_words(compared, columns));
    }
    if !found.warnings.is_empty() {
        let lines = found.warnings.iter();
        let lines: Vec<String> = lines
            .map(|w| wrap(&format!("* {}", clean(&w.text)), columns, 2))
            .collect();
        parts.push(lines.join("\n"));
    }
    // What one screen has room for, with the line above them and their heading.
    let used: usize = parts.iter().map(|part| part.lines().count() + 1).sum();
    let rows = LINES.saturating_sub(used + 1).clamp(FEWEST_ROWS, MOST_ROWS);
    if let Some(bars) = bars(&found.histogram, columns, rows) {
        parts.insert(place_of_bars, bars);
    }
    parts.join("\n\n") + "\n"
}

/// What was measured, and the verdict, in sentences.
#[must_use]
pub fn summary(found: &Interference) -> Vec<String> {
    let probe = &found.probe;
    let place = probe
        .cpu
        .map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let mut lines = vec![
        format!(
            "Probe: {} through {} on {place}, {} samples in {} bursts of {:.0} ms over {:.0} s.",
            probe.mix,
            bytes(probe.footprint_bytes),
            probe.samples,
            probe.bursts,
            probe.burst_s * 1e3,
            probe.seconds
        ),
        format!(
            "Lost of its speed, all causes: {}.",
            share(&found.mean_loss)
        ),
    ];
    if found.histogram.together > 1 {
        lines.push(format!(
            "Single samples scatter too much to tell states apart: rates are of {} samples together.",
            found.histogram.together
        ));
    }
    let slowed: Vec<String> = found.peaks.iter().skip(1).map(in_words).collect();
    if slowed.is_empty() {
        lines.push("One peak: no second state of the machine is proven.".to_owned());
    }
    lines.extend(slowed);
    // A disturber with one peak was already described by that peak.
    let more = found.disturbers.iter().filter(|disturber| {
        let said = |&i: &usize| found.peaks.get(i).map(|peak| &peak.time_share);
        (disturber.peaks.iter())
            .any(|i| said(i).is_some_and(|share| *share != disturber.time_share))
    });
    lines.extend(more.map(|disturber| {
        let name = clean(disturber.name.as_deref().unwrap_or("one cause"));
        let what = match disturber.peaks.len() {
            1 => format!("{name} by its CPU time"),
            n => format!("All {n} peaks of {name} together"),
        };
        format!(
            "{what}: {} of the time {} times slower.",
            share(&disturber.time_share),
            times(&disturber.slowdown),
        )
    }));
    lines
}

fn in_words(peak: &Peak) -> String {
    let text = |key: &str| peak.evidence.get(key).and_then(|v| v.as_str());
    let whom = text("process").map(|name| format!(", with the activity of {}", clean(name)));
    let whom =
        whom.or_else(|| text("cpu").map(|name| format!(", with the activity of {}", clean(name))));
    let whom = whom.or_else(|| {
        text("busiest_process").map(|name| format!("; most of it was used by {}", clean(name)))
    });
    format!(
        "{} of the time {} times slower: {}{}.",
        share(&peak.time_share),
        times(&peak.slowdown),
        cause(&peak.cause),
        whom.unwrap_or_default()
    )
}

/// The name of a cause, in words.
#[must_use]
pub fn cause(word: &str) -> &str {
    match word {
        "clean" => "undisturbed",
        "memory-traffic" => "traffic of another CPU in the memory or a shared cache",
        "same-cpu-process" => "another process on the probe's CPU",
        "host" => "the hypervisor, the firmware or a driver",
        "slowed" => "samples slowed as a whole",
        "short" => "interrupts and what else is short",
        "unknown" => "nobody whom this machine shows",
        other => other,
    }
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0 => "registers only".to_owned(),
        b if b < 1 << 20 => format!("{} KiB", b >> 10),
        b => format!("{} MiB", b >> 20),
    }
}

fn headline(found: &Interference, columns: usize) -> String {
    let lines = summary(found);
    let wrapped: Vec<String> = lines.iter().map(|line| wrap(line, columns, 2)).collect();
    wrapped.join("\n")
}

/// The columns of the peaks.
pub(crate) fn peaks<'a>() -> Columns<'a, &'a Peak> {
    Columns::<&Peak>::new()
        .column("rate", |peak| Cell::text(format!("{:.3}", peak.rate)))
        .column("times slower", |peak| {
            beside(&figures::plain(&peak.slowdown))
        })
        .column("share of time", |peak| {
            beside(&figures::figure(&peak.time_share))
        })
        .terminal("of samples", |peak| {
            let of = match peak.of.as_str() {
                "bursts" => " (of bursts)",
                "activity" => " (by its CPU time)",
                _ => "",
            };
            Cell::text(share(&peak.sample_share) + of)
        })
        .page("of samples", |peak| {
            beside(&figures::figure(&peak.sample_share))
        })
        .column("cause", |peak| Cell::text(cause(&peak.cause)))
        .words()
        .page("evidence", |peak| Cell::text(evidence(peak)))
        .words()
}

fn beside<'a>(figure: &Figure) -> Cell<'a> {
    Cell::Beside(figure.value_and_unit(), figure.interval())
}

/// The evidence for a peak's cause, by name.
fn evidence(peak: &Peak) -> String {
    let each = peak.evidence.iter().map(|(name, value)| {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(n) if n.is_f64() => format!("{:.2}", n.as_f64().unwrap_or(0.0)),
            other => other.to_string(),
        };
        format!("{}: {value}", name.replace('_', " "))
    });
    each.collect::<Vec<_>>().join("; ")
}

/// The columns of the losses.
pub(crate) fn losses(found: &Interference) -> Columns<'_, &Loss> {
    let of = |shown: fn(&Interruption) -> String| {
        move |loss: &Loss| {
            let hits = found.interruptions.iter().find(|i| i.cause == loss.cause);
            hits.map_or(Cell::Absent, |i| Cell::text(shown(i)))
        }
    };
    Columns::<&Loss>::new()
        .column("lost by", |loss| Cell::text(cause(&loss.cause)))
        .column("share of speed", |loss| {
            beside(&figures::figure(&loss.share))
        })
        .column("hits", of(|i| i.count.to_string()))
        .page("a second", of(|i| format!("{:.1}", i.per_second)))
        .column("middle one", of(|i| figures::duration(i.median_ns)))
        .column("longest", of(|i| figures::duration(i.longest_ns)))
}

fn predictions<'a>() -> Columns<'a, &'a Prediction> {
    Columns::<&Prediction>::new()
        .terminal("were it active", |p| {
            Cell::text(format!("{:.0} % of the time", 100.0 * p.activity))
        })
        .terminal("share of speed lost", |p| beside(&figures::figure(&p.loss)))
        .terminal("cause", |p| Cell::text(cause(&p.cause)))
        .words()
}

/// The comparison with an earlier run, in sentences.
#[must_use]
pub fn compared_in_words(compared: &Compared, columns: usize) -> String {
    let text = format!(
        "Against {}: {}. Mean loss then {}, now less then {}.",
        clean(&compared.with),
        clean(&compared.verdict),
        share(&compared.mean_loss),
        share(&compared.difference)
    );
    wrap(&text, columns, 2)
}

/// Rows of the bar chart.
const FEWEST_ROWS: usize = 10;
const MOST_ROWS: usize = 30;

/// A bar chart of the samples by rate, in at most `rows` rows; neighbouring bins are joined.
fn bars(histogram: &RateHistogram, columns: usize, rows: usize) -> Option<String> {
    let RateHistogram {
        edges,
        counts,
        seconds,
        ..
    } = histogram;
    let first = counts.iter().position(|c| *c > 0)?;
    let last = counts.iter().rposition(|c| *c > 0)?;
    let per_row = (last + 1 - first).div_ceil(rows);
    let all: f64 = seconds.iter().sum();
    let rows: Vec<(f64, u64, f64)> = (first..=last)
        .step_by(per_row)
        .map(|at| {
            let bins = at..(at + per_row).min(counts.len());
            let of = counts[bins.clone()].iter().sum();
            (edges[at], of, seconds[bins].iter().sum::<f64>())
        })
        .collect();
    let most = rows
        .iter()
        .map(|row| row.2)
        .fold(f64::MIN_POSITIVE, f64::max);
    let room = columns.saturating_sub(34).max(10) as f64;
    let mut lines = vec!["    rate   samples      time".to_owned()];
    for (rate, count, seconds) in rows {
        let bar = "#".repeat((seconds / most * room).ceil() as usize);
        let line = format!(
            "{rate:>8.3} {count:>9} {:>7.2} %  {bar}",
            100.0 * seconds / all
        );
        lines.push(line.trim_end().to_owned());
    }
    Some(lines.join("\n"))
}

/// One line of the continuous meter.
#[must_use]
pub fn line(line: &Line) -> String {
    let mut text = format!(
        "lost {:>6}  slowed {:>5.1} %{}  CPU taken {:>5.1} %  core {:+.1} %  steal {:.1} %  own {:.2} %",
        line.mean_loss.as_ref().map_or_else(
            || "?".to_owned(),
            |loss| format!("{:.1} %", 100.0 * loss.value)
        ),
        100.0 * line.slowed_share,
        line.slowdown
            .map_or_else(String::new, |s| format!(" ({s:.2}x)")),
        100.0 * line.taken_off_share,
        100.0 * (line.core_speed - 1.0),
        100.0 * line.steal_share,
        100.0 * line.own_use,
    );
    for suspect in &line.suspects {
        text += &format!(
            "  <- {}: {} ({:.2} CPUs, {:.2} when clean)",
            suspect.cause,
            clean(&suspect.name),
            suspect.use_now,
            suspect.use_when_clean
        );
    }
    text
}
