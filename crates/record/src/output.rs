//! Writes the files of a trace: its manifest, checksums, and the options of its Parquet files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use undertick_format::TraceError;
use undertick_format::files::MANIFEST_FILE;
use undertick_format::manifest::Manifest;

use crate::trace_dir::TraceDir;

/// Rows in a page: the default, 20 000, costs a report 4 % of its time (a zstd
/// context and system calls for each page).
const PAGE_ROWS: usize = 1 << 16;

/// Writes the manifest atomically.
///
/// # Errors
/// The disk refuses.
pub fn write_manifest(trace: &TraceDir, manifest: &Manifest) -> Result<(), TraceError> {
    let path = || trace.join(MANIFEST_FILE);
    let text = serde_json::to_vec_pretty(manifest).map_err(|e| TraceError::damaged(&path(), e))?;
    trace
        .replace(MANIFEST_FILE, &text)
        .map_err(TraceError::io(&path(), "cannot replace"))
}

/// Rewrites the manifest of a complete trace atomically.
///
/// # Errors
/// There is no such directory, or the disk refuses.
pub fn rewrite_manifest(trace: &Path, manifest: &Manifest) -> Result<(), TraceError> {
    write_manifest(&TraceDir::open(trace)?, manifest)
}

/// Reserves disk space for the manifest that a recording will have at its end. The estimate is
/// the present size plus that of `rings` and `names` of usual length.
pub(crate) fn set_manifest_aside(trace: &TraceDir, manifest: &Manifest, rings: u64, names: u64) {
    let now = serde_json::to_vec_pretty(manifest).map_or(0, |text| text.len() as u64);
    let more = rings * RING_BYTES + names * NAME_BYTES + SPARE_BYTES;
    trace.set_aside(MANIFEST_FILE, now + more);
}

/// A ring's account in the manifest, bytes, with the counts of a few sampled spans.
const RING_BYTES: u64 = 512;
/// A name in the manifest without its text, bytes; the log holds as much as the text.
const NAME_BYTES: u64 = 128;
/// Space for warnings, parts and the description of kernel events, bytes.
const SPARE_BYTES: u64 = 32 << 10;

/// Returns the size and the CRC-32 of a file of a trace that is being written.
///
/// # Errors
/// It cannot be read.
pub(crate) fn checksum_in(trace: &TraceDir, name: &str) -> Result<(u64, u32), TraceError> {
    let path = trace.join(name);
    let file = trace
        .read(name)
        .map_err(TraceError::io(&path, "cannot open"))?;
    checksum_of(file, &path)
}

/// Returns the size and the CRC-32 of a file.
///
/// # Errors
/// It cannot be read.
pub fn checksum(path: &Path) -> Result<(u64, u32), TraceError> {
    let file = File::open(path).map_err(TraceError::io(path, "cannot open"))?;
    checksum_of(file, path)
}

fn checksum_of(mut file: File, path: &Path) -> Result<(u64, u32), TraceError> {
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

/// Returns the options of all Parquet files of a trace: all columns are stored as differences, packed to the bits they need: a run of equal values takes
/// almost no space, few different values take a few bits, and no decoder is faster. (Plain values
/// under zstd took a fifth of a report's time, dictionaries half of that of writing.) Zstd on
/// times and payloads saves up to half of the file. The statistics say which columns have one
/// value: these are not read.
#[must_use]
pub fn properties() -> WriterProperties {
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
