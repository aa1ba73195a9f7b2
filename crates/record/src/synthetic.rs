//! Synthetic traces: a simulated machine wrote them, they were not recorded. The machine's true
//! times can be stored beside the readings.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use undertick_format::block::{self, BlockHeader};
use undertick_format::files::RAW_FILE;
use undertick_format::manifest::{Clock, Host, Manifest, Name, Ring, Thread};
use undertick_format::{TraceError, parquet_error};
use undertick_ring::{Kind, Record};

use crate::finalize::{self, remove_empty};
use crate::output::properties;
use crate::trace_dir::TraceDir;

/// File of the true times, beside the events.
pub const TRUTH_FILE: &str = "truth.parquet";

/// Everything about a synthetic trace that is not an event.
#[derive(Clone, Debug)]
pub struct SyntheticTrace {
    /// The machine that the trace comes from.
    pub host: Host,
    /// The command that was run.
    pub command: Vec<String>,
    /// The time base of the records.
    pub clock: Clock,
    /// Names of events.
    pub names: Vec<Name>,
    /// When the trace began, by the clock of this machine: Unix time, ns.
    pub started_unix_ns: i64,
    /// Duration, ns of that machine's own time.
    pub duration_ns: i64,
    /// Warnings for the reader.
    pub warnings: Vec<String>,
}

/// The records of one thread of a synthetic trace.
#[derive(Clone, Debug, Default)]
pub struct SyntheticRing {
    /// Process number.
    pub pid: i32,
    /// Thread number.
    pub tid: i32,
    /// Name of the thread; may be empty.
    pub name: String,
    /// The records, in order.
    pub records: Vec<Record>,
    /// When each record was really made, ns of that machine's own time; empty, or as many as
    /// there are records.
    pub true_ns: Vec<i64>,
}

/// Writes a trace, and the true times where there are any, into a new directory. `progress`
/// receives the share done, 0 to 1.
///
/// # Errors
/// The directory exists already, the disk refuses, or a figure of the clock is not
/// finite; nothing is left behind then.
///
/// # Panics
/// A ring has true times, but not as many as records.
pub fn write(
    trace: &Path,
    description: SyntheticTrace,
    rings: &[SyntheticRing],
    progress: &mut dyn FnMut(f64),
) -> Result<Manifest, TraceError> {
    if !description.clock.read_cost_ns_median.is_finite()
        || !description.clock.rate_error_ppb.is_finite()
    {
        // JSON cannot represent it, so readers of the trace would fail.
        return Err(TraceError::Recording(
            "a figure of the trace's clock is not finite".to_owned(),
        ));
    }
    TraceDir::make(trace)?;
    let written = write_into(trace, description, rings, progress);
    if written.is_err() {
        let _ = std::fs::remove_file(trace.join(TRUTH_FILE));
        remove_empty(trace);
    }
    written
}

fn write_into(
    trace: &Path,
    description: SyntheticTrace,
    rings: &[SyntheticRing],
    progress: &mut dyn FnMut(f64),
) -> Result<Manifest, TraceError> {
    let raw = trace.join(RAW_FILE);
    let mut bytes = Vec::new();
    for (number, ring) in rings.iter().enumerate() {
        let mut position = 0;
        for records in ring.records.chunks(block::MAX_RECORDS) {
            let words: Vec<[u64; 2]> = records.iter().map(|r| r.to_words()).collect();
            let header = BlockHeader {
                ring: number as u32,
                pid: ring.pid,
                tid: ring.tid,
                position,
                records: records.len() as u32,
            };
            block::encode(header, &words, &mut bytes);
            position += 16 * records.len() as u64;
        }
    }
    std::fs::write(&raw, bytes).map_err(TraceError::io(&raw, "cannot write"))?;
    if rings.iter().any(|ring| !ring.true_ns.is_empty()) {
        write_truth(&trace.join(TRUTH_FILE), rings)?;
    }
    let mut manifest = manifest(description, rings);
    finalize::finish_events(&TraceDir::open(trace)?, &mut manifest, None, progress)?;
    Ok(manifest)
}

