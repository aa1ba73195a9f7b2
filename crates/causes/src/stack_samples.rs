//! Samples of threads with their stacks.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::RecordBatch;
use undertick_document::explanation::CallStack;
use undertick_format::manifest::Clock;
use undertick_format::schema::{Kind, Sampled};
use undertick_format::stacks::StackTable;

use undertick_analyze::Error;
use undertick_analyze::columns::Columns;
use undertick_analyze::innermost::ByThread;

/// A thread's sample when it leaves its CPU may come this much before its switch, µs.
const BEFORE_SWITCH_US: i64 = 100;

/// A sample of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    tid: i32,
    ts: i64,
    pub(crate) node: i64,
    does: Sampled,
    /// Of one that leaves its CPU and waits: for how long, ticks.
    pub(crate) waited: i64,
}

impl Sample {
    pub(crate) fn on_cpu(&self) -> bool {
        self.does != Sampled::Leaves
    }

    /// Whether it is one of a thread on a CPU, or of one that waited.
    pub(crate) fn counts(&self) -> bool {
        self.on_cpu() || self.waited > 0
    }
}

/// The stacks in which threads were sampled during single calls.
pub(crate) struct CallStacks {
    samples: Samples,
    by: Arc<ByThread>,
    table: StackTable,
    /// Time on a CPU that a sample stands for.
    every_ns: f64,
}

/// Most stacks of a call, and functions of each.
const MOST_CALL_STACKS: usize = 3;
const MOST_CALL_FUNCTIONS: usize = 8;

impl CallStacks {
    pub(crate) fn new(mut samples: Samples, table: StackTable, every_ns: f64) -> Self {
        Self {
            by: samples.settle(),
            samples,
            table,
            every_ns,
        }
    }

    /// Those of a thread between two times, that with most time first.
    pub(crate) fn during(&self, tid: i32, (start, end): (i64, i64)) -> Vec<CallStack> {
        let samples = self.by.get(&tid).map_or(&[][..], Vec::as_slice);
        let from = samples.partition_point(|of| of.0 < start);
        let mut taken: BTreeMap<i64, Taken> = BTreeMap::new();
        for (_, at) in samples[from..].iter().take_while(|of| of.0 <= end) {
            let sample = &self.samples.all[*at as usize];
            if sample.counts() {
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
        let weight = |of: &CallStack| of.on_cpu as f64 * self.every_ns + of.waited_ns;
        found.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
        found.truncate(MOST_CALL_STACKS);
        found
    }
}

/// Samples with one stack.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    pub(crate) on_cpu: u64,
    pub(crate) waits: u64,
    pub(crate) waited: i64,
}

impl Taken {
    pub(crate) fn add(&mut self, sample: &Sample) {
        self.on_cpu += u64::from(sample.on_cpu());
        self.waits += u64::from(!sample.on_cpu());
        self.waited = self.waited.saturating_add(sample.waited);
    }
}

/// The samples of a trace.
#[derive(Debug)]
pub(crate) struct Samples {
    pub(crate) all: Vec<Sample>,
    /// By thread: the sample with which it left its CPU, and since when it is off it, if it waits.
    left: HashMap<i32, usize>,
    off: HashMap<i32, Option<i64>>,
    last: i64,
    /// Time that threads waited, and the part of it with a sample, ticks.
    pub(crate) waited: i64,
    pub(crate) known: i64,
    pub(crate) ns_per_tick: f64,
}

impl Samples {
    /// No samples yet of a trace with this clock. Its last anchor is the end of the recording: a thread
    /// that waits then has done so until then.
    pub(crate) fn new(clock: &Clock) -> Self {
        Self {
            all: Vec::new(),
            left: HashMap::new(),
            off: HashMap::new(),
            last: (clock.anchors.last()).map_or(i64::MIN, |anchor| anchor.ticks),
            waited: 0,
            known: 0,
            ns_per_tick: clock.ns_per_tick(),
        }
    }

    /// Takes rows of the kernel.
    pub(crate) fn take(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let columns = Columns::from_batch(batch)?;
        for at in 0..columns.n_rows() {
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

    /// All rows have come: threads that wait do so until the end. Returns the samples by thread.
    pub(crate) fn settle(&mut self) -> Arc<ByThread> {
        // Without a sample it may be a thread that has ended.
        for tid in self.left.keys().copied().collect::<Vec<i32>>() {
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

#[cfg(test)]
mod tests;
