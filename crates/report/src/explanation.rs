//! Why single calls took longer than the typical one of their path, for the terminal.

use std::fmt::Write as _;

use undertick_document::explanation::{ExplainedPath, Explanation, Part, PartCause, SlowCall};
use undertick_document::figures;

use crate::states;
use crate::text::{clean, shorten};

/// Minimum share of an excess for which a part is shown.
pub(crate) const WORTH: f64 = 0.05;
/// Most parts shown of one call, and of several calls.
const MOST: usize = 3;
const MOST_TOGETHER: usize = 8;
/// Most paths in the table.
const MOST_PATHS: usize = 12;
/// Columns of a name.
const NAME_COLUMNS: usize = 40;

/// The paths with the excess of their slowest calls, a line each.
#[must_use]
pub fn paths(explanation: &Explanation, columns: usize) -> String {
    let mut text = String::new();
    let shown: Vec<&ExplainedPath> = explanation.paths.iter().take(MOST_PATHS).collect();
    let names: Vec<String> = shown.iter().map(|of| name(of)).collect();
    let width = names.iter().map(|name| name.chars().count()).max();
    let width = width.unwrap_or(0).max(4);
    let _ = writeln!(
        text,
        "{:width$}  {:>11}  {:>8}  {:>8}  more than typical, in the slowest",
        "path", "calls", "typical", "slowest"
    );
    for (of, name) in shown.iter().zip(&names) {
        let slowest = of.slowest.first();
        let line = |most: usize| {
            format!(
                "{name:width$}  {:>11}  {:>8}  {:>8}  {}",
                figures::count(of.calls),
                figures::duration(of.typical.took_ns),
                slowest.map_or("-".to_owned(), |call| figures::duration(call.took_ns)),
                in_short(of, most),
            )
        };
        let _ = writeln!(text, "{}", fitting(line, columns));
    }
    if let Some(more @ 1..) = explanation.paths.len().checked_sub(MOST_PATHS) {
        let _ = writeln!(text, "and {more} more paths, in --json");
    }
    text
}

/// A line with as many parts as have room: the largest come first.
fn fitting(line: impl Fn(usize) -> String, columns: usize) -> String {
    let fits = |line: &String| line.chars().count() <= columns;
    let lines = (1..=MOST).rev().map(&line);
    lines
        .into_iter()
        .find(fits)
        .unwrap_or_else(|| shorten(&line(1), columns))
}

pub(crate) fn name(of: &ExplainedPath) -> String {
    let whole: Vec<String> = of.path.iter().map(|name| clean(name)).collect();
    let whole = whole.join("/");
    match whole.chars().count() > NAME_COLUMNS {
        true => {
            let from = whole.chars().count() - (NAME_COLUMNS - 1);
            format!("…{}", whole.chars().skip(from).collect::<String>())
        }
        false => whole,
    }
}

fn excess_ns(of: &ExplainedPath) -> f64 {
    of.slowest.iter().map(|call| call.excess_ns).sum()
}

/// The largest parts of the excess of a path's slowest calls, with their shares.
pub(crate) fn together(of: &ExplainedPath) -> Vec<String> {
    parts_of(of, MOST_TOGETHER)
}

/// The excess of a path's slowest calls, and its largest parts.
fn in_short(of: &ExplainedPath, most: usize) -> String {
    format!(
        "{} in {}: {}",
        figures::duration(excess_ns(of)),
        of.slowest.len(),
        parts_of(of, most).join(", ")
    )
}

fn parts_of(of: &ExplainedPath, most: usize) -> Vec<String> {
    let whole = excess_ns(of);
    let without_whom = |part: &Part| match part.cause {
        PartCause::Child => words(part),
        PartCause::OwnThread => "behind own threads".to_owned(),
        PartCause::Queued => "queued".to_owned(),
        _ => words(&Part {
            of: None,
            ..part.clone()
        }),
    };
    (of.together.iter())
        .filter(|part| part.ns >= WORTH * whole)
        .take(most)
        .map(|part| format!("{} {}", share(part.ns, whole), without_whom(part)))
        .collect()
}

