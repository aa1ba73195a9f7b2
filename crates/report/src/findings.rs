//! What a report says in sentences, the weightiest first: for the first screen and the page.

use std::collections::BTreeMap;

use undertick_document::{IntervalReport, PathReport, PathStates, Report, TaskReport, figures};

use crate::interposed;
use crate::remarks::number_of;
use crate::stacks::OPEN;
use crate::states::sentence;
use crate::text::{clean, shorten};

/// How much a finding weighs: the share of the time in spans that it is about. Why a snapshot was
/// made, what makes all figures doubtful, and what dominates them, come before the others.
type Weight = f64;

const REASON: Weight = 4.0;
const DOUBTFUL: Weight = 3.0;
const DOMINANT: Weight = 2.0;
/// Share from which a finding is worth a sentence.
const WORTH: Weight = 0.02;
/// Ratio of two medians from which their paths differ enough for a sentence.
const DIFFERS: f64 = 1.5;
/// Share of their lives for which tasks are queued that is worth a sentence.
const QUEUED: f64 = 0.1;
/// Fewest calls of a path with a typical time.
const FEW_CALLS: u64 = 20;
/// Columns of a name within a sentence.
const NAME_COLUMNS: usize = 40;

/// Most sentences.
const MOST: usize = 5;
/// Most of them about what tells calls apart.
const MOST_STATES: usize = 2;

/// The findings that weigh most, sorted.
pub(crate) fn findings(report: &Report) -> Vec<String> {
    let mut found: Vec<(Weight, String)> = Vec::new();
    found.extend(kept(report));
    found.extend(lost(report));
    found.extend(dominant(report));
    found.extend(differing_paths(report));
    let states = states(report).into_iter().take(MOST_STATES);
    found.extend(states.map(|(weight, _, sentence)| (weight, sentence)));
    found.extend(waiting(report));
    found.extend(locked_out(report));
    found.extend(queued(report));
    found.extend(taken_off(report));
    found.extend(measuring(report));
    found.retain(|(weight, _)| *weight >= WORTH);
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    (found.into_iter().take(MOST))
        .map(|(_, text)| text)
        .collect()
}

/// What made the recorder keep this.
fn kept(report: &Report) -> Option<(Weight, String)> {
    let (first, others) = report.trace.kept_because.split_first()?;
    let others = match others {
        [] => "",
        _ => "; more reasons are in the JSON",
    };
    Some((REASON, format!("Kept because {}{others}.", clean(first))))
}

fn lost(report: &Report) -> Option<(Weight, String)> {
    let lost = report.trace.lost;
    let all = report.trace.events.saturating_add(lost);
    (lost > 0).then(|| {
        let share = figures::per_cent(lost as f64 / all as f64);
        let text = format!(
            "{} of {} events ({share}) were lost: what they would have shown is in no figure.",
            figures::count(lost),
            figures::count(all),
        );
        (DOUBTFUL, text)
    })
}

/// The lock for which spans waited longest, and where it was held.
fn locked_out(report: &Report) -> Option<(Weight, String)> {
    let whole = whole_ns(report)?;
    let row = interposed::longest_held(report.locks.as_ref()?)?;
    let path = row.path? as usize;
    let held = match row.by_path {
        Some(by) => format!("in {}", path_name(report, by as usize)),
        None => format!("by {}", interposed::by(report, row)),
    };
    let text = format!(
        "{} waited {} for {}, which was held {held} (undertick locks).",
        path_name(report, path),
        figures::duration(row.waited_ns),
        interposed::lock(&row.lock),
    );
    Some((row.waited_ns / whole, text))
}

/// Tasks that waited for a thread that polls them.
fn queued(report: &Report) -> Option<(Weight, String)> {
    let rows = &report.tasks.as_ref()?.rows;
    let share = |row: &TaskReport| {
        let queued = row.queued.as_ref()?.total_ns;
        (row.lifetime.total_ns > 0.0).then(|| queued / row.lifetime.total_ns)
    };
    let row = rows.iter().find(|row| share(row) >= Some(QUEUED))?;
    let listed = row.longest.iter().filter_map(|life| life.longest_queue_ns);
    let ended = row.queue.as_ref().and_then(|queue| queue.max_ns);
    let longest = listed.chain(ended).fold(0.0, f64::max);
    let text = format!(
        "Tasks {} were queued for {} of their lives, at most {} at a time: created or woken, but not polled yet.",
        quoted(&row.name),
        figures::per_cent(share(row)?),
        figures::duration(longest)
    );
    Some((share(row)?, text))
}

