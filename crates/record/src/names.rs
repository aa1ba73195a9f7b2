//! Reads the log of names that the programs wrote.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};

use rustix::fs::FallocateFlags;
use undertick_format::manifest::{Name, Thread};
use undertick_ring::layout::{NAMES_FILE, names};

use undertick_memory::session_dir::SessionDir;

/// Most bytes that are read of a log: 65536 names of usual length take 2 MB.
const MOST_BYTES: usize = 16 << 20;
/// Most names of events that are stored, and most of threads.
const MOST_NAMES: usize = 1 << 18;

/// The file with what a flight recorder has kept of the beginning of the log.
const KEPT_FILE: &str = "names-kept";
/// A longer log is shortened.
const LONG_BYTES: u64 = 1 << 20;

/// What the programs of a session said about themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The names of events.
    pub events: Vec<Name>,
    /// The names of threads.
    pub threads: Vec<Thread>,
    /// Where locks lie.
    pub locks: Vec<LockPlace>,
}

/// The place of a lock in a file of its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockPlace {
    /// The process.
    pub pid: i32,
    /// Its address there.
    pub address: u64,
    /// Its address less the address at which the file is loaded.
    pub offset: u64,
    /// The file.
    pub path: String,
}

impl LockPlace {
    fn parse(pid: i32, text: &str) -> Option<Self> {
        let mut words = text.splitn(3, ' ');
        let mut number = || u64::from_str_radix(words.next()?, 16).ok();
        let (address, offset) = (number()?, number()?);
        Some(Self {
            pid,
            address,
            offset,
            path: words.next()?.to_owned(),
        })
    }

    fn text(&self) -> String {
        format!("{:x} {:x} {}", self.address, self.offset, self.path)
    }
}

/// Reads the names log of a session, and its tables of functions. The content is untrusted:
/// anything but a record is skipped. Later names replace earlier ones.
#[must_use]
pub fn read(session: &SessionDir) -> Names {
    let file = session
        .owner()
        .and_then(|owner| session.file(NAMES_FILE, owner).ok()?);
    let held = file.map(|file| log(session, &file).0);
    let mut names = parse_log(&held.unwrap_or_default());
    (names.events).extend(crate::functions::names(session.path()));
    names
}

/// Returns the log, preceded by what was kept of its beginning, and its length.
pub(crate) fn log(dir: &SessionDir, file: &File) -> (Vec<u8>, u64) {
    let kept = (dir.owner()).and_then(|owner| dir.file(KEPT_FILE, owner).ok().flatten());
    let kept = kept.map_or_else(Vec::new, |kept| bytes_from(&kept, 0));
    let (from, kept) = kept.split_first_chunk().unwrap_or((&[0; 8], &[]));
    let from = u64::from_le_bytes(*from);
    let after = bytes_from(file, from);
    let length = from.saturating_add(after.len() as u64);
    ([kept, &after].concat(), length)
}

/// Returns the content of a file from `from` on.
fn bytes_from(file: &File, from: u64) -> Vec<u8> {
    /// Does not move the file's own position: another process may be appending.
    struct At<'a>(&'a File, u64);
    impl Read for At<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let bytes = self.0.read_at(buffer, self.1)?;
            self.1 = self.1.saturating_add(bytes as u64);
            Ok(bytes)
        }
    }
    let mut bytes = Vec::new();
    let _ = At(file, from)
        .take(MOST_BYTES as u64)
        .read_to_end(&mut bytes);
    bytes
}

