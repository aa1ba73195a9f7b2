//! Writes a trace in the formats of other tools. It streams: memory grows with the functions that were sampled,
//! and not with the rows of the trace.
//! Times are Unix nanoseconds by the trace's first anchor.

mod chrome;
mod csv;
mod in_order;
pub mod otlp;
mod parquet_file;
mod perfetto;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::IntoRawFd as _;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type};
use undertick_units::TickRate;

use undertick_format::TraceError;
use undertick_format::arrows::ArrowEnd;
use undertick_format::manifest::Manifest;
use undertick_format::read::Trace;
use undertick_format::schema::{self, Kind};
use undertick_format::stacks::StackTable;

use in_order::in_order;

/// A format to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Perfetto protobuf (`TracePacket`s with `TrackEvent`s).
    Perfetto,
    /// Chrome trace events, a JSON object.
    Chrome,
    /// Comma-separated values (RFC 4180) with a header line.
    Csv,
    /// One Parquet file.
    Parquet,
}

/// Unit, in Perfetto, of the values that points carry. An import skips these values, because it
/// has the points themselves.
pub(crate) const PAYLOAD_OF_POINTS: &str = "payload of points";

/// Writes the trace to a new file; returns the rows read. `arrows` are in the order of rows;
/// formats without arrows leave them out. `progress` receives the share done, 0 to 1.
///
/// # Errors
/// The file exists or cannot be written, or the trace is damaged; then no file
/// is left.
pub fn export(
    trace: &Trace,
    format: Format,
    path: &Path,
    arrows: &[ArrowEnd],
    progress: &mut dyn FnMut(f64),
) -> Result<u64, TraceError> {
    let file = create(path)?;
    let result = match format {
        Format::Parquet => parquet_file::write(trace, file, path, progress),
        Format::Perfetto => StackTable::read(trace.dir()).and_then(|stacks| {
            let sink = perfetto::Perfetto::new(buffered(file), stacks.unwrap_or_default());
            drive(trace, path, arrows, progress, sink)
        }),
        Format::Chrome => {
            let sink = chrome::Chrome::new(buffered(file));
            drive(trace, path, &[], progress, sink)
        }
        Format::Csv => write_csv(trace, path, file, progress),
    };
    if result.is_err() {
        let _ = std::fs::remove_file(path);
    }
    result
}

fn create(path: &Path) -> Result<File, TraceError> {
    File::create_new(path).map_err(|error| {
        if error.kind() == io::ErrorKind::AlreadyExists {
            TraceError::Usage(format!(
                "{}: exists already; remove it or give another name",
                path.display()
            ))
        } else {
            TraceError::io(path, "cannot create")(error)
        }
    })
}

type Out = BufWriter<File>;

fn buffered(file: File) -> Out {
    BufWriter::with_capacity(1 << 20, file)
}