/// The name that takes most time itself, on all its paths together.
fn dominant(report: &Report) -> Option<(Weight, String)> {
    let whole = whole_ns(report)?;
    let mut by_name: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
    for path in report.paths.iter().filter(|path| path.threads.is_none()) {
        let (own, paths) = by_name.entry(&path.name).or_default();
        *own += path.self_ns.unwrap_or(0.0);
        *paths += 1;
    }
    let is_choice = by_name.len() > 1;
    let (name, (own, paths)) = by_name
        .into_iter()
        .max_by(|(_, a), (_, b)| a.0.total_cmp(&b.0))?;
    let places = match paths {
        1 => String::new(),
        n => format!(", in {n} places together"),
    };
    let text = format!(
        "{} takes most: {} of the time in spans is its own{places}.",
        quoted(name),
        figures::per_cent((own / whole).min(1.0))
    );
    is_choice.then_some((DOMINANT, text))
}

/// Names that take a different time on each of their paths.
fn differing_paths(report: &Report) -> Vec<(Weight, String)> {
    let mut by_name: BTreeMap<&str, Vec<&PathReport>> = BTreeMap::new();
    for path in &report.paths {
        if path.calls >= FEW_CALLS && path.median_ns.is_some_and(|ns| ns > 0.0) {
            by_name.entry(&path.name).or_default().push(path);
        }
    }
    let median = |path: &PathReport| path.median_ns.unwrap_or(0.0);
    let differing = |(name, mut paths): (&str, Vec<&PathReport>)| {
        paths.sort_by(|a, b| median(a).total_cmp(&median(b)));
        let (fast, slow) = (*paths.first()?, *paths.last()?);
        if median(slow) < DIFFERS * median(fast) {
            return None;
        }
        let weight = paths.iter().filter_map(|path| path.share).sum();
        let outer = |path: &PathReport| path.parent.map(|outer| outer as usize);
        let outer_name = |at: usize| report.paths.get(at).map(|outer| &*outer.name);
        let is_same = outer(fast).and_then(outer_name) == outer(slow).and_then(outer_name);
        let each = |path: &PathReport| {
            let place = match outer(path) {
                Some(outer) if is_same => format!("in {}", path_name(report, outer)),
                Some(outer) => format!("in {}", quoted(outer_name(outer).unwrap_or_default())),
                None => "outside other spans".to_owned(),
            };
            format!("{} {place}", figures::duration(median(path)))
        };
        let text = format!(
            "{} takes {} and {} (medians).",
            quoted(name),
            each(fast),
            each(slow),
        );
        Some((weight, text))
    };
    by_name.into_iter().filter_map(differing).collect()
}

/// What tells the short calls of paths from the long ones, in a sentence for each path, the weightiest
/// first.
pub(crate) fn states(report: &Report) -> Vec<(Weight, &PathStates, String)> {
    let mut found: Vec<(Weight, &PathStates, String)> = (report.states.iter())
        .filter_map(|states| {
            let share = report.paths.get(states.path as usize)?.share?;
            let name = path_name(report, states.path as usize);
            Some((share * states.explained, states, sentence(&name, states)))
        })
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found
}

/// The path that is off the CPU for longest itself.
fn waiting(report: &Report) -> Option<(Weight, String)> {
    let whole = whole_ns(report)?;
    let mut own: Vec<f64> = (report.paths.iter())
        .map(|path| path.off_cpu_ns.unwrap_or(0.0))
        .collect();
    for path in &report.paths {
        if let Some(outer) = path.parent.and_then(|outer| own.get_mut(outer as usize)) {
            *outer -= path.off_cpu_ns.unwrap_or(0.0);
        }
    }
    let (at, off) = (own.into_iter().enumerate()).max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let total = report.paths[at].total.as_ref()?.value;
    let text = format!(
        "{} waits, sleeps or has yielded for {} of its {}.",
        path_name(report, at),
        figures::duration(off),
        figures::duration(total)
    );
    Some((off / whole, text))
}