/// The slowest calls of one path, one by one.
#[must_use]
pub fn path(explanation: &Explanation, of: &ExplainedPath, columns: usize) -> String {
    let mut text = String::new();
    let [shortest, longest] = of.typical.within_ns.map(figures::duration);
    let consists: Vec<String> = (of.typical.parts.iter())
        .filter(|part| part.ns >= WORTH * of.typical.took_ns)
        .take(MOST)
        .map(|part| format!("{} {}", figures::duration(part.ns), words(part)))
        .collect();
    let _ = writeln!(
        text,
        "{}: {} calls. The typical one takes {}: {}\n(mean of {} calls, the middle fifth by time, {shortest} to {longest}).\n",
        name(of),
        figures::count(of.calls),
        figures::duration(of.typical.took_ns),
        consists.join(" + "),
        figures::count(of.typical.n),
    );
    let whole = excess_ns(of);
    let _ = match of.slowest.len() {
        1 => writeln!(text, "The slowest takes {} more:", figures::duration(whole)),
        n => writeln!(
            text,
            "The {n} slowest take {} more than {n} typical ones:",
            figures::duration(whole)
        ),
    };
    let parts = of.together.iter().take(MOST_TOGETHER);
    for part in parts.filter(|part| part.ns > 0.0 && part.ns >= WORTH / 5.0 * whole) {
        let largest = match part.n {
            0 => String::new(),
            n => format!("; the largest part in {n}"),
        };
        let line = format!(
            "  {:>8}  {:>5}  {}{largest}",
            figures::duration(part.ns),
            share(part.ns, whole),
            words(part)
        );
        let _ = writeln!(text, "{}", shorten(&line, columns));
    }
    let _ = writeln!(
        text,
        "\n{:>13}  {:>8}  of which more than typical",
        "began at", "took"
    );
    for call in &of.slowest {
        let _ = writeln!(text, "{}", fitting(|most| one(call, most), columns));
    }
    for remark in remarks(explanation, of) {
        let _ = write!(text, "\n{remark}\n");
    }
    text
}

/// One slow call, with that many parts at most.
fn one(call: &SlowCall, most: usize) -> String {
    let parts = (call.parts.iter()).filter(|part| part.ns >= WORTH * call.excess_ns.abs());
    let mut parts: Vec<String> = parts
        .take(most)
        .map(|part| format!("{} {}", figures::duration(part.ns), words(part)))
        .collect();
    if most == MOST
        && let Some(stolen) = call.stolen_up_to_ns
    {
        parts.push(format!(
            "up to {} of that the hypervisor's",
            figures::duration(stolen)
        ));
    }
    format!(
        "{:>11.6} s  {:>8}  {}",
        call.start_ns / 1e9,
        figures::duration(call.took_ns),
        parts.join(", ")
    )
}

/// What the reader must know of these calls.
fn remarks(explanation: &Explanation, of: &ExplainedPath) -> Vec<String> {
    let mut remarks = vec![format!(
        "A single time is exact to {}.",
        figures::duration(explanation.error_ns)
    )];
    if !explanation.has_kernel_events {
        remarks.push(
            "The trace has no kernel events: what a thread waited, and what took its CPU, is unexplained \
             here.\nundertick record shows what it would need for them."
                .to_owned(),
        );
    }
    let unseen = of.slowest.iter().filter(|call| call.off_cpu_unseen).count();
    if unseen > 0 {
        remarks.push(format!(
            "In {unseen} of them the thread was off its CPU for a time that no kernel event shows."
        ));
    }
    remarks
}

fn share(ns: f64, whole: f64) -> String {
    figures::per_cent((ns / whole.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", shorten(&clean(name), NAME_COLUMNS))
}

/// A part in words.
#[must_use]
pub fn words(part: &Part) -> String {
    let by = |what: &str| match &part.of {
        Some(of) => format!("{what} by {}", shorten(&clean(of), NAME_COLUMNS)),
        None => what.to_owned(),
    };
    match part.cause {
        PartCause::Preempted => by("preempted"),
        PartCause::OwnThread => match &part.of {
            Some(of) => format!("while {} had its CPU", shorten(&clean(of), NAME_COLUMNS)),
            None => "while another thread of the program had its CPU".to_owned(),
        },
        PartCause::Switched => "off its CPU, not known why".to_owned(),
        PartCause::Waited => match &part.of {
            Some(of) => format!(
                "waiting, until {} woke it",
                shorten(&clean(of), NAME_COLUMNS)
            ),
            None => "waiting".to_owned(),
        },
        PartCause::Queued => match &part.of {
            Some(of) => format!(
                "woken, while {} had its CPU",
                shorten(&clean(of), NAME_COLUMNS)
            ),
            None => "woken, and not on a CPU yet".to_owned(),
        },
        PartCause::Interrupt => "in interrupts".to_owned(),
        PartCause::SoftInterrupt => "in deferred work of interrupts".to_owned(),
        PartCause::OwnSoftInterrupt => "in deferred work that it raised".to_owned(),
        PartCause::Fault => format!("in {} page faults", figures::count(part.n)),
        PartCause::Child => {
            let of = quoted(part.of.as_deref().unwrap_or(""));
            match part.typical_n {
                Some(typical) if (typical - part.n as f64).abs() >= 0.5 => {
                    let typical = if typical.fract().abs() < 0.05 {
                        figures::count(typical.round() as u64)
                    } else {
                        format!("{typical:.1}")
                    };
                    format!(
                        "in {of}, {} calls instead of {typical}",
                        figures::count(part.n)
                    )
                }
                _ => format!("in {of}"),
            }
        }
        PartCause::State if part.conditions.is_empty() => "by their states".to_owned(),
        PartCause::State => format!("as usual {}", states::all(&part.conditions)),
        PartCause::Own => "self time".to_owned(),
        PartCause::Unexplained => "unexplained".to_owned(),
    }
}

#[cfg(test)]
mod tests;
