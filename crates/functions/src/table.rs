//! Tables of functions: made for a file, and read back when the recording ends.

use std::collections::HashMap;
use std::path::Path;

use regex::Regex;

use crate::layout::{BEYOND, FIRST_FUNCTION, TABLE_PREFIX, control, file};
use crate::symbols::Module;

/// A function that was called, and the event number of its calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// The event number, 32768 or above.
    pub event: u16,
    /// Its name, unique in the session.
    pub name: String,
}

/// Whether the filter selects a function, by its name or by any of its symbols.
fn is_wanted(filter: &Regex, function: &crate::symbols::Function) -> bool {
    filter.is_match(&function.name) || function.symbols.iter().any(|s| filter.is_match(s))
}

/// Number of functions of the file that the filter selects.
#[must_use]
pub fn wanted(module: &Module, filter: &Regex) -> usize {
    let functions = module.functions.iter();
    functions.filter(|f| is_wanted(filter, f)).count()
}

/// The table of a file; empty for `None`.
#[must_use]
pub(crate) fn bytes(name: &str, module: Option<&Module>, filter: &Regex) -> Vec<u8> {
    let functions = module.map_or(&[][..], |module| &module.functions);
    let chosen: Vec<_> = functions.iter().filter(|f| is_wanted(filter, f)).collect();
    let mut texts = file::HEADER_BYTES + chosen.len() * file::ENTRY_BYTES;
    let mut table = Vec::with_capacity(texts + 32 * chosen.len());
    table.extend(file::MAGIC.to_le_bytes());
    table.extend((chosen.len() as u64).to_le_bytes());
    table.extend((texts as u64).to_le_bytes());
    table.extend((name.len() as u64).to_le_bytes());
    texts += name.len();
    for function in &chosen {
        table.extend(function.offset.to_le_bytes());
        table.extend(0u32.to_le_bytes());
        table.extend((function.name.len() as u32).to_le_bytes());
        table.extend((texts as u64).to_le_bytes());
        texts += function.name.len();
    }
    table.extend(name.as_bytes());
    for function in &chosen {
        table.extend(function.name.as_bytes());
    }
    table
}

/// The functions that were called in a session, read from its directory. The contents of the tables
/// are not trusted, because programs write there.
#[must_use]
pub fn called(session: &Path) -> Vec<Called> {
    let mut tables: Vec<_> = std::fs::read_dir(session)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.path().into())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(TABLE_PREFIX) && name.len() == TABLE_PREFIX.len() + 33
        })
        .collect();
    tables.sort();
    let mut all = Vec::new();
    for path in tables {
        all.extend(called_in(&whole(&path).unwrap_or_default()));
    }
    tell_apart(all)
}

/// Size of the largest table that is read, bytes: that of half a million functions.
const MOST_BYTES: u64 = 64 << 20;

/// Reads a whole table, but nothing else that the program may have put in its place.
fn whole(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let mut bytes = Vec::new();
    if file.metadata()?.is_file() {
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// The functions called, each with the name of its file.
fn called_in(table: &[u8]) -> Vec<(Called, String)> {
    let (Some(file::MAGIC), Some(entries)) = (u64_at(table, 0), u64_at(table, 8)) else {
        return Vec::new();
    };
    let module = text(
        table,
        u64_at(table, file::OFF_NAME),
        u64_at(table, file::OFF_NAME + 8),
    )
    .unwrap_or_default();
    let room = table.len().saturating_sub(file::HEADER_BYTES) / file::ENTRY_BYTES;
    (0..room.min(usize::try_from(entries).unwrap_or(room)))
        .filter_map(|i| {
            let at = file::HEADER_BYTES + i * file::ENTRY_BYTES;
            let event = u32_at(table, at + 8)?;
            let number = u16::try_from(event).ok()?;
            if number < FIRST_FUNCTION || event >= BEYOND {
                return None;
            }
            let bytes = u64::from(u32_at(table, at + 12)?);
            let name = text(table, u64_at(table, at + 16), Some(bytes))?;
            Some((
                Called {
                    event: number,
                    name,
                },
                module.clone(),
            ))
        })
        .collect()
}

fn text(table: &[u8], at: Option<u64>, bytes: Option<u64>) -> Option<String> {
    let (at, bytes) = (usize::try_from(at?).ok()?, usize::try_from(bytes?).ok()?);
    let text = table.get(at..at.checked_add(bytes)?)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Appends the file's name to functions that have one name in several files.
fn tell_apart(all: Vec<(Called, String)>) -> Vec<Called> {
    let mut times = HashMap::<String, u32>::new();
    for (called, _) in &all {
        *times.entry(called.name.clone()).or_default() += 1;
    }
    let mut seen = HashMap::<String, u32>::new();
    all.into_iter()
        .map(|(mut called, module)| {
            if times[&called.name] > 1 && !module.is_empty() {
                called.name = format!("{} ({module})", called.name);
            }
            let before = seen.entry(called.name.clone()).or_default();
            *before += 1;
            if *before > 1 {
                called.name = format!("{} #{before}", called.name);
            }
            called
        })
        .collect()
}

/// Counts by the programs of calls that are not in the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// Number of functions called after all numbers were used up.
    pub functions: u64,
    /// Number of calls of these functions.
    pub calls: u64,
    /// Number of times that a program could not get the table of a file.
    pub unanswered: u64,
}

/// Reads the control page of a session that records functions.
pub(crate) fn missed(page: &[u8]) -> Missed {
    let at = |offset| u64_at(page, offset).unwrap_or(0);
    Missed {
        functions: at(control::OFF_BEYOND),
        calls: at(control::OFF_BEYOND_CALLS),
        unanswered: at(control::OFF_UNANSWERED),
    }
}