/// The time that disturbances took of the span that lost most to them; it is also taken off the
/// spans around that one.
fn taken_off(report: &Report) -> Option<(Weight, String)> {
    let whole = whole_ns(report)?;
    let time_ns = |interval: &IntervalReport| interval.taken_off.time_ns;
    let most = (report.intervals.iter())
        .filter(|interval| of_name(report, &interval.name).next().is_some())
        .max_by(|a, b| time_ns(a).total_cmp(&time_ns(b)))?;
    let text = format!(
        "Others had the CPU for {} during {}{}: taken off.",
        figures::duration(time_ns(most)),
        quoted(&most.name),
        causes(most),
    );
    Some((time_ns(most) / (whole + time_ns(most)), text))
}

/// The two gravest causes of disturbances, in parentheses.
fn causes(interval: &IntervalReport) -> String {
    let mut by: Vec<_> = (interval.evidence.iter())
        .filter(|evidence| evidence.culled && evidence.time_ns > 0.0)
        .collect();
    by.sort_by(|a, b| b.time_ns.total_cmp(&a.time_ns));
    let by: Vec<String> = (by.iter().take(2))
        .map(|evidence| {
            let time = figures::duration(evidence.time_ns);
            format!("{} {time}", clean(&evidence.cause))
        })
        .collect();
    match by.is_empty() {
        true => String::new(),
        false => format!(" ({})", by.join(", ")),
    }
}

/// By how much recording slowed the program, where that was measured, or else what it cost.
fn measuring(report: &Report) -> Option<(Weight, String)> {
    if let Some(slowed) = &report.trace.perturbation {
        let by = figures::figure(slowed);
        let text = format!(
            "Recording slowed the program by {} {}.",
            by.value_and_unit(),
            by.interval()
        );
        return Some((slowed.value.abs(), text));
    }
    let whole = whole_ns(report)?;
    let is_outermost = |interval: &&IntervalReport| {
        let is_outer = |path: &PathReport| {
            let outer = path.parent.and_then(|at| report.paths.get(at as usize));
            outer.is_none_or(|outer| outer.threads.is_some())
        };
        let mut paths = of_name(report, &interval.name);
        paths.next().is_some_and(is_outer) && paths.all(is_outer)
    };
    let cost: f64 = (report.intervals.iter())
        .filter(is_outermost)
        .filter_map(|interval| {
            let each = interval.compensation.cost.as_ref()?.value;
            Some(each * interval.count.saturating_add(interval.culled.count) as f64)
        })
        .sum();
    let share = cost / (whole + cost);
    let text = format!(
        "Recording took {} of the time in spans; that is subtracted.",
        figures::per_cent(share)
    );
    (0.0..=1.0).contains(&share).then_some((share, text))
}

/// The time of all outermost spans, ns; `None` without any.
pub(crate) fn whole_ns(report: &Report) -> Option<f64> {
    let outermost = report.paths.iter().filter(|path| path.parent.is_none());
    let sum: f64 = (outermost.filter_map(|path| path.total.as_ref()))
        .map(|total| total.value)
        .sum();
    (sum > 0.0).then_some(sum)
}

/// A duration of which only a bound is known.
pub(crate) fn at_most(ns: f64) -> String {
    format!("<{}", figures::duration(ns))
}

/// What is at least this.
pub(crate) fn at_least(figure: &str) -> String {
    format!(">{figure}")
}

/// The name of a path; that of a role with the number of its threads, and whether its points were
/// off at times.
pub(crate) fn path_label(path: &PathReport) -> String {
    let name = clean(&path.name);
    match path.threads {
        Some(threads) if threads != 1 => {
            format!("{name} ({})", number_of(u64::from(threads), "thread"))
        }
        _ if path.is_still_open() => format!("{name}{OPEN}"),
        _ if path.is_switched => format!("{name} (off at times)"),
        _ => name,
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", shorten(&clean(name), NAME_COLUMNS))
}

/// The paths of spans of that name.
fn of_name<'a>(report: &'a Report, name: &'a str) -> impl Iterator<Item = &'a PathReport> {
    (report.paths.iter()).filter(move |path| path.threads.is_none() && path.name == name)
}

/// A path by its names, from the outermost to the innermost.
fn path_name(report: &Report, at: usize) -> String {
    quoted(&report.short_name(at))
}
