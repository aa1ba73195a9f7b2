//! Why single calls of a path took longer than its typical one.
//!
//! **Question.** Which causes made up the extra time of the slowest calls of a path?
//!
//! **Method.** The time of a call is divided among the kernel's events that hit its thread, the spans
//! directly inside (their time on the CPU), and its own time on the CPU. The typical call is the mean
//! of the middle fifth of the calls by time, divided likewise. A part of the excess is the difference
//! of two such times, so the parts of a call sum to its excess. Of its own time, page faults and its
//! state ([`undertick_estimate::states`]) explain what they cost in other calls; the rest is
//! unexplained. A call may be in several states, or fulfil one of their conditions: the one with the
//! longest typical time counts, up to the excess that there is.
//!
//! **Bounds.** The whole trace is read a second time; of each path 2^13 calls and the slowest are kept.

mod parts;
mod spent;
mod switches;

use std::collections::HashMap;

use undertick_analyze::Failed;
use undertick_analyze::Options;
use undertick_analyze::parallel::{available_cpus, watch};
use undertick_analyze::watch::running::Running;
use undertick_analyze::watch::{Call, Wanted};
use undertick_document::Report;
use undertick_document::explanation::{
    ExplainedPath, Explanation, Part, PartCause, SCHEMA_VERSION, SlowCall,
};
use undertick_estimate::states::{self as estimate, Condition};
use undertick_format::read::Trace;
use undertick_format::stacks::StackTable;

use crate::interposed::CallWaits;
use crate::stack_samples::{CallStacks, Samples};
use crate::states::facts::{self, About, Facts};
use parts::{Names as PartNames, State, Typical};
use spent::{Kernel, Spent};
use switches::Switches;

/// Fewest calls of a path with a typical one.
pub const FEWEST: u64 = 20;
/// Fewest calls of a state for which its typical time is known.
const FEWEST_IN_STATE: usize = 16;
/// Minimum share of an excess for which the bound of the hypervisor's time is given.
const WORTH_STOLEN: f64 = 0.05;

/// Explains the slowest calls of these paths of the report, `slowest` of each, at least one. Paths with
/// fewer than [`FEWEST`] calls are left out. `progress` receives the share done, 0 to 1.
///
/// # Errors
/// The trace cannot be read, or does not support the options.
pub fn explain(
    trace: &Trace,
    options: &Options,
    report: &Report,
    (paths, slowest): (&[usize], usize),
    progress: &mut dyn FnMut(f64),
) -> Result<Explanation, Failed> {
    let manifest = &trace.manifest;
    let ns = manifest.clock.ns_per_tick();
    let kernel = manifest.kernel.as_ref();
    let step_ns = manifest.clock.granularity_ticks.max(1.0) * ns;
    let mut explanation = Explanation {
        schema_version: SCHEMA_VERSION,
        error_ns: step_ns + kernel.map_or(0.0, |kernel| kernel.error_ns),
        has_kernel_events: false,
        paths: Vec::new(),
    };
    let paths: Vec<usize> = (paths.iter().copied())
        .filter(|&at| report.paths.get(at).is_some_and(|of| of.calls >= FEWEST))
        .collect();
    if paths.is_empty() {
        return Ok(explanation);
    }
    let wanted = Wanted::in_report(report, &paths, slowest.max(1));
    let (mut running, mut switches) = (Running::default(), Switches::default());
    let sampling = kernel.and_then(|kernel| kernel.stacks.as_ref());
    let mut samples = sampling.map(|_| Samples::new(&manifest.clock));
    let groups = trace.groups()?;
    let found = watch(
        trace,
        options,
        (wanted, &groups),
        available_cpus(),
        &mut |rows| {
            switches.take(rows)?;
            (samples.as_mut()).map_or(Ok(()), |samples| samples.take(rows))?;
            running.take(rows)
        },
        progress,
    )?;
    let Some((mut found, evidence, first)) = found else {
        return Ok(explanation);
    };
    explanation.has_kernel_events = evidence.is_there();
    running.settle();
    // Without them the calls are explained as those of other traces.
    let stacks = samples.zip(sampling).and_then(|(samples, sampling)| {
        let table = StackTable::read(trace.dir()).ok().flatten()?;
        Some(CallStacks::new(samples, table, sampling.every_ns as f64))
    });
    let slow = found.take_slowest();
    let threads = facts::threads(manifest);
    let windows: Vec<(i32, i64, i64)> = (slow.iter().flatten())
        .filter_map(|call| {
            let end = call.detail.as_ref()?.end;
            Some((*threads.get(&call.ring)?, call.start, end))
        })
        .collect();
    let waits = CallWaits::find((trace, options), report, &windows, &mut |_| {})?;
    let (intervals, events, calls) = found.calls();
    let explaining = Explaining {
        about: About {
            run: None,
            running,
            ns_per_tick: ns,
            first,
            is_switched: facts::is_switched(manifest),
            roles: facts::roles(manifest),
            threads,
        },
        kernel: Kernel {
            evidence: &evidence,
            switches: &switches,
        },
        intervals: &intervals,
        events: &events,
        stacks,
        waits,
        step_ns,
        error_ns: explanation.error_ns,
        others: (kernel.into_iter().flat_map(|kernel| &kernel.others))
            .map(|other| (other.tid, other.name.clone()))
            .collect(),
        options,
    };
    for ((path, calls), slow) in paths.into_iter().zip(calls).zip(slow) {
        let of = (
            report.path_names(path).map(str::to_owned).collect(),
            report.paths[path].calls,
        );
        explanation
            .paths
            .extend(explaining.path(of, calls.in_order(), slow));
    }
    (explanation.paths).sort_by(|a, b| b.excess_ns().total_cmp(&a.excess_ns()));
    Ok(explanation)
}

