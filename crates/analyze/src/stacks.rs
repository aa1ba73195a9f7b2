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
use std::sync::Arc;

use arrow_array::RecordBatch;
use undertick_document::explanation::CallStack;
use undertick_document::{PathStacks, Report, StackFunction, StackNode, Stacks};
use undertick_format::read::Trace;
use undertick_format::schema::{Kind, Sampled};
use undertick_format::stacks::{StackTable, WHOLE};

use crate::columns::Columns;
use crate::error::{Error, Failed};
use crate::options::Options;
use crate::parallel::{available_cpus, join};
use crate::tree::Path;
use crate::watch::WithRole;

/// Most nodes of all paths together.
const MOST_NODES: usize = 1 << 14;
/// Share of a path's samples below which a function is left out.
const WORTH: f64 = 0.001;
/// A thread's sample when it leaves its CPU may come this much before its switch, µs.
const BEFORE_SWITCH_US: i64 = 100;

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
    let (Some(sampling), Some(table)) = (sampling, StackTable::read(trace.dir())?) else {
        return Ok(());
    };
    let mut samples = Samples::new(trace.manifest.clock.ns_per_tick());
    let found = join(trace, options, &mut samples, available_cpus(), progress)?;
    let Some(found) = found else {
        return Ok(());
    };
    let mut stacks = Stacks {
        every_ns: sampling.every_ns,
        in_kernel: sampling.in_kernel,
        when_waiting: sampling.when_leaving,
        why: sampling.why.clone(),
        ..Stacks::default()
    };
    let mut by_path: BTreeMap<Around, HashMap<i64, Taken>> = BTreeMap::new();
    let paths = Paths::new(report);
    let mut cut = 0;
    let spans = found.spans(&paths, samples.all.len());
    for (sample, around) in samples.all.iter().zip(spans) {
        let counts = sample.on_cpu() || sample.waited > 0;
        if !counts {
            continue;
        }
        let (_, root) = table.stack(sample.node);
        cut += u64::from(root != WHOLE);
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
    stacks.cut = cut as f64 / (stacks.on_cpu + stacks.waits).max(1) as f64;
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

/// A sample of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    tid: i32,
    ts: i64,
    node: i64,
    does: Sampled,
    /// Of one that leaves its CPU and waits: for how long, ticks.
    waited: i64,
}

impl Sample {
    fn on_cpu(&self) -> bool {
        self.does != Sampled::Leaves
    }
}

/// The stacks in which threads were sampled during single calls.
pub(crate) struct CallStacks {
    samples: Samples,
    by: Arc<ByThread>,
    table: StackTable,
}

/// Most stacks of a call, and functions of each.
const MOST_CALL_STACKS: usize = 3;
const MOST_CALL_FUNCTIONS: usize = 8;

impl CallStacks {
    pub(crate) fn new(mut samples: Samples, table: StackTable) -> Self {
        Self {
            by: samples.settle(),
            samples,
            table,
        }
    }

    /// Those of a thread between two times, that with most time first; `every_ns` is the time that a
    /// sample on a CPU stands for.
    pub(crate) fn of(&self, tid: i32, (start, end): (i64, i64), every_ns: f64) -> Vec<CallStack> {
        let samples = self.by.get(&tid).map_or(&[][..], Vec::as_slice);
        let from = samples.partition_point(|of| of.0 < start);
        let mut taken: BTreeMap<i64, Taken> = BTreeMap::new();
        for (_, at) in samples[from..].iter().take_while(|of| of.0 <= end) {
            let sample = &self.samples.all[*at as usize];
            if sample.on_cpu() || sample.waited > 0 {
                let waited = sample.waited.min(end.saturating_sub(sample.ts));
                let taken = taken.entry(sample.node).or_default();
                taken.add(&Sample { waited, ..*sample });
            }
        }
        let mut found: Vec<CallStack> = (taken.into_iter())
            .map(|(node, taken)| {
                let functions = self
                    .table
                    .stack(node)
                    .0
                    .into_iter()
                    .take(MOST_CALL_FUNCTIONS);
                let name = |at: u32| self.table.functions[at as usize].0.clone();
                CallStack {
                    functions: functions.map(name).collect(),
                    on_cpu: taken.on_cpu,
                    waited_ns: taken.waited as f64 * self.samples.ns_per_tick,
                }
            })
            .filter(|of| !of.functions.is_empty())
            .collect();
        let weight = |of: &CallStack| of.on_cpu as f64 * every_ns + of.waited_ns;
        found.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
        found.truncate(MOST_CALL_STACKS);
        found
    }
}

