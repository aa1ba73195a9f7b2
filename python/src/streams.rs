//! Record batches for other libraries, by the Arrow PyCapsule interface, which passes pointers and
//! copies nothing.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, Int8Array, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use undertick_analyze::spans::Spans;
use undertick_format::TraceError;
use undertick_format::read::Trace;
use undertick_format::schema::{self, event_schema};

/// Record batches of a trace or a report; each reading of it starts from the beginning.
#[pyclass(frozen, module = "undertick")]
pub struct Batches(Source);

enum Source {
    /// Rows of a trace with that mode.
    Rows { trace: Arc<Trace>, mode: i8 },
    /// Stored spans: their files, in order.
    Files {
        files: Vec<PathBuf>,
        schema: SchemaRef,
        /// The spans that own the files.
        spans: Arc<Spans>,
    },
    /// A batch in memory.
    Table(RecordBatch),
}

impl Batches {
    /// Returns the program's rows of a trace, or the kernel's.
    pub const fn rows(trace: Arc<Trace>, mode: i8) -> Self {
        Self(Source::Rows { trace, mode })
    }

    /// Returns the Parquet files of a directory of spans.
    ///
    /// # Errors
    /// The directory cannot be read, or holds none.
    pub fn parts(spans: Arc<Spans>) -> Result<Self, ArrowError> {
        let dir = spans.dir();
        let mut files: Vec<PathBuf> = std::fs::read_dir(dir)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        files.retain(|file| file.extension().is_some_and(|kind| kind == "parquet"));
        files.sort();
        let first = files.first().ok_or_else(|| {
            ArrowError::ParquetError(format!("{}: no files of spans in it", dir.display()))
        })?;
        let first = ParquetRecordBatchReaderBuilder::try_new(opened(first)?)?;
        let schema = Arc::clone(first.schema());
        Ok(Self(Source::Files {
            files,
            schema,
            spans,
        }))
    }

    /// Returns a table of one batch.
    pub const fn table(batch: RecordBatch) -> Self {
        Self(Source::Table(batch))
    }

    fn reader(&self) -> Box<dyn RecordBatchReader + Send> {
        match &self.0 {
            Source::Rows { trace, mode } => Box::new(Rows::new(Arc::clone(trace), *mode)),
            Source::Files {
                files,
                schema,
                spans,
            } => Box::new(Files {
                _spans: Arc::clone(spans),
                rest: files.clone().into_iter(),
                now: None,
                schema: Arc::clone(schema),
            }),
            Source::Table(batch) => {
                let schema = batch.schema();
                Box::new(RecordBatchIterator::new([Ok(batch.clone())], schema))
            }
        }
    }
}

#[pymethods]
impl Batches {
    /// Returns a stream of record batches; `requested_schema` is not followed, as the interface
    /// allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let stream = FFI_ArrowArrayStream::new(self.reader());
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        let what = match &self.0 {
            Source::Rows { trace, mode } => {
                let dir = trace.dir().display();
                let whose = if *mode == 0 {
                    "events"
                } else {
                    "kernel events"
                };
                format!("{whose} of {dir}")
            }
            Source::Files { files, .. } => format!("spans in {} files", files.len()),
            Source::Table(batch) => format!("{} rows", batch.num_rows()),
        };
        format!("<undertick.Batches: {what}; for pyarrow.table, polars.from_arrow, duckdb>")
    }
}

type Rest = Box<dyn Iterator<Item = Result<RecordBatch, TraceError>> + Send>;

/// Rows of one mode, batch by batch.
struct Rows {
    /// Borrows from `_trace`, so it is declared first: fields are dropped in order.
    rest: Rest,
    _trace: Arc<Trace>,
    mode: i8,
    /// Pieces of a batch that are still to be returned, last first.
    parts: Vec<RecordBatch>,
}

impl Rows {
    fn new(trace: Arc<Trace>, mode: i8) -> Self {
        let rest: Box<dyn Iterator<Item = Result<RecordBatch, TraceError>> + Send + '_> =
            Box::new(trace.batches());
        // SAFETY: only the lifetime changes. What the iterator borrows lies behind the Arc,
        // which does not move, is never written, and is dropped after it.
        let rest = unsafe { core::mem::transmute::<Box<_>, Rest>(rest) };
        Self {
            rest,
            _trace: trace,
            mode,
            parts: Vec::new(),
        }
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(part) = self.parts.pop() {
                return Some(Ok(part));
            }
            match self.rest.next()? {
                Ok(batch) => self.parts = of_mode(&batch, self.mode),
                Err(error) => return Some(Err(ArrowError::ExternalError(Box::new(error)))),
            }
        }
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        event_schema()
    }
}

/// Opens a regular file; never blocks.
fn opened(path: &Path) -> Result<File, ArrowError> {
    undertick_format::input::open(path).map_err(|e| ArrowError::ParquetError(e.to_string()))
}

/// Spans, file by file.
struct Files {
    /// Keeps the files in place while they are read.
    _spans: Arc<Spans>,
    rest: std::vec::IntoIter<PathBuf>,
    now: Option<ParquetRecordBatchReader>,
    schema: SchemaRef,
}

impl Files {
    /// Reads the next batch of the open file, or of the next file.
    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        loop {
            if let Some(batch) = self.now.as_mut().and_then(Iterator::next) {
                return batch.map(Some);
            }
            let Some(path) = self.rest.next() else {
                return Ok(None);
            };
            let file = opened(&path)?;
            self.now = Some(ParquetRecordBatchReaderBuilder::try_new(file)?.build()?);
        }
    }
}

impl Iterator for Files {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

impl RecordBatchReader for Files {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Returns the stretches of a batch with that mode, last first: views, no copies.
fn of_mode(batch: &RecordBatch, mode: i8) -> Vec<RecordBatch> {
    let modes = batch
        .column(schema::MODE)
        .as_any()
        .downcast_ref::<Int8Array>();
    let Some(modes) = modes.map(|modes| modes.values()) else {
        return Vec::new();
    };
    let mut parts = Vec::new();
    let mut from = 0;
    for stretch in modes.chunk_by(|a, b| a == b) {
        if stretch[0] == mode {
            parts.push(batch.slice(from, stretch.len()));
        }
        from += stretch.len();
    }
    parts.reverse();
    parts
}
