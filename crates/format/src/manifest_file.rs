//! Reads `manifest.json`. The file is untrusted: every text, list and name in it is bounded
//! before anything is made of it.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use serde::Deserialize;

use crate::TraceError;
use crate::files::MANIFEST_FILE;
use crate::input::{self, Kind};
use crate::manifest::{Manifest, SCHEMA_VERSION};

/// Longest text, bytes. The longest that occurs is an argument of a command, to which Linux
/// gives 128 KiB.
const MOST_TEXT_BYTES: usize = 1 << 20;
/// Most texts, keys included: enough for the largest number of names of events and of threads,
/// and the same number again. A text takes at least 24 bytes of memory.
const MOST_TEXTS: usize = 1 << 25;
/// Longest name of an event or a thread, bytes: programs give 255, functions have 300 and the
/// name of their file.
pub(crate) const MOST_NAME_BYTES: usize = 1024;
/// Most names of events, and most names of threads: eight times what one recording keeps, to
/// allow for merged traces.
pub const MOST_NAMES: usize = 1 << 21;
/// Most files of events. Recordings have two.
const MOST_PARTS: usize = 256;
/// Longest name of a file on Linux, bytes.
const MOST_FILE_NAME_BYTES: usize = 255;

/// Reads and checks `manifest.json`.
///
/// # Errors
/// It does not exist, is not the manifest of a trace of this version, or holds more than a trace
/// can have. The error says what exceeds which limit, and where.
pub fn read(dir: &Path) -> Result<Manifest, TraceError> {
    if !dir.is_dir() {
        return Err(no_directory(dir));
    }
    let path = dir.join(MANIFEST_FILE);
    let text = input::text(&path, Kind::MANIFEST)?;
    let damaged = |what: String| TraceError::damaged(&path, what);
    check_texts(text.as_bytes()).map_err(damaged)?;
    check_version(&path, &text)?;
    let manifest: Manifest = serde_json::from_str(&text).map_err(|e| damaged(e.to_string()))?;
    check(&manifest).map_err(damaged)?;
    Ok(manifest)
}

fn no_directory(dir: &Path) -> TraceError {
    if dir.exists() {
        TraceError::damaged(
            dir,
            "not a trace: a trace is a directory NAME.ut, as made by `undertick record`",
        )
    } else {
        let error = io::Error::new(
            io::ErrorKind::NotFound,
            "there is no directory of that name",
        );
        TraceError::io(dir, "no such trace")(error)
    }
}

/// The only field that all versions have; the others are skipped, not kept.
#[derive(Deserialize)]
struct Version {
    schema_version: Option<u64>,
}

fn check_version(path: &Path, text: &str) -> Result<(), TraceError> {
    let version: Version = serde_json::from_str(text).map_err(|e| match e.is_data() {
        true => TraceError::damaged(path, format!("not an Undertick manifest: {e}")),
        false => TraceError::damaged(path, format!("not JSON: {e}")),
    })?;
    match version.schema_version {
        Some(found) if found == u64::from(SCHEMA_VERSION) => Ok(()),
        Some(found) => Err(TraceError::Version {
            path: path.to_owned(),
            found,
            expected: SCHEMA_VERSION,
        }),
        None => Err(TraceError::damaged(
            path,
            "no schema_version: not an Undertick manifest",
        )),
    }
}

/// Checks the length and the number of the texts in JSON without parsing it.
fn check_texts(json: &[u8]) -> Result<(), String> {
    let mut texts = 0;
    let mut at = 0;
    while let Some(begin) = json[at..].iter().position(|&byte| byte == b'"') {
        let begin = at + begin + 1;
        let length = text_bytes(&json[begin..]);
        texts += 1;
        if length > MOST_TEXT_BYTES {
            return Err(format!(
                "byte {begin}: a text of {length} bytes; a manifest has none above {MOST_TEXT_BYTES}: restore it from a copy"
            ));
        }
        if texts > MOST_TEXTS {
            return Err(format!(
                "more than {MOST_TEXTS} texts, which no manifest has: restore it from a copy"
            ));
        }
        at = (begin + length + 1).min(json.len());
    }
    Ok(())
}

/// Returns the number of bytes up to the quote that ends a text, or up to the end.
fn text_bytes(json: &[u8]) -> usize {
    let mut is_escaped = false;
    let end = json.iter().position(|&byte| match byte {
        _ if is_escaped => {
            is_escaped = false;
            false
        }
        b'\\' => {
            is_escaped = true;
            false
        }
        byte => byte == b'"',
    });
    end.unwrap_or(json.len())
}

/// Checks what the types alone do not ensure.
fn check(manifest: &Manifest) -> Result<(), String> {
    let clock = &manifest.clock;
    if clock.ticks_per_second_numerator == 0 || clock.ticks_per_second_denominator == 0 {
        return Err("the clock's rate is zero".to_owned());
    }
    check_names("names", manifest.names.iter().map(|name| &name.name))?;
    check_names(
        "threads",
        manifest.threads.iter().map(|thread| &thread.name),
    )?;
    check_parts(manifest)
}

fn check_names<'a>(
    what: &str,
    names: impl ExactSizeIterator<Item = &'a String>,
) -> Result<(), String> {
    if names.len() > MOST_NAMES {
        return Err(format!(
            "{} {what}, a trace has at most {MOST_NAMES}: restore it from a copy",
            names.len()
        ));
    }
    match names
        .enumerate()
        .find(|(_, name)| name.len() > MOST_NAME_BYTES)
    {
        Some((place, name)) => Err(format!(
            "{what}[{place}]: a name of {} bytes, a name has at most {MOST_NAME_BYTES}; restore it from a copy, or shorten the name",
            name.len()
        )),
        None => Ok(()),
    }
}

fn check_parts(manifest: &Manifest) -> Result<(), String> {
    let parts = &manifest.parts;
    if parts.len() > MOST_PARTS {
        return Err(format!(
            "{} parts, a trace has at most {MOST_PARTS}: restore it from a copy",
            parts.len()
        ));
    }
    if parts.iter().filter(|part| part.has_raw_blocks()).count() > 1 {
        return Err("parts: a second file of raw blocks; restore it from a copy".to_owned());
    }
    let mut files = HashSet::new();
    for (place, part) in parts.iter().enumerate() {
        let file = part.file.as_str();
        // A manifest is input: it must not lead out of the trace.
        let is_name =
            !file.is_empty() && !file.contains(['/', '\0']) && file != "." && file != "..";
        if !is_name || file.len() > MOST_FILE_NAME_BYTES {
            let shown: String = file.chars().take(40).collect();
            return Err(format!("parts[{place}]: {shown:?} is not a file name"));
        }
        if !files.insert(file) {
            return Err(format!(
                "parts[{place}]: the file {file:?} a second time; name each file once"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
