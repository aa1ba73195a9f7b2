//! Analyses a whole trace, on all available CPUs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow_array::RecordBatch;
use undertick_document::Report;
use undertick_format::TraceError;
use undertick_format::groups::Group;
use undertick_format::read::Trace;

use crate::spans::{self, SpanFile, Spans, SpansDescription, Writing};

use crate::analysis::Analysis;
use crate::error::{Error, Failed};
use crate::innermost::{ByThread, FoundSpans, Join};
use crate::options::Options;
use crate::raw;
use crate::shard::{ShardResult, Worker};
use crate::watch::{Wanted, Watch, Watched};
use undertick_evidence::Evidence;

/// Batches read ahead of their analysis, where CPUs are free.
const AHEAD: usize = 4;
/// How often progress is reported.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Analyses a trace on all CPUs that this process may use. `progress` receives the share done, 0 to
/// 1.
///
/// Each shard of the trace ([`Trace::groups`]) is analysed separately, and the results are merged
/// in order, so the report does not depend on the number of CPUs.
///
/// # Errors
/// The trace cannot be read, or does not support the options.
pub fn analyze(
    trace: &Trace,
    options: Options,
    progress: &mut dyn FnMut(f64),
) -> Result<Report, Failed> {
    let cpus = available_cpus();
    analyze_on(trace, options, cpus, progress)
}

/// As [`analyze`], on that many CPUs, at least one.
///
/// # Errors
/// As [`analyze`].
pub fn analyze_on(
    trace: &Trace,
    options: Options,
    cpus: usize,
    progress: &mut dyn FnMut(f64),
) -> Result<Report, Failed> {
    Ok(passes(trace, options, cpus, None, progress)?.finish()?)
}

/// Stores the intervals of a trace as Parquet beside its events, unless the requested ones are
/// there already. Columns: [`spans::span_schema`].
///
/// # Errors
/// The trace cannot be read or written, or does not support the options.
pub fn keep_spans(
    trace: &Trace,
    options: Options,
    progress: &mut dyn FnMut(f64),
) -> Result<Spans, Failed> {
    spans_in(trace, options, || Writing::kept(trace.dir()), progress)
}

/// Returns the intervals of a trace as Parquet, valid for as long as the value lives. They are
/// those stored beside its events, or made for this use; nothing is written into the trace.
///
/// # Errors
/// The trace cannot be read, or does not support the options; the temporary directory
/// cannot be written.
pub fn find_spans(
    trace: &Trace,
    options: Options,
    progress: &mut dyn FnMut(f64),
) -> Result<Spans, Failed> {
    spans_in(trace, options, Writing::for_one_use, progress)
}

fn spans_in(
    trace: &Trace,
    options: Options,
    write: impl FnOnce() -> Result<Writing, TraceError>,
    progress: &mut dyn FnMut(f64),
) -> Result<Spans, Failed> {
    let description = description(trace, &options);
    if let Some(found) = spans::find(trace.dir(), &description) {
        return Ok(found);
    }
    let writing = write()?;
    passes(trace, options, available_cpus(), Some(&writing), progress)?;
    Ok(writing.finish(&description)?)
}

/// Receives the spans of a trace as they are found.
pub(crate) trait SpanSink: Sync {
    /// Returns the receiver for one shard of the trace.
    fn shard(&self, index: usize) -> Result<Box<dyn ShardSpans + '_>, Failed>;

    /// Only spans that touch this time are wanted, ticks; `None`: all.
    fn window(&self) -> Option<(i64, i64)> {
        None
    }
}

/// Receives the spans of one shard of a trace.
pub(crate) trait ShardSpans {
    /// Takes the rows in which spans are found.
    fn rows(&mut self, _: &RecordBatch) -> Result<(), Failed> {
        Ok(())
    }

    /// Takes spans, as [`spans::span_schema`].
    fn spans(&mut self, spans: &RecordBatch) -> Result<(), Failed>;

    /// Called when there are no more.
    fn close(self: Box<Self>) -> Result<(), Failed>;
}

impl SpanSink for Writing {
    fn shard(&self, index: usize) -> Result<Box<dyn ShardSpans + '_>, Failed> {
        Ok(Box::new(Writing::part(self, index)?))
    }
}

impl ShardSpans for SpanFile {
    fn spans(&mut self, spans: &RecordBatch) -> Result<(), Failed> {
        Ok(self.write(spans)?)
    }

    fn close(self: Box<Self>) -> Result<(), Failed> {
        Ok(SpanFile::close(*self)?)
    }
}

