//! What a trace holds, before it is merged.

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
pub(super) struct Survey {
    /// First and last reading.
    pub(super) span: Option<(i64, i64)>,
    /// Its processes.
    pub(super) pids: BTreeSet<i32>,
    /// Its largest ring number.
    pub(super) last_ring: i32,
    /// Number of the kernel's rows.
    pub(super) kernel_rows: u64,
}

pub(super) fn survey(trace: &Trace) -> Result<Survey, TraceError> {
    let mut survey = Survey {
        last_ring: -1,
        ..Survey::default()
    };
    for batch in trace.batches() {
        let batch = batch?;
        let i32s = |column: usize| batch.column(column).as_primitive::<Int32Type>().values();
        let ts = batch
            .column(schema::TS)
            .as_primitive::<Int64Type>()
            .values();
        for &t in ts {
            let (lo, hi) = survey.span.unwrap_or((t, t));
            survey.span = Some((lo.min(t), hi.max(t)));
        }
        let mut last = 0;
        for &pid in i32s(schema::PID) {
            if pid != last && pid > 0 {
                survey.pids.insert(pid);
            }
            last = pid;
        }
        let rings = i32s(schema::RING).iter().copied();
        survey.last_ring = rings.fold(survey.last_ring, i32::max);
        survey.kernel_rows += kernel_rows(&batch) as u64;
    }
    let rings = trace.manifest.rings.iter();
    survey.last_ring = rings.map(|ring| ring.ring).fold(survey.last_ring, i32::max);
    survey.pids.extend(
        trace
            .manifest
            .rings
            .iter()
            .map(|ring| ring.pid)
            .filter(|pid| *pid > 0),
    );
    Ok(survey)
}

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
