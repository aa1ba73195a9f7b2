//! Recordings of `flight.c`, and the memory in which it counts, which survives it.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use undertick_format::manifest::Manifest;
use undertick_format::schema::Kind;

use super::{Row, program};

pub const STOP: usize = 508;
pub const ENDED: usize = 509;
pub const WRITTEN: usize = 510;
pub const PID: usize = 511;

/// The memory in which the program counts.
pub struct Cells(File);

impl Cells {
    pub fn new() -> Self {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        Self(file)
    }

    /// Opens the cells of another process.
    pub fn open(path: &Path) -> Self {
        Self(File::options().read(true).write(true).open(path).unwrap())
    }

    pub fn load(&self, cell: usize) -> u64 {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, 8 * cell as u64).unwrap();
        u64::from_le_bytes(bytes)
    }

    pub fn store(&self, cell: usize, value: u64) {
        (self.0.write_all_at(&value.to_le_bytes(), 8 * cell as u64)).unwrap();
    }

    /// Returns the command of a program that counts in these cells.
    pub fn command(&self, words: &[&str]) -> Vec<String> {
        let binary = program("flight.c", &[]);
        let path = format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd());
        let mut command = vec![
            binary.to_str().unwrap().to_owned(),
            words[0].to_owned(),
            path,
        ];
        command.extend(words[1..].iter().map(ToString::to_string));
        command
    }

    /// Ends the program if the test fails; otherwise the test would wait for it.
    pub fn stop_if_failed(&self) -> impl Drop + '_ {
        struct Stop<'a>(&'a Cells);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.store(STOP, 1);
                }
            }
        }
        Stop(self)
    }

    /// Waits until a cell has at least that value.
    #[track_caller]
    pub fn wait_for(&self, cell: usize, least: u64) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.load(cell) < least {
            assert!(Instant::now() < end, "cell {cell}: {}", self.load(cell));
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Returns, for each of `threads` threads, its id and the count of its events.
    pub fn written(&self, threads: usize) -> Vec<(i32, u64)> {
        (0..threads)
            .map(|t| (self.load(4 * t + 1) as i32, self.load(4 * t)))
            .collect()
    }
}

/// Returns the number of an event of a thread that writes without end.
pub fn number_of(row: &Row) -> i64 {
    match row.event {
        1 => {
            assert_ne!(row.payload % 3, 2, "{row:?}");
            row.payload
        }
        2 => {
            let i = row.payload >> 32;
            assert_eq!(row.payload as u32, !(i as u32), "torn: {row:?}");
            assert_eq!(i % 3, 2, "{row:?}");
            i
        }
        _ => panic!("{row:?}"),
    }
}

/// Returns the numbers of a thread's events in the order of the trace, without gaps.
pub fn numbers_of(rows: &[Row], tid: i32) -> Vec<i64> {
    (rows.iter())
        .filter(|row| row.tid == tid && row.kind != Kind::Gap as i8)
        .map(number_of)
        .collect()
}

/// Asserts that the accounts of the rings add up to the contents of the trace.
pub fn assert_accounts(manifest: &Manifest, rows: &[Row]) {
    let mut by = BTreeMap::<i32, (u64, i64)>::new();
    for row in rows.iter().filter(|row| row.mode == 0) {
        let (events, ts) = by.entry(row.ring).or_default();
        *events += u64::from(row.kind != Kind::Gap as i8);
        assert!(*ts <= row.ts, "{row:?} goes back behind {ts}");
        *ts = row.ts;
    }
    for ring in &manifest.rings {
        let (events, _) = by.remove(&ring.ring).unwrap_or_default();
        assert_eq!(events, ring.received, "{ring:?}");
        assert_eq!(
            ring.written,
            ring.received + ring.dropped + ring.overwritten,
            "{ring:?}"
        );
    }
    assert!(by.is_empty(), "rings without an account");
    let all: u64 = manifest.rings.iter().map(|ring| ring.received).sum();
    assert_eq!(manifest.events, all);
}

/// Asserts that a trace has the manifest that was returned when it was made.
pub fn assert_same(one: &Manifest, other: &Manifest) {
    assert!(one.rings == other.rings, "the accounts of rings differ");
    assert_eq!(
        (one.events, one.lost, one.flight, &one.warnings, &one.parts),
        (
            other.events,
            other.lost,
            other.flight,
            &other.warnings,
            &other.parts
        )
    );
}
