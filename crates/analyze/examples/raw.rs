//! How many events a second one CPU takes from raw blocks.
//!
//! `raw TRACE.ut [ROUNDS]` makes a raw file of a trace's events, as a collector would,
//! and prints the events and the seconds of each round. Run by `cargo xtask bench kernel`.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{ArrowPrimitiveType, RecordBatch};
use undertick_analyze::Options;
use undertick_analyze::raw::analyze_raw;
use undertick_ring::{DeschedFlag, Kind, Record};
use undertick_trace::block::{BlockHeader, MAX_RECORDS, encode};
use undertick_trace::read::Trace;
use undertick_trace::schema;

fn column<T: ArrowPrimitiveType>(batch: &RecordBatch, column: usize) -> &[T::Native] {
    batch.column(column).as_primitive::<T>().values()
}

/// The record of a row, as it was written.
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

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("raw TRACE.ut [ROUNDS]")?;
    let rounds: usize = arguments.next().map_or(Ok(3), |n| n.parse())?;
    let trace = Trace::open(Path::new(&path), |_| {})?;
    let dir = tempfile::tempdir()?;
    let raw = dir.path().join("events.raw");
    let events = write_raw(&trace, &raw)?;
    for _ in 0..rounds {
        let start = Instant::now();
        let report = analyze_raw(&raw, &trace.manifest, Options::default())?;
        let seconds = start.elapsed().as_secs_f64();
        if report.trace.events != events {
            return Err(format!("{} events of {events}", report.trace.events).into());
        }
        println!("{events} {seconds:.4}");
    }
    Ok(())
}
