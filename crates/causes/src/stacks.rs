//! Which functions the time of spans went to: samples of threads with their stacks, joined to the spans
//! that were open.
//!
//! **Method.** The rows are matched once more. Of each thread, samples wait until the first span that
//! contains them ends: spans inside others end before these, so that is the innermost one. A sample of a
//! thread that leaves its CPU gets the time until it comes back, unless it was preempted. Spans that are
//! still open when the trace ends contain all that comes after their begin.
//!
//! **Bounds.** A few dozen bytes for each sample. Of the functions of a path those with less than a
//! thousandth of its samples are left out, and beyond [`MOST_NODES`] nodes in all, those with fewest.
//!
//! **Caveats.** Where a thread records through two recorders, each sample belongs to the span that began
//! last. Executions of sampled spans that were not recorded have no samples; the spans around them do.

use std::collections::{BTreeMap, HashMap};

use undertick_analyze::Failed;
use undertick_analyze::Options;
use undertick_analyze::innermost::{Around, Paths, spans};
use undertick_analyze::parallel::{available_cpus, join, with_kernel_rows};
use undertick_document::{PathStacks, Report, StackFunction, StackNode, Stacks, Warning};
use undertick_format::read::Trace;
use undertick_format::stacks::{StackTable, WHOLE};

use crate::stack_samples::{Samples, Taken};

/// Most nodes of all paths together.
const MOST_NODES: usize = 1 << 14;
/// Share of a path's samples below which a function is left out.
const WORTH: f64 = 0.001;

/// Adds to a report of this trace which functions the time of its spans went to, if its threads were
/// sampled. `progress` receives the share done, 0 to 1.
///
/// # Errors
/// The trace cannot be read, or does not support the options.
pub fn add_stacks(
    trace: &Trace,
    options: &Options,
    report: &mut Report,
    progress: &mut dyn FnMut(f64),
) -> Result<(), Failed> {
    let sampling = (trace.manifest.kernel.as_ref()).and_then(|kernel| kernel.stacks.as_ref());
    let Some(sampling) = sampling else {
        return Ok(());
    };
    let cannot = |why: String| Warning {
        code: "stacks".to_owned(),
        text: format!("the functions of its stack samples are not in this report: {why}"),
    };
    if options.table.is_some() {
        let why = "the intervals are those of a table; report without it".to_owned();
        report.warnings.push(cannot(why));
        return Ok(());
    }
    let table = match StackTable::read(trace.dir()) {
        Ok(Some(table)) => table,
        Ok(None) => return Ok(()),
        Err(error) => {
            report.warnings.push(cannot(error.to_string()));
            return Ok(());
        }
    };
    let mut samples = Samples::new(&trace.manifest.clock);
    let with_rows = with_kernel_rows(trace, options, &mut |rows| samples.take(rows))?;
    let Some(analysis) = with_rows else {
        let why = "these options need the trace read twice; leave out --cull and --compensate";
        report.warnings.push(cannot(why.to_owned()));
        return Ok(());
    };
    let found = join(
        trace,
        analysis,
        samples.settle(),
        available_cpus(),
        progress,
    )?;
    let mut stacks = Stacks {
        every_ns: sampling.every_ns,
        in_kernel: sampling.in_kernel,
        when_waiting: sampling.when_leaving,
        why: sampling.why.clone(),
        ..Stacks::default()
    };
    let mut by_path: BTreeMap<Around, HashMap<i64, Taken>> = BTreeMap::new();
    let paths = Paths::new(report);
    let mut incomplete = 0;
    let around = spans(&found, &paths, samples.all.len());
    for (sample, around) in samples.all.iter().zip(around) {
        if !sample.counts() {
            continue;
        }
        let (_, root) = table.stack(sample.node);
        incomplete += u64::from(root != WHOLE);
        by_path
            .entry(around)
            .or_default()
            .entry(sample.node)
            .or_default()
            .add(sample);
        stacks.on_cpu += u64::from(sample.on_cpu());
        stacks.waits += u64::from(!sample.on_cpu());
    }
    stacks.waits_known = match samples.waited {
        0 => 1.0,
        waited => samples.known as f64 / waited as f64,
    };
    stacks.incomplete = incomplete as f64 / (stacks.on_cpu + stacks.waits).max(1) as f64;
    stacks.functions = (table.functions.iter())
        .map(|(name, file)| StackFunction {
            name: name.clone(),
            file: file.clone(),
        })
        .collect();
    stacks.paths = (by_path.into_iter())
        .map(|(around, taken)| of_path(around, &taken, &table, samples.ns_per_tick))
        .collect();
    bound(&mut stacks);
    only_used_functions(&mut stacks);
    report.stacks = Some(stacks);
    Ok(())
}

