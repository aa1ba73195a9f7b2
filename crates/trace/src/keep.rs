//! Raw blocks to Parquet: what is kept of a recording.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::io::{BufWriter, Read};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::TraceError;
use crate::block::Next;
use crate::ended::ENDED_FILES;
use crate::manifest::{Manifest, Part, State};
use crate::raw_order::RawGroups;
use crate::rows::Rows;
use crate::schema::event_schema;

/// The manifest's file name.
pub const MANIFEST_FILE: &str = "manifest.json";
/// The raw blocks' file name, while there are any.
pub const RAW_FILE: &str = "raw.utb";
/// The events' file name.
pub const EVENTS_FILE: &str = "events.parquet";

/// Rows handed to the Parquet writer at a time.
const BATCH_ROWS: usize = 1 << 15;
/// Rows in a page: the default, 20 000, costs a report 4 % of its time (a zstd
/// context and system calls for each page).
const PAGE_ROWS: usize = 1 << 16;
/// Most row groups in work at a time: bounds memory on a machine with many CPUs.
const MOST_GROUPS: usize = 4;

/// Writes the manifest: all of it or nothing.
///
/// # Errors
/// The disk refuses.
pub fn write_manifest(trace: &Path, manifest: &Manifest) -> Result<(), TraceError> {
    let path = trace.join(MANIFEST_FILE);
    let temporary = trace.join("manifest.json.new");
    let text = serde_json::to_string_pretty(manifest).map_err(|e| TraceError::damaged(&path, e))?;
    fs::write(&temporary, text).map_err(TraceError::io(&temporary, "cannot write"))?;
    fs::rename(&temporary, &path).map_err(TraceError::io(&path, "cannot replace"))
}

/// Turns the raw blocks of a trace into Parquet and removes them. `told`
/// receives the share done, 0 to 1.
///
/// # Errors
/// The disk refuses; the raw blocks are still there and it can be tried again.
pub fn finish(
    trace: &Path,
    manifest: &mut Manifest,
    told: impl FnMut(f64),
) -> Result<(), TraceError> {
    let kernel = crate::kernel::keep::finish(trace, manifest)?;
    finish_events(trace, manifest, kernel, told)
}

/// The same where the rows of the kernel are in Parquet already.
///
/// # Errors
/// The disk refuses.
pub(crate) fn finish_events(
    trace: &Path,
    manifest: &mut Manifest,
    kernel: Option<Part>,
    mut told: impl FnMut(f64),
) -> Result<(), TraceError> {
    let target = trace.join(EVENTS_FILE);
    let temporary = trace.join("events.parquet.new");
    let written = write_events(raw_files(trace), &temporary, &mut told);
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    let Kept {
        rows,
        mut received,
        damaged,
        by_ring,
    } = written?;
    fs::rename(&temporary, &target).map_err(TraceError::io(&target, "cannot replace"))?;

    // What counts is what is in the file: the rings' accounts follow it.
    for ring in &mut manifest.rings {
        ring.received = received.remove(&ring.ring).unwrap_or(0);
        ring.dropped = ring
            .written
            .saturating_sub(ring.received)
            .saturating_sub(ring.overwritten);
    }
    for (ring, received) in received {
        // A collector that died left no account of this ring.
        manifest.rings.push(crate::manifest::Ring {
            ring,
            pid: -1,
            tid: -1,
            written: received,
            received,
            dropped: 0,
            overwritten: 0,
        });
    }
    manifest.rings.sort_by_key(|ring| ring.ring);
    manifest.events = manifest.rings.iter().map(|ring| ring.received).sum();
    manifest.lost = manifest
        .rings
        .iter()
        .map(|r| r.dropped.saturating_add(r.overwritten))
        .fold(manifest.lost, u64::saturating_add);
    if damaged {
        manifest.warnings.push(
            "the raw data was damaged in the middle; what came after is not in the trace"
                .to_owned(),
        );
    }
    let (bytes, crc32) = checksum(&target)?;
    // The kernel's rows come first: who reads on knows what fell into an interval.
    manifest.parts = kernel.into_iter().collect();
    manifest.parts.push(Part {
        file: EVENTS_FILE.to_owned(),
        rows,
        bytes,
        crc32,
        by_ring,
    });
    manifest.state = State::Complete;
    write_manifest(trace, manifest)?;
    for raw in raw_files(trace) {
        fs::remove_file(&raw).map_err(TraceError::io(&raw, "cannot remove"))?;
    }
    crate::accounts::remove(trace);
    crate::kernel::keep::remove_raw(trace);
    told(1.0);
    Ok(())
}

/// The files of raw blocks: that of the recording comes last, and with it goes the lock.
fn raw_files(trace: &Path) -> Vec<PathBuf> {
    let ended = ENDED_FILES.map(|file| trace.join(file)).into_iter();
    ended
        .filter(|path| path.exists())
        .chain([trace.join(RAW_FILE)])
        .collect()
}

/// What became of raw blocks.
#[derive(Default)]
struct Kept {
    rows: u64,
    /// Events by ring.
    received: HashMap<i32, u64>,
    /// There were bytes that are no block; what follows them is left out.
    damaged: bool,
    by_ring: bool,
}

