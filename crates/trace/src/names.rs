//! The names log, as the programs left it.

use std::path::Path;

use undertick_ring::layout::{NAMES_FILE, names};

use crate::manifest::{Name, Thread};

/// Reads the names log of a session, and its tables of functions. What is no
/// record is skipped; nothing there is trusted. Later names replace earlier ones.
#[must_use]
pub fn read(session: &Path) -> (Vec<Name>, Vec<Thread>) {
    let (mut events, threads) = parse(&std::fs::read(session.join(NAMES_FILE)).unwrap_or_default());
    events.extend(crate::functions::names(session));
    (events, threads)
}

pub(crate) fn parse(mut bytes: &[u8]) -> (Vec<Name>, Vec<Thread>) {
    let (mut events, mut threads) = (Vec::<Name>::new(), Vec::<Thread>::new());
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
        let name = String::from_utf8_lossy(text).into_owned();
        let (pid, tid, event) = (i32_at(8), i32_at(12), u16_at(4));
        match u16_at(2) {
            names::EVENT => {
                events.retain(|known| (known.pid, known.event) != (Some(pid), event));
                events.push(Name {
                    pid: Some(pid),
                    event,
                    name,
                });
            }
            names::THREAD => {
                threads.retain(|known| (known.pid, known.tid) != (pid, tid));
                threads.push(Thread { pid, tid, name });
            }
            _ => {}
        }
        bytes = &bytes[names::HEADER_BYTES + length..];
    }
    (events, threads)
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
