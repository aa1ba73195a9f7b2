//! Joins the waits and allocations that preloaded libraries recorded (`record --with`) to the innermost
//! open spans.
//!
//! **Method.** A library writes to separate rings. A wait has a record at its begin, with the thread that
//! held the lock then, and one at its end. For a condition or a semaphore, the other thread is the last
//! one that signalled or posted before the wait ended. The counts of a record of allocations begin at the
//! time of the previous one; no span of the thread began or ended in between. The rings are read first,
//! then the trace once, for these spans.
//!
//! **Bounds.** About 150 bytes for each wait, 70 for each record of allocations, and 16 for each signal or
//! post.
//!
//! **Caveats.** The holder is the one at the begin of the wait; another thread may have had the lock
//! later. In traces of several hosts holders are not known. Allocations in executions of sampled spans
//! that were not recorded are those of the span around them.

mod document;
mod reader;

use std::collections::HashMap;
use std::sync::Arc;

use undertick_analyze::Failed;
use undertick_analyze::Options;
use undertick_analyze::innermost::{Around, ByThread, Paths, spans};
use undertick_analyze::parallel::{available_cpus, join, with_kernel_rows};
use undertick_document::Report;
use undertick_document::explanation::CallWait;
use undertick_format::interposed::{Allocations, WaitKind};
use undertick_format::read::Trace;

use crate::states::facts;

/// Most rows of waits of a call.
const MOST_CALL_WAITS: usize = 3;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Lock {
    pid: i32,
    address: u64,
    kind: WaitKind,
}

/// A wait of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wait {
    lock: Lock,
    tid: i32,
    start: i64,
    end: i64,
    /// It had not ended when its thread or the recording did.
    is_open: bool,
    /// It ended without what its thread waited for: it timed out, or was cancelled.
    has_failed: bool,
    /// The thread that held the lock or ended the wait, and the time at which its span is looked up.
    by: Option<(i32, i64)>,
}

/// Counts of a thread from a time on, all in one span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunk {
    tid: i32,
    start: i64,
    calls: u16,
    frees: u16,
    /// Index in [`Interposed::large`] where it is [`LARGE`] or more.
    bytes: u32,
}

/// From this on [`Chunk::bytes`] is an index.
const LARGE: u32 = 1 << 31;

/// All that the libraries recorded.
#[derive(Debug, Default)]
struct Interposed {
    waits: Vec<Wait>,
    chunks: Vec<Chunk>,
    /// Byte counts that are too large for a chunk.
    large: Vec<u64>,
    /// Allocations whose start time is not known, so neither is their span.
    unplaced: Allocations,
}

impl Interposed {
    fn push_chunk(&mut self, tid: i32, start: i64, all: Allocations) {
        let bytes = u32::try_from(all.bytes).ok().filter(|bytes| *bytes < LARGE);
        let bytes = bytes.unwrap_or_else(|| {
            self.large.push(all.bytes);
            LARGE + (self.large.len() as u32 - 1)
        });
        self.chunks.push(Chunk {
            tid,
            start,
            calls: all.calls as u16,
            frees: all.frees as u16,
            bytes,
        });
    }

    fn bytes(&self, chunk: &Chunk) -> u64 {
        match chunk.bytes.checked_sub(LARGE) {
            None => u64::from(chunk.bytes),
            Some(at) => self.large[at as usize],
        }
    }

