//! The extent of a trace before merging: its span of time, processes, rings and kernel rows.

use std::collections::BTreeSet;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type};
use undertick_format::identity::ClockIdentity;
use undertick_format::manifest::Manifest;
use undertick_format::read::Trace;
use undertick_format::{TraceError, schema};

/// Figures of a trace that are found by reading its rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Extent {
    /// First and last reading.
    pub(super) span: Option<(i64, i64)>,
    /// Its processes.
    pub(super) pids: BTreeSet<i32>,
    /// Its largest ring number.
    pub(super) last_ring: i32,
    /// Number of the kernel's rows.
    pub(super) kernel_rows: u64,
}

/// Reads all rows of a trace.
pub(super) fn extent(trace: &Trace) -> Result<Extent, TraceError> {
    let mut extent = Extent {
        last_ring: -1,
        ..Extent::default()
    };
    for batch in trace.batches() {
        let batch = batch?;
        let i32s = |column: usize| batch.column(column).as_primitive::<Int32Type>().values();
        let ts = batch
            .column(schema::TS)
            .as_primitive::<Int64Type>()
            .values();
        for &t in ts {
            let (lo, hi) = extent.span.unwrap_or((t, t));
            extent.span = Some((lo.min(t), hi.max(t)));
        }
        let mut last = 0;
        for &pid in i32s(schema::PID) {
            if pid != last && pid > 0 {
                extent.pids.insert(pid);
            }
            last = pid;
        }
        let rings = i32s(schema::RING).iter().copied();
        extent.last_ring = rings.fold(extent.last_ring, i32::max);
        extent.kernel_rows += kernel_rows(&batch) as u64;
    }
    let rings = trace.manifest.rings.iter();
    extent.last_ring = rings.map(|ring| ring.ring).fold(extent.last_ring, i32::max);
    extent.pids.extend(
        trace
            .manifest
            .rings
            .iter()
            .map(|ring| ring.pid)
            .filter(|pid| *pid > 0),
    );
    Ok(extent)
}

/// Returns the identity of a trace's clock.
pub(super) fn identity(manifest: &Manifest) -> ClockIdentity {
    (manifest.hosts.first()).map_or_else(
        || ClockIdentity {
            clock: manifest.clock.name.clone(),
            boot_id: None,
            time_namespace: None,
        },
        |host| host.clock.clone(),
    )
}

/// Counts the rows of the kernel at the beginning of a batch, which are all that it has.
pub(super) fn kernel_rows(batch: &RecordBatch) -> usize {
    let modes = batch
        .column(schema::MODE)
        .as_primitive::<Int8Type>()
        .values();
    modes.iter().take_while(|mode| **mode != 0).count()
}