/// What is known of a trace whose calls are explained.
struct Explaining<'a> {
    about: About,
    kernel: Kernel<'a>,
    intervals: &'a [String],
    events: &'a [String],
    /// What its threads were sampled in.
    stacks: Option<CallStacks>,
    /// What its threads waited for during these calls.
    waits: Option<CallWaits>,
    /// The clock's step, and the error of a single time.
    step_ns: f64,
    error_ns: f64,
    /// Names of threads of other programs.
    others: HashMap<i32, String>,
    options: &'a Options,
}

impl Explaining<'_> {
    /// Explains the slowest calls of a path; `None` if none was found.
    fn path(
        &self,
        (path, calls): (Vec<String>, u64),
        mut sample: Vec<Call>,
        slow: Vec<Call>,
    ) -> Option<ExplainedPath> {
        let sampled = sample.len();
        let mut place: HashMap<(i32, i64), usize> = (sample.iter().enumerate())
            .map(|(at, call)| ((call.ring, call.start), at))
            .collect();
        for call in &slow {
            place.entry((call.ring, call.start)).or_insert_with(|| {
                sample.push(call.clone());
                sample.len() - 1
            });
        }
        let tid = |call: &Call| self.about.threads.get(&call.ring).copied().unwrap_or(0);
        let spent: Vec<Spent> = (sample.iter())
            .map(|call| self.kernel.spent(tid(call), call))
            .collect::<Option<Vec<Spent>>>()?;
        let typical = Typical::new(&spent[..sampled])?;
        let fault_ticks = typical.fault_ticks(&spent);
        let states = self.states(&sample, sampled, &spent);
        let names = PartNames {
            intervals: self.intervals,
            roles: &self.about.roles,
            others: &self.others,
            ns: self.about.ns_per_tick,
        };
        let slowest: Vec<SlowCall> = (slow.iter())
            .filter_map(|call| {
                let at = *place.get(&(call.ring, call.start))?;
                let (spent, tid) = (&spent[at], tid(call));
                let parts = typical.excess(spent, fault_ticks, states.of(at), &names);
                let ns = self.about.ns_per_tick;
                let cpu = self.about.running.cpu(tid, call.start);
                let detail = call.detail.as_ref()?;
                let excess_ns = (spent.elapsed as f64 - typical.elapsed) * ns;
                let stolen = cpu
                    .and_then(|cpu| self.kernel.switches.stolen_ns(cpu, call.start, detail.end))
                    .map(|stolen| stolen.min(on_cpu_ns(&parts)))
                    .filter(|stolen| *stolen >= WORTH_STOLEN * excess_ns);
                Some(SlowCall {
                    start_ns: self.about.at_ns(call),
                    took_ns: spent.elapsed as f64 * ns,
                    excess_ns,
                    tid,
                    thread: self.about.roles.get(&tid).cloned(),
                    cpu,
                    off_cpu_unseen: detail.is_unseen,
                    stolen_up_to_ns: stolen,
                    parts,
                    stacks: (self.stacks.as_ref()).map_or_else(Vec::new, |stacks| {
                        stacks.during(tid, (call.start, detail.end))
                    }),
                    waits: (self.waits.as_ref()).map_or_else(Vec::new, |waits| {
                        waits.during(tid, (call.start, detail.end))
                    }),
                })
            })
            .collect();
        Some(ExplainedPath {
            path,
            calls,
            typical: typical.document(&names),
            together: together(&slowest, self.error_ns),
            slowest,
        })
    }

    /// The states of the calls. Only the first ones are a random sample, and states come from those of
    /// them whose time counts; the others were added because they are slow.
    fn states(&self, calls: &[Call], sampled: usize, spent: &[Spent]) -> States {
        let mut order: Vec<usize> = (0..calls.len()).collect();
        // The estimator takes them in order of time.
        order.sort_by_key(|&at| (calls[at].start, calls[at].ring));
        let ordered: Vec<Call> = order.iter().map(|&at| calls[at].clone()).collect();
        let about = std::slice::from_ref(&self.about);
        let facts = Facts::new(about, self.intervals, self.events, &ordered);
        let counts = |at: usize| calls[at].detail.as_ref().is_some_and(|of| of.is_kept);
        let random: Vec<usize> = (0..order.len())
            .filter(|&at| order[at] < sampled && counts(order[at]))
            .collect();
        let some = facts.some(&random);
        let found = estimate::states(&some.observed(self.step_ns), self.options.confidence, "ns");
        let mut of_call: Vec<Option<usize>> = vec![None; calls.len()];
        let mut states: Vec<State> = Vec::new();
        for conditions in groups(found.into_iter().flat_map(|found| found.states)) {
            let members: Vec<usize> = (0..order.len())
                .filter(|&at| conditions.iter().all(|of| facts.holds(of, at)))
                .collect();
            let mut own: Vec<i64> = (members.iter().map(|&at| order[at]))
                .filter(|&at| at < sampled && counts(at))
                .map(|at| spent[at].own)
                .collect();
            if own.len() < FEWEST_IN_STATE {
                continue;
            }
            own.sort_unstable();
            let state = State {
                conditions: facts.conditions(conditions),
                own: own[own.len() / 2],
            };
            for at in members {
                let so_far = &mut of_call[order[at]];
                if so_far.is_none_or(|other| states[other].own < state.own) {
                    *so_far = Some(states.len());
                }
            }
            states.push(state);
        }
        States { states, of_call }
    }
}

