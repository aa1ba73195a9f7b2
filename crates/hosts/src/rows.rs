//! Converts rows of one trace to rows of a merged one.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, Int16Array, Int32Array, Int64Array, RecordBatch};

use undertick_format::manifest::HostMap;
use undertick_format::manifest::mapped::Cursor;
use undertick_format::schema::{self, Kind, merged_schema};

/// Distance of the process and thread numbers of two hosts: Linux has none above 2^22.
pub(super) const PIDS: i32 = 1 << 22;
/// The number of hosts for which there is room at that distance.
pub(super) const MOST_HOSTS: usize = 512;

/// Shifts a process or thread number of a host; 0 and below mean no process.
pub(super) const fn shifted(number: i32, shift: i32) -> i32 {
    if number > 0 {
        number.saturating_add(shift)
    } else {
        number
    }
}

/// The changes to the rows of a host.
#[derive(Debug)]
pub(super) struct Change<'a> {
    pub(super) host: i16,
    pub(super) ring_shift: i32,
    pub(super) pid_shift: i32,
    /// Ticks of the first host's clock for one of this host's.
    pub(super) ticks: f64,
    /// The map; `None` where the clock is the first host's.
    cursor: Option<Cursor<'a>>,
}

impl<'a> Change<'a> {
    pub(super) fn new(
        host: usize,
        (ring_shift, pid_shift): (i32, i32),
        ticks: f64,
        map: Option<&'a HostMap>,
    ) -> Self {
        let map = map.filter(|map| !map.is_same_clock);
        Self {
            host: host as i16,
            ring_shift,
            pid_shift,
            ticks,
            cursor: map.map(|map| Cursor::new(&map.knots)),
        }
    }

    /// Converts rows; `None` if a reading lies outside of the map.
    pub(super) fn rows(&mut self, batch: &RecordBatch) -> Option<RecordBatch> {
        let rows = batch.num_rows();
        let local = batch
            .column(schema::TS)
            .as_primitive::<Int64Type>()
            .values();
        let ts: Vec<i64> = match &mut self.cursor {
            None => local.to_vec(),
            Some(cursor) => (local.iter().map(|&t| cursor.ts_at(t))).collect::<Option<_>>()?,
        };
        let numbers = |column: usize| batch.column(column).as_primitive::<Int32Type>().values();
        let processes = |column: usize| {
            let shift = self.pid_shift;
            Int32Array::from_iter_values(numbers(column).iter().map(|&n| shifted(n, shift)))
        };
        let ring = |n: &i32| if *n >= 0 { n + self.ring_shift } else { *n };
        let kind = batch
            .column(schema::KIND)
            .as_primitive::<Int8Type>()
            .values();
        let payload = batch.column(schema::PAYLOAD).as_primitive::<Int64Type>();
        let payload = (kind.iter().zip(payload.values())).map(|(&k, &p)| self.payload(k, p));
        let mut columns: Vec<ArrayRef> = batch.columns()[..=schema::HOST].to_vec();
        columns[schema::TS] = Arc::new(Int64Array::from(ts));
        columns[schema::RING] = Arc::new(Int32Array::from_iter_values(
            numbers(schema::RING).iter().map(ring),
        ));
        columns[schema::PID] = Arc::new(processes(schema::PID));
        columns[schema::TID] = Arc::new(processes(schema::TID));
        columns[schema::PAYLOAD] = Arc::new(Int64Array::from_iter_values(payload));
        columns[schema::HOST] = Arc::new(Int16Array::from(vec![self.host; rows]));
        columns.push(Arc::clone(batch.column(schema::TS)));
        Some(RecordBatch::try_new(merged_schema(), columns).expect("columns of the schema"))
    }

    /// Converts payloads that are the host's own ticks or threads.
    fn payload(&self, kind: i8, payload: i64) -> i64 {
        match Kind::from_code(kind) {
            Some(Kind::Waking) => {
                i32::try_from(payload).map_or(payload, |tid| shifted(tid, self.pid_shift).into())
            }
            Some(
                Kind::Pair
                | Kind::BeginOrdered
                | Kind::EndOrdered
                | Kind::Interrupt
                | Kind::SoftInterrupt
                | Kind::Fault
                | Kind::Epoch,
            ) if self.ticks != 1.0 && payload != -1 => (payload as f64 * self.ticks).round() as i64,
            _ => payload,
        }
    }
}

#[cfg(test)]
mod tests;