/// Number of CPUs that this process may use.
pub fn available_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Reads the trace as often as the options require; in the last pass spans are passed to the
/// sink, if there is one.
pub(crate) fn passes(
    trace: &Trace,
    options: Options,
    cpus: usize,
    writing: Option<&dyn SpanSink>,
    progress: &mut dyn FnMut(f64),
) -> Result<Analysis, Failed> {
    let mut analysis = Analysis::new(&trace.manifest, options)?;
    let groups = trace.groups()?;
    let rows: u64 = groups.iter().map(|group| group.rows).sum();
    let whole = (rows.max(1) * analysis.passes() as u64) as f64;
    for pass in 0..analysis.passes() {
        for batch in trace.kernel_batches()? {
            analysis.push(&batch?)?;
        }
        let writing = writing.filter(|_| pass + 1 == analysis.passes());
        if let Some(sink) = writing {
            analysis.keep_spans(sink.window());
        }
        let before = pass as u64 * rows;
        one_pass(trace, &groups, &mut analysis, cpus, writing, &mut |done| {
            progress((before + done) as f64 / whole);
        })?;
        let mut file = writing.map(|w| w.shard(groups.len())).transpose()?;
        analysis.finish_pass_into(|spans| match &mut file {
            Some(file) => file.spans(&spans),
            None => Ok(()),
        })?;
        if let Some(file) = file {
            file.close()?;
        }
    }
    Ok(analysis)
}

/// Looks at calls of some paths: reads these groups of the trace once. The rows of the kernel are also
/// passed to `kernel`. Returns the calls, the kernel's rows and the time of the first event that was
/// read; `None` if these options need the trace read more than once.
pub fn watch(
    trace: &Trace,
    options: &Options,
    (wanted, groups): (Wanted, &[Group]),
    cpus: usize,
    kernel: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
    progress: &mut dyn FnMut(f64),
) -> Result<Option<(Watched, Evidence, i64)>, Failed> {
    let Some(mut analysis) = with_kernel_rows(trace, options, kernel)? else {
        return Ok(None);
    };
    analysis.watch(Watch::new(wanted));
    look(trace, groups, analysis, cpus, progress).map(Some)
}

/// Joins times of the threads to the spans of a trace, of which the analysis has the rows of the kernel:
/// reads it once.
pub fn join(
    trace: &Trace,
    mut analysis: Analysis,
    times: Arc<ByThread>,
    cpus: usize,
    progress: &mut dyn FnMut(f64),
) -> Result<FoundSpans, Failed> {
    analysis.watch(Watch::joining(Join::new(times)));
    let (watched, ..) = look(trace, &trace.groups()?, analysis, cpus, progress)?;
    Ok(watched.joined)
}

/// An analysis that has the rows of the kernel, which are also passed to `kernel`; `None` if these options
/// need the trace read more than once.
pub fn with_kernel_rows(
    trace: &Trace,
    options: &Options,
    kernel: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
) -> Result<Option<Analysis>, Failed> {
    let mut analysis = Analysis::new(&trace.manifest, options.clone())?;
    if analysis.passes() > 1 {
        return Ok(None);
    }
    for batch in trace.kernel_batches()? {
        let batch = batch?;
        kernel(&batch)?;
        analysis.push(&batch)?;
    }
    Ok(Some(analysis))
}

/// Reads these groups of the trace once, for what the analysis watches.
fn look(
    trace: &Trace,
    groups: &[Group],
    mut analysis: Analysis,
    cpus: usize,
    progress: &mut dyn FnMut(f64),
) -> Result<(Watched, Evidence, i64), Failed> {
    let rows: u64 = groups.iter().map(|group| group.rows).sum();
    one_pass(trace, groups, &mut analysis, cpus, None, &mut |done| {
        progress((done as f64 / rows.max(1) as f64).min(1.0));
    })?;
    Ok(analysis.watched())
}

/// Describes the spans of a trace under these options.
fn description(trace: &Trace, options: &Options) -> SpansDescription {
    let table = match &options.table {
        Some(table) => format!("{table:?}"),
        None => "none".to_owned(),
    };
    SpansDescription {
        version: spans::VERSION,
        undertick_version: env!("CARGO_PKG_VERSION").to_owned(),
        events: trace.manifest.parts.clone(),
        made: format!(
            "cull {}, compensate {}, table {table}",
            options.cull, options.compensate
        ),
    }
}

/// State that the workers of a pass share.
struct Pass<'a> {
    trace: &'a Trace,
    groups: &'a [Group],
    /// Number of rows analysed.
    done: AtomicU64,
    /// A worker has failed, or the pass was given up: the others stop.
    stopped: AtomicBool,
    turn: Mutex<Turn>,
    moved: Condvar,
    /// Most groups that may be in work, or done and not merged: bounds memory.
    at_once: usize,
    reads_ahead: bool,
    /// Receives the spans, if they are wanted.
    writing: Option<&'a dyn SpanSink>,
}

/// The state of the distribution of groups.
struct Turn {
    /// The first group that no worker has taken.
    next: usize,
    /// Number of groups merged.
    absorbed: usize,
}

