//! The files of a trace's events, as the manifest describes them.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::TraceError;
use crate::input;
use crate::manifest::Part;

/// A file of at least this many bytes is checked for holes: reading them takes as long as reading
/// data.
const LARGE_BYTES: u64 = 1 << 30;
/// A file system may compress a trace, but not to a share smaller than this.
const LEAST_SHARE: u64 = 64;

/// Refuses a file that is not the one that was recorded. A file of another size is not read, and
/// no more is read than the manifest says.
///
/// # Errors
/// It cannot be read, is not a regular file, or has another size or checksum.
pub(crate) fn check(path: &Path, part: &Part) -> Result<(), TraceError> {
    let file = input::open(path)?;
    let failed = || TraceError::io(path, "cannot read");
    let about = file.metadata().map_err(failed())?;
    let length = about.len();
    if length > LARGE_BYTES && about.blocks().saturating_mul(512 * LEAST_SHARE) < length {
        return Err(TraceError::damaged(
            path,
            format!("{length} bytes, nearly all of them holes: not a file that was recorded"),
        ));
    }
    let mut hasher = crc32fast::Hasher::new();
    if length == part.bytes {
        let mut rest = file.take(part.bytes);
        let mut buffer = vec![0; 1 << 20];
        loop {
            match rest.read(&mut buffer).map_err(failed())? {
                0 => break,
                read => hasher.update(&buffer[..read]),
            }
        }
        if hasher.finalize() == part.crc32 {
            return Ok(());
        }
    }
    Err(TraceError::damaged(
        path,
        format!(
            "{length} bytes, not the file that was recorded, which has {} (its size or checksum differs from the manifest's): restore it from a copy",
            part.bytes
        ),
    ))
}