/// Shortens the log if it has become long. It keeps the names for which `is_wanted` is true,
/// given the process of an event's name, or process and thread of a thread's. The log's beginning
/// is released as a hole, since programs append to it at the same time.
pub(crate) fn shorten(dir: &SessionDir, file: &File, is_wanted: impl Fn(i32, Option<i32>) -> bool) {
    if file.metadata().map_or(0, |about| about.blocks() * 512) <= LONG_BYTES {
        return;
    }
    let (bytes, length) = log(dir, file);
    let Names {
        events,
        threads,
        locks,
    } = parse(&bytes);
    let mut kept = length.to_le_bytes().to_vec();
    for name in &events {
        let pid = name.pid.unwrap_or(0);
        if is_wanted(pid, None) {
            put(&mut kept, (names::EVENT, name.event), (pid, 0), &name.name);
        }
    }
    for thread in &threads {
        if is_wanted(thread.pid, Some(thread.tid)) {
            put(
                &mut kept,
                (names::THREAD, 0),
                (thread.pid, thread.tid),
                &thread.name,
            );
        }
    }
    for lock in &locks {
        if is_wanted(lock.pid, None) {
            put(&mut kept, (names::LOCK, 0), (lock.pid, 0), &lock.text());
        }
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    // In this order a name is always in one of them.
    if dir.replace(KEPT_FILE, &kept).is_ok() {
        let _ = rustix::fs::fallocate(file, flags, 0, length);
    }
}

/// Returns the names in a log, for all processes together.
pub(crate) fn parse_log(log: &[u8]) -> Names {
    let names = parse(log);
    Names {
        events: hold_for_all(names.events),
        ..names
    }
}

/// A number that was made for a name holds for all processes, unless two disagree: a child has
/// its parent's numbers, and logs no names.
fn hold_for_all(mut names: Vec<Name>) -> Vec<Name> {
    let is_made = |event: u16| (names::FIRST_NUMBER..=names::OTHERS).contains(&event);
    // By number; `None`: two disagree.
    let mut agreed: BTreeMap<u16, Option<&str>> = BTreeMap::new();
    for name in names.iter().filter(|name| is_made(name.event)) {
        let known = agreed.entry(name.event).or_insert(Some(&name.name));
        *known = known.filter(|known| *known == name.name);
    }
    let for_all: Vec<Name> = (agreed.into_iter())
        .filter_map(|(event, name)| {
            Some(Name {
                pid: None,
                event,
                name: name?.to_owned(),
            })
        })
        .collect();
    names.extend(for_all);
    names
}

/// The names of programs, those replaced that were given to the recorder.
pub(crate) fn merge_names(mut names: Vec<Name>, file: &[Name]) -> Vec<Name> {
    let given: HashSet<u16> = file.iter().map(|given| given.event).collect();
    names.retain(|known| !given.contains(&known.event));
    names.extend_from_slice(file);
    names
}

fn put(log: &mut Vec<u8>, (what, event): (u16, u16), (pid, tid): (i32, i32), text: &str) {
    let mut cut = text.len().min(names::MAX_TEXT_BYTES);
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    for half in [names::MAGIC, what, event, cut as u16] {
        log.extend_from_slice(&half.to_le_bytes());
    }
    log.extend_from_slice(&pid.to_le_bytes());
    log.extend_from_slice(&tid.to_le_bytes());
    log.extend_from_slice(&text.as_bytes()[..cut]);
}

/// Returns what a names log says, ordered by when it was said last. Never panics, whatever the bytes
/// are.
#[must_use]
pub fn parse(mut bytes: &[u8]) -> Names {
    let (mut events, mut threads, mut locks) = (Last::default(), Last::default(), Last::default());
    while bytes.len() >= names::HEADER_BYTES {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let i32_at =
            |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let length = u16_at(6) as usize;
        let text = bytes.get(names::HEADER_BYTES..names::HEADER_BYTES + length);
        let (Some(text), names::MAGIC, true) = (text, u16_at(0), length <= names::MAX_TEXT_BYTES)
        else {
            bytes = &bytes[1..]; // find the next record
            continue;
        };
        let name = || String::from_utf8_lossy(text).into_owned();
        let (pid, tid, event) = (i32_at(8), i32_at(12), u16_at(4));
        match u16_at(2) {
            names::EVENT => events.put((pid, i64::from(event)), || Name {
                pid: Some(pid),
                event,
                name: name(),
            }),
            names::THREAD => threads.put((pid, i64::from(tid)), || Thread {
                pid,
                tid,
                name: name(),
            }),
            names::LOCK => {
                if let Some(lock) = LockPlace::parse(pid, &name()) {
                    locks.put((pid, lock.address as i64), || lock);
                }
            }
            _ => {}
        }
        bytes = &bytes[names::HEADER_BYTES + length..];
    }
    Names {
        events: events.in_order(),
        threads: threads.in_order(),
        locks: locks.in_order(),
    }
}

/// The last value of each key.
struct Last<T> {
    of: HashMap<(i32, i64), (usize, T)>,
    given: usize,
}

impl<T> Default for Last<T> {
    fn default() -> Self {
        Self {
            of: HashMap::new(),
            given: 0,
        }
    }
}

impl<T> Last<T> {
    fn put(&mut self, key: (i32, i64), value: impl FnOnce() -> T) {
        if self.of.len() < MOST_NAMES || self.of.contains_key(&key) {
            self.given += 1;
            self.of.insert(key, (self.given, value()));
        }
    }

    fn in_order(self) -> Vec<T> {
        let mut all: Vec<(usize, T)> = self.of.into_values().collect();
        all.sort_unstable_by_key(|&(given, _)| given);
        all.into_iter().map(|(_, value)| value).collect()
    }
}

#[cfg(test)]
mod tests;
