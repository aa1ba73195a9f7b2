//! The spans of a trace, one by one, as the report matches them.

use std::path::PathBuf;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use undertick_analyze::Options;
use undertick_format::input;
use undertick_format::manifest::Manifest;
use undertick_format::read::Trace;

use crate::Failure;

/// One span that counts in the figures.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    pub name: &'a str,
    /// Begin, ns since the recording's first anchor.
    pub start_ns: i64,
    /// Duration less the cost of recording, ns.
    pub ns: f64,
}

/// The spans of a trace, in files.
pub struct Spans {
    pub manifest: Manifest,
    parts: Vec<PathBuf>,
    /// Owner of the files.
    _spans: undertick_analyze::spans::Spans,
}

impl Spans {
    /// Matches, drops and compensates as the report does.
    pub fn find(
        trace: Trace,
        options: Options,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Self, Failure> {
        let spans = undertick_analyze::find_spans(&trace, options, progress)?;
        let dir = spans.dir();
        let files = std::fs::read_dir(dir)
            .map_err(|e| Failure::usage(format!("{}: {e}", dir.display())))?;
        let mut parts: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
        parts.retain(|path| path.extension().is_some_and(|ending| ending == "parquet"));
        parts.sort();
        Ok(Self {
            manifest: trace.manifest,
            parts,
            _spans: spans,
        })
    }

    /// Calls `take` for every span that counts; dropped spans are left out.
    pub fn each(&self, mut take: impl FnMut(Span<'_>)) -> Result<(), Failure> {
        for path in &self.parts {
            let bad = |e: &dyn std::fmt::Display| {
                Failure::usage(format!("{}: cannot be read: {e}", path.display()))
            };
            let file = input::open(path)?;
            let batches = (ParquetRecordBatchReaderBuilder::try_new(file))
                .and_then(ParquetRecordBatchReaderBuilder::build)
                .map_err(|e| bad(&e))?;
            for batch in batches {
                let batch = batch.map_err(|e| bad(&e))?;
                of_batch(&batch, &mut take).ok_or_else(|| bad(&"not its columns"))?;
            }
        }
        Ok(())
    }
}

fn of_batch(batch: &RecordBatch, take: &mut impl FnMut(Span<'_>)) -> Option<()> {
    let name = batch.column_by_name("name")?.as_string_opt::<i32>()?;
    let start = batch
        .column_by_name("start_ns")?
        .as_primitive_opt::<Int64Type>()?;
    let ns = batch
        .column_by_name("ns")?
        .as_primitive_opt::<Float64Type>()?;
    let dropped = batch.column_by_name("dropped")?;
    for i in (0..batch.num_rows()).filter(|&i| dropped.is_null(i)) {
        take(Span {
            name: name.value(i),
            start_ns: start.value(i),
            ns: ns.value(i),
        });
    }
    Some(())
}
