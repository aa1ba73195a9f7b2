//! Which thread ran where, by the kernel's rows.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::Int16Type;
use undertick_format::schema::{self, Kind};

use crate::columns::Columns;
use crate::error::Error;

/// Off all CPUs.
const OFF: i16 = -1;

/// The switches of the program's threads.
#[derive(Clone, Debug, Default)]
pub struct Running {
    /// By thread: since when, and on which CPU, or [`OFF`].
    threads: BTreeMap<i32, Vec<(i64, i16)>>,
}

impl Running {
    /// Takes rows of the kernel.
    pub fn take(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let columns = Columns::from_batch(batch)?;
        let cpus = batch.column(schema::CPU).as_primitive::<Int16Type>();
        for at in 0..columns.n_rows() {
            let cpu = match Kind::from_code(columns.rows.kind[at]) {
                Some(Kind::SwitchIn) => cpus.value(at),
                Some(Kind::SwitchOut) => OFF,
                _ => continue,
            };
            let switches = self.threads.entry(columns.tid[at]).or_default();
            let ts = columns.rows.ts[at];
            if switches.is_empty() && cpu == OFF {
                // It was on the CPU that it leaves.
                switches.push((i64::MIN, cpus.value(at)));
            }
            switches.push((ts, cpu));
        }
        Ok(())
    }

    /// All rows have come.
    pub fn settle(&mut self) {
        for switches in self.threads.values_mut() {
            switches.sort_by_key(|switch| switch.0);
        }
    }

    /// Number of switches.
    pub fn n_switches(&self) -> usize {
        self.threads.values().map(Vec::len).sum()
    }

    /// The threads that switched at all.
    pub fn threads(&self) -> impl Iterator<Item = i32> + '_ {
        self.threads.keys().copied()
    }

    /// The CPU on which a thread ran at a time; `None`: it was off, or it is not known.
    pub fn cpu(&self, tid: i32, ts: i64) -> Option<i16> {
        let switches = self.threads.get(&tid)?;
        let after = switches.partition_point(|switch| switch.0 <= ts);
        let (_, cpu) = *switches.get(after.checked_sub(1)?)?;
        (cpu != OFF).then_some(cpu)
    }
}
