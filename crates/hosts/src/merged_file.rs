//! A file of merged rows that is being written.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use undertick_format::manifest::Part;
use undertick_format::read::Trace;
use undertick_format::schema::merged_schema;
use undertick_format::{TraceError, parquet_error};
use undertick_record::output::{checksum, properties};

/// Returns the error for a trace whose rows changed while it was merged.
pub(super) fn outside(trace: &Trace) -> TraceError {
    TraceError::damaged(trace.dir(), "its rows changed while it was being merged")
}

/// A Parquet file that is being written.
pub(super) struct Writer<'a> {
    path: &'a Path,
    writer: ArrowWriter<BufWriter<File>>,
    rows: u64,
}

impl<'a> Writer<'a> {
    pub(super) fn create(path: &'a Path) -> Result<Self, TraceError> {
        let file = File::create(path).map_err(TraceError::io(path, "cannot create"))?;
        let file = BufWriter::with_capacity(1 << 20, file);
        let writer = ArrowWriter::try_new(file, merged_schema(), Some(properties()))
            .map_err(|e| parquet_error(path, "cannot write", e))?;
        Ok(Self {
            path,
            writer,
            rows: 0,
        })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), TraceError> {
        self.rows += batch.num_rows() as u64;
        (self.writer.write(batch)).map_err(|e| parquet_error(self.path, "cannot write", e))
    }

    pub(super) fn finish(self, name: &str, by_ring: bool) -> Result<Part, TraceError> {
        let file = (self.writer.into_inner())
            .map_err(|e| parquet_error(self.path, "cannot write", e))?
            .into_inner()
            .map_err(|e| TraceError::io(self.path, "cannot write")(e.into_error()))?;
        file.sync_all()
            .map_err(TraceError::io(self.path, "cannot write"))?;
        let (bytes, crc32) = checksum(self.path)?;
        Ok(Part {
            file: name.to_owned(),
            rows: self.rows,
            bytes,
            crc32,
            by_ring,
        })
    }
}
