//! The names log, as the programs left it.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

use undertick_ring::layout::{NAMES_FILE, names};

use crate::manifest::{Name, Thread};
use crate::session_dir::SessionDir;

/// Of a log that is longer this much is read, bytes: 65536 names of usual length take 2 MB.
const MOST_BYTES: usize = 16 << 20;
/// Most names of events that are kept, and most of threads.
const MOST_NAMES: usize = 1 << 18;

/// Reads the names log of a session, and its tables of functions. What is no
/// record is skipped; nothing there is trusted. Later names replace earlier ones.
#[must_use]
pub fn read(session: &Path) -> (Vec<Name>, Vec<Thread>) {
    let opened = SessionDir::open(session).ok();
    let log = opened.and_then(|dir| dir.file(NAMES_FILE, dir.owner()?).ok().flatten());
    let (mut events, threads) = parse(&log.map_or_else(Vec::new, |file| self::log(&file)));
    events.extend(crate::functions::names(session));
    (events, threads)
}

/// What a names log holds, from its start.
pub(crate) fn log(file: &File) -> Vec<u8> {
    /// Leaves the file's own place alone: somebody may be appending.
    struct At<'a>(&'a File, u64);
    impl Read for At<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let bytes = self.0.read_at(buffer, self.1)?;
            self.1 += bytes as u64;
            Ok(bytes)
        }
    }
    let mut bytes = Vec::new();
    let _ = At(file, 0).take(MOST_BYTES as u64).read_to_end(&mut bytes);
    bytes
}

/// What a names log says: names of events and of threads, in the order in which they were
/// given last. Never panics, whatever the bytes are.
#[must_use]
pub fn parse(mut bytes: &[u8]) -> (Vec<Name>, Vec<Thread>) {
    let (mut events, mut threads) = (Last::default(), Last::default());
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
            names::EVENT => events.put((pid, i32::from(event)), || Name {
                pid: Some(pid),
                event,
                name: name(),
            }),
            names::THREAD => threads.put((pid, tid), || Thread {
                pid,
                tid,
                name: name(),
            }),
            _ => {}
        }
        bytes = &bytes[names::HEADER_BYTES + length..];
    }
    (events.in_order(), threads.in_order())
}

/// The last of each key.
struct Last<T> {
    of: HashMap<(i32, i32), (usize, T)>,
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
    fn put(&mut self, key: (i32, i32), value: impl FnOnce() -> T) {
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
mod tests {
    use super::*;

    fn record(what: u16, event: u16, pid: i32, tid: i32, text: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for half in [names::MAGIC, what, event, text.len() as u16] {
            bytes.extend_from_slice(&half.to_le_bytes());
        }
        bytes.extend_from_slice(&pid.to_le_bytes());
        bytes.extend_from_slice(&tid.to_le_bytes());
        bytes.extend_from_slice(text);
        bytes
    }

    /// Longer than memory, and as many names as there are numbers: it ends soon and is
    /// bounded.
    #[test]
    fn a_log_without_end() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 40).unwrap();
        assert_eq!(log(&file).len(), MOST_BYTES);
        let many: Vec<u8> = (0..MOST_NAMES as i32 + 10)
            .flat_map(|tid| record(2, 0, 1, tid, b"n"))
            .collect();
        assert_eq!(parse(&many).1.len(), MOST_NAMES);
        let again: Vec<u8> = (0..100_000)
            .flat_map(|_| record(1, 7, 1, 1, b"n"))
            .collect();
        assert_eq!(parse(&again).0.len(), 1);
    }

    #[test]
    fn the_last_name_counts_and_rubbish_is_skipped() {
        let log = [
            record(1, 7, 10, 11, b"first"),
            vec![1, 2, 3, b'U'],
            record(2, 0, 10, 11, "worker \u{e9}".as_bytes()),
            record(1, 7, 10, 12, b"second"),
            record(1, 7, 99, 99, b"\xff"),
            record(1, 8, 10, 11, b"cut")[..18].to_vec(),
        ]
        .concat();
        let (events, threads) = parse(&log);
        let named: Vec<_> = events
            .iter()
            .map(|n| (n.pid, n.event, n.name.as_str()))
            .collect();
        assert_eq!(named, [(Some(10), 7, "second"), (Some(99), 7, "\u{fffd}")]);
        assert_eq!(
            threads,
            [Thread {
                pid: 10,
                tid: 11,
                name: "worker \u{e9}".to_owned()
            }]
        );
    }
}