/// Samples with one stack.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    on_cpu: u64,
    waits: u64,
    waited: i64,
}

impl Taken {
    fn add(&mut self, sample: &Sample) {
        self.on_cpu += u64::from(sample.on_cpu());
        self.waits += u64::from(!sample.on_cpu());
        self.waited = self.waited.saturating_add(sample.waited);
    }
}

/// The samples of a trace.
#[derive(Debug)]
pub(crate) struct Samples {
    all: Vec<Sample>,
    /// By thread: the sample with which it left its CPU, and since when it is off it, if it waits.
    left: HashMap<i32, usize>,
    off: HashMap<i32, Option<i64>>,
    last: i64,
    /// Time that threads waited, and the part of it with a sample, ticks.
    waited: i64,
    known: i64,
    ns_per_tick: f64,
}

impl Samples {
    pub(crate) fn new(ns_per_tick: f64) -> Self {
        Self {
            all: Vec::new(),
            left: HashMap::new(),
            off: HashMap::new(),
            last: i64::MIN,
            waited: 0,
            known: 0,
            ns_per_tick,
        }
    }

    /// Takes rows of the kernel.
    pub(crate) fn take(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let columns = Columns::from_batch(batch)?;
        for at in 0..columns.len() {
            let rows = &columns.rows;
            let Some(kind) = Kind::from_code(rows.kind[at]) else {
                continue;
            };
            let (tid, ts, payload) = (columns.tid[at], rows.ts[at], rows.payload[at]);
            self.row(kind, (tid, ts), rows.event[at], payload);
        }
        Ok(())
    }

    fn row(&mut self, kind: Kind, (tid, ts): (i32, i64), event: i32, payload: i64) {
        self.last = self.last.max(ts);
        match kind {
            Kind::Stack => {
                let Some(does) = Sampled::from_code(event) else {
                    return;
                };
                if does == Sampled::Leaves {
                    self.left.insert(tid, self.all.len());
                }
                self.all.push(Sample {
                    tid,
                    ts,
                    node: payload,
                    does,
                    waited: 0,
                });
            }
            // A thread that was preempted does not wait.
            Kind::SwitchOut => {
                self.off.insert(tid, (payload != 1).then_some(ts));
            }
            Kind::SwitchIn => self.comes_back(tid, ts),
            _ => {}
        }
    }

    fn comes_back(&mut self, tid: i32, ts: i64) {
        let (left, off) = (self.left.remove(&tid), self.off.remove(&tid).flatten());
        let Some(off) = off else {
            return;
        };
        let waited = ts.saturating_sub(off).max(0);
        self.waited = self.waited.saturating_add(waited);
        let early = (BEFORE_SWITCH_US as f64 * 1000.0 / self.ns_per_tick) as i64;
        let sample = left.map(|at| &mut self.all[at]);
        if let Some(sample) = sample.filter(|of| of.ts >= off.saturating_sub(early)) {
            sample.waited = waited;
            self.known = self.known.saturating_add(waited);
        }
    }

    /// All rows have come: threads that wait do so until the last one. Returns the samples by thread.
    pub(crate) fn settle(&mut self) -> Arc<ByThread> {
        for tid in self.off.keys().copied().collect::<Vec<i32>>() {
            self.comes_back(tid, self.last);
        }
        let mut by: ByThread = HashMap::new();
        for (sample, at) in self.all.iter().zip(0..) {
            by.entry(sample.tid).or_default().push((sample.ts, at));
        }
        (by.values_mut()).for_each(|samples| samples.sort_unstable());
        Arc::new(by)
    }
}

/// Times and places of samples, by thread, in order.
pub(crate) type ByThread = HashMap<i32, Vec<(i64, u32)>>;

/// Joins samples to the spans of the rings that a worker matches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Join {
    samples: Arc<ByThread>,
    joined: Vec<Joined>,
}

/// A sample, the innermost span that contains it, and when that began.
#[derive(Clone, Copy, Debug)]
struct Joined {
    sample: u32,
    path: Path,
    start: i64,
}

/// The samples of a ring's thread that no span has taken so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    seen: usize,
    samples: Vec<(i64, u32)>,
}

