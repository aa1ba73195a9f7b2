//! Why single calls took longer than the typical one of their path, for the terminal.

use std::fmt::Write as _;

use undertick_document::explanation::{
    CallStack, ExplainedPath, Explanation, Part, PartCause, SlowCall,
};
use undertick_document::figures;

use crate::interposed::wait_text;
use crate::states;
use crate::text::{clean, shorten, shorten_end};

/// Minimum share of an excess for which a part is shown.
pub(crate) const WORTH: f64 = 0.05;
/// Minimum share of a duration for which what is not shown is given as `other`.
const WORTH_OTHER: f64 = 0.01;
/// Most parts shown of one call, and of several calls.
const MOST: usize = 3;
const MOST_TOGETHER: usize = 8;
/// Most paths in the table.
const MOST_PATHS: usize = 16;
/// Columns of a name.
const NAME_COLUMNS: usize = 40;
/// Columns before what a call's stack is said in.
const STACK_AT: usize = 25;

/// The paths with the excess of their slowest calls, a line each.
#[must_use]
pub fn paths(explanation: &Explanation, columns: usize) -> String {
    let mut text = String::new();
    let shown: Vec<&ExplainedPath> = explanation.paths.iter().take(MOST_PATHS).collect();
    let names: Vec<String> = shown.iter().map(|of| name(of)).collect();
    let width = names.iter().map(|name| name.chars().count()).max();
    let width = width.unwrap_or(0).max(4);
    let n = shown.iter().map(|of| of.slowest.len()).max().unwrap_or(0);
    let _ = writeln!(
        text,
        "{:width$}  {:>11}  {:>8}  {:>8}  excess of the {n} slowest, by cause",
        "path", "calls", "typical", "slowest"
    );
    for (of, name) in shown.iter().zip(&names) {
        let slowest = of.slowest.first();
        let line = |most: usize| {
            format!(
                "{name:width$}  {:>11}  {:>8}  {:>8}  {}: {}",
                figures::count(of.calls),
                figures::duration(of.typical.took_ns),
                slowest.map_or("-".to_owned(), |call| figures::duration(call.took_ns)),
                figures::duration(of.excess_ns()),
                shares(of, most).join(", "),
            )
        };
        let _ = writeln!(text, "{}", fitting(line, columns));
    }
    if let Some(more @ 1..) = explanation.paths.len().checked_sub(MOST_PATHS) {
        let _ = writeln!(text, "{more} more in --json");
    }
    let _ = writeln!(
        text,
        "\nThe excess of a path contains that of the paths inside it."
    );
    for remark in remarks(explanation, &[]) {
        let _ = writeln!(text, "{remark}");
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

/// The largest parts of the excess of a path's slowest calls, with their shares.
pub(crate) fn shares(of: &ExplainedPath, most: usize) -> Vec<String> {
    let whole = of.excess_ns();
    let without_thread = |part: &Part| match part.cause {
        PartCause::Child => words(part),
        _ => words(&Part {
            of: None,
            ..part.clone()
        }),
    };
    (of.together.iter())
        .filter(|part| part.ns >= WORTH * whole)
        .take(most)
        .map(|part| format!("{} {}", share(part.ns, whole), without_thread(part)))
        .collect()
}

/// The slowest calls of one path, one by one.
#[must_use]
pub fn path(explanation: &Explanation, of: &ExplainedPath, columns: usize) -> String {
    let mut text = String::new();
    let typical = &of.typical;
    let [shortest, longest] = typical.within_ns.map(figures::duration);
    let looked_at = match typical.looked_at >= of.calls {
        true => String::new(),
        false => format!(" of {} chosen at random", figures::count(typical.looked_at)),
    };
    let _ = writeln!(
        text,
        "{}: {} calls. Typical: {} = {}\n(mean of {} calls, the middle fifth by duration{looked_at}: {shortest} to \
         {longest}).\n",
        name(of),
        figures::count(of.calls),
        figures::duration(typical.took_ns),
        listed(&typical.parts, typical.took_ns, MOST).join(" + "),
        figures::count(typical.n),
    );
    let whole = of.excess_ns();
    let _ = match of.slowest.len() {
        1 => writeln!(text, "Excess of the slowest: {}", figures::duration(whole)),
        n => writeln!(
            text,
            "Excess of the {n} slowest over {n} typical ones: {}",
            figures::duration(whole)
        ),
    };
    let is_shown = |part: &&Part| part.ns > 0.0 && part.ns >= WORTH_OTHER * whole;
    let shown: Vec<&Part> = (of.together.iter().filter(is_shown))
        .take(MOST_TOGETHER)
        .collect();
    for part in &shown {
        let largest = match part.n {
            0 => String::new(),
            n => format!("; the largest part of {n}"),
        };
        let line = format!(
            "  {:>8}  {:>5}  {}{largest}",
            figures::duration(part.ns),
            share(part.ns, whole),
            words(part)
        );
        let _ = writeln!(text, "{}", shorten(&line, columns));
    }
    let other = whole - shown.iter().map(|part| part.ns).sum::<f64>();
    if other >= WORTH_OTHER * whole {
        let share = share(other, whole);
        let _ = writeln!(text, "  {:>8}  {share:>5}  other", figures::duration(other));
    }
    let _ = writeln!(
        text,
        "\n{:>13}  {:>8}  excess over the typical call, by cause",
        "began at", "took"
    );
    for call in &of.slowest {
        let _ = writeln!(text, "{}", fitting(|most| one(call, most), columns));
        let waits = call.waits.iter().map(wait_text);
        for line in waits.chain(call.stacks.first().map(stack_text)) {
            let line = format!("{:STACK_AT$}{line}", "");
            let _ = writeln!(text, "{}", shorten_end(&line, columns));
        }
    }
    text.push('\n');
    for remark in remarks(explanation, &of.slowest) {
        let _ = writeln!(text, "{remark}");
    }
    text
}

/// The largest parts of a duration, and the rest of it.
pub(crate) fn listed(parts: &[Part], whole_ns: f64, most: usize) -> Vec<String> {
    let shown: Vec<&Part> = (parts.iter())
        .filter(|part| part.ns >= WORTH * whole_ns.abs())
        .take(most)
        .collect();
    let mut lines: Vec<String> = (shown.iter())
        .map(|part| format!("{} {}", figures::duration(part.ns), words(part)))
        .collect();
    let other = whole_ns - shown.iter().map(|part| part.ns).sum::<f64>();
    if other >= WORTH_OTHER * whole_ns.abs() && other > 0.0 {
        lines.push(format!("{} other", figures::duration(other)));
    }
    lines
}

/// The bound of the hypervisor's time in a call.
pub(crate) fn stolen(call: &SlowCall) -> Option<String> {
    let stolen_ns = call.stolen_up_to_ns?;
    let stolen = figures::duration(stolen_ns);
    Some(format!("(hypervisor: up to {stolen})"))
}

/// One slow call, with that many parts at most.
fn one(call: &SlowCall, most: usize) -> String {
    let parts = listed(&call.parts, call.excess_ns, most).join(", ");
    let stolen = stolen(call).map_or(String::new(), |stolen| format!(" {stolen}"));
    format!(
        "{:>11.6} s  {:>8}  {parts}{stolen}",
        call.start_ns / 1e9,
        figures::duration(call.took_ns),
    )
}

/// Where a call was sampled, in words.
pub(crate) fn stack_text(stack: &CallStack) -> String {
    let functions: Vec<String> = stack.functions.iter().map(|name| clean(name)).collect();
    let mut samples = Vec::new();
    match stack.on_cpu {
        0 => {}
        1 => samples.push("1 sample".to_owned()),
        n => samples.push(format!("{} samples", figures::count(n))),
    }
    if stack.waited_ns > 0.0 {
        samples.push(format!("waited {}", figures::duration(stack.waited_ns)));
    }
    format!("{} in {}", samples.join(", "), functions.join(" < "))
}

/// What the reader must know of these calls.
fn remarks(explanation: &Explanation, calls: &[SlowCall]) -> Vec<String> {
    let mut remarks = vec![format!(
        "Error of one duration: {}.",
        figures::duration(explanation.error_ns)
    )];
    if !explanation.has_kernel_events {
        remarks.push(
            "The trace has no kernel events: time off the CPU is unexplained. undertick record --kernel on\n\
             names what they need."
                .to_owned(),
        );
    }
    let unseen = calls.iter().filter(|call| call.off_cpu_unseen).count();
    if unseen > 0 {
        remarks.push(format!(
            "In {unseen} of these calls the thread was off its CPU for a time that no kernel event shows."
        ));
    }
    remarks
}

fn share(ns: f64, whole: f64) -> String {
    figures::per_cent((ns / whole.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0))
}

/// A part in words.
#[must_use]
pub fn words(part: &Part) -> String {
    let thread = (part.of.as_deref()).map(|of| shorten(&clean(of), NAME_COLUMNS));
    let with = |what: &str, link: &str| match &thread {
        Some(thread) => format!("{what}{link}{thread}"),
        None => what.to_owned(),
    };
    match part.cause {
        PartCause::Preempted => with("preempted", " by "),
        PartCause::OwnThread => {
            let thread = part
                .of
                .as_deref()
                .map(|of| of.strip_prefix("thread ").unwrap_or(of));
            thread.map_or("preempted by own thread".to_owned(), |of| {
                format!("preempted by own thread {}", clean(of))
            })
        }
        PartCause::Switched => "off the CPU, reason unknown".to_owned(),
        PartCause::Waited => with("waiting", ", woken by "),
        PartCause::Blocked => "blocked in the kernel (disk, device or lock)".to_owned(),
        PartCause::Stopped => with("stopped", ", continued by "),
        PartCause::Queued => with("runnable", " behind "),
        PartCause::Interrupt => "in interrupts".to_owned(),
        PartCause::SoftInterrupt => "in softirqs".to_owned(),
        PartCause::OwnSoftInterrupt => "in softirqs that it raised".to_owned(),
        // Of several calls together their number is not known.
        PartCause::Fault if part.typical_n.is_none() => "in page faults".to_owned(),
        PartCause::Fault => format!("in {} page faults", figures::count(part.n)),
        PartCause::Child => child(part),
        PartCause::State if part.conditions.is_empty() => "usual in their states".to_owned(),
        PartCause::State => format!("usual {}", states::all(&part.conditions)),
        PartCause::Own => "self time".to_owned(),
        PartCause::Unexplained => "unexplained".to_owned(),
    }
}

/// Spans inside, with their number where that differs from the typical one.
fn child(part: &Part) -> String {
    let name = shorten(&clean(part.of.as_deref().unwrap_or("")), NAME_COLUMNS);
    let differing = (part.typical_n).filter(|typical| (typical - part.n as f64).abs() >= 0.5);
    match differing {
        None => format!("in \"{name}\""),
        Some(typical) => {
            let typical = match typical.fract().abs() < 0.05 {
                true => figures::count(typical.round() as u64),
                false => format!("{typical:.1}"),
            };
            let n = figures::count(part.n);
            format!("in \"{name}\", {n} calls instead of {typical}")
        }
    }
}

#[cfg(test)]
mod tests;
