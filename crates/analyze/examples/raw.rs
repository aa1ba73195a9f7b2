//! Prints how many events per second one CPU processes from raw blocks.
//!
//! `raw TRACE.ut [ROUNDS]` makes a raw file of a trace's events, as a collector would, and prints
//! the events and the seconds of each round. A round runs, in turn, decoding alone; a plain pass
//! (decoded, paired on a stack; count, sum, minimum, maximum and a histogram of each event's
//! durations); a pass that also stores what intervals need; and the analysis. Run by `cargo xtask
//! bench kernel`.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{ArrowPrimitiveType, RecordBatch};
use undertick_analyze::Options;
use undertick_analyze::raw::analyze_raw;
use undertick_document::IntervalKind;
use undertick_estimate::Series;
use undertick_format::block::{BlockHeader, MAX_RECORDS, Next, encode};
use undertick_format::raw_order::RawGroups;
use undertick_format::read::Trace;
use undertick_format::rows::{Rows, RowsOfRing};
use undertick_format::schema;
use undertick_ring::{DeschedFlag, Kind, Record};

fn column<T: ArrowPrimitiveType>(batch: &RecordBatch, column: usize) -> &[T::Native] {
    batch.column(column).as_primitive::<T>().values()
}

/// Returns the record of a row, as it was written.
fn record(batch: &RecordBatch, row: usize) -> Result<[u64; 2], Box<dyn Error>> {
    let cpu = column::<Int16Type>(batch, schema::CPU)[row];
    let record = Record {
        ts: column::<Int64Type>(batch, schema::TS)[row] as u64,
        payload: u32::try_from(column::<Int64Type>(batch, schema::PAYLOAD)[row])?,
        event: u16::try_from(column::<Int32Type>(batch, schema::EVENT)[row])?,
        cpu: u16::try_from(cpu).unwrap_or(Record::CPU_UNKNOWN),
        kind: Kind::from_code(u16::try_from(column::<Int8Type>(batch, schema::KIND)[row])?),
        descheduled: match column::<Int8Type>(batch, schema::DESCHEDULED)[row] {
            0 => DeschedFlag::No,
            1 => DeschedFlag::Yes,
            _ => DeschedFlag::Unknown,
        },
    };
    Ok(record.to_words())
}

fn write_raw(trace: &Trace, path: &Path) -> Result<u64, Box<dyn Error>> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    let mut events = 0;
    for batch in trace.batches() {
        let batch = batch?;
        let rings = column::<Int32Type>(&batch, schema::RING);
        let mut from = 0;
        while from < rings.len() {
            let most = (rings.len() - from).min(MAX_RECORDS);
            let same = rings[from..from + most]
                .iter()
                .take_while(|&&ring| ring == rings[from]);
            let to = from + same.count();
            let words = (from..to).map(|row| record(&batch, row));
            let words = words.collect::<Result<Vec<_>, _>>()?;
            let header = BlockHeader {
                ring: rings[from] as u32,
                pid: column::<Int32Type>(&batch, schema::PID)[from],
                tid: column::<Int32Type>(&batch, schema::TID)[from],
                position: 0,
                records: words.len() as u32,
            };
            let mut block = Vec::new();
            encode(header, &words, &mut block);
            file.write_all(&block)?;
            let kinds = &column::<Int8Type>(&batch, schema::KIND)[from..to];
            let gap = schema::Kind::Gap as i8;
            events += kinds.iter().filter(|&&kind| kind != gap).count() as u64;
            from = to;
        }
    }
    file.flush()?;
    Ok(events)
}

