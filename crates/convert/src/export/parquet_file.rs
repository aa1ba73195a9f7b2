//! One Parquet file with nanoseconds and names, for ad-hoc queries.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use undertick_format::read::Trace;
use undertick_format::schema::event_schema;
use undertick_format::{TraceError, parquet_error};

use super::{Names, Time, kind_name, rows_in_all, rows_of};

pub fn write(
    trace: &Trace,
    file: File,
    path: &Path,
    progress: &mut dyn FnMut(f64),
) -> Result<u64, TraceError> {
    let names = Names::new(&trace.manifest);
    let time = Time::new(&trace.manifest)?;
    let total = rows_in_all(trace);
    let mut fields: Vec<Field> = event_schema()
        .fields()
        .iter()
        .map(|field| field.as_ref().clone())
        .collect();
    fields.extend([
        Field::new("unix_ns", DataType::Int64, false),
        Field::new("name", DataType::Utf8, false),
        Field::new("kind_name", DataType::Utf8, false),
    ]);
    let schema = Arc::new(Schema::new(fields));
    let level = ZstdLevel::try_new(1).map_err(|e| parquet_error(path, "cannot write", e))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .build();
    let failed = |e| parquet_error(path, "cannot write", e);
    let mut writer =
        ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties)).map_err(failed)?;
    let mut rows = 0u64;
    for batch in trace.batches() {
        let batch = batch?;
        let (mut ns, mut name, mut kind) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows_of(&batch, &time) {
            ns.push(row.unix_ns);
            name.push(names.name_of(&row));
            kind.push(kind_name(row.kind));
        }
        let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
        columns.push(Arc::new(Int64Array::from(ns)));
        columns.push(Arc::new(StringArray::from_iter_values(name)));
        columns.push(Arc::new(StringArray::from_iter_values(kind)));
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
            .map_err(|e| TraceError::damaged(path, e))?;
        writer.write(&batch).map_err(failed)?;
        rows += batch.num_rows() as u64;
        progress(rows as f64 / total);
    }
    let file = writer.into_inner().map_err(failed)?;
    file.sync_all()
        .map_err(TraceError::io(path, "cannot write"))?;
    Ok(rows)
}
