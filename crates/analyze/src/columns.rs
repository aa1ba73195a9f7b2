//! The columns of a batch that the kernel reads, checked once per batch.

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use undertick_trace::schema;

use crate::error::Error;

/// Plain slices of equal length.
pub(crate) struct Columns<'a> {
    pub(crate) ts: &'a [i64],
    pub(crate) ring: &'a [i32],
    pub(crate) pid: &'a [i32],
    pub(crate) tid: &'a [i32],
    pub(crate) mode: &'a [i8],
    pub(crate) kind: &'a [i8],
    pub(crate) descheduled: &'a [i8],
    pub(crate) event: &'a [i32],
    pub(crate) payload: &'a [i64],
    pub(crate) host: &'a [i16],
}

impl<'a> Columns<'a> {
    pub(crate) fn of(batch: &'a RecordBatch) -> Result<Self, Error> {
        Ok(Self {
            ts: column::<Int64Type>(batch, schema::TS, "ts")?,
            ring: column::<Int32Type>(batch, schema::RING, "ring")?,
            pid: column::<Int32Type>(batch, schema::PID, "pid")?,
            tid: column::<Int32Type>(batch, schema::TID, "tid")?,
            mode: column::<Int8Type>(batch, schema::MODE, "mode")?,
            kind: column::<Int8Type>(batch, schema::KIND, "kind")?,
            descheduled: column::<Int8Type>(batch, schema::DESCHEDULED, "descheduled")?,
            event: column::<Int32Type>(batch, schema::EVENT, "event")?,
            payload: column::<Int64Type>(batch, schema::PAYLOAD, "payload")?,
            host: column::<Int16Type>(batch, schema::HOST, "host")?,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.ts.len()
    }

    /// These rows only.
    pub(crate) fn rows(&self, range: std::ops::Range<usize>) -> Self {
        Self {
            ts: &self.ts[range.clone()],
            ring: &self.ring[range.clone()],
            pid: &self.pid[range.clone()],
            tid: &self.tid[range.clone()],
            mode: &self.mode[range.clone()],
            kind: &self.kind[range.clone()],
            descheduled: &self.descheduled[range.clone()],
            event: &self.event[range.clone()],
            payload: &self.payload[range.clone()],
            host: &self.host[range],
        }
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
