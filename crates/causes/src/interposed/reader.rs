//! Reads the rings of preloaded libraries.

use std::collections::{BTreeMap, HashMap, HashSet};

use undertick_analyze::Failed;
use undertick_analyze::columns::{Columns, Writer};
use undertick_analyze::kinds::{GAP, INSTANT};
use undertick_format::interposed::{Allocations, Record, WaitKind};
use undertick_format::read::Trace;
use undertick_format::rows::RowsOfRing;
use undertick_format::schema::Kind;

use super::{Interposed, Lock, Wait};
use crate::ring_rows;

/// Reads what the libraries recorded in a trace.
pub(super) fn read(trace: &Trace) -> Result<Interposed, Failed> {
    let rings = trace.manifest.interposed_rings();
    let mut reader = Reader {
        knows_holders: trace.manifest.hosts.len() <= 1,
        cut: (trace.manifest.rings.iter())
            .filter(|ring| ring.overwritten > 0)
            .map(|ring| ring.ring)
            .collect(),
        ..Reader::default()
    };
    if rings.is_empty() {
        return Ok(reader.found);
    }
    for group in trace.groups()? {
        ring_rows::pass_on(
            trace,
            &group,
            |ring| rings.contains(&ring),
            |writer, rows| reader.take(writer, rows),
        )?;
    }
    let last = trace.manifest.clock.anchors.last();
    let ends = reader.ends_of_open(trace)?;
    Ok(reader.finish(last.map(|anchor| anchor.ticks), &ends))
}

/// What is known of a ring so far.
#[derive(Debug, Default)]
struct Ring {
    /// The wait that has begun.
    open: Option<Wait>,
    /// Since when allocations are counted.
    since: Option<i64>,
}

#[derive(Debug, Default)]
pub(super) struct Reader {
    found: Interposed,
    rings: BTreeMap<i32, Ring>,
    /// Times and threads that woke others, by what these wait for.
    wakes: HashMap<Lock, Vec<(i64, i32)>>,
    last: i64,
    /// By process and thread, when it last wrote counts.
    counted: HashMap<(i32, i32), i64>,
    /// Rings whose first records were overwritten.
    pub(super) cut: HashSet<i32>,
    pub(super) knows_holders: bool,
}

impl Reader {
    /// Takes rows of a ring, in order.
    pub(super) fn take(&mut self, writer: Writer, rows: &RowsOfRing<'_>) {
        // What was allocated before the first record was before all spans, if that record is there.
        // A thread that ends may have a second ring.
        let thread = (writer.pid, writer.tid);
        let since = || self.counted.get(&thread).copied().unwrap_or(i64::MIN);
        let is_cut = self.cut.contains(&writer.ring);
        (self.rings.entry(writer.ring)).or_insert_with(|| Ring {
            open: None,
            since: (!is_cut).then(since),
        });
        for at in 0..rows.ts.len() {
            let ts = rows.ts[at];
            self.last = self.last.max(ts);
            let ring = self.rings.entry(writer.ring).or_default();
            if rows.kind[at] == GAP {
                // What came between is not known.
                *ring = Ring::default();
                continue;
            }
            let event = u16::try_from(rows.event[at]).ok();
            let event = event.filter(|_| rows.kind[at] == INSTANT);
            let record = event.and_then(|event| Record::from_event(event, rows.payload[at]));
            if let Some(record) = record {
                self.record(writer, ts, record);
            }
        }
    }

    fn record(&mut self, writer: Writer, ts: i64, record: Record) {
        let Writer { pid, tid, .. } = writer;
        let ring = self.rings.entry(writer.ring).or_default();
        let lock = |kind, address| Lock { pid, address, kind };
        if matches!(record, Record::Allocations(_)) {
            self.counted.insert((pid, tid), ts);
        }
        match record {
            Record::Allocations(all) => match ring.since.replace(ts) {
                Some(_) if all == Allocations::default() => {}
                Some(since) => self.found.push_chunk(tid, since, all),
                None => {
                    let unplaced = &mut self.found.unplaced;
                    unplaced.calls += all.calls;
                    unplaced.bytes = unplaced.bytes.saturating_add(all.bytes);
                    unplaced.frees += all.frees;
                }
            },
            // A wait that has begun and has no end was left by a jump.
            Record::Wait(kind, address) => {
                ring.open = Some(Wait {
                    lock: lock(kind, address),
                    tid,
                    start: ts,
                    end: ts,
                    is_open: false,
                    has_failed: false,
                    by: None,
                });
            }
            Record::Holder(holder) => {
                if let Some(open) = ring.open.as_mut().filter(|_| self.knows_holders) {
                    open.by = Some((holder, open.start));
                }
            }
            Record::End(error) => {
                let ended = ring.open.take().map(|open| Wait {
                    end: ts,
                    has_failed: error != 0,
                    ..open
                });
                self.found.waits.extend(ended);
            }
            Record::Wake(kind, address) => {
                let wakes = self.wakes.entry(lock(kind, address)).or_default();
                wakes.push((ts, tid));
            }
        }
    }

    /// When the threads with a wait that has not ended were last seen by the kernel: a thread that still
    /// waits when its process ends comes on a CPU once more.
    fn ends_of_open(&self, trace: &Trace) -> Result<HashMap<i32, i64>, Failed> {
        let open = self.rings.values().filter_map(|ring| ring.open);
        let mut ends: HashMap<i32, i64> = open.map(|open| (open.tid, open.start)).collect();
        if ends.is_empty() {
            return Ok(ends);
        }
        for batch in trace.kernel_batches()? {
            let batch = batch?;
            let columns = Columns::from_batch(&batch)?;
            for (kind, (tid, ts)) in
                (columns.rows.kind.iter()).zip(columns.tid.iter().zip(columns.rows.ts))
            {
                if *kind == Kind::SwitchIn as i8
                    && let Some(end) = ends.get_mut(tid)
                {
                    *end = (*end).max(*ts);
                }
            }
        }
        Ok(ends)
    }

    /// All rows have come. `last` is the time at which the recording ended, if that is known, and `ends`
    /// those at which threads were last seen.
    pub(super) fn finish(mut self, last: Option<i64>, ends: &HashMap<i32, i64>) -> Interposed {
        let last = last.unwrap_or(self.last).max(self.last);
        let open = self.rings.values().filter_map(|ring| ring.open);
        let open = open.map(|open| Wait {
            end: (ends.get(&open.tid).copied())
                .filter(|end| *end > open.start)
                .unwrap_or(last),
            is_open: true,
            ..open
        });
        self.found.waits.extend(open);
        (self.wakes.values_mut()).for_each(|wakes| wakes.sort_unstable());
        for wait in &mut self.found.waits {
            let is_woken = matches!(wait.lock.kind, WaitKind::Condition | WaitKind::Semaphore);
            // A signal during a wait that timed out woke another thread.
            if !is_woken || wait.is_open || wait.has_failed {
                continue;
            }
            let wakes = self.wakes.get(&wait.lock).map_or(&[][..], Vec::as_slice);
            let before = wakes.partition_point(|wake| wake.0 <= wait.end);
            let woken = before.checked_sub(1).map(|at| wakes[at]);
            wait.by = woken
                .filter(|wake| wake.0 >= wait.start)
                .map(|(ts, tid)| (tid, ts));
        }
        self.found
    }
}
