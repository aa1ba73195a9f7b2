//! What a recorder that was killed has left: which rings, and what of them is in its
//! files.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;

use undertick_ring::{Kind, Overflow, Record};

use crate::TraceError;
use crate::block::{self, BlockHeader, Next};
use crate::ended::ENDED_FILES;
use crate::keep::RAW_FILE;
use crate::session::{Session, SessionDir};

/// How much of a ring is in the raw file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recovered {
    /// Position in the ring's stream behind it, bytes.
    pub(crate) position: u64,
    pub(crate) events: u64,
    /// Modulo 2^32.
    pub(crate) continuations: u32,
}

/// What was left.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Rings that are still in the session directory.
    pub(crate) there: HashSet<u32>,
    /// What the raw file has of them.
    pub(crate) rings: HashMap<u32, Recovered>,
    /// Length of the raw file.
    pub(crate) raw_bytes: u64,
}

impl Left {
    /// From which numbers on rings are new, by control page: those below are there, or
    /// finished. None if nothing was left.
    pub(crate) fn next_rings(&self, session: &Session) -> Vec<u32> {
        match self.there.is_empty() && self.raw_bytes == 0 {
            true => Vec::new(),
            false => session.asked_rings(),
        }
    }
}

/// Looks at what was left, and puts it in order: a block that was cut is taken away, and
/// so is what a flight recorder had copied of a ring that is still there.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn recover(
    trace: &Path,
    session: &SessionDir,
    overflow: Overflow,
) -> Result<Left, TraceError> {
    let raw = trace.join(RAW_FILE);
    let mut left = Left::default();
    let length = fs::metadata(&raw).map_or(0, |about| about.len());
    if length == 0 && ENDED_FILES.iter().all(|file| !trace.join(file).exists()) {
        return Ok(left); // a recording that begins
    }
    left.there = session.rings(usize::MAX).into_iter().collect();
    if overflow == Overflow::Overwrite {
        // Its rings are read when it ends, and whole: they are read once more.
        for file in ENDED_FILES.into_iter().chain([RAW_FILE]) {
            left.raw_bytes = without(&trace.join(file), &left.there)?;
        }
        return Ok(left);
    }
    left.raw_bytes = add_up(&raw, &mut left.rings)?;
    if left.raw_bytes < length {
        cut(&raw, left.raw_bytes)?;
    }
    Ok(left)
}

/// What blocks hold by ring; their bytes, up to the first that is not whole.
fn add_up(raw: &Path, rings: &mut HashMap<u32, Recovered>) -> Result<u64, TraceError> {
    let mut records = Vec::new();
    each_block(raw, |header, block| {
        records.clear();
        if block::decode_records(block, header.records, &mut records).is_none() {
            return Err(io::Error::other("a block that makes no sense"));
        }
        let ring = rings.entry(header.ring).or_default();
        let is_continuation = |record: &&Record| record.kind == Kind::Continuation;
        let continuations = records.iter().filter(is_continuation).count();
        ring.events += (records.len() - continuations) as u64;
        ring.continuations = ring.continuations.wrapping_add(continuations as u32);
        ring.position = header.position + 16 * records.len() as u64;
        Ok(())
    })
}

/// Goes through the whole blocks of a file, which may be missing; their bytes.
pub(crate) fn each_block(
    path: &Path,
    mut take: impl FnMut(BlockHeader, &[u8]) -> io::Result<()>,
) -> Result<u64, TraceError> {
    let failed = || TraceError::io(path, "cannot read");
    let Some(file) = crate::input::open_if_there(path)? else {
        return Ok(0);
    };
    let mut file = BufReader::with_capacity(1 << 20, file);
    let mut block = Vec::new();
    let mut whole = 0;
    loop {
        block.clear();
        let header = block::HEADER_BYTES as u64;
        ((&mut file).take(header).read_to_end(&mut block)).map_err(failed())?;
        if let Some((bytes, _)) = block::extent(&block) {
            let body = (bytes - block.len()) as u64;
            ((&mut file).take(body).read_to_end(&mut block)).map_err(failed())?;
        }
        let Next::Block(header, length) = block::check(&block) else {
            return Ok(whole);
        };
        take(header, &block).map_err(failed())?;
        whole += length as u64;
    }
}

fn cut(path: &Path, length: u64) -> Result<(), TraceError> {
    let file = File::options().write(true).open(path);
    file.and_then(|file| file.set_len(length))
        .map_err(TraceError::io(path, "cannot be cut to its whole blocks"))
}

/// Takes the blocks of these rings out of a file, and what follows the last whole one;
/// the bytes that are left. The file stays the one that is locked.
fn without(path: &Path, rings: &HashSet<u32>) -> Result<u64, TraceError> {
    let length = fs::metadata(path).map_or(0, |about| about.len());
    let mut kept = Vec::new();
    each_block(path, |header, block| {
        if !rings.contains(&header.ring) {
            kept.extend_from_slice(block);
        }
        Ok(())
    })?;
    if (kept.len() as u64) < length {
        fs::write(path, &kept).map_err(TraceError::io(path, "cannot write"))?;
    }
    Ok(kept.len() as u64)
}