fn one_pass(
    trace: &Trace,
    groups: &[Group],
    analysis: &mut Analysis,
    cpus: usize,
    writing: Option<&dyn SpanSink>,
    progress: &mut dyn FnMut(u64),
) -> Result<(), Failed> {
    let workers = cpus.max(1).min(groups.len());
    let pass = Pass {
        trace,
        groups,
        done: AtomicU64::new(0),
        stopped: AtomicBool::new(false),
        turn: Mutex::new(Turn {
            next: 0,
            absorbed: 0,
        }),
        moved: Condvar::new(),
        at_once: workers + 1,
        reads_ahead: cpus > workers,
        writing,
    };
    std::thread::scope(|scope| {
        let (sender, results) = sync_channel::<Result<(usize, ShardResult), Failed>>(workers + 1);
        for _ in 0..workers {
            // Cheap: what is known of the trace is shared.
            let make = analysis.worker(false);
            let (pass, sender) = (&pass, sender.clone());
            scope.spawn(move || {
                while let Some(index) = pass.take() {
                    let result = pass.analyze(make.again(groups[index].by_ring), index);
                    if sender.send(result.map(|result| (index, result))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let absorbed = absorb_in_order(&pass, &results, analysis, progress);
        pass.stop();
        absorbed
    })
}

/// Merges the results of the shards as they arrive, in the order of the groups.
fn absorb_in_order(
    pass: &Pass<'_>,
    results: &Receiver<Result<(usize, ShardResult), Failed>>,
    analysis: &mut Analysis,
    progress: &mut dyn FnMut(u64),
) -> Result<(), Failed> {
    let mut waiting: Vec<Option<ShardResult>> = pass.groups.iter().map(|_| None).collect();
    let mut next = 0;
    while next < pass.groups.len() {
        match results.recv_timeout(REPORT_EVERY) {
            Ok(result) => {
                let (index, result) = result?;
                waiting[index] = Some(result);
                while let Some(result) = waiting.get_mut(next).and_then(Option::take) {
                    analysis.absorb(result);
                    next += 1;
                    pass.absorbed(next);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            // A worker panicked; the scope propagates that.
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        progress(pass.done.load(Ordering::Relaxed));
    }
    Ok(())
}

impl Pass<'_> {
    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next group, once there is room for its result.
    fn take(&self) -> Option<usize> {
        let mut turn = self.turn();
        loop {
            if self.stopped.load(Ordering::Relaxed) || turn.next == self.groups.len() {
                return None;
            }
            if turn.next < turn.absorbed + self.at_once {
                turn.next += 1;
                return Some(turn.next - 1);
            }
            turn = (self.moved.wait(turn)).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn absorbed(&self, groups: usize) {
        self.turn().absorbed = groups;
        self.moved.notify_all();
    }

    fn stop(&self) {
        let turn = self.turn();
        self.stopped.store(true, Ordering::Relaxed);
        drop(turn);
        self.moved.notify_all();
    }

    fn analyze(&self, mut worker: Worker, index: usize) -> Result<ShardResult, Failed> {
        let group = &self.groups[index];
        if self.writing.is_none() && self.trace.is_of_blocks(group) {
            self.analyze_blocks(&mut worker, group)?;
            return Ok(worker.finish());
        }
        let mut file = self.writing.map(|w| w.shard(index)).transpose()?;
        let mut take = |worker: &mut Worker, batch: Result<RecordBatch, TraceError>| {
            let batch = batch?;
            worker.push(&batch)?;
            if let Some(file) = &mut file {
                file.rows(&batch)?;
                if let Some(spans) = worker.take_spans() {
                    file.spans(&spans)?;
                }
            }
            let rows = batch.num_rows() as u64;
            self.done.fetch_add(rows, Ordering::Relaxed);
            Ok::<bool, Failed>(!self.stopped.load(Ordering::Relaxed))
        };
        if !self.reads_ahead {
            for batch in self.trace.group_batches(group) {
                if !take(&mut worker, batch)? {
                    break;
                }
            }
        } else {
            self.ahead(group, |batch| take(&mut worker, batch))?;
        }
        if let Some(file) = file {
            file.close()?;
        }
        Ok(worker.finish())
    }

    /// Passes the raw blocks of a group to a worker as they are.
    fn analyze_blocks(&self, worker: &mut Worker, group: &Group) -> Result<(), Failed> {
        let mut buffers = raw::Buffers::default();
        for &row_group in &group.row_groups {
            self.trace.read_blocks(row_group, &mut buffers.blocks)?;
            let are_valid = raw::push_blocks(worker, &mut buffers, |records| {
                self.done.fetch_add(records, Ordering::Relaxed);
                !self.stopped.load(Ordering::Relaxed)
            })?;
            if !are_valid {
                return Err(self.trace.damaged_blocks(row_group).into());
            }
            if self.stopped.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    /// Batches that another thread reads.
    fn ahead(
        &self,
        group: &Group,
        mut take: impl FnMut(Result<RecordBatch, TraceError>) -> Result<bool, Failed>,
    ) -> Result<(), Failed> {
        std::thread::scope(|scope| {
            let (sender, batches) = sync_channel(AHEAD);
            scope.spawn(move || {
                for batch in self.trace.group_batches(group) {
                    if sender.send(batch).is_err() {
                        return;
                    }
                }
            });
            for batch in batches {
                if !take(batch)? {
                    break;
                }
            }
            Ok(())
        })
    }
}
