//! What tells the short calls of a path from the long ones: a second look at the paths that take most
//! of the time.
//!
//! **Method.** The rows are matched once more, and of each path that matters a sample of calls is kept
//! with what is known of each of them: its thread and CPU, which threads ran beside it, what came
//! before it, what lay directly inside it. [`undertick_estimate::states`] finds which of these facts
//! separate the calls.
//!
//! Of several runs the calls are looked at together, in the order of their time since the begin of
//! their run, and the run is one of the facts. A state's median is then that of the runs' medians.
//!
//! **Bounds.** At most [`MOST_PATHS`] paths and 2^13 calls of each; of traces with more than
//! twice [`MOST_ROWS`] rows together, row groups spread evenly over them; of many runs
//! [`MOST_RUNS`], as long as these have fewer than [`MOST_SWITCHES`] switches, 16 bytes each.

mod bins;
pub(crate) mod facts;

use std::collections::BTreeMap;
use std::path::PathBuf;

use undertick_document::{PathStates, Report};
use undertick_estimate::{median_of_runs, proportion, states as estimate};
use undertick_format::groups::Group;
use undertick_format::read::Trace;
use undertick_format::run_set::run_name;
use undertick_units::{Estimate, Interval};

use facts::{About, Facts};
use undertick_analyze::Failed;
use undertick_analyze::Options;
use undertick_analyze::parallel::{available_cpus, watch};
use undertick_analyze::watch::running::Running;
use undertick_analyze::watch::{Call, Wanted, Watched};

/// Most paths that are looked at.
const MOST_PATHS: usize = 16;
/// Share of the time in spans from which a path is looked at.
const WORTH: f64 = 0.01;
/// Rows that are read again of a long trace; up to twice as many are read in full.
const MOST_ROWS: u64 = 1 << 22;
/// Most runs that are looked at, spread evenly over all.
const MOST_RUNS: usize = 32;
/// Switches from which on no further run is looked at.
const MOST_SWITCHES: usize = 1 << 24;
/// Fewest calls of a state in a run with a median.
const FEWEST_IN_RUN: usize = 16;

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
    let mut looking = Looking::new(report, options);
    looking.at(trace, None, 1, progress)?;
    report.states = looking.found(report);
    Ok(())
}

/// As [`add_states`], to the report of the runs of these traces.
///
/// # Errors
/// A trace cannot be read, or does not support the options.
pub fn add_states_of_runs(
    traces: &[PathBuf],
    options: &Options,
    report: &mut Report,
    progress: &mut dyn FnMut(f64),
) -> Result<(), Failed> {
    let mut looking = Looking::new(report, options);
    let n = traces.len().min(MOST_RUNS);
    for at in 0..n {
        let switches: usize = looking
            .abouts
            .iter()
            .map(|about| about.running.n_switches())
            .sum();
        if switches >= MOST_SWITCHES || looking.paths.is_empty() {
            break;
        }
        let path = &traces[at * traces.len() / n];
        let trace = Trace::open(path)?;
        let mut on_progress = |share| progress((at as f64 + share) / n as f64);
        looking.at(&trace, Some(run_name(path)), n as u64, &mut on_progress)?;
    }
    report.states = looking.found(report);
    Ok(())
}

/// The calls that have been looked at.
struct Looking<'a> {
    options: &'a Options,
    /// Indices of the wanted paths.
    paths: Vec<usize>,
    wanted: Wanted,
    watched: Watched,
    /// What is known of each run.
    abouts: Vec<About>,
    step_ns: f64,
}

impl<'a> Looking<'a> {
    fn new(report: &Report, options: &'a Options) -> Self {
        let paths = wanted(report);
        Self {
            options,
            wanted: Wanted::in_report(report, &paths, 0),
            paths,
            watched: Watched::default(),
            abouts: Vec::new(),
            step_ns: 0.0,
        }
    }

    /// Looks at the calls of a trace, one of `runs`.
    fn at(
        &mut self,
        trace: &Trace,
        run: Option<String>,
        runs: u64,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(), Failed> {
        if self.paths.is_empty() {
            return Ok(());
        }
        let groups = some(&trace.groups()?, MOST_ROWS / runs.max(1));
        let mut running = Running::default();
        let found = watch(
            trace,
            self.options,
            (self.wanted.clone(), &groups),
            available_cpus(),
            &mut |rows| running.take(rows),
            progress,
        )?;
        let Some((watched, _, first)) = found else {
            return Ok(());
        };
        running.settle();
        let clock = &trace.manifest.clock;
        let ns_per_tick = clock.ns_per_tick();
        self.watched.append(watched.in_run(self.abouts.len()));
        self.step_ns = self.step_ns.max(clock.granularity_ticks * ns_per_tick);
        self.abouts.push(About {
            run,
            running,
            ns_per_tick,
            first,
            is_switched: facts::is_switched(&trace.manifest),
            roles: facts::roles(&trace.manifest),
            threads: facts::threads(&trace.manifest),
        });
        Ok(())
    }

    /// The states of the paths of this report.
    fn found(self, report: &Report) -> Vec<PathStates> {
        let Self {
            options,
            paths,
            abouts,
            watched,
            step_ns,
            ..
        } = self;
        let (intervals, events, calls) = watched.calls();
        let states = (paths.into_iter().zip(calls)).map(|(path, calls)| {
            let mut calls = calls.in_order();
            calls.sort_by(|a, b| {
                let at = |call: &Call| abouts[call.run].at_ns(call);
                at(a).total_cmp(&at(b))
            });
            let are_all = calls.len() as u64 == report.paths[path].calls;
            let facts = Facts::new(&abouts, &intervals, &events, &calls);
            let observed = facts.observed(step_ns);
            let found = estimate::states(&observed, options.confidence, "ns")?;
            let samples = found.states.iter().map(|state| &*state.samples);
            let edges_ns = bins::edges(observed.values, samples, observed.step);
            let state = |mut state: estimate::State| {
                let counts = bins::counts(observed.values, &state.samples, &edges_ns);
                let share = share(
                    state.samples.len(),
                    calls.len(),
                    are_all,
                    options.confidence,
                );
                if abouts.len() > 1 {
                    state.median =
                        between_runs(&state, &facts, &calls, options.confidence).or(state.median);
                }
                facts.tell(state, share, counts)
            };
            Some(PathStates {
                path: path as u32,
                looked_at: calls.len() as u64,
                explained: found.explained,
                states: found.states.into_iter().map(state).collect(),
                edges_ns,
            })
        });
        states.flatten().collect()
    }
}

/// The median of the runs' medians of a state; `None` where fewer than two runs have enough calls.
fn between_runs(
    state: &estimate::State,
    facts: &Facts,
    calls: &[Call],
    level: f64,
) -> Option<Estimate> {
    let mut of_run: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for &at in &state.confirming {
        of_run
            .entry(calls[at].run)
            .or_default()
            .push(facts.value(at));
    }
    let medians: Vec<f64> = (of_run.into_values())
        .filter(|values| values.len() >= FEWEST_IN_RUN)
        .map(|mut values| {
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        })
        .collect();
    let found = median_of_runs(&medians, level).filter(|_| medians.len() > 1)?;
    Some(Estimate {
        unit: "ns".to_owned(),
        ..found
    })
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
fn some(groups: &[Group], most_rows: u64) -> Vec<Group> {
    let rows: u64 = groups.iter().map(|group| group.rows).sum();
    let one_in = (rows / most_rows.max(1)).max(1);
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