/// The tree of functions of a path.
fn of_path(
    around: Around,
    taken: &HashMap<i64, Taken>,
    table: &StackTable,
    ns_per_tick: f64,
) -> PathStacks {
    let (path, still_open) = around.into_parts();
    let mut found = PathStacks {
        path,
        still_open,
        ..PathStacks::default()
    };
    let mut places: HashMap<(Option<u32>, u32), u32> = HashMap::new();
    // In an order that does not change from one time to the next.
    let mut in_order: Vec<(&i64, &Taken)> = taken.iter().collect();
    in_order.sort_by_key(|(node, _)| **node);
    for (&node, taken) in in_order {
        let waited_ns = taken.waited as f64 * ns_per_tick;
        found.on_cpu += taken.on_cpu;
        found.waits += taken.waits;
        found.waited_ns += waited_ns;
        let (functions, _) = table.stack(node);
        let mut caller = None;
        for &function in functions.iter().rev() {
            caller = Some(*places.entry((caller, function)).or_insert_with(|| {
                found.nodes.push(StackNode {
                    caller,
                    function,
                    ..StackNode::default()
                });
                found.nodes.len() as u32 - 1
            }));
        }
        match caller {
            Some(at) => {
                let node = &mut found.nodes[at as usize];
                node.on_cpu += taken.on_cpu;
                node.waited_ns += waited_ns;
            }
            None => found.left_out += taken.on_cpu,
        }
    }
    let min = (found.on_cpu as f64 * WORTH, found.waited_ns * WORTH);
    leave_out(&mut found, min);
    found
}

/// Leaves out functions with less than these samples on a CPU and time waited, ns, in them.
fn leave_out(stacks: &mut PathStacks, (on_cpu, waited_ns): (f64, f64)) {
    let totals = stacks.totals();
    let is_worth = |at: usize| {
        let (all, waited) = totals[at];
        (all > 0 && all as f64 >= on_cpu) || (waited > 0.0 && waited >= waited_ns)
    };
    let mut places: Vec<Option<u32>> = Vec::with_capacity(totals.len());
    let mut kept: Vec<StackNode> = Vec::new();
    for (at, node) in stacks.nodes.iter().enumerate() {
        if !is_worth(at) {
            stacks.left_out += node.on_cpu;
            places.push(None);
            continue;
        }
        places.push(Some(kept.len() as u32));
        kept.push(StackNode {
            // Its caller has at least as much.
            caller: node.caller.and_then(|at| places[at as usize]),
            ..node.clone()
        });
    }
    stacks.nodes = kept;
}

/// Leaves out functions with few samples until there are at most [`MOST_NODES`] nodes.
fn bound(stacks: &mut Stacks) {
    let mut share = WORTH;
    while stacks.paths.iter().map(|of| of.nodes.len()).sum::<usize>() > MOST_NODES {
        share *= 2.0;
        let waited_ns: f64 = stacks.paths.iter().map(|of| of.waited_ns).sum();
        let min = (
            stacks.on_cpu as f64 * share / 100.0,
            waited_ns * share / 100.0,
        );
        (stacks.paths.iter_mut()).for_each(|of| leave_out(of, min));
    }
}

/// Leaves out functions of no node.
fn only_used_functions(stacks: &mut Stacks) {
    let mut places: HashMap<u32, u32> = HashMap::new();
    let mut used = Vec::new();
    for node in stacks.paths.iter_mut().flat_map(|of| &mut of.nodes) {
        node.function = *places.entry(node.function).or_insert_with(|| {
            used.push(stacks.functions[node.function as usize].clone());
            used.len() as u32 - 1
        });
    }
    stacks.functions = used;
}

#[cfg(test)]
mod tests;
