//! Detects the format of a file from its content.

use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use undertick_format::files::MANIFEST_FILE;
use undertick_format::{TraceError, input};

use super::Source;

/// The first bytes of what gzip wrote.
pub(super) const GZIP: &[u8] = &[0x1f, 0x8b];
/// Most bytes of a file that are examined.
const LOOK_BYTES: u64 = 1 << 16;
/// Depth to which a directory of traces is searched.
const DEEPEST: usize = 6;

/// Detects the format.
pub(super) fn source(file: &Path) -> Result<Source, TraceError> {
    let usage = |what: &str| TraceError::Usage(format!("{}: {what}", file.display()));
    let about = file
        .metadata()
        .map_err(TraceError::io(file, "cannot open"))?;
    if about.is_dir() {
        if file.join(MANIFEST_FILE).exists() {
            return Err(usage(
                "is a trace of Undertick already; report reads it as it is",
            ));
        }
        return match any_metadata(file, DEEPEST, &Path::is_file) {
            true => Ok(Source::Ctf),
            false => Err(usage(
                "a directory without a CTF trace in it (a file `metadata`); give the file or the trace's directory",
            )),
        };
    }
    let start = start(file)?;
    if start.starts_with(b"PERFILE2") {
        return Err(usage(
            "is perf's own file: `perf script --ns -i FILE > text`, then import the text",
        ));
    }
    of_start(&start).ok_or_else(|| {
        let words: Vec<&str> = Source::ALL.iter().map(|source| source.word()).collect();
        let (last, others) = words.split_last().expect("there are formats");
        usage(&format!(
            "cannot tell whose file this is; say it with --from {} or {last}",
            others.join(", ")
        ))
    })
}

/// Whether a file `metadata` in the directory, or down to a depth below it, fits.
pub(super) fn any_metadata(dir: &Path, depth: usize, fits: &dyn Fn(&Path) -> bool) -> bool {
    let below = || {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .any(|entry| any_metadata(&entry.path(), depth - 1, fits))
    };
    fits(&dir.join("metadata")) || (depth > 0 && below())
}

/// Returns the first bytes, decompressed if they are compressed.
fn start(file: &Path) -> Result<Vec<u8>, TraceError> {
    let failed = || TraceError::io(file, "cannot read");
    let mut start = Vec::new();
    let opened = input::open(file)?;
    (opened.take(LOOK_BYTES).read_to_end(&mut start)).map_err(failed())?;
    if start.starts_with(GZIP) {
        let mut plain = Vec::new();
        // The stream ends where we stopped reading: what came before suffices.
        let _ = GzDecoder::new(&start[..])
            .take(LOOK_BYTES)
            .read_to_end(&mut plain);
        return Ok(plain);
    }
    Ok(start)
}

/// Detects the format from the first bytes, decompressed.
fn of_start(start: &[u8]) -> Option<Source> {
    if start.trim_ascii().is_empty() {
        return None;
    }
    // A card's stream begins with a time, whose bytes may be those of text.
    (std::iter::once(&Source::Card).chain(Source::ALL))
        .find(|source| (source.format().recognises)(start))
        .copied()
}

#[cfg(test)]
mod tests;
