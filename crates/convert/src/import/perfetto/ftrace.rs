//! Records of the kernel tracer in a Perfetto trace.

use std::collections::HashMap;

use undertick_format::TraceError;
use undertick_format::schema::Kind;

use super::clocks::Clocks;
use crate::import::intake::Intake;
use crate::import::kernel_rows::{KernelRows, Switch};
use crate::import::wire::{Fields, Value};

/// Most CPUs for which the current thread is remembered.
const MOST_CPUS: usize = 1 << 16;

#[derive(Default)]
pub(super) struct Ftrace {
    rows: KernelRows,
    /// The last thread that came onto a CPU, for switches that name only the incoming thread.
    on: HashMap<u32, i32>,
}

impl Ftrace {
    /// Reads a `FtraceEventBundle`: the records of one CPU.
    pub(super) fn bundle(
        &mut self,
        bytes: &[u8],
        clocks: &mut Clocks,
        intake: &mut Intake,
    ) -> Result<(), TraceError> {
        let bundle = Fields(bytes);
        let cpu = bundle.last(1).map_or(0, Value::number) as u32;
        if bundle.last(3).map(Value::number) == Some(1) {
            intake.left_out("kernel events lost before a bundle (how many is not known)");
        }
        for (field, value) in bundle {
            match field {
                2 => self.event(cpu, value.bytes(), clocks, intake)?,
                4 => self.compact(cpu, value.bytes(), clocks, intake)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn event(
        &mut self,
        cpu: u32,
        bytes: &[u8],
        clocks: &mut Clocks,
        intake: &mut Intake,
    ) -> Result<(), TraceError> {
        let event = Fields(bytes);
        let time = event.last(1).map_or(0, Value::number);
        let tid = event.last(2).map_or(0, Value::number) as i32;
        let Some(ns) = clocks.ns(0, None, time) else {
            return Ok(());
        };
        for (field, value) in event.filter(|&(field, _)| field > 2) {
            let number = |field| Fields(value.bytes()).last(field).map_or(0, Value::number);
            match field {
                4 => {
                    let switch = Switch {
                        out: number(2) as i32,
                        is_preempted: is_runnable(number(4)),
                        into: number(6) as i32,
                    };
                    self.note(cpu, switch.into);
                    KernelRows::switch(intake, ns, Some(cpu), switch)?;
                }
                20 => KernelRows::waking(intake, ns, Some(cpu), number(2) as i32, tid)?,
                36 => self
                    .rows
                    .enter(intake, ns, cpu, (Kind::Interrupt, number(1) as u16)),
                37 => self.rows.exit(intake, ns, cpu, tid, Kind::Interrupt)?,
                24 => self
                    .rows
                    .enter(intake, ns, cpu, (Kind::SoftInterrupt, number(1) as u16)),
                25 => self.rows.exit(intake, ns, cpu, tid, Kind::SoftInterrupt)?,
                _ => intake.left_out("kernel event of another kind"),
            }
        }
        Ok(())
    }

    fn note(&mut self, cpu: u32, tid: i32) {
        if self.on.len() < MOST_CPUS {
            self.on.insert(cpu, tid);
        }
    }

    /// Reads a `CompactSched`: switches in columns. The outgoing thread is the one that came
    /// before on that CPU.
    fn compact(
        &mut self,
        cpu: u32,
        bytes: &[u8],
        clocks: &mut Clocks,
        intake: &mut Intake,
    ) -> Result<(), TraceError> {
        let mut columns: [Vec<u64>; 3] = Default::default();
        for (field, value) in Fields(bytes) {
            if let Some(column) = usize::try_from(field)
                .ok()
                .and_then(|f| columns.get_mut(f.checked_sub(1)?))
            {
                column.extend(value.varints());
            }
        }
        let [times, states, next] = columns;
        let mut time = 0u64;
        for ((since, state), into) in times.into_iter().zip(states).zip(next) {
            time = time.wrapping_add(since);
            let into = into as i32;
            let before = self.on.get(&cpu).copied();
            self.note(cpu, into);
            let Some(ns) = clocks.ns(0, None, time) else {
                continue;
            };
            let switch = Switch {
                out: before.unwrap_or(0),
                is_preempted: is_runnable(state),
                into,
            };
            KernelRows::switch(intake, ns, Some(cpu), switch)?;
        }
        Ok(())
    }
}

/// Whether a state has no bit but that of "preempted" (`TASK_REPORT_MAX`): the thread could run
/// on.
const fn is_runnable(state: u64) -> bool {
    state & 0xff == 0
}
