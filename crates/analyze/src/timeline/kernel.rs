//! The kernel's rows of the second: which thread ran on which CPU, which was off it, interrupts.

use std::collections::{BTreeMap, HashMap};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::Int16Type;
use undertick_document::timeline::OFF_CPU;
use undertick_format::schema::{self, Kind, OWN_VECTOR, off};

use super::cells::{Cells, Window};
use super::collect::Words;
use crate::columns::Columns;
use crate::error::Error;

/// A CPU or a thread, preceded by its host.
type Key = (i16, i32);

/// Kernel events in the window.
#[derive(Debug, Default)]
pub(super) struct OfKernel {
    /// Threads' time off their CPUs, in row [`OFF_CPU`].
    pub(super) off: BTreeMap<Key, Cells>,
    pub(super) cpus: BTreeMap<Key, Cells>,
    pub(super) interrupts: BTreeMap<Key, Cells>,
    /// Switches of points: when, and to what; includes the last one before the window.
    pub(super) switches: Vec<(i64, u32)>,
    /// The thread that runs on a CPU, and since when.
    running: HashMap<Key, (i32, i64)>,
    /// Threads that are off their CPU, since when, and why.
    waiting: HashMap<Key, (i64, i64)>,
}

/// One row.
struct Row {
    ts: i64,
    tid: i32,
    cpu: i32,
    event: i32,
    payload: i64,
    host: i16,
}

impl OfKernel {
    /// Takes rows in their order; `false` when the window is past.
    pub(super) fn take(
        &mut self,
        batch: &RecordBatch,
        window: &Window,
        names: &mut Words,
        label: &impl Fn(i16, i32) -> String,
    ) -> Result<bool, Error> {
        let columns = Columns::from_batch(batch)?;
        let cpus = batch.column(schema::CPU).as_primitive::<Int16Type>();
        for i in 0..columns.n_rows() {
            let row = Row {
                ts: columns.rows.ts[i],
                tid: columns.tid[i],
                cpu: i32::from(cpus.value(i)),
                event: columns.rows.event[i],
                payload: columns.rows.payload[i],
                host: columns.host[i],
            };
            if row.ts >= window.to {
                return Ok(false);
            }
            if let Some(kind) = Kind::from_code(columns.rows.kind[i]) {
                self.row(kind, &row, window, names, label);
            }
        }
        Ok(true)
    }

    fn row(
        &mut self,
        kind: Kind,
        row: &Row,
        window: &Window,
        names: &mut Words,
        label: &impl Fn(i16, i32) -> String,
    ) {
        let (cpu, thread) = ((row.host, row.cpu), (row.host, row.tid));
        match kind {
            Kind::SwitchIn => {
                self.running.insert(cpu, (row.tid, row.ts));
                if let Some((since, why)) = self.waiting.remove(&thread) {
                    let name = names.number(off_name(why));
                    let cells = self.off.entry(thread).or_default();
                    add(cells, window, OFF_CPU, name, since, row.ts);
                }
            }
            Kind::SwitchOut => {
                if let Some((tid, since)) = self.running.remove(&cpu)
                    && tid == row.tid
                {
                    let name = names.number(&label(row.host, tid));
                    let cells = self.cpus.entry(cpu).or_default();
                    add(cells, window, 0, name, since, row.ts);
                }
                self.waiting.insert(thread, (row.ts, row.payload));
            }
            Kind::Interrupt | Kind::SoftInterrupt => {
                let (what, lane) = match kind {
                    Kind::Interrupt => (interrupt_name(row.event), 0),
                    _ => (format!("deferred work {}", row.event), 1),
                };
                let name = names.number(&what);
                let end = row.ts.saturating_add(row.payload.max(0));
                let cells = self.interrupts.entry(cpu).or_default();
                add(cells, window, lane, name, row.ts, end);
            }
            Kind::KernelGap if window.holds(row.ts) => {
                let lost = row.payload.max(1).unsigned_abs();
                let cells = self.cpus.entry(cpu).or_default();
                cells.lost(window, row.ts, lost);
            }
            Kind::Epoch => {
                let state = u32::try_from(row.event).unwrap_or(0);
                if row.ts < window.from {
                    self.switches.clear();
                }
                self.switches.push((row.ts.max(window.from), state));
            }
            _ => {}
        }
    }

    /// Ends the window, or the rows: each state continues up to the window's end.
    pub(super) fn finish(
        &mut self,
        window: &Window,
        names: &mut Words,
        label: &impl Fn(i16, i32) -> String,
    ) {
        for (cpu, (tid, since)) in std::mem::take(&mut self.running) {
            let name = names.number(&label(cpu.0, tid));
            let cells = self.cpus.entry(cpu).or_default();
            add(cells, window, 0, name, since, window.to);
        }
        for (thread, (since, why)) in std::mem::take(&mut self.waiting) {
            let name = names.number(off_name(why));
            let cells = self.off.entry(thread).or_default();
            add(cells, window, OFF_CPU, name, since, window.to);
        }
    }
}

/// Adds a stretch where it touches the window.
fn add(cells: &mut Cells, window: &Window, row: u32, name: u32, start: i64, end: i64) {
    if end > window.from && start < window.to {
        cells.add(window, row, name, start, end);
    }
}

const fn off_name(why: i64) -> &'static str {
    match why {
        off::WAITS => "off the CPU: waits",
        off::PREEMPTED => "off the CPU: preempted",
        off::BLOCKED => "off the CPU: blocked in the kernel",
        off::STOPPED => "off the CPU: stopped",
        _ => "off the CPU",
    }
}

fn interrupt_name(event: i32) -> String {
    match event.checked_sub(OWN_VECTOR) {
        Some(vector) if vector >= 0 => format!("interrupt, vector {vector}"),
        _ => format!("interrupt {event}"),
    }
}
