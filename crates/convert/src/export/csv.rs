//! Comma-separated values.

use std::borrow::Cow;

use arrow_array::RecordBatch;

use super::{Names, Row, Time, kind_name, rows_of};

/// The header line.
pub const HEADER: &[u8] =
    b"unix_ns,ticks,ring,pid,tid,cpu,mode,kind,descheduled,event,name,payload\n";

/// Returns a line for each row of a batch.
pub fn lines(batch: &RecordBatch, time: &Time, names: &Names) -> Vec<u8> {
    let mut out = Vec::with_capacity(96 * batch.num_rows());
    let mut last: Option<(i8, i32, i32, Cow<'_, str>)> = None;
    for row in rows_of(batch, time) {
        let of = (row.mode, row.pid, row.event);
        let cell = match &mut last {
            Some((mode, pid, event, cell)) if (*mode, *pid, *event) == of => cell,
            last => {
                let name = undertick_text::csv_cell(&names.name_of(&row)).into_owned();
                &mut last.insert((of.0, of.1, of.2, name.into())).3
            }
        };
        line(&mut out, &row, cell);
    }
    out
}

fn line(out: &mut Vec<u8>, row: &Row, name: &str) {
    let mut digits = itoa::Buffer::new();
    let mut number = |out: &mut Vec<u8>, number: i64| {
        out.extend_from_slice(digits.format(number).as_bytes());
        out.push(b',');
    };
    number(out, row.unix_ns);
    number(out, row.ticks);
    number(out, row.ring.into());
    number(out, row.pid.into());
    number(out, row.tid.into());
    number(out, row.cpu.into());
    out.extend_from_slice(if row.mode == 0 { b"user," } else { b"kernel," });
    out.extend_from_slice(kind_name(row.kind).as_bytes());
    out.push(b',');
    number(out, row.descheduled.into());
    number(out, row.event.into());
    out.extend_from_slice(name.as_bytes());
    out.push(b',');
    number(out, row.payload);
    let end = out.len() - 1;
    out[end] = b'\n';
}
