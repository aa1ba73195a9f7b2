//! The last events of threads that have exited, which a flight recorder keeps. They are in two
//! files that take turns, so that neither disk nor memory use grows, however long it runs.
//!
//! **Method.** When a ring's thread has ended, the ring is read. Its events go to the newer of
//! the two files, its account to the file of accounts, and its memory back to the budget. When
//! the newer file is full, the older one is emptied and becomes the newer one: its events are
//! given up, and counted. So between half of the limit and all of it is kept.

use std::collections::HashSet;
use std::io::{Read, Write};

use undertick_format::{TraceError, block};

use crate::accounts::{Accounts, Ended, GivenUp};
use crate::trace_dir::TraceDir;

/// The two files.
pub(crate) const EXITED_THREADS_FILES: [&str; 2] = ["ended-0.utb", "ended-1.utb"];
/// Most rings in one of the files: their accounts are in the recorder's memory.
const MOST_RINGS: usize = 4096;

/// The files, and the accounts of the rings in them.
pub(crate) struct ExitedThreads {
    trace: TraceDir,
    /// The newer of the two files.
    newer: usize,
    bytes: u64,
    /// Largest size of one file, bytes.
    most_bytes: u64,
    /// Rings in the older and in the newer file.
    rings: [Vec<Ended>; 2],
    given_up: GivenUp,
}

impl ExitedThreads {
    /// Opens the files that a trace has; together they have at most `budget` bytes, plus what one
    /// ring has beyond that.
    pub(crate) fn open(
        trace: &TraceDir,
        budget: u64,
        rings: Vec<Ended>,
        given_up: GivenUp,
    ) -> Self {
        let length = |place: usize| trace.length(EXITED_THREADS_FILES[place]);
        // After a kill it is unknown which one was the newer. The shorter one is taken, since the
        // other one may be full.
        let newer = usize::from(length(1) < length(0));
        let there = rings_of(trace, EXITED_THREADS_FILES[newer], budget);
        let (newer_rings, older_rings) =
            (rings.into_iter()).partition(|ended| there.contains(&ended.ring.ring));
        Self {
            trace: trace.clone(),
            newer,
            bytes: length(newer),
            most_bytes: budget / 2,
            rings: [older_rings, newer_rings],
            given_up,
        }
    }

    /// Stores the blocks of rings and their accounts; gives up the oldest if there is no more
    /// room.
    ///
    /// # Errors
    /// The disk refuses; these rings are given up.
    pub(crate) fn keep(
        &mut self,
        blocks: &[u8],
        ended: &mut Vec<Ended>,
        accounts: &mut Accounts,
    ) -> Result<(), TraceError> {
        let kept = self.append(blocks, ended, accounts);
        for gone in ended.drain(..) {
            self.give_up(&gone);
        }
        kept
    }

    fn append(
        &mut self,
        blocks: &[u8],
        ended: &mut Vec<Ended>,
        accounts: &mut Accounts,
    ) -> Result<(), TraceError> {
        let full = self.bytes > 0 && self.bytes + blocks.len() as u64 > self.most_bytes;
        if full || self.rings[1].len() >= MOST_RINGS {
            self.take_turns(accounts)?;
        }
        let name = EXITED_THREADS_FILES[self.newer];
        let path = self.trace.join(name);
        let failed = || TraceError::io(&path, "cannot write");
        let mut file = self.trace.append(name).map_err(failed())?;
        if let Err(error) = file.write_all(blocks) {
            let _ = file.set_len(self.bytes);
            return Err(failed()(error));
        }
        self.bytes += blocks.len() as u64;
        accounts.ended(ended);
        self.rings[1].append(ended);
        Ok(())
    }

    fn give_up(&mut self, gone: &Ended) {
        self.given_up.rings += 1;
        self.given_up.events = self.given_up.events.saturating_add(gone.ring.written);
    }

    fn take_turns(&mut self, accounts: &mut Accounts) -> Result<(), TraceError> {
        let older = 1 - self.newer;
        (self.trace.create(EXITED_THREADS_FILES[older])).map_err(TraceError::io(
            &self.trace.join(EXITED_THREADS_FILES[older]),
            "cannot create",
        ))?;
        self.newer = older;
        self.bytes = 0;
        self.rings.swap(0, 1);
        for gone in std::mem::take(&mut self.rings[1]) {
            self.give_up(&gone);
        }
        (accounts.replace(&self.rings[0], self.given_up)).map_err(TraceError::io(
            self.trace.path(),
            "cannot write the rings' accounts",
        ))
    }

    /// Process and thread of each stored ring.
    pub(crate) fn threads(&self) -> impl Iterator<Item = (i32, i32)> {
        let rings = self.rings.iter().flatten();
        rings.map(|ended| (ended.ring.pid, ended.ring.tid))
    }

    /// The number of events stored, and of those lost from stored rings and from those given up.
    pub(crate) fn events(&self) -> (u64, u64) {
        let rings = self.rings.iter().flatten();
        rings.fold((0, self.given_up.events), |(kept, lost), ended| {
            let ring = &ended.ring;
            (
                kept + ring.received,
                lost.saturating_add(ring.written.saturating_sub(ring.received)),
            )
        })
    }

    /// The number of events that the stored threads could not write.
    pub(crate) fn dropped(&self) -> u64 {
        let rings = self.rings.iter().flatten();
        rings.fold(0, |sum: u64, ended| sum.saturating_add(ended.ring.dropped))
    }

    /// Returns the stored rings, and the account of what was given up.
    pub(crate) fn finish(self) -> (Vec<Ended>, GivenUp) {
        (self.rings.into_iter().flatten().collect(), self.given_up)
    }
}

/// The numbers of the rings in a file of blocks, which has hardly more than `budget` bytes.
fn rings_of(trace: &TraceDir, name: &str, budget: u64) -> HashSet<i32> {
    let mut bytes = Vec::new();
    if let Ok(file) = trace.read(name) {
        let _ = file.take(budget.saturating_mul(2)).read_to_end(&mut bytes);
    }
    let mut rings = HashSet::new();
    let mut rest = &bytes[..];
    while let block::Next::Block(header, length) = block::check(rest) {
        rings.insert(header.ring as i32);
        rest = &rest[length..];
    }
    rings
}