/// The conditions of each state, and each of these by itself: in a state with few calls, a condition
/// that tells others apart may go unconfirmed.
fn groups(states: impl Iterator<Item = estimate::State>) -> Vec<Vec<Condition>> {
    let mut groups: Vec<Vec<Condition>> = Vec::new();
    for state in states {
        let singly = state.conditions.iter().map(|of| vec![of.clone()]);
        let all: Vec<Vec<Condition>> = singly.chain([state.conditions.clone()]).collect();
        for group in all {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
    }
    groups
}

/// The states of a path, and of those that a call is in the one that takes most.
struct States {
    states: Vec<State>,
    of_call: Vec<Option<usize>>,
}

impl States {
    fn of(&self, call: usize) -> Option<&State> {
        self.of_call[call].map(|state| &self.states[state])
    }
}

/// The excess on the CPU, of which the hypervisor may have taken a part.
fn on_cpu_ns(parts: &[Part]) -> f64 {
    let is_on = |part: &&Part| {
        matches!(
            part.cause,
            PartCause::Child | PartCause::State | PartCause::Unexplained
        )
    };
    (parts.iter().filter(is_on))
        .map(|part| part.ns.max(0.0))
        .sum()
}

/// The excess of several calls by cause, the largest first.
fn together(slowest: &[SlowCall], error_ns: f64) -> Vec<Part> {
    let mut together: Vec<Part> = Vec::new();
    for call in slowest {
        for (at, part) in call.parts.iter().enumerate() {
            let is_same = |other: &&mut Part| {
                let is_child = part.cause == PartCause::Child;
                other.cause == part.cause && (!is_child || other.of == part.of)
            };
            let n = u64::from(at == 0 && part.ns > error_ns);
            match together.iter_mut().find(is_same) {
                Some(other) => {
                    other.ns += part.ns;
                    other.n += n;
                    if other.of != part.of {
                        other.of = None;
                    }
                    if other.conditions != part.conditions {
                        other.conditions.clear();
                    }
                }
                None => together.push(Part {
                    n,
                    typical_n: None,
                    ..part.clone()
                }),
            }
        }
    }
    together.sort_by(|a, b| b.ns.total_cmp(&a.ns));
    together
}