    /// The span of each wait, of the thread that it was for, and of each chunk.
    fn around(
        &self,
        (trace, options): (&Trace, &Options),
        report: &Report,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Option<Spans>, Failed> {
        // A record after the end of a span may have its time, where the clock moves in steps.
        let after = |ts: i64| ts.saturating_add(1);
        let by = self.waits.iter().map(|wait| wait.by);
        let times = (self
            .waits
            .iter()
            .map(|wait| Some((wait.tid, after(wait.start)))))
        .chain(by)
        .chain((self.chunks.iter()).map(|chunk| Some((chunk.tid, after(chunk.start)))));
        let mut by_thread: ByThread = HashMap::new();
        for (time, at) in times.zip(0..) {
            if let Some((tid, ts)) = time {
                by_thread.entry(tid).or_default().push((ts, at));
            }
        }
        (by_thread.values_mut()).for_each(|times| times.sort_unstable());
        let Some(analysis) = with_kernel_rows(trace, options, &mut |_| Ok(()))? else {
            return Ok(None);
        };
        let cpus = available_cpus();
        let found = join(trace, analysis, Arc::new(by_thread), cpus, progress)?;
        let n = 2 * self.waits.len() + self.chunks.len();
        let mut waiting = spans(&found, &Paths::new(report), n);
        let mut by = waiting.split_off(self.waits.len());
        let chunks = by.split_off(self.waits.len());
        Ok(Some(Spans {
            waiting,
            by,
            chunks,
        }))
    }
}

/// The spans around what the libraries recorded.
struct Spans {
    waiting: Vec<Around>,
    by: Vec<Around>,
    chunks: Vec<Around>,
}

/// Adds to a report of this trace what its threads waited for and allocated, if that was recorded.
/// `progress` receives the share done, 0 to 1.
///
/// # Errors
/// The trace cannot be read, or does not support the options.
pub fn add_interposed(
    trace: &Trace,
    options: &Options,
    report: &mut Report,
    progress: &mut dyn FnMut(f64),
) -> Result<(), Failed> {
    if trace.manifest.recorder.with.is_empty() {
        return Ok(());
    }
    if options.table.is_some() {
        document::cannot(report, "a table defines the spans; leave out --table");
        return Ok(());
    }
    let found = reader::read(trace)?;
    let Some(spans) = found.around((trace, options), report, progress)? else {
        let why = "--cull ratio and --compensate long-term, pairs or sampler read the trace twice; leave them out";
        document::cannot(report, why);
        return Ok(());
    };
    let manifest = &trace.manifest;
    if manifest.is_with("locks") {
        report.locks = Some(document::locks(&found, &spans, manifest));
    }
    if manifest.is_with("malloc") {
        report.allocations = Some(document::allocations(&found, &spans, manifest));
    }
    Ok(())
}

/// What the threads of single calls waited for.
pub(crate) struct CallWaits {
    /// With the names of the span that the other thread was in, by thread and begin.
    waits: Vec<(Wait, Vec<String>)>,
    names: HashMap<i32, String>,
    locks: document::LockNames,
    ns_per_tick: f64,
}

impl CallWaits {
    /// The waits that overlap these calls, given by thread, begin and end; `None` if waits were not
    /// recorded.
    pub(crate) fn find(
        (trace, options): (&Trace, &Options),
        report: &Report,
        calls: &[(i32, i64, i64)],
        progress: &mut dyn FnMut(f64),
    ) -> Result<Option<Self>, Failed> {
        let manifest = &trace.manifest;
        if !manifest.is_with("locks") {
            return Ok(None);
        }
        let mut found = reader::read(trace)?;
        let mut by_thread: HashMap<i32, Vec<(i64, i64)>> = HashMap::new();
        for &(tid, start, end) in calls {
            by_thread.entry(tid).or_default().push((start, end));
        }
        found.waits.retain(|wait| {
            let calls = by_thread.get(&wait.tid).map_or(&[][..], Vec::as_slice);
            (calls.iter()).any(|&(start, end)| wait.start <= end && wait.end >= start)
        });
        found.chunks.clear();
        let Some(spans) = found.around((trace, options), report, progress)? else {
            return Ok(None);
        };
        let names = |around: &Around| document::names(around, report);
        let mut waits: Vec<(Wait, Vec<String>)> = (found.waits.iter().copied())
            .zip(spans.by.iter().map(names))
            .collect();
        waits.sort_by_key(|(wait, _)| (wait.tid, wait.start));
        Ok(Some(Self {
            waits,
            names: facts::roles(manifest),
            locks: document::lock_names(manifest),
            ns_per_tick: manifest.clock.ns_per_tick(),
        }))
    }

    /// The longest waits of a thread between two times, at most [`MOST_CALL_WAITS`].
    pub(crate) fn during(&self, tid: i32, (start, end): (i64, i64)) -> Vec<CallWait> {
        let mut found: Vec<CallWait> = Vec::new();
        let from = self.waits.partition_point(|(wait, _)| wait.tid < tid);
        let of_thread = self.waits[from..].iter().take_while(|of| of.0.tid == tid);
        for (wait, held_in) in of_thread {
            let ticks = wait.end.min(end).saturating_sub(wait.start.max(start));
            if ticks <= 0 {
                continue;
            }
            let one = CallWait {
                lock: document::lock(wait.lock, &self.locks),
                n: 1,
                waited_ns: ticks as f64 * self.ns_per_tick,
                by: wait.by.map(|(tid, _)| document::thread(tid, &self.names)),
                by_in: held_in.clone(),
            };
            let is_same = |of: &&mut CallWait| {
                of.lock == one.lock && of.by == one.by && of.by_in == one.by_in
            };
            match found.iter_mut().find(is_same) {
                Some(of) => {
                    of.n += 1;
                    of.waited_ns += one.waited_ns;
                }
                None => found.push(one),
            }
        }
        found.sort_by(|a, b| b.waited_ns.total_cmp(&a.waited_ns));
        found.truncate(MOST_CALL_WAITS);
        found
    }
}

#[cfg(test)]
mod tests;
