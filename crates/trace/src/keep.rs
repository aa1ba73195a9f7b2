//! Raw blocks to Parquet: what is kept of a recording.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufWriter, Read};
use std::path::Path;

use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::TraceError;
use crate::block::{self, Next};
use crate::manifest::{Manifest, Part, State};
use crate::rows::Rows;
use crate::schema::event_schema;

/// The manifest's file name.
pub const MANIFEST_FILE: &str = "manifest.json";
/// The raw blocks' file name, while there are any.
pub const RAW_FILE: &str = "raw.utb";
/// The events' file name.
pub const EVENTS_FILE: &str = "events.parquet";

/// Rows handed to the Parquet writer at a time.
const BATCH_ROWS: usize = 1 << 16;
/// Rows in a row group: bounds what the writer holds (about 50 MB).
const GROUP_ROWS: usize = 1 << 20;

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
    mut told: impl FnMut(f64),
) -> Result<(), TraceError> {
    let raw = trace.join(RAW_FILE);
    let target = trace.join(EVENTS_FILE);
    let temporary = trace.join("events.parquet.new");
    let file = File::create(&temporary).map_err(TraceError::io(&temporary, "cannot create"))?;
    let bad = |e: parquet::errors::ParquetError| {
        let _ = fs::remove_file(&temporary);
        parquet_error(&temporary, "cannot write", e)
    };
    let mut writer = ArrowWriter::try_new(
        BufWriter::with_capacity(1 << 20, file),
        event_schema(),
        Some(properties()),
    )
    .map_err(bad)?;
    let mut received: HashMap<i32, u64> = HashMap::new();
    let mut kept = 0;
    let mut rows = Rows::default();
    let mut total_rows = 0;
    let damaged = read_raw(&raw, |header, records, share| {
        let events = rows.push(header, records);
        *received.entry(header.ring as i32).or_default() += events;
        kept += events;
        if rows.len() >= BATCH_ROWS {
            total_rows += rows.len() as u64;
            writer.write(&rows.take()).map_err(bad)?;
            told(share);
        }
        Ok(())
    })?;
    total_rows += rows.len() as u64;
    if !rows.is_empty() {
        writer.write(&rows.take()).map_err(bad)?;
    }
    let inner = writer.into_inner().map_err(bad)?;
    let file = inner
        .into_inner()
        .map_err(|e| TraceError::io(&temporary, "cannot write")(e.into_error()))?;
    file.sync_all()
        .map_err(TraceError::io(&temporary, "cannot write"))?;
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
    manifest.events = kept;
    manifest.lost += manifest
        .rings
        .iter()
        .map(|r| r.dropped.saturating_add(r.overwritten))
        .fold(0, u64::saturating_add);
    if damaged {
        manifest.warnings.push(
            "the raw data was damaged in the middle; what came after is not in the trace"
                .to_owned(),
        );
    }
    let (bytes, crc32) = checksum(&target)?;
    manifest.parts = vec![Part {
        file: EVENTS_FILE.to_owned(),
        rows: total_rows,
        bytes,
        crc32,
    }];
    manifest.state = State::Complete;
    write_manifest(trace, manifest)?;
    fs::remove_file(&raw).map_err(TraceError::io(&raw, "cannot remove"))?;
    told(1.0);
    Ok(())
}

/// Goes through a raw file block by block; true if it met bytes that are none.
fn read_raw(
    raw: &Path,
    mut each: impl FnMut(block::BlockHeader, &[undertick_ring::Record], f64) -> Result<(), TraceError>,
) -> Result<bool, TraceError> {
    let mut file = File::open(raw).map_err(TraceError::io(raw, "cannot open"))?;
    let size = file
        .metadata()
        .map_err(TraceError::io(raw, "cannot look at"))?
        .len()
        .max(1) as f64;
    let mut buffer = Vec::new();
    let mut records = Vec::new();
    let mut done = 0u64;
    let mut at = 0;
    loop {
        match block::decode(&buffer[at..], &mut records) {
            Next::Block(header, bytes) => {
                at += bytes;
                done += bytes as u64;
                each(header, &records, done as f64 / size)?;
            }
            Next::Damaged => return Ok(true),
            Next::End => {
                buffer.drain(..at);
                at = 0;
                let before = buffer.len();
                (&mut file)
                    .take(4 << 20)
                    .read_to_end(&mut buffer)
                    .map_err(TraceError::io(raw, "cannot read"))?;
                if buffer.len() == before {
                    return Ok(false);
                }
            }
        }
    }
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

fn properties() -> WriterProperties {
    let delta = |builder: parquet::file::properties::WriterPropertiesBuilder, column: &str| {
        let path = ColumnPath::from(column);
        builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
    };
    let builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(
            ZstdLevel::try_new(1).expect("level 1 exists"),
        ))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_created_by(format!("undertick {}", env!("CARGO_PKG_VERSION")));
    delta(delta(builder, "ts"), "payload").build()
}

/// A Parquet error that is really an I/O error keeps its kind.
pub(crate) fn parquet_error(
    path: &Path,
    action: &'static str,
    error: parquet::errors::ParquetError,
) -> TraceError {
    match error {
        parquet::errors::ParquetError::External(inner) => {
            match inner.downcast::<std::io::Error>() {
                Ok(io) => TraceError::io(path, action)(*io),
                Err(other) => TraceError::damaged(path, format!("{action}: {other}")),
            }
        }
        other => TraceError::damaged(path, format!("{action}: {other}")),
    }
}
