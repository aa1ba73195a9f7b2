//! One Parquet file with nanoseconds and names, for ad-hoc queries.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use undertick_format::read::Trace;
use undertick_format::schema::event_schema;
use undertick_format::{TraceError, parquet_error};
use undertick_record::output::properties;

use super::in_order::in_order;
use super::{Names, Time, close, kind_name, rows_in_all, rows_of};

/// Minimum of rows in a row group, which one thread encodes.
const GROUP_ROWS: usize = 1 << 17;

/// Writes the rows, as the columns of a trace with `unix_ns`, `name` and `kind_name`. Row groups
/// are encoded on all CPUs.
pub fn write(
    trace: &Trace,
    file: File,
    path: &Path,
    progress: &mut dyn FnMut(f64),
) -> Result<u64, TraceError> {
    let names = Names::new(&trace.manifest);
    let time = Time::new(&trace.manifest)?;
    let total = rows_in_all(trace);
    let failed = |e| parquet_error(path, "cannot write", e);
    let schema = schema();
    let (mut writer, columns) = ArrowWriter::try_new(file, Arc::clone(&schema), Some(encodings()))
        .and_then(ArrowWriter::into_serialized_writer)
        .map_err(failed)?;
    let mut rows = 0;
    let encode = |batches: Vec<RecordBatch>| {
        let of_group: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let chunks = encode_group(&batches, &schema, &columns, |batch| {
            described(batch, &time, &names)
        });
        Ok((chunks.map_err(failed)?, of_group))
    };
    in_order(row_groups(trace.batches()), encode, |(chunks, of_group)| {
        let mut group = writer.next_row_group().map_err(failed)?;
        for chunk in chunks {
            chunk.append_to_row_group(&mut group).map_err(failed)?;
        }
        group.close().map_err(failed)?;
        rows += of_group as u64;
        progress(rows as f64 / total);
        Ok(())
    })?;
    let file = writer.into_inner().map_err(failed)?;
    close(file).map_err(TraceError::io(path, "cannot write"))?;
    Ok(rows)
}

/// The encodings of a trace, which take a third of the time that the default needs, and a
/// dictionary for names.
fn encodings() -> WriterProperties {
    let of_trace = properties().into_builder();
    let builder = ["name", "kind_name"]
        .into_iter()
        .map(ColumnPath::from)
        .fold(of_trace, |builder, text| {
            builder
                .set_column_encoding(text.clone(), Encoding::PLAIN)
                .set_column_dictionary_enabled(text, true)
        });
    let time = ColumnPath::from("unix_ns");
    let zstd = Compression::ZSTD(ZstdLevel::try_new(1).expect("level 1 exists"));
    builder.set_column_compression(time, zstd).build()
}

fn schema() -> SchemaRef {
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
    Arc::new(Schema::new(fields))
}

/// Collects batches until they make a row group.
fn row_groups(
    mut batches: impl Iterator<Item = Result<RecordBatch, TraceError>>,
) -> impl Iterator<Item = Result<Vec<RecordBatch>, TraceError>> {
    std::iter::from_fn(move || {
        let (mut group, mut rows) = (Vec::new(), 0);
        while rows < GROUP_ROWS {
            match batches.next() {
                Some(Ok(batch)) => {
                    rows += batch.num_rows();
                    group.push(batch);
                }
                Some(Err(error)) => return Some(Err(error)),
                None => break,
            }
        }
        (!group.is_empty()).then_some(Ok(group))
    })
}

/// The columns that an export adds to a batch.
fn described(batch: &RecordBatch, time: &Time, names: &Names) -> [ArrayRef; 3] {
    let rows = batch.num_rows();
    let mut ns = Vec::with_capacity(rows);
    let mut name = StringBuilder::with_capacity(rows, 16 * rows);
    let mut kind = StringBuilder::with_capacity(rows, 8 * rows);
    for row in rows_of(batch, time) {
        ns.push(row.unix_ns);
        name.append_value(names.name_of(&row));
        kind.append_value(kind_name(row.kind));
    }
    [
        Arc::new(Int64Array::from(ns)),
        Arc::new(name.finish()),
        Arc::new(kind.finish()),
    ]
}

fn encode_group(
    batches: &[RecordBatch],
    schema: &SchemaRef,
    columns: &ArrowRowGroupWriterFactory,
    more: impl Fn(&RecordBatch) -> [ArrayRef; 3],
) -> Result<Vec<ArrowColumnChunk>, ParquetError> {
    let mut writers = columns.create_column_writers(0)?;
    for batch in batches {
        let more = more(batch);
        let arrays = batch
            .columns()
            .iter()
            .take(schema.fields().len() - more.len());
        let columns = arrays.chain(&more);
        for ((writer, field), column) in writers.iter_mut().zip(schema.fields()).zip(columns) {
            for leaf in compute_leaves(field, column)? {
                writer.write(&leaf)?;
            }
        }
    }
    writers.into_iter().map(ArrowColumnWriter::close).collect()
}