/// Decodes blocks one after the other, and passes their rows to `take` with the number of their
/// ring.
fn decode(raw: &Path, mut take: impl FnMut(u32, &RowsOfRing<'_>)) -> Result<u64, Box<dyn Error>> {
    let mut groups = RawGroups::open(raw)?;
    let mut rows = Rows::default();
    let mut events = 0;
    let mut group = Vec::new();
    while groups.next_group(&mut group)? {
        let mut blocks = &group[..];
        loop {
            rows.clear();
            let (Next::Block(header, bytes), n) = rows.push_block(blocks) else {
                break;
            };
            take(header.ring, &rows.of_ring());
            events += n;
            blocks = &blocks[bytes..];
        }
    }
    Ok(events)
}

/// Figures of an event's durations from a plain pass.
#[derive(Clone)]
struct Kept {
    n: u64,
    sum: i64,
    least: i64,
    most: i64,
    /// 16 bins an octave.
    histogram: [u64; 1024],
}

impl Kept {
    fn new() -> Self {
        Self {
            n: 0,
            sum: 0,
            least: i64::MAX,
            most: i64::MIN,
            histogram: [0; 1024],
        }
    }

    fn add(&mut self, ticks: i64) {
        self.n += 1;
        self.sum += ticks;
        self.least = self.least.min(ticks);
        self.most = self.most.max(ticks);
        let octave = (ticks as u64 | 16).ilog2() - 4;
        let bin = (octave as usize * 16) + (ticks as u64 >> octave) as usize;
        self.histogram[bin & 1023] += 1;
    }
}

/// The smallest useful work: durations by event, if begins and ends are properly nested.
fn plain<K: Clone>(
    raw: &Path,
    none: K,
    mut add: impl FnMut(&mut K, i64),
) -> Result<Vec<K>, Box<dyn Error>> {
    let mut kept = vec![none; 256];
    let mut stack: Vec<(i32, i64)> = Vec::with_capacity(64);
    let mut last = None;
    decode(raw, |ring, rows| {
        if last != Some(ring) {
            stack.clear();
            last = Some(ring);
        }
        let rows = (rows.kind.iter().zip(rows.event)).zip(rows.ts);
        for ((&kind, &event), &ts) in rows {
            if kind == schema::Kind::Begin as i8 {
                stack.push((event, ts));
            } else if kind == schema::Kind::End as i8
                && let Some((begun, at)) = stack.pop()
                && begun == event
            {
                add(&mut kept[event as usize & 255], ts - at);
            }
        }
    })?;
    Ok(kept)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("raw TRACE.ut [ROUNDS]")?;
    let rounds: usize = arguments.next().map_or(Ok(3), |n| n.parse())?;
    let trace = Trace::open(Path::new(&path))?;
    let dir = tempfile::tempdir()?;
    let raw = dir.path().join("events.raw");
    let events = write_raw(&trace, &raw)?;
    for _ in 0..rounds {
        let start = Instant::now();
        decode(&raw, |_, rows| {
            std::hint::black_box(rows.ts.last());
        })?;
        println!("decoded {events} {:.4}", start.elapsed().as_secs_f64());
        let start = Instant::now();
        let kept = plain(&raw, Kept::new(), Kept::add)?;
        let seconds = start.elapsed().as_secs_f64();
        let pairs: u64 = kept
            .iter()
            .map(|kept| kept.histogram.iter().sum::<u64>())
            .sum();
        if pairs != kept.iter().map(|kept| kept.n).sum::<u64>() {
            return Err("a histogram that does not hold all".into());
        }
        println!("plain {events} {seconds:.4}");
        let start = Instant::now();
        let kept = plain(&raw, Series::new(), Series::push)?;
        let seconds = start.elapsed().as_secs_f64();
        if pairs != kept.iter().map(Series::n).sum::<u64>() {
            return Err("a series that does not hold all".into());
        }
        println!("series {events} {seconds:.4}");
        let start = Instant::now();
        let report = analyze_raw(&raw, &trace.manifest, Options::default())?;
        let seconds = start.elapsed().as_secs_f64();
        if report.trace.events != events {
            return Err(format!("{} events of {events}", report.trace.events).into());
        }
        let nested: u64 = (report.intervals.iter())
            .filter(|i| i.kind == IntervalKind::Nested)
            // The plain pass ignores deschedules.
            .map(|i| i.count + i.culled.count)
            .sum();
        if nested != pairs {
            return Err(format!("{nested} samples of {pairs}").into());
        }
        println!("analysed {events} {seconds:.4}");
    }
    Ok(())
}
