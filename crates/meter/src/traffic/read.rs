//! Reads the rows of some repetitions: their stamps in order of time, and the kernel's evidence
//! about their time.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type};
use undertick_experiment::script::Plan;
use undertick_experiment::{Cell, Mark, Numbering};
use undertick_format::TraceError;
use undertick_format::schema::{self, Kind};

use super::MOST_STAMPS;

/// A reading between two steps of a process: it ends one step and begins another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) ts: i64,
    pub(super) process: usize,
    /// The step that begins; `None` at the process's end.
    pub(super) begins: Option<Mark>,
}

/// A row of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KernelRow {
    pub(super) ts: i64,
    pub(super) tid: i32,
    pub(super) cpu: i16,
    pub(super) kind: Kind,
    pub(super) event: i32,
    pub(super) payload: i64,
}

/// The trace's rows of one repetition.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorded {
    /// Stamps in order of time.
    pub(super) stamps: Vec<Stamp>,
    /// The thread of each process, if it made a stamp.
    pub(super) tids: Vec<Option<i32>>,
    /// Kernel rows in order of time.
    pub(super) kernel: Vec<KernelRow>,
    /// Whether there were more stamps than are used.
    pub(super) cut: bool,
}

/// The meaning of an event number.
#[derive(Clone, Copy)]
struct Meaning {
    slot: usize,
    process: usize,
    mark: Mark,
}

/// Reads these repetitions. `batches` restarts each time: the kernel rows come first, and it is
/// known only after the others to which thread they belong.
pub(super) fn read<I>(
    wanted: &[(&Plan, Cell)],
    numbering: &Numbering,
    batches: impl Fn() -> I,
) -> Result<Vec<Recorded>, TraceError>
where
    I: Iterator<Item = Result<RecordBatch, TraceError>>,
{
    let meanings = meanings(wanted, numbering);
    let mut all: Vec<Recorded> = (wanted.iter())
        .map(|(plan, _)| Recorded {
            tids: vec![None; plan.processes.len()],
            ..Recorded::default()
        })
        .collect();
    // Rows before a process's first stamp only served to create its ring.
    for batch in batches() {
        stamps(&Columns::from_batch(&batch?), &meanings, &mut all);
    }
    for recorded in &mut all {
        // For equal times, the stamps of one process stay in order, because the sort is stable.
        recorded.stamps.sort_by_key(|stamp| stamp.ts);
    }
    for batch in batches() {
        if !kernel(&Columns::from_batch(&batch?), &mut all) {
            break;
        }
    }
    for recorded in &mut all {
        recorded.kernel.sort_by_key(|row| row.ts);
    }
    Ok(all)
}

fn meanings(wanted: &[(&Plan, Cell)], numbering: &Numbering) -> HashMap<i32, Meaning> {
    let mut meanings = HashMap::new();
    for (slot, (plan, cell)) in wanted.iter().enumerate() {
        for (process, about) in plan.processes.iter().enumerate() {
            let marks = [Mark::Loop, Mark::NullBefore, Mark::NullAfter]
                .into_iter()
                .chain((0..about.steps.len()).map(Mark::Step));
            for mark in marks {
                let event = i32::from(numbering.event(plan, *cell, process, mark));
                let meaning = Meaning {
                    slot,
                    process,
                    mark,
                };
                meanings.insert(event, meaning);
            }
        }
    }
    meanings
}

fn stamps(columns: &Columns<'_>, meanings: &HashMap<i32, Meaning>, all: &mut [Recorded]) {
    for row in 0..columns.ts.len() {
        if columns.mode[row] != 0 {
            continue;
        }
        let Some(ends) = meanings.get(&columns.event[row]) else {
            continue;
        };
        let begins = match Kind::from_code(columns.kind[row]) {
            Some(Kind::Next) => i32::try_from(columns.payload[row])
                .ok()
                .and_then(|event| meanings.get(&event))
                .map(|meaning| meaning.mark),
            // An end before any step only served to create the ring.
            Some(Kind::End) if all[ends.slot].tids[ends.process].is_some() => None,
            _ => continue,
        };
        let recorded = &mut all[ends.slot];
        recorded.tids[ends.process] = Some(columns.tid[row]);
        if recorded.stamps.len() == MOST_STAMPS {
            recorded.cut = true;
            continue;
        }
        recorded.stamps.push(Stamp {
            ts: columns.ts[row],
            process: ends.process,
            begins,
        });
    }
}

/// Adds the kernel rows that lie in a repetition, regardless of their thread. Returns false when
/// there are no more.
fn kernel(columns: &Columns<'_>, all: &mut [Recorded]) -> bool {
    for row in 0..columns.ts.len() {
        if columns.mode[row] != 1 {
            return false;
        }
        let Some(kind) = Kind::from_code(columns.kind[row]) else {
            continue;
        };
        let ts = columns.ts[row];
        for recorded in all.iter_mut() {
            let (Some(first), Some(last)) = (recorded.stamps.first(), recorded.stamps.last())
            else {
                continue;
            };
            // A thread may have been off its CPU for a long time before.
            let its_own = recorded.tids.contains(&Some(columns.tid[row]));
            if (first.ts..=last.ts).contains(&ts) || (its_own && ts <= last.ts) {
                recorded.kernel.push(KernelRow {
                    ts,
                    tid: columns.tid[row],
                    cpu: columns.cpu[row],
                    kind,
                    event: columns.event[row],
                    payload: columns.payload[row],
                });
            }
        }
    }
    true
}

/// The columns of a batch, whose types the reader has checked.
struct Columns<'a> {
    ts: &'a [i64],
    tid: &'a [i32],
    cpu: &'a [i16],
    mode: &'a [i8],
    kind: &'a [i8],
    event: &'a [i32],
    payload: &'a [i64],
}

impl<'a> Columns<'a> {
    fn from_batch(batch: &'a RecordBatch) -> Self {
        Self {
            ts: batch
                .column(schema::TS)
                .as_primitive::<Int64Type>()
                .values(),
            tid: batch
                .column(schema::TID)
                .as_primitive::<Int32Type>()
                .values(),
            cpu: batch
                .column(schema::CPU)
                .as_primitive::<Int16Type>()
                .values(),
            mode: batch
                .column(schema::MODE)
                .as_primitive::<Int8Type>()
                .values(),
            kind: batch
                .column(schema::KIND)
                .as_primitive::<Int8Type>()
                .values(),
            event: batch
                .column(schema::EVENT)
                .as_primitive::<Int32Type>()
                .values(),
            payload: (batch.column(schema::PAYLOAD))
                .as_primitive::<Int64Type>()
                .values(),
        }
    }
}
