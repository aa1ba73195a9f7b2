//! The columns of a batch that the analysis reads, checked once per batch.

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use undertick_format::block::BlockHeader;
use undertick_format::rows::RowsOfRing;
use undertick_format::schema;

use crate::error::Error;

/// Plain slices of equal length; rows of several rings.
pub struct Columns<'a> {
    pub rows: RowsOfRing<'a>,
    pub ring: &'a [i32],
    pub pid: &'a [i32],
    pub tid: &'a [i32],
    pub mode: &'a [i8],
    pub host: &'a [i16],
}

impl<'a> Columns<'a> {
    pub fn from_batch(batch: &'a RecordBatch) -> Result<Self, Error> {
        // In the order of the columns: the error names the first wrong one.
        let ts = column::<Int64Type>(batch, schema::TS, "ts")?;
        let ring = column::<Int32Type>(batch, schema::RING, "ring")?;
        let pid = column::<Int32Type>(batch, schema::PID, "pid")?;
        let tid = column::<Int32Type>(batch, schema::TID, "tid")?;
        let mode = column::<Int8Type>(batch, schema::MODE, "mode")?;
        Ok(Self {
            rows: RowsOfRing {
                ts,
                kind: column::<Int8Type>(batch, schema::KIND, "kind")?,
                descheduled: column::<Int8Type>(batch, schema::DESCHEDULED, "descheduled")?,
                event: column::<Int32Type>(batch, schema::EVENT, "event")?,
                payload: column::<Int64Type>(batch, schema::PAYLOAD, "payload")?,
            },
            ring,
            pid,
            tid,
            mode,
            host: column::<Int16Type>(batch, schema::HOST, "host")?,
        })
    }

    pub fn n_rows(&self) -> usize {
        self.ring.len()
    }

    /// The writer of a row.
    pub fn writer(&self, row: usize) -> Writer {
        Writer {
            ring: self.ring[row],
            pid: self.pid[row],
            tid: self.tid[row],
            host: self.host[row],
        }
    }
}

/// The writer of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    pub ring: i32,
    pub pid: i32,
    pub tid: i32,
    pub host: i16,
}

impl Writer {
    pub fn from_block(block: BlockHeader) -> Self {
        Self {
            ring: block.ring as i32,
            pid: block.pid,
            tid: block.tid,
            host: 0,
        }
    }
}

/// Returns only the rows in `range`.
pub fn cut<'a>(rows: &RowsOfRing<'a>, range: std::ops::Range<usize>) -> RowsOfRing<'a> {
    RowsOfRing {
        ts: &rows.ts[range.clone()],
        kind: &rows.kind[range.clone()],
        descheduled: &rows.descheduled[range.clone()],
        event: &rows.event[range.clone()],
        payload: &rows.payload[range],
    }
}

fn column<'a, T: ArrowPrimitiveType>(
    batch: &'a RecordBatch,
    column: usize,
    name: &'static str,
) -> Result<&'a [T::Native], Error> {
    let wrong = |what: String| Error::Batch { column, name, what };
    if column >= batch.num_columns() {
        return Err(wrong("is missing".into()));
    }
    let array = batch.column(column);
    let typed = array.as_primitive_opt::<T>().ok_or_else(|| {
        wrong(format!(
            "is {}, it must be {}",
            array.data_type(),
            T::DATA_TYPE
        ))
    })?;
    if typed.null_count() > 0 {
        return Err(wrong(format!("has {} nulls", typed.null_count())));
    }
    Ok(typed.values())
}
