//! What a killed recorder has left: which rings, and how much of them is in its files.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufReader, Read, Seek, Write};
use std::sync::Arc;

use undertick_format::TraceError;
use undertick_format::block::{self, BlockHeader, Next};
use undertick_format::files::RAW_FILE;
use undertick_memory::pool_map::PoolMap;
use undertick_memory::ring_map::RingMap;
use undertick_ring::{Kind, Overflow, Record};

use crate::accounts::ACCOUNTS_FILE;
use crate::exited_threads::EXITED_THREADS_FILES;
use crate::trace_dir::TraceDir;

/// How much of a ring is in the raw file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recovered {
    /// Position in the ring's stream after that, bytes.
    pub(crate) position: u64,
    pub(crate) events: u64,
    /// Number of continuations, modulo 2^32.
    pub(crate) continuations: u32,
}

/// What a killed recorder has left.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Rings that are still in the session's pool.
    pub(crate) there: HashSet<u32>,
    /// The extent of those rings in the raw file.
    pub(crate) rings: HashMap<u32, Recovered>,
    /// Length of the raw file, bytes.
    pub(crate) raw_bytes: u64,
}

/// Examines what was left, and repairs it. It removes a torn block, and what a flight recorder
/// had copied of a ring that still exists.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn recover(
    trace: &TraceDir,
    pool: &Arc<PoolMap>,
    overflow: Overflow,
) -> Result<Left, TraceError> {
    let mut left = Left::default();
    let length = trace.length(RAW_FILE);
    let accounts = [ACCOUNTS_FILE];
    if length == 0 && (EXITED_THREADS_FILES.iter().chain(&accounts)).all(|file| !trace.has(file)) {
        return Ok(left); // a recording that begins
    }
    left.there = (rings_of(pool).into_iter().flatten())
        .map(|ring| ring.number)
        .collect();
    if overflow == Overflow::Overwrite {
        // Its rings are read completely when it ends: these are read once more.
        for file in EXITED_THREADS_FILES.into_iter().chain([RAW_FILE]) {
            left.raw_bytes = without(trace, file, &left.there)?;
        }
        return Ok(left);
    }
    left.raw_bytes = add_up(trace, &mut left.rings)?;
    if left.raw_bytes < length {
        cut(trace, left.raw_bytes)?;
    }
    Ok(left)
}

/// Examines the heads of a pool: the rings there, or what is wrong with them.
pub(crate) fn rings_of(pool: &Arc<PoolMap>) -> Vec<Result<RingMap, String>> {
    (0..pool.shape().heads)
        .filter_map(|head| RingMap::at(pool, head).transpose())
        .collect()
}

/// Adds up what blocks hold by ring; returns their bytes, up to the first that is torn.
fn add_up(trace: &TraceDir, rings: &mut HashMap<u32, Recovered>) -> Result<u64, TraceError> {
    let mut records = Vec::new();
    each_block(trace, RAW_FILE, |header, block| {
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

/// Visits the whole blocks of a file, which may be missing; returns their bytes.
pub(crate) fn each_block(
    trace: &TraceDir,
    name: &str,
    mut take: impl FnMut(BlockHeader, &[u8]) -> io::Result<()>,
) -> Result<u64, TraceError> {
    let path = trace.join(name);
    let failed = || TraceError::io(&path, "cannot read");
    let Some(file) = trace.read_if_there(name)? else {
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

fn cut(trace: &TraceDir, length: u64) -> Result<(), TraceError> {
    let file = trace.change(RAW_FILE);
    file.and_then(|file| file.set_len(length))
        .map_err(TraceError::io(
            &trace.join(RAW_FILE),
            "cannot be cut to its whole blocks",
        ))
}

/// Removes the blocks of these rings from a file, and what follows the last whole one; returns
/// the bytes that are left. The locked file is changed in place.
fn without(trace: &TraceDir, name: &str, rings: &HashSet<u32>) -> Result<u64, TraceError> {
    let length = trace.length(name);
    let mut kept = Vec::new();
    each_block(trace, name, |header, block| {
        if !rings.contains(&header.ring) {
            kept.extend_from_slice(block);
        }
        Ok(())
    })?;
    if (kept.len() as u64) < length {
        let put = || -> io::Result<()> {
            let mut file = trace.change(name)?;
            file.rewind()?;
            file.write_all(&kept)?;
            file.set_len(kept.len() as u64)
        };
        put().map_err(TraceError::io(&trace.join(name), "cannot write"))?;
    }
    Ok(kept.len() as u64)
}