/// Writes the events of a raw file as Parquet, ring by ring. Row groups are
/// independent: each is made by a thread of its own and appended in its turn, which is
/// twice as fast on two CPUs.
fn write_events(
    raw: Vec<PathBuf>,
    target: &Path,
    told: &mut impl FnMut(f64),
) -> Result<Kept, TraceError> {
    let bad = |e| parquet_error(target, "cannot write", e);
    let failed = || TraceError::io(target, "cannot write");
    let mut groups = RawGroups::open_all(raw)?;
    let file = File::create(target).map_err(TraceError::io(target, "cannot create"))?;
    let (mut writer, columns) = ArrowWriter::try_new(
        BufWriter::with_capacity(1 << 20, file),
        event_schema(),
        Some(properties()),
    )
    .and_then(ArrowWriter::into_serialized_writer)
    .map_err(bad)?;
    let columns = &columns;
    let at_once = std::thread::available_parallelism().map_or(1, usize::from) + 1;
    let mut kept = Kept::default();
    std::thread::scope(|scope| {
        let mut working = VecDeque::new();
        loop {
            while working.len() < at_once.min(MOST_GROUPS) {
                let mut blocks = Vec::new();
                if !groups.next_group(&mut blocks)? {
                    break;
                }
                let share = groups.share();
                let group = scope.spawn(move || encode_group(&blocks, columns));
                working.push_back((group, share));
            }
            let Some((group, share)) = working.pop_front() else {
                break;
            };
            let (chunks, of_group) = match group.join() {
                Ok(made) => made.map_err(bad)?,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            if of_group.rows > 0 {
                let mut group = writer.next_row_group().map_err(bad)?;
                for chunk in chunks {
                    chunk.append_to_row_group(&mut group).map_err(bad)?;
                }
                group.close().map_err(bad)?;
            }
            kept.rows += of_group.rows;
            for (ring, events) in of_group.received {
                *kept.received.entry(ring).or_default() += events;
            }
            kept.damaged = of_group.damaged;
            if kept.damaged {
                break; // the groups in work are not looked at
            }
            told(share);
        }
        kept.damaged |= groups.damaged;
        kept.by_ring = groups.is_by_ring();
        Ok::<(), TraceError>(())
    })?;
    let file = writer
        .into_inner()
        .map_err(bad)?
        .into_inner()
        .map_err(|e| failed()(e.into_error()))?;
    file.sync_all().map_err(failed())?;
    Ok(kept)
}

/// Decodes raw blocks and encodes them as the columns of a row group.
fn encode_group(
    mut blocks: &[u8],
    columns: &ArrowRowGroupWriterFactory,
) -> Result<(Vec<ArrowColumnChunk>, Kept), ParquetError> {
    let mut writers = columns.create_column_writers(0)?;
    let mut write = |batch: RecordBatch| {
        for ((writer, field), column) in writers
            .iter_mut()
            .zip(batch.schema_ref().fields())
            .zip(batch.columns())
        {
            for leaf in compute_leaves(field, column)? {
                writer.write(&leaf)?;
            }
        }
        Ok::<_, ParquetError>(())
    };
    let mut kept = Kept::default();
    let mut rows = Rows::default();
    loop {
        let (next, events) = rows.push_block(blocks);
        match next {
            Next::Block(header, bytes) => {
                *kept.received.entry(header.ring as i32).or_default() += events;
                blocks = &blocks[bytes..];
            }
            Next::Damaged => {
                kept.damaged = true;
                break;
            }
            Next::End => break,
        }
        if rows.len() >= BATCH_ROWS {
            kept.rows += rows.len() as u64;
            write(rows.take())?;
        }
    }
    if !rows.is_empty() {
        kept.rows += rows.len() as u64;
        write(rows.take())?;
    }
    let chunks = writers.into_iter().map(ArrowColumnWriter::close);
    Ok((chunks.collect::<Result<_, _>>()?, kept))
}

/// Size and CRC-32 of a file.
///
/// # Errors
/// It cannot be read.
pub(crate) fn checksum(path: &Path) -> Result<(u64, u32), TraceError> {
    let mut file = File::open(path).map_err(TraceError::io(path, "cannot open"))?;
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        match file
            .read(&mut buffer)
            .map_err(TraceError::io(path, "cannot read"))?
        {
            0 => return Ok((bytes, hasher.finalize())),
            n => {
                bytes += n as u64;
                hasher.update(&buffer[..n]);
            }
        }
    }
}

/// All columns as differences, packed to the bits they need: a run of equal values
/// takes next to nothing, few different values a few bits, and no decoder is faster.
/// (Plain values under zstd took a fifth of a report's time, dictionaries half of that
/// of writing.) Zstd on times and payloads saves up to half of the file. The statistics
/// say which columns have one value: these are not read at all.
pub(crate) fn properties() -> WriterProperties {
    let zstd = Compression::ZSTD(ZstdLevel::try_new(1).expect("level 1 exists"));
    let builder = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::DELTA_BINARY_PACKED)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_created_by(format!("undertick {}", env!("CARGO_PKG_VERSION")));
    ["ts", "payload", "ts_local"]
        .into_iter()
        .map(ColumnPath::from)
        .fold(builder, |builder, path| {
            builder
                .set_column_compression(path.clone(), zstd)
                .set_column_statistics_enabled(path, EnabledStatistics::None)
        })
        .build()
}

/// A Parquet error that is really an I/O error keeps its kind.
pub(crate) fn parquet_error(path: &Path, action: &'static str, error: ParquetError) -> TraceError {
    match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => TraceError::io(path, action)(*io),
            Err(other) => TraceError::damaged(path, format!("{action}: {other}")),
        },
        other => TraceError::damaged(path, format!("{action}: {other}")),
    }
}
