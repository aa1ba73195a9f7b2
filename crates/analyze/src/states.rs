//! What tells the short calls of a path from the long ones: a second look at the paths that take most
//! of the time.
//!
//! **Method.** The rows are matched once more, and of each path that matters a sample of calls is kept
//! with what is known of each of them: its thread and CPU, which threads ran beside it, what came
//! before it, what lay directly inside it. [`undertick_estimate::states`] finds which of these facts
//! separate the calls.
//!
//! **Bounds.** At most [`MOST_PATHS`] paths and 2^13 calls of each; of a trace with more than
//! twice [`MOST_ROWS`] rows, row groups spread evenly over it.

mod bins;
pub(crate) mod facts;

use std::sync::Arc;

use undertick_document::{PathStates, Report};
use undertick_estimate::{proportion, states as estimate};
use undertick_format::groups::Group;
use undertick_format::read::Trace;
use undertick_units::{Estimate, Interval};

use crate::error::Failed;
use crate::options::Options;
use crate::parallel::{available_cpus, watch};
use crate::watch::running::Running;
use crate::watch::{Names, Wanted};
use facts::Facts;

/// Most paths that are looked at.
const MOST_PATHS: usize = 16;
/// Share of the time in spans from which a path is looked at.
const WORTH: f64 = 0.01;
/// Rows that are read again of a long trace; up to twice as many are read in full.
const MOST_ROWS: u64 = 1 << 22;

/// Adds to a report of this trace what tells the short calls of its paths from the long ones.
/// `progress` receives the share done, 0 to 1.
///
/// # Errors
/// The trace cannot be read, or does not support the options.
pub fn add_states(
    trace: &Trace,
    options: &Options,
    report: &mut Report,
    progress: &mut dyn FnMut(f64),
) -> Result<(), Failed> {
    let wanted = wanted(report);
    if wanted.is_empty() {
        return Ok(());
    }
    let names = |&path: &usize| report.path_names(path).map(str::to_owned).collect();
    let paths: Arc<[Names]> = wanted.iter().map(names).collect();
    let groups = some(&trace.groups()?);
    let mut running = Running::default();
    let found = watch(
        trace,
        options,
        (Wanted { paths, slowest: 0 }, &groups),
        available_cpus(),
        &mut |rows| running.take(rows),
        progress,
    )?;
    let Some((found, _, first)) = found else {
        return Ok(());
    };
    running.settle();
    let clock = &trace.manifest.clock;
    let about = facts::About {
        running: &running,
        ns_per_tick: clock.ns_per_tick(),
        roles: facts::roles(&trace.manifest),
        threads: facts::threads(&trace.manifest),
    };
    let (intervals, events, calls) = found.calls();
    for (path, calls) in wanted.into_iter().zip(calls) {
        let calls = calls.in_order();
        let are_all = calls.len() as u64 == report.paths[path].calls;
        let facts = Facts::new(&about, &intervals, &events, &calls, first);
        let observed = facts.observed(clock.granularity_ticks * about.ns_per_tick);
        if let Some(found) = estimate::states(&observed, options.confidence, "ns") {
            let samples = found.states.iter().map(|state| &*state.samples);
            let edges_ns = bins::edges(observed.values, samples, observed.step);
            report.states.push(PathStates {
                path: path as u32,
                looked_at: calls.len() as u64,
                explained: found.explained,
                states: (found.states.into_iter())
                    .map(|state| {
                        let n = state.samples.len();
                        let counts = bins::counts(observed.values, &state.samples, &edges_ns);
                        let share = share(n, calls.len(), are_all, options.confidence);
                        facts.tell(state, share, counts)
                    })
                    .collect(),
                edges_ns,
            });
        }
    }
    Ok(())
}

/// The share of `n` of the calls that were looked at; `are_all`: no others were made.
fn share(n: usize, of: usize, are_all: bool, level: f64) -> Estimate {
    let share = n as f64 / of.max(1) as f64;
    let exact = Interval::new(share, share);
    let chosen = proportion(n as u64, of as u64, level).map(|found| found.interval);
    Estimate {
        value: share,
        interval: chosen.filter(|_| !are_all).unwrap_or(exact),
        level,
        unit: "1".to_owned(),
        method: "share of the calls that were looked at".to_owned(),
        n: of as u64,
        n_effective: of as f64,
        notes: Vec::new(),
    }
}

/// The paths that take most of the time, those that take more first.
fn wanted(report: &Report) -> Vec<usize> {
    let mut paths: Vec<usize> = (0..report.paths.len())
        .filter(|&at| {
            let path = &report.paths[at];
            path.calls - path.recursive_calls >= estimate::FEWEST as u64
                && path.share.is_some_and(|share| share >= WORTH)
        })
        .collect();
    let share = |at: &usize| report.paths[*at].share.unwrap_or(0.0);
    paths.sort_by(|a, b| share(b).total_cmp(&share(a)).then(a.cmp(b)));
    paths.truncate(MOST_PATHS);
    paths
}

/// The groups, or where they have too many rows, some of their row groups, spread evenly: each by
/// itself, because rows between them are missing.
fn some(groups: &[Group]) -> Vec<Group> {
    let rows: u64 = groups.iter().map(|group| group.rows).sum();
    let one_in = (rows / MOST_ROWS).max(1);
    if one_in == 1 {
        return groups.to_vec();
    }
    let each = groups.iter().flat_map(|group| {
        let rows = group.rows / group.row_groups.len().max(1) as u64;
        (group.row_groups.iter()).map(move |&row_group| Group {
            row_groups: vec![row_group],
            rows,
            by_ring: group.by_ring,
        })
    });
    let chosen = (0..).zip(each).filter(|(at, _)| at % one_in == one_in / 2);
    chosen.map(|(_, group)| group).collect()
}