impl Join {
    pub(crate) fn new(samples: Arc<ByThread>) -> Self {
        Self {
            samples,
            joined: Vec::new(),
        }
    }

    /// A span of the thread ends.
    pub(crate) fn end(
        &mut self,
        waiting: &mut Waiting,
        tid: i32,
        path: Path,
        (start, end): (i64, i64),
    ) {
        let Some(samples) = self.samples.get(&tid) else {
            return;
        };
        while let Some(&sample) = samples.get(waiting.seen).filter(|sample| sample.0 <= end) {
            waiting.samples.push(sample);
            waiting.seen += 1;
        }
        while let Some((_, sample)) = waiting.samples.pop_if(|sample| sample.0 >= start) {
            self.joined.push(Joined {
                sample,
                path,
                start,
            });
        }
    }

    /// What was joined; `names` gives the names of a path.
    pub(crate) fn finish(self, names: impl Fn(Path) -> WithRole) -> FoundSpans {
        let mut places: HashMap<Path, u32> = HashMap::new();
        let mut found = FoundSpans::default();
        for joined in self.joined {
            let path = *places.entry(joined.path).or_insert_with(|| {
                found.paths.push(names(joined.path));
                found.paths.len() as u32 - 1
            });
            found.spans.push((joined.sample, path, joined.start));
        }
        found
    }
}

/// The innermost span of each sample that was in one.
#[derive(Debug, Default)]
pub(crate) struct FoundSpans {
    paths: Vec<WithRole>,
    /// A sample, its path's place, and when the span began.
    spans: Vec<(u32, u32, i64)>,
}

impl FoundSpans {
    /// Adds those of another worker.
    pub(crate) fn append(&mut self, other: Self) {
        let before = self.paths.len() as u32;
        self.paths.extend(other.paths);
        let spans = other.spans.into_iter();
        (self.spans).extend(spans.map(|(sample, path, start)| (sample, path + before, start)));
    }

    /// The span around each of `n` samples.
    fn spans(&self, paths: &Paths, n: usize) -> Vec<Around> {
        let places: Vec<Around> = self.paths.iter().map(|names| paths.place(names)).collect();
        let mut found: Vec<Option<(i64, u32)>> = vec![None; n];
        for &(sample, path, start) in &self.spans {
            let known = &mut found[sample as usize];
            if known.is_none_or(|(other, _)| other < start) {
                *known = Some((start, path));
            }
        }
        let around = |known: Option<(i64, u32)>| {
            known.map_or(Around::Nothing, |(_, path)| places[path as usize].clone())
        };
        found.into_iter().map(around).collect()
    }
}

/// What was around a sample.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Around {
    /// A span of this path of the report.
    Path(u32),
    /// A span of a path that is not in the report, because no call of it ended.
    StillOpen(Vec<String>),
    Nothing,
}

/// The paths of a report by their names.
struct Paths {
    places: HashMap<Vec<String>, u32>,
    have_roles: bool,
}

impl Paths {
    fn new(report: &Report) -> Self {
        let names = |at: usize| report.path_names(at).map(str::to_owned).collect();
        Self {
            places: (0..report.paths.len())
                .map(|at| (names(at), at as u32))
                .collect(),
            have_roles: report.has_roles(),
        }
    }

    fn place(&self, (role, names): &WithRole) -> Around {
        let role = role.iter().filter(|_| self.have_roles);
        let names: Vec<String> = role.chain(names).cloned().collect();
        let known = self.places.get(&names);
        known.map_or(Around::StillOpen(names), |&path| Around::Path(path))
    }
}

/// The tree of functions of a path.
fn of_path(
    around: Around,
    taken: &HashMap<i64, Taken>,
    table: &StackTable,
    ns_per_tick: f64,
) -> PathStacks {
    let (path, still_open) = match around {
        Around::Path(path) => (Some(path), Vec::new()),
        Around::StillOpen(names) => (None, names),
        Around::Nothing => (None, Vec::new()),
    };
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
    let least = (found.on_cpu as f64 * WORTH, found.waited_ns * WORTH);
    leave_out(&mut found, least);
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
        let least = (
            stacks.on_cpu as f64 * share / 100.0,
            waited_ns * share / 100.0,
        );
        (stacks.paths.iter_mut()).for_each(|of| leave_out(of, least));
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
