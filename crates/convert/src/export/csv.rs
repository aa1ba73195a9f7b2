//! Comma-separated values.

use std::io::{self, Write};

use undertick_format::read::Trace;

use super::{Names, Out, Row, Sink, finish, kind_name};

pub struct Csv {
    out: Out,
}

impl Csv {
    pub fn new(out: Out) -> Self {
        Self { out }
    }
}

impl Sink for Csv {
    fn begin(&mut self, _: &Trace) -> io::Result<()> {
        writeln!(
            self.out,
            "unix_ns,ticks,ring,pid,tid,cpu,mode,kind,descheduled,event,name,payload"
        )
    }

    fn row(&mut self, row: &Row, names: &Names) -> io::Result<()> {
        let name = names.name_of(row);
        writeln!(
            self.out,
            "{},{},{},{},{},{},{},{},{},{},{},{}",
            row.unix_ns,
            row.ticks,
            row.ring,
            row.pid,
            row.tid,
            row.cpu,
            if row.mode == 0 { "user" } else { "kernel" },
            kind_name(row.kind),
            row.descheduled,
            row.event,
            undertick_text::csv_cell(&name),
            row.payload
        )
    }

    fn end(&mut self) -> io::Result<()> {
        finish(&mut self.out)
    }
}
