//! Reads files of lines in bounded memory.

use std::io::{BufRead, Error, ErrorKind, Read};
use std::path::Path;

use undertick_format::TraceError;

/// Longest part of a line that is parsed, bytes; the rest is skipped.
const LONGEST_LINE: u64 = 1 << 16;

/// Most bytes of a line that are skipped; a file with a longer line is not text.
const MOST_SKIPPED: u64 = 64 << 20;

/// Calls `take` with each line, without its end. `file` is its name in messages.
///
/// # Errors
/// The file cannot be read, or `take` failed.
pub(super) fn for_each_line(
    file: &Path,
    mut reader: impl BufRead,
    mut take: impl FnMut(&str) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if read_line(&mut reader, &mut line).map_err(TraceError::io(file, "cannot read"))? == 0 {
            return Ok(());
        }
        take(&String::from_utf8_lossy(&line))?;
    }
}

/// Reads a line without its end; returns 0 at the end of the file.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<usize> {
    let mut limited = Read::take(&mut *reader, LONGEST_LINE);
    let read = limited.read_until(b'\n', line)?;
    if line.ends_with(b"\n") {
        line.pop();
    } else if read as u64 == LONGEST_LINE {
        let skipped = Read::take(&mut *reader, MOST_SKIPPED).skip_until(b'\n')?;
        if skipped as u64 == MOST_SKIPPED {
            return Err(Error::new(
                ErrorKind::InvalidData,
                format!("a line of more than {MOST_SKIPPED} bytes; is it the right file?"),
            ));
        }
    }
    Ok(read)
}
