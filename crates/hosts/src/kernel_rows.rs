//! The kernel's rows of several hosts, in order of time on the first one's clock.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_select::interleave::interleave_record_batch;
use undertick_format::read::Trace;
use undertick_format::{TraceError, schema};

use super::extent::kernel_rows;
use super::merged_file::{Writer, outside};
use super::rows::Change;

/// Rows passed to the Parquet writer at a time.
const BATCH_ROWS: usize = 1 << 15;

/// A host's rows that have been read.
struct Host<'a> {
    trace: &'a Trace,
    batches: Box<dyn Iterator<Item = Result<RecordBatch, TraceError>> + 'a>,
    change: Change<'a>,
    /// The current batch, and its next row.
    batch: Option<RecordBatch>,
    at: usize,
}

impl Host<'_> {
    /// Time of the next row, ticks of the first host; `None` at the end.
    fn next_ts(&self) -> Option<i64> {
        let batch = self.batch.as_ref()?;
        let ts = batch.column(schema::TS).as_primitive::<Int64Type>();
        ts.values().get(self.at).copied()
    }

    fn read(&mut self) -> Result<(), TraceError> {
        self.at = 0;
        self.batch = None;
        // After the first row that is not the kernel's there are no more of the kernel's.
        if let Some(batch) = self.batches.next().transpose()? {
            let kernel = batch.slice(0, kernel_rows(&batch));
            if kernel.num_rows() > 0 {
                let changed = self.change.rows(&kernel);
                self.batch = Some(changed.ok_or_else(|| outside(self.trace))?);
            }
        }
        Ok(())
    }
}

/// Writes the rows of all hosts.
pub(super) fn write(
    traces: &[Trace],
    changes: Vec<Change<'_>>,
    writer: &mut Writer<'_>,
) -> Result<(), TraceError> {
    let mut hosts = Vec::new();
    for (trace, change) in traces.iter().zip(changes) {
        let mut host = Host {
            trace,
            batches: Box::new(trace.batches()),
            change,
            batch: None,
            at: 0,
        };
        host.read()?;
        hosts.push(host);
    }
    // Rows in order: the host of the batch, and the row in it.
    let mut order: Vec<(usize, usize)> = Vec::new();
    loop {
        let next = (hosts.iter().enumerate())
            .filter_map(|(place, host)| Some((host.next_ts()?, place)))
            .min();
        let Some((_, place)) = next else {
            return flush(&hosts, &mut order, writer);
        };
        order.push((place, hosts[place].at));
        hosts[place].at += 1;
        if hosts[place].next_ts().is_none() {
            flush(&hosts, &mut order, writer)?;
            hosts[place].read()?;
        } else if order.len() == BATCH_ROWS {
            flush(&hosts, &mut order, writer)?;
        }
    }
}

fn flush(
    hosts: &[Host<'_>],
    order: &mut Vec<(usize, usize)>,
    writer: &mut Writer<'_>,
) -> Result<(), TraceError> {
    if order.is_empty() {
        return Ok(());
    }
    // The order names only hosts with a batch; without the others positions shift.
    let batches: Vec<&RecordBatch> = hosts.iter().filter_map(|h| h.batch.as_ref()).collect();
    let shift: Vec<usize> = (0..hosts.len())
        .map(|place| hosts[..place].iter().filter(|h| h.batch.is_some()).count())
        .collect();
    for (place, _) in order.iter_mut() {
        *place = shift[*place];
    }
    let rows = interleave_record_batch(&batches, order).map_err(|e| {
        TraceError::Recording(format!("the kernel's rows cannot be put in order: {e}"))
    })?;
    order.clear();
    writer.write(&rows)
}
