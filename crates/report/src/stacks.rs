//! Which functions the time of spans went to, for the terminal and for tools that draw flame graphs.

use std::fmt::Write as _;

use undertick_document::{FunctionShare, PathStacks, Report, Stacks, figures};

use crate::text::{clean, columns, shorten, shorten_end};

/// Most paths in the table.
const MOST_PATHS: usize = 20;
/// Most functions of a path that are named in the table of paths, and in its own.
const MOST_NAMED: usize = 3;
const MOST_FUNCTIONS: usize = 25;
/// Share from which a function is named.
const WORTH: f64 = 0.03;
/// Columns of a path's name.
const NAME_COLUMNS: usize = 36;
/// Name of what is in no span.
pub const OUTSIDE: &str = "outside of spans";
/// After the name of a path of which no call ended.
pub const OPEN: &str = " (still open)";

/// The confidence interval of the share that a number of samples is of another, if it has one.
pub type ShareInterval<'a> = &'a dyn Fn(u64, u64) -> Option<[f64; 2]>;

/// The paths with the functions that their own time went to, a line each.
#[must_use]
pub fn paths(report: &Report, stacks: &Stacks, width: usize) -> String {
    let mut text = summary(stacks, width);
    let mut of_paths = by_time(report, stacks);
    let left_out = of_paths.len().saturating_sub(MOST_PATHS);
    of_paths.truncate(MOST_PATHS);
    let names = of_paths.iter().map(|(name, _)| columns(name)).max();
    let names = names.unwrap_or(0).max(4);
    let _ = writeln!(
        text,
        "\n{:names$}  {:>9}  {:>6}  {:>8}  innermost functions, by samples on a CPU",
        "path", "samples", "of all", "waited"
    );
    for (name, of) in &of_paths {
        let pad = names - columns(name);
        let line = format!(
            "{name}{:pad$}  {:>9}  {:>6}  {:>8}  {}",
            "",
            figures::count(of.on_cpu),
            figures::per_cent(of.on_cpu as f64 / stacks.on_cpu.max(1) as f64),
            waited_text(of.waited_ns),
            named(stacks, of).join(", ")
        );
        let _ = writeln!(text, "{}", shorten_end(line.trim_end(), width));
    }
    if left_out > 0 {
        let _ = writeln!(text, "{left_out} more paths: see --json");
    }
    text
}

/// The functions of a path and of the spans inside it.
#[must_use]
pub fn path(
    name: &str,
    stacks: &Stacks,
    of: &PathStacks,
    interval: ShareInterval<'_>,
    width: usize,
) -> String {
    let mut text = summary(stacks, width);
    let waits = match of.waits {
        _ if !stacks.when_waiting => "waits were not sampled".to_owned(),
        0 => "no waits".to_owned(),
        1 => format!("1 wait of {}", waited_text(of.waited_ns)),
        n => format!(
            "{} waits, {} in total",
            figures::count(n),
            waited_text(of.waited_ns)
        ),
    };
    let inside = match name {
        OUTSIDE => "",
        _ => ", with the spans inside it",
    };
    let line = format!(
        "{}{inside}: {} on a CPU ({} of all); {waits}.",
        clean(name),
        counted(of.on_cpu),
        figures::per_cent(of.on_cpu as f64 / stacks.on_cpu.max(1) as f64),
    );
    let _ = writeln!(text, "\n{}", crate::text::wrap(&line, width, 0));
    let _ = writeln!(
        text,
        "\n{:>7}  {:>15}  {:>7}  {:>8}  function",
        "self", "95 % CI of self", "total", "waited"
    );
    let by = of.by_function();
    let share = |n: u64| n as f64 / of.on_cpu.max(1) as f64;
    let weight = |by: &FunctionShare| time_ns(stacks, by.own, by.waited_ns);
    let mut shown: Vec<&FunctionShare> = by.iter().filter(|of| weight(of) > 0.0).collect();
    shown.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let left_out = shown.len().saturating_sub(MOST_FUNCTIONS);
    shown.truncate(MOST_FUNCTIONS);
    for of_function in shown {
        let range = interval(of_function.own, of.on_cpu).map_or_else(
            || "-".to_owned(),
            |[lo, hi]| format!("[{}, {}]", figures::per_cent(lo), figures::per_cent(hi)),
        );
        let line = format!(
            "{:>7}  {range:>15}  {:>7}  {:>8}  {}",
            figures::per_cent(share(of_function.own)),
            figures::per_cent(share(of_function.all)),
            waited_text(of_function.waited_ns),
            function(stacks, of_function.function),
        );
        let _ = writeln!(text, "{}", shorten_end(&line, width));
    }
    if left_out > 0 {
        let _ = writeln!(text, "{left_out} more functions: see --json");
    }
    for (what, value) in [("On a CPU", Value::OnCpu), ("Waiting", Value::Waited)] {
        if let Some(stack) = heaviest(stacks, of, value) {
            let _ = writeln!(text, "\n{what}, the heaviest stack: {stack}");
        }
    }
    text
}

/// Each stack as a line for tools that draw flame graphs: role, spans and functions with `;` between
/// them, from the outermost on, and samples on a CPU, or microseconds waited.
#[must_use]
pub fn folded(report: &Report, stacks: &Stacks, waiting: bool) -> String {
    let mut text = String::new();
    let plain = |name: &str| clean(name).replace(';', ":");
    for of in &stacks.paths {
        let spans: Vec<String> = match of.path {
            Some(path) => report.path_names(path as usize).map(plain).collect(),
            None if of.still_open.is_empty() => vec![OUTSIDE.to_owned()],
            None => of.still_open.iter().map(|name| plain(name)).collect(),
        };
        for (at, node) in of.nodes.iter().enumerate() {
            let n = match waiting {
                true => (node.waited_ns / 1000.0).round() as u64,
                false => node.on_cpu,
            };
            if n == 0 {
                continue;
            }
            let mut frames: Vec<String> = callers(of, at)
                .map(|at| plain(&stacks.functions[of.nodes[at].function as usize].name))
                .collect();
            frames.reverse();
            let _ = writeln!(text, "{};{} {n}", spans.join(";"), frames.join(";"));
        }
    }
    text
}

