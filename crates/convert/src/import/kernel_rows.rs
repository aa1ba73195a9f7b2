//! Rows of the kernel from the records of a kernel tracer, whichever tool wrote them.

use std::collections::HashMap;

use undertick_format::TraceError;
use undertick_format::schema::Kind;

use super::intake::{Intake, KernelRow};

/// Most CPUs for which open interrupts are tracked.
const MOST_CPUS: usize = 1 << 16;

/// A switch from one thread to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Switch {
    pub(super) out: i32,
    /// The outgoing thread could run on.
    pub(super) is_preempted: bool,
    pub(super) into: i32,
}

/// Tracks interrupts that have begun, by CPU.
#[derive(Default)]
pub(super) struct KernelRows {
    open: HashMap<(u32, Kind), (i64, u16)>,
}

impl KernelRows {
    pub(super) fn switch(
        intake: &mut Intake,
        ns: i64,
        cpu: Option<u32>,
        switch: Switch,
    ) -> Result<(), TraceError> {
        intake.kernel_records += 1;
        let row = |kind, tid, payload| KernelRow {
            ns,
            kind,
            tid,
            cpu,
            event: 0,
            payload,
        };
        // The idle task is not a thread.
        if switch.out != 0 {
            let preempted = i64::from(switch.is_preempted);
            intake.kernel_row(row(Kind::SwitchOut, switch.out, preempted))?;
        }
        if switch.into != 0 {
            intake.kernel_row(row(Kind::SwitchIn, switch.into, 0))?;
        }
        Ok(())
    }

    pub(super) fn waking(
        intake: &mut Intake,
        ns: i64,
        cpu: Option<u32>,
        tid: i32,
        waker: i32,
    ) -> Result<(), TraceError> {
        intake.kernel_records += 1;
        intake.kernel_row(KernelRow {
            ns,
            kind: Kind::Waking,
            tid,
            cpu,
            event: 0,
            payload: i64::from(waker),
        })
    }

    /// Begins an interrupt on a CPU.
    pub(super) fn enter(&mut self, intake: &mut Intake, ns: i64, cpu: u32, what: (Kind, u16)) {
        intake.kernel_records += 1;
        if self.open.len() < MOST_CPUS {
            self.open.insert((cpu, what.0), (ns, what.1));
        }
    }

    /// Ends an interrupt, which ran on top of a thread.
    pub(super) fn exit(
        &mut self,
        intake: &mut Intake,
        ns: i64,
        cpu: u32,
        tid: i32,
        kind: Kind,
    ) -> Result<(), TraceError> {
        intake.kernel_records += 1;
        let Some((start, event)) = self.open.remove(&(cpu, kind)) else {
            return Ok(());
        };
        intake.kernel_row(KernelRow {
            ns: start,
            kind,
            tid,
            cpu: Some(cpu),
            event,
            payload: ns.saturating_sub(start),
        })
    }
}

/// Whether the letters of a thread's state say that it could run on.
pub(super) fn could_run(state: &str) -> bool {
    state.starts_with('R')
}