fn manifest(description: SyntheticTrace, rings: &[SyntheticRing]) -> Manifest {
    let threads = rings.iter().filter(|ring| !ring.name.is_empty());
    Manifest {
        started_unix_ns: description.started_unix_ns,
        duration_ns: Some(description.duration_ns),
        command: description.command,
        names: description.names,
        threads: threads
            .map(|ring| Thread {
                pid: ring.pid,
                tid: ring.tid,
                name: ring.name.clone(),
            })
            .collect(),
        rings: (rings.iter().enumerate())
            .map(|(number, ring)| {
                let is_event = |r: &&Record| r.kind != Kind::Continuation;
                let written = ring.records.iter().filter(is_event).count() as u64;
                Ring {
                    ring: number as i32,
                    pid: ring.pid,
                    tid: ring.tid,
                    written,
                    received: written,
                    dropped: 0,
                    overwritten: 0,
                    spans_wait: None,
                    interposed: false,
                    read_cost: None,
                }
            })
            .collect(),
        warnings: description.warnings,
        ..Manifest::new(description.host, description.clock, "grow")
    }
}

/// Writes the columns `ring`, `row` (of that ring, from 0), `ts` (the reading, ticks) and
/// `true_ns`.
fn write_truth(path: &Path, rings: &[SyntheticRing]) -> Result<(), TraceError> {
    let failed = |e| parquet_error(path, "cannot write", e);
    let column = |name: &str, data_type| Field::new(name, data_type, false);
    let schema = Arc::new(Schema::new(vec![
        column("ring", DataType::Int32),
        column("row", DataType::Int64),
        column("ts", DataType::Int64),
        column("true_ns", DataType::Int64),
    ]));
    let file = File::create(path).map_err(TraceError::io(path, "cannot create"))?;
    let mut writer =
        ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties())).map_err(failed)?;
    for (number, ring) in rings.iter().enumerate() {
        if ring.true_ns.is_empty() {
            continue;
        }
        assert_eq!(ring.true_ns.len(), ring.records.len(), "a true time each");
        let rows = ring.records.len();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(vec![number as i32; rows])),
            Arc::new(Int64Array::from_iter_values(0..rows as i64)),
            Arc::new(Int64Array::from_iter_values(
                ring.records.iter().map(|r| r.ts.cast_signed()),
            )),
            Arc::new(Int64Array::from(ring.true_ns.clone())),
        ];
        let batch =
            RecordBatch::try_new(Arc::clone(&schema), columns).expect("columns as the schema says");
        writer.write(&batch).map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    Ok(())
}

/// The true time of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrueTime {
    /// The record's ring.
    pub ring: i32,
    /// The record's index in the ring, from 0.
    pub row: i64,
    /// The reading, ticks.
    pub ts: i64,
    /// The true time, ns of that machine's own time.
    pub true_ns: i64,
}

/// Returns the true times of a trace, ring by ring; `None` where it has none.
///
/// # Errors
/// The file cannot be read, or does not have this format.
pub fn truth(trace: &Path) -> Result<Option<Vec<TrueTime>>, TraceError> {
    let path = trace.join(TRUTH_FILE);
    let Some(file) = undertick_format::input::open_if_there(&path)? else {
        return Ok(None);
    };
    let failed = |e| parquet_error(&path, "cannot read", e);
    let damaged = || TraceError::damaged(&path, "not the columns that Undertick writes");
    let batches = (ParquetRecordBatchReaderBuilder::try_new(file).map_err(failed)?)
        .build()
        .map_err(failed)?;
    let mut times = Vec::new();
    for batch in batches {
        let batch = batch.map_err(|e| TraceError::damaged(&path, e))?;
        let ring = (batch.column_by_name("ring"))
            .and_then(|c| c.as_primitive_opt::<Int32Type>())
            .ok_or_else(damaged)?;
        let long = |name: &str| {
            let column = batch.column_by_name(name).cloned();
            column.ok_or_else(damaged)
        };
        let [row, ts, true_ns] = [long("row")?, long("ts")?, long("true_ns")?];
        let of = |column: &ArrayRef, i: usize| {
            (column.as_primitive_opt::<Int64Type>())
                .map(|c| c.value(i))
                .ok_or_else(damaged)
        };
        for i in 0..batch.num_rows() {
            times.push(TrueTime {
                ring: ring.value(i),
                row: of(&row, i)?,
                ts: of(&ts, i)?,
                true_ns: of(&true_ns, i)?,
            });
        }
    }
    Ok(Some(times))
}

#[cfg(test)]
mod tests;