/// Closes a file; some file systems say only then that they could not write it.
fn close(file: File) -> io::Result<()> {
    // SAFETY: nothing else has the descriptor.
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// An output format, which receives the rows as a stream.
trait Sink {
    /// What failed, for messages.
    const ACTION: &'static str = "cannot write";

    fn begin(&mut self, trace: &Trace) -> io::Result<()>;
    fn row(&mut self, row: &Row, names: &Names) -> io::Result<()>;
    fn end(self) -> io::Result<()>;
}

/// Number of rows of a trace, at least 1: progress is a share of it.
fn rows_in_all(trace: &Trace) -> f64 {
    let rows: u64 = trace.manifest.parts.iter().map(|part| part.rows).sum();
    rows.max(1) as f64
}

/// Passes the rows to a format that depends on their order, while another thread reads them.
fn drive<S: Sink>(
    trace: &Trace,
    path: &Path,
    mut arrows: &[ArrowEnd],
    progress: &mut dyn FnMut(f64),
    mut sink: S,
) -> Result<u64, TraceError> {
    let names = Names::new(&trace.manifest);
    let time = Time::new(&trace.manifest)?;
    let total = rows_in_all(trace);
    let failed = || TraceError::io(path, S::ACTION);
    sink.begin(trace).map_err(failed())?;
    let mut rows = 0u64;
    in_order(trace.batches(), Ok, |batch| {
        for (mut row, place) in rows_of(&batch, &time).zip(rows..) {
            while let Some((end, later)) = arrows.split_first().filter(|(a, _)| a.row == place) {
                row.arrows.push(end.arrow);
                arrows = later;
            }
            sink.row(&row, &names).map_err(failed())?;
        }
        rows += batch.num_rows() as u64;
        progress(rows as f64 / total);
        Ok(())
    })?;
    sink.end().map_err(failed())?;
    Ok(rows)
}

/// Writes lines, which are made on all CPUs.
fn write_csv(
    trace: &Trace,
    path: &Path,
    mut file: File,
    progress: &mut dyn FnMut(f64),
) -> Result<u64, TraceError> {
    let names = Names::new(&trace.manifest);
    let time = Time::new(&trace.manifest)?;
    let total = rows_in_all(trace);
    let failed = || TraceError::io(path, "cannot write");
    file.write_all(csv::HEADER).map_err(failed())?;
    let mut rows = 0u64;
    let work = |batch: RecordBatch| Ok((csv::lines(&batch, &time, &names), batch.num_rows()));
    in_order(slices(trace.batches()), work, |(lines, of_batch)| {
        file.write_all(&lines).map_err(failed())?;
        rows += of_batch as u64;
        progress(rows as f64 / total);
        Ok(())
    })?;
    close(file).map_err(failed())?;
    Ok(rows)
}

/// Cuts batches: with a long name, lines are a hundred times as long as rows.
fn slices(
    mut batches: impl Iterator<Item = Result<RecordBatch, TraceError>>,
) -> impl Iterator<Item = Result<RecordBatch, TraceError>> {
    const MOST_ROWS: usize = 4096;
    let mut rest: Option<RecordBatch> = None;
    std::iter::from_fn(move || {
        let batch = match rest.take() {
            Some(rest) => rest,
            None => match batches.next()? {
                Ok(batch) => batch,
                Err(error) => return Some(Err(error)),
            },
        };
        let rows = batch.num_rows();
        if rows > MOST_ROWS {
            rest = Some(batch.slice(MOST_ROWS, rows - MOST_ROWS));
        }
        Some(Ok(batch.slice(0, rows.min(MOST_ROWS))))
    })
}

/// One event, decoded.
struct Row {
    ticks: i64,
    unix_ns: i64,
    /// The end of a row of the kernel that has a duration; otherwise as `unix_ns`.
    end_unix_ns: i64,
    ring: i32,
    pid: i32,
    tid: i32,
    cpu: i16,
    mode: i8,
    kind: Option<Kind>,
    descheduled: i8,
    event: i32,
    payload: i64,
    /// Arrows that begin or end here.
    arrows: Vec<u64>,
}

fn rows_of<'a>(batch: &'a RecordBatch, time: &'a Time) -> impl Iterator<Item = Row> + 'a {
    let i64s = |c: usize| batch.column(c).as_primitive::<Int64Type>();
    let i32s = |c: usize| batch.column(c).as_primitive::<Int32Type>();
    let i16s = |c: usize| batch.column(c).as_primitive::<Int16Type>();
    let i8s = |c: usize| batch.column(c).as_primitive::<Int8Type>();
    let (ts, payload) = (i64s(schema::TS), i64s(schema::PAYLOAD));
    let (ring, pid, tid, event) = (
        i32s(schema::RING),
        i32s(schema::PID),
        i32s(schema::TID),
        i32s(schema::EVENT),
    );
    let cpu = i16s(schema::CPU);
    let (mode, kind, descheduled) = (
        i8s(schema::MODE),
        i8s(schema::KIND),
        i8s(schema::DESCHEDULED),
    );
    (0..batch.num_rows()).map(move |i| {
        let unix_ns = time.unix_ns(ts.value(i));
        Row {
            ticks: ts.value(i),
            unix_ns,
            end_unix_ns: match Kind::from_code(kind.value(i)) {
                Some(Kind::Interrupt | Kind::SoftInterrupt) => {
                    time.unix_ns(ts.value(i).saturating_add(payload.value(i).max(0)))
                }
                _ => unix_ns,
            },
            ring: ring.value(i),
            pid: pid.value(i),
            tid: tid.value(i),
            cpu: cpu.value(i),
            mode: mode.value(i),
            kind: Kind::from_code(kind.value(i)),
            descheduled: descheduled.value(i),
            event: event.value(i),
            payload: payload.value(i),
            arrows: Vec::new(),
        }
    })
}

/// Converts the trace clock to Unix time, by the first anchor and the rate.
struct Time {
    rate: TickRate,
    ticks: i64,
    unix_ns: i64,
}

impl Time {
    fn new(manifest: &Manifest) -> Result<Self, TraceError> {
        let clock = &manifest.clock;
        let rate = TickRate::new(
            clock.ticks_per_second_numerator,
            clock.ticks_per_second_denominator,
        )
        .map_err(|e| {
            TraceError::Usage(format!("the manifest's clock rate is not usable: {e:?}"))
        })?;
        let (ticks, unix_ns) = clock
            .anchors
            .first()
            .map_or((0, 0), |anchor| (anchor.ticks, anchor.unix_ns));
        Ok(Self {
            rate,
            ticks,
            unix_ns,
        })
    }

    fn unix_ns(&self, ticks: i64) -> i64 {
        let ns = self
            .rate
            .ns_from_ticks_signed(ticks.saturating_sub(self.ticks));
        i64::try_from(i128::from(self.unix_ns).saturating_add(ns)).unwrap_or(if ns < 0 {
            i64::MIN
        } else {
            i64::MAX
        })
    }
}

/// Names of events and threads.
struct Names {
    of_process: HashMap<(i32, i32), String>,
    of_all: HashMap<i32, String>,
    threads: HashMap<(i32, i32), String>,
}

impl Names {
    fn new(manifest: &Manifest) -> Self {
        let mut names = Self {
            of_process: HashMap::new(),
            of_all: HashMap::new(),
            threads: HashMap::new(),
        };
        for name in &manifest.names {
            let event = i32::from(name.event);
            match name.pid {
                Some(pid) => names.of_process.insert((pid, event), name.name.clone()),
                None => names.of_all.insert(event, name.name.clone()),
            };
        }
        for thread in &manifest.threads {
            names
                .threads
                .insert((thread.pid, thread.tid), thread.name.clone());
        }
        names
    }

    fn event(&self, pid: i32, event: i32) -> std::borrow::Cow<'_, str> {
        let known = self
            .of_process
            .get(&(pid, event))
            .or_else(|| self.of_all.get(&event));
        known.map_or_else(
            || format!("event {event}").into(),
            |name| name.as_str().into(),
        )
    }

    /// The name of a row's event; rows of the kernel have none.
    fn name_of(&self, row: &Row) -> std::borrow::Cow<'_, str> {
        if row.mode == 0 {
            self.event(row.pid, row.event)
        } else {
            "".into()
        }
    }

    fn thread(&self, pid: i32, tid: i32) -> Option<&str> {
        self.threads.get(&(pid, tid)).map(String::as_str)
    }
}

