//! Which thread took the CPU of another one, which one woke it, and the hypervisor's time.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::Int16Type;
use undertick_format::schema::{self, Kind};

use undertick_analyze::Error;
use undertick_analyze::columns::Columns;

/// The switches and wakes of one thread, in order of time.
#[derive(Clone, Debug, Default)]
struct OfThread {
    /// When it came on a CPU.
    came: Vec<i64>,
    /// When it left its CPU, the thread that came there, and why it left.
    left: Vec<(i64, i32, i64)>,
    /// When it was woken, and by which thread; 0: by an interrupt.
    woken: Vec<(i64, i32)>,
}

/// The kernel's rows about single switches.
#[derive(Clone, Debug, Default)]
pub(super) struct Switches {
    threads: HashMap<i32, OfThread>,
    /// By CPU: from when to when, and how much the hypervisor took of it, ns.
    stolen: HashMap<i16, Vec<(i64, i64, i64)>>,
}

impl Switches {
    /// Takes rows of the kernel, in their order.
    pub(super) fn take(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let columns = Columns::from_batch(batch)?;
        let cpus = batch.column(schema::CPU).as_primitive::<Int16Type>();
        for at in 0..columns.n_rows() {
            let (ts, tid) = (columns.rows.ts[at], columns.tid[at]);
            match Kind::from_code(columns.rows.kind[at]) {
                Some(Kind::SwitchIn) => self.threads.entry(tid).or_default().came.push(ts),
                Some(Kind::SwitchOut) => {
                    let (next, why) = (columns.rows.event[at], columns.rows.payload[at]);
                    let thread = self.threads.entry(tid).or_default();
                    thread.left.push((ts, next, why));
                }
                Some(Kind::Waking) => {
                    let waker = columns.rows.payload[at] as i32;
                    self.threads.entry(tid).or_default().woken.push((ts, waker));
                }
                Some(Kind::Steal) => {
                    let of_cpu = self.stolen.entry(cpus.value(at)).or_default();
                    let since = of_cpu.last().map_or(i64::MIN, |last| last.1);
                    of_cpu.push((since, ts, columns.rows.payload[at].max(0)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The thread that came on the CPU which `tid` left at about `ts`; `None`: not known.
    pub(super) fn next(&self, tid: i32, ts: i64, error: i64) -> Option<i32> {
        let (next, _) = self.left(tid, ts, error)?;
        (next > 0).then_some(next)
    }

    /// Why `tid` left its CPU at about `ts`: one of [`schema::off`].
    pub(super) fn why(&self, tid: i32, ts: i64, error: i64) -> Option<i64> {
        self.left(tid, ts, error).map(|(_, why)| why)
    }

    fn left(&self, tid: i32, ts: i64, error: i64) -> Option<(i32, i64)> {
        let left = &self.threads.get(&tid)?.left;
        let after = left.partition_point(|row| row.0 < ts);
        let near = left[after.saturating_sub(1)..].iter().take(2);
        let nearest = near.min_by_key(|row| row.0.abs_diff(ts))?;
        (nearest.0.abs_diff(ts) <= error.unsigned_abs()).then_some((nearest.1, nearest.2))
    }

    /// When `tid`, off its CPU from `start` to `end`, was woken, and by which thread. A thread that is
    /// woken while it goes off the CPU still goes off: it could run from `start` on.
    pub(super) fn woken(&self, tid: i32, start: i64, end: i64) -> Option<(i64, i32)> {
        let thread = self.threads.get(&tid)?;
        let after = thread.woken.partition_point(|row| row.0 < start);
        if let Some(&found) = thread.woken.get(after)
            && found.0 <= end
        {
            return Some(found);
        }
        let came = thread.came.partition_point(|&ts| ts <= start);
        let since = *thread.came.get(came.checked_sub(1)?)?;
        let (ts, waker) = *thread.woken.get(after.checked_sub(1)?)?;
        (ts >= since).then_some((start, waker))
    }

    /// Most time that the hypervisor may have taken of a CPU between two readings, ns; `None` if
    /// nothing.
    pub(super) fn stolen_ns(&self, cpu: i16, start: i64, end: i64) -> Option<f64> {
        let rows = self.stolen.get(&cpu)?;
        let from = rows.partition_point(|row| row.1 < start);
        let stolen: i64 = (rows[from..].iter())
            .take_while(|row| row.0 <= end)
            .fold(0, |all, row| all.saturating_add(row.2));
        (stolen > 0).then_some(stolen as f64)
    }
}