/// What was sampled and what is missing, in sentences.
pub(crate) fn summary(stacks: &Stacks, width: usize) -> String {
    let kernel = match stacks.in_kernel {
        true => "program and system calls",
        false => "program only",
    };
    let mut text = format!(
        "{} on a CPU ({kernel}), one per {} of CPU time.",
        counted(stacks.on_cpu),
        figures::duration(stacks.every_ns as f64)
    );
    if stacks.when_waiting {
        let _ = write!(
            text,
            " {} were sampled; they cover {} of the time that threads waited.",
            match stacks.waits {
                1 => "1 wait".to_owned(),
                n => format!("{} waits", figures::count(n)),
            },
            figures::per_cent(stacks.waits_known)
        );
    }
    if stacks.incomplete > 0.001 {
        let _ = write!(
            text,
            " {} of the stacks are incomplete: outer functions are missing, or no function is known.",
            figures::per_cent(stacks.incomplete)
        );
    }
    if !stacks.why.is_empty() {
        let _ = write!(text, " {}.", clean(&stacks.why));
    }
    crate::text::wrap(&text, width, 0) + "\n"
}

/// Time on a CPU and time waited together, ns.
fn time_ns(stacks: &Stacks, on_cpu: u64, waited_ns: f64) -> f64 {
    on_cpu as f64 * stacks.every_ns as f64 + waited_ns
}

/// The paths by their names, those with most time on a CPU and waited first.
pub(crate) fn by_time<'a>(report: &Report, stacks: &'a Stacks) -> Vec<(String, &'a PathStacks)> {
    let mut of_paths: Vec<(String, &PathStacks)> = (stacks.paths.iter())
        .map(|of| (name(report, of), of))
        .collect();
    let weight = |of: &PathStacks| time_ns(stacks, of.on_cpu, of.waited_ns);
    of_paths.sort_by(|(_, a), (_, b)| weight(b).total_cmp(&weight(a)));
    of_paths
}

/// A number of samples.
fn counted(n: u64) -> String {
    match n {
        1 => "1 stack sample".to_owned(),
        n => format!("{} stack samples", figures::count(n)),
    }
}

/// The largest functions of a path, with their shares of its samples.
pub(crate) fn named(stacks: &Stacks, of: &PathStacks) -> Vec<String> {
    (of.by_function().iter())
        .map(|by| (by.own as f64 / of.on_cpu.max(1) as f64, by.function))
        .filter(|(share, _)| *share >= WORTH)
        .take(MOST_NAMED)
        .map(|(share, at)| format!("{} {}", function(stacks, at), figures::per_cent(share)))
        .collect()
}

fn name(report: &Report, of: &PathStacks) -> String {
    match of.path {
        None if of.still_open.is_empty() => OUTSIDE.to_owned(),
        None => {
            let name = shorten(&clean(&of.still_open.join("/")), NAME_COLUMNS - OPEN.len());
            format!("{name}{OPEN}")
        }
        Some(path) => {
            let is_open = (report.paths.get(path as usize)).is_some_and(|of| of.is_still_open());
            let name = shorten(&clean(&report.path_name(path as usize)), NAME_COLUMNS);
            format!("{name}{}", if is_open { OPEN } else { "" })
        }
    }
}

fn function(stacks: &Stacks, at: u32) -> String {
    let known = stacks.functions.get(at as usize);
    known.map_or_else(|| "?".to_owned(), |of| clean(&of.name))
}

fn waited_text(ns: f64) -> String {
    match ns > 0.0 {
        true => figures::duration(ns),
        false => "-".to_owned(),
    }
}

/// A node and those that called it, the innermost first.
fn callers(of: &PathStacks, at: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(at), |&at| {
        let caller = of.nodes[at].caller? as usize;
        (caller < at).then_some(caller)
    })
}

#[derive(Clone, Copy)]
enum Value {
    OnCpu,
    Waited,
}

/// The stack that is found by always going to the heaviest function, as long as it has at least half of
/// what its caller has.
fn heaviest(stacks: &Stacks, of: &PathStacks, value: Value) -> Option<String> {
    let totals: Vec<f64> = (of.totals().into_iter())
        .map(|(on_cpu, waited_ns)| match value {
            Value::OnCpu => on_cpu as f64,
            Value::Waited => waited_ns,
        })
        .collect();
    let whole = match value {
        Value::OnCpu => of.on_cpu as f64,
        Value::Waited => of.waited_ns,
    };
    let heaviest_inside = |caller: Option<usize>| {
        (0..of.nodes.len())
            .filter(|&at| of.nodes[at].caller.map(|at| at as usize) == caller)
            .max_by(|&a, &b| totals[a].total_cmp(&totals[b]).then(b.cmp(&a)))
    };
    let mut at = None;
    let mut names = Vec::new();
    let mut total = whole;
    while let Some(next) = heaviest_inside(at).filter(|&next| totals[next] * 2.0 >= total) {
        names.push(function(stacks, of.nodes[next].function));
        (at, total) = (Some(next), totals[next]);
    }
    (total > 0.0 && !names.is_empty()).then(|| {
        let share = figures::per_cent(total / whole);
        format!("{share} in {}", names.join(" > "))
    })
}

#[cfg(test)]
mod tests;