const fn kind_name(kind: Option<Kind>) -> &'static str {
    match kind {
        Some(Kind::Instant) => "instant",
        Some(Kind::Begin) => "begin",
        Some(Kind::End) => "end",
        Some(Kind::Next) => "next",
        Some(Kind::Pair) => "pair",
        Some(Kind::BeginOrdered) => "begin_ordered",
        Some(Kind::EndOrdered) => "end_ordered",
        Some(Kind::Gap) => "gap",
        Some(Kind::SwitchOut) => "switch_out",
        Some(Kind::SwitchIn) => "switch_in",
        Some(Kind::Waking) => "waking",
        Some(Kind::Migrate) => "migrate",
        Some(Kind::Interrupt) => "interrupt",
        Some(Kind::SoftInterrupt) => "soft_interrupt",
        Some(Kind::Fault) => "fault",
        Some(Kind::Steal) => "steal",
        Some(Kind::Frequency) => "frequency",
        Some(Kind::KernelGap) => "kernel_gap",
        Some(Kind::Epoch) => "epoch",
        Some(Kind::Stack) => "stack",
        None => "unknown",
    }
}

impl Row {
    /// A copy of the event without its arrows.
    fn copied(&self) -> Self {
        Self {
            arrows: Vec::new(),
            ..*self
        }
    }
}

/// Tracks how a row changes the slices of its ring, for formats in which an end always closes the
/// innermost slice.
#[derive(Default)]
struct Nesting {
    /// The ring of the last row, and its open slices.
    ring: i32,
    stack: Vec<i32>,
    /// Those of other rings.
    others: HashMap<i32, Vec<i32>>,
}

/// What a row does to the slices of its ring.
struct SliceChange {
    /// Number of slices that it ends.
    closed: usize,
    /// The event of the slice that it begins, if it does.
    begun: Option<i32>,
}

/// Deepest nesting tracked; deeper starts are not shown as slices.
const DEEPEST: usize = 512;

impl Nesting {
    /// Applies a row to the slices of its ring. A gap ends all of them.
    fn apply(&mut self, row: &Row) -> SliceChange {
        if row.ring != self.ring {
            let stack = self.others.remove(&row.ring).unwrap_or_default();
            let before = std::mem::replace(&mut self.stack, stack);
            self.others.insert(self.ring, before);
            self.ring = row.ring;
        }
        let (closed, begins) = match row.kind {
            Some(Kind::Begin | Kind::BeginOrdered) => (0, Some(row.event)),
            Some(Kind::End | Kind::EndOrdered) => (self.close(row.event), None),
            Some(Kind::Next) => (self.close(row.event), Some(row.payload as i32)),
            Some(Kind::Gap) => (std::mem::take(&mut self.stack).len(), None),
            Some(_) | None => (0, None),
        };
        SliceChange {
            closed,
            begun: begins.filter(|&event| self.open(event)),
        }
    }

    /// Opens a slice; false if it is nested too deeply.
    fn open(&mut self, event: i32) -> bool {
        let has_room = self.stack.len() < DEEPEST;
        if has_room {
            self.stack.push(event);
        }
        has_room
    }

    /// Returns how many slices the end of `event` closes: 0 if it was not open, more than one if
    /// others inside it were not closed.
    fn close(&mut self, event: i32) -> usize {
        let Some(at) = self.stack.iter().rposition(|&open| open == event) else {
            return 0;
        };
        let closed = self.stack.len() - at;
        self.stack.truncate(at);
        closed
    }
}
