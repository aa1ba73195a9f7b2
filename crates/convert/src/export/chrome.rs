//! Chrome trace events: one JSON object with `traceEvents`.

use std::io::{self, Write};

use undertick_format::read::Trace;
use undertick_format::schema::Kind;

use super::{Names, Nesting, Out, Row, Sink, close};

pub struct Chrome {
    out: Out,
    nesting: Nesting,
    first: bool,
    /// Origin of times, so that microseconds keep their digits as doubles.
    start_ns: Option<i64>,
}

impl Chrome {
    pub fn new(out: Out) -> Self {
        Self {
            out,
            nesting: Nesting::default(),
            first: true,
            start_ns: None,
        }
    }

    fn event(&mut self, phase: char, name: Option<&str>, row: &Row, extra: &str) -> io::Result<()> {
        let since = row.unix_ns - *self.start_ns.get_or_insert(row.unix_ns);
        let sign = if since < 0 { "-" } else { "" };
        let (us, ns) = (since.unsigned_abs() / 1000, since.unsigned_abs() % 1000);
        if !std::mem::take(&mut self.first) {
            self.out.write_all(b",\n")?;
        }
        write!(
            self.out,
            "{{\"ph\":\"{phase}\",\"pid\":{},\"tid\":{},\"ts\":{sign}{us}.{ns:03}",
            row.pid, row.tid
        )?;
        if let Some(name) = name {
            write!(self.out, ",\"name\":{}", serde_json::to_string(name)?)?;
        }
        write!(self.out, "{extra}}}")
    }

    fn ends(&mut self, closed: usize, row: &Row) -> io::Result<()> {
        (0..closed).try_for_each(|_| self.event('E', None, row, ""))
    }
}

impl Sink for Chrome {
    fn begin(&mut self, trace: &Trace) -> io::Result<()> {
        self.out
            .write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        for thread in &trace.manifest.threads {
            if !std::mem::take(&mut self.first) {
                self.out.write_all(b",\n")?;
            }
            let name = serde_json::to_string(&thread.name)?;
            write!(
                self.out,
                "{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{name}}}}}",
                thread.pid, thread.tid
            )?;
        }
        Ok(())
    }

    fn row(&mut self, row: &Row, names: &Names) -> io::Result<()> {
        if row.mode != 0 {
            return Ok(()); // of the kernel: of no ring
        }
        let slices = self.nesting.apply(row);
        self.ends(slices.closed, row)?;
        if let Some(event) = slices.begun {
            self.event('B', Some(&names.event(row.pid, event)), row, "")?;
        }
        match row.kind {
            Some(Kind::Gap) => {
                let extra = format!(",\"s\":\"t\",\"args\":{{\"lost\":{}}}", row.payload);
                self.event('i', Some("events lost"), row, &extra)
            }
            Some(Kind::Instant | Kind::Pair) => {
                let extra = format!(",\"s\":\"t\",\"args\":{{\"payload\":{}}}", row.payload);
                self.event('i', Some(&names.event(row.pid, row.event)), row, &extra)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn end(mut self) -> io::Result<()> {
        self.out.write_all(b"\n]}\n")?;
        close(self.out.into_inner()?)
    }
}
