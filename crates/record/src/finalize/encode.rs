//! Encodes raw blocks as Parquet.

use std::fs::File;
use std::io::BufWriter;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::errors::ParquetError;
use undertick_format::block::Next;
use undertick_format::raw_order::RawGroups;
use undertick_format::rows::Rows;
use undertick_format::schema::event_schema;
use undertick_format::{TraceError, parquet_error};

use super::{Finalized, each_group};
use crate::output::properties;

/// Rows passed to the Parquet writer at a time.
const BATCH_ROWS: usize = 1 << 15;

/// Writes the events of a raw file as Parquet, ring by ring. Row groups are independent: each is
/// made by a separate thread and appended in order. This is twice as fast on two CPUs.
pub(super) fn write_events(
    raw: Vec<(PathBuf, File)>,
    file: File,
    target: &Path,
    possible: &RangeInclusive<i64>,
    progress: &mut dyn FnMut(f64),
) -> Result<Finalized, TraceError> {
    let bad = |e| parquet_error(target, "cannot write", e);
    let failed = || TraceError::io(target, "cannot write");
    let mut groups = RawGroups::from_files(raw)?;
    let (mut writer, columns) = ArrowWriter::try_new(
        BufWriter::with_capacity(1 << 20, file),
        event_schema(),
        Some(properties()),
    )
    .and_then(ArrowWriter::into_serialized_writer)
    .map_err(bad)?;
    let columns = &columns;
    let mut kept = Finalized::default();
    let encode = |blocks: &[u8]| encode_group(blocks, columns, possible);
    each_group(&mut groups, encode, |encoded, share| {
        let (chunks, of_group) = encoded.map_err(bad)?;
        if of_group.rows > 0 {
            let mut group = writer.next_row_group().map_err(bad)?;
            for chunk in chunks {
                chunk.append_to_row_group(&mut group).map_err(bad)?;
            }
            group.close().map_err(bad)?;
        }
        kept.add(of_group);
        if !kept.damaged {
            progress(share);
        }
        Ok(!kept.damaged)
    })?;
    kept.damaged |= groups.damaged;
    kept.by_ring = groups.is_by_ring();
    let file = writer
        .into_inner()
        .map_err(bad)?
        .into_inner()
        .map_err(|e| failed()(e.into_error()))?;
    file.sync_all().map_err(failed())?;
    Ok(kept)
}

/// Decodes raw blocks and encodes them as the columns of a row group.
fn encode_group(
    mut blocks: &[u8],
    columns: &ArrowRowGroupWriterFactory,
    possible: &RangeInclusive<i64>,
) -> Result<(Vec<ArrowColumnChunk>, Finalized), ParquetError> {
    let mut writers = columns.create_column_writers(0)?;
    let mut write = |batch: RecordBatch, kept: &mut Finalized| {
        let batch = kept.only_possible(batch, possible)?;
        kept.rows += batch.num_rows() as u64;
        for ((writer, field), column) in writers
            .iter_mut()
            .zip(batch.schema_ref().fields())
            .zip(batch.columns())
        {
            for leaf in compute_leaves(field, column)? {
                writer.write(&leaf)?;
            }
        }
        Ok::<_, ParquetError>(())
    };
    let mut kept = Finalized::default();
    let mut rows = Rows::default();
    loop {
        let (next, events) = rows.push_block(blocks);
        match next {
            Next::Block(header, bytes) => {
                *kept.received.entry(header.ring as i32).or_default() += events;
                blocks = &blocks[bytes..];
            }
            Next::Damaged => {
                kept.damaged = true;
                break;
            }
            Next::End => break,
        }
        if rows.len() >= BATCH_ROWS {
            write(rows.take(), &mut kept)?;
        }
    }
    if !rows.is_empty() {
        write(rows.take(), &mut kept)?;
    }
    let chunks = writers.into_iter().map(ArrowColumnWriter::close);
    Ok((chunks.collect::<Result<_, _>>()?, kept))
}
