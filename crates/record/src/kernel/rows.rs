//! Rows of the kernel, and the file that they are written to.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int16Array, Int32Array, Int64Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use undertick_format::schema::{Kind, event_schema};
use undertick_format::{TraceError, parquet_error};

use crate::output::properties;

/// Rows written at a time.
const BATCH_ROWS: usize = 1 << 15;

/// A row to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Time, ticks of the clock of the trace.
    pub ticks: i64,
    /// Process it is about.
    pub pid: i32,
    /// Thread it is about; 0: none.
    pub tid: i32,
    /// CPU it was on.
    pub cpu: i16,
    /// What happened.
    pub kind: Kind,
    /// Event number, as in [`undertick_format::schema`].
    pub event: i32,
    /// Its value.
    pub payload: i64,
}

/// Rows to be written to the file.
#[derive(Debug)]
pub struct Sink<'a> {
    target: &'a Path,
    writer: ArrowWriter<BufWriter<File>>,
    rows: Vec<Row>,
    written: u64,
}

impl<'a> Sink<'a> {
    /// Creates the file, which must not exist.
    ///
    /// # Errors
    /// It exists, or cannot be written.
    pub fn create(target: &'a Path) -> Result<Self, TraceError> {
        let file = File::create_new(target).map_err(TraceError::io(target, "cannot create"))?;
        Self::new(file, target)
    }

    pub(super) fn new(file: File, target: &'a Path) -> Result<Self, TraceError> {
        let file = BufWriter::with_capacity(1 << 18, file);
        let writer = ArrowWriter::try_new(file, event_schema(), Some(properties()))
            .map_err(|e| parquet_error(target, "cannot write", e))?;
        Ok(Self {
            target,
            writer,
            rows: Vec::with_capacity(BATCH_ROWS),
            written: 0,
        })
    }

    /// Adds a row; [`Self::write_full`] writes rows when there are many.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Writes the rows that wait, if there are enough for a batch.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn write_full(&mut self) -> Result<(), TraceError> {
        if self.rows.len() >= BATCH_ROWS {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), TraceError> {
        let batch = batch(&self.rows);
        self.written += self.rows.len() as u64;
        self.rows.clear();
        self.writer
            .write(&batch)
            .map_err(|e| parquet_error(self.target, "cannot write", e))
    }

    /// Writes what is left; returns the number of rows.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn finish(mut self) -> Result<u64, TraceError> {
        self.write()?;
        let target = self.target;
        let file = self
            .writer
            .into_inner()
            .map_err(|e| parquet_error(target, "cannot write", e))?
            .into_inner()
            .map_err(|e| TraceError::io(target, "cannot write")(e.into_error()))?;
        file.sync_all()
            .map_err(TraceError::io(target, "cannot write"))?;
        Ok(self.written)
    }
}

fn batch(rows: &[Row]) -> RecordBatch {
    let i64s = |of: fn(&Row) -> i64| Arc::new(rows.iter().map(of).collect::<Int64Array>());
    let i32s = |of: fn(&Row) -> i32| Arc::new(rows.iter().map(of).collect::<Int32Array>());
    let same = |value: i8| Arc::new(Int8Array::from_value(value, rows.len()));
    let columns: Vec<ArrayRef> = vec![
        i64s(|row| row.ticks),
        i32s(|_| -1),
        i32s(|row| row.pid),
        i32s(|row| row.tid),
        Arc::new(rows.iter().map(|row| row.cpu).collect::<Int16Array>()),
        same(1),
        Arc::new(rows.iter().map(|row| row.kind as i8).collect::<Int8Array>()),
        same(0),
        i32s(|row| row.event),
        i64s(|row| row.payload),
        Arc::new(Int16Array::from_value(0, rows.len())),
    ];
    RecordBatch::try_new(event_schema(), columns).expect("columns as the schema says")
}
