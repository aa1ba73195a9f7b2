//! Recordings of `kernel.c`, and the program's report about itself.

use std::fs;
use std::path::Path;

use undertick_format::manifest::{Kernel, KernelSource, Manifest};
use undertick_format::schema::Kind;
use undertick_record::Overflow;
use undertick_record::kernel::Wanted;
use undertick_record::record::{Request, record};

use super::{Row, program, request, rows, settings};

pub const OUTER: i32 = 1;
pub const INNER: i32 = 2;
pub const STEP: i32 = 3;

/// A line of the program's report: its word, thread and numbers.
#[derive(Debug)]
pub struct Said {
    pub word: String,
    pub tid: i32,
    pub numbers: Vec<i64>,
}

pub struct Recorded {
    pub manifest: Manifest,
    pub rows: Vec<Row>,
    pub said: Vec<Said>,
}

impl Recorded {
    pub fn said(&self, word: &str) -> &Said {
        (self.said.iter().find(|said| said.word == word))
            .unwrap_or_else(|| panic!("the program did not say {word}: {:?}", self.said))
    }

    pub fn kernel(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.mode == 1)
    }

    /// Returns the time of a thread's user event with that payload.
    pub fn stamp(&self, tid: i32, event: i32, payload: i64) -> i64 {
        let found = self.rows.iter().find(|row| {
            row.mode == 0 && (row.tid, row.event, row.payload) == (tid, event, payload)
        });
        found
            .unwrap_or_else(|| panic!("no stamp {event} {payload} of {tid}"))
            .ts
    }

    /// Returns the rows of a thread between its stamps `event` 0 and 1.
    pub fn between(&self, tid: i32, event: i32) -> Vec<&Row> {
        let (from, to) = (self.stamp(tid, event, 0), self.stamp(tid, event, 1));
        (self.kernel())
            .filter(|row| row.tid == tid && from < row.ts && row.ts < to)
            .collect()
    }

    /// Returns the share of the time between its stamps that a thread was on a CPU, by its
    /// switches.
    pub fn share_on_cpu(&self, tid: i32, event: i32) -> f64 {
        let (from, to) = (self.stamp(tid, event, 0), self.stamp(tid, event, 1));
        let (mut since, mut on) = (Some(from), 0);
        for row in self.between(tid, event) {
            if row.kind == Kind::SwitchOut as i8 {
                on += since.take().map_or(0, |since| row.ts - since);
            } else if row.kind == Kind::SwitchIn as i8 {
                since = Some(row.ts);
            }
        }
        on += since.map_or(0, |since| to - since);
        on as f64 / (to - from) as f64
    }

    /// Counts the switches out between the stamps: all, and those that were no preemption.
    pub fn switches(&self, tid: i32, event: i32) -> (i64, i64) {
        let out: Vec<_> = (self.between(tid, event).into_iter())
            .filter(|row| row.kind == Kind::SwitchOut as i8)
            .collect();
        let waits = out.iter().filter(|row| row.payload != 1).count();
        (out.len() as i64, waits as i64)
    }
}

pub fn recorded(words: &[&str], wanted: Wanted) -> Recorded {
    recorded_with(words, |request| request.kernel = wanted)
}

/// As [`recorded`], after changing the request.
pub fn recorded_with(words: &[&str], change: impl FnOnce(&mut Request)) -> Recorded {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("k.ut");
    let said = dir.path().join("said");
    let binary = program("kernel.c", &[]);
    // The shell only redirects, and the program replaces it.
    let mut command = vec![
        "sh",
        "-c",
        "out=$1; shift; exec \"$@\" >>\"$out\"",
        "sh",
        said.to_str().unwrap(),
        binary.to_str().unwrap(),
    ];
    command.extend(words);
    let mut request = request(&trace, &command, settings(Overflow::Grow, 1 << 20, None));
    change(&mut request);
    record(request, &mut |_| {}).unwrap();
    read(&trace, &said)
}

pub fn read(trace: &Path, said: &Path) -> Recorded {
    let said = (fs::read_to_string(said).unwrap().lines())
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            Said {
                word: words[0].to_owned(),
                tid: words[1].parse().unwrap(),
                numbers: words[2..].iter().map(|n| n.parse().unwrap()).collect(),
            }
        })
        .collect();
    let (manifest, rows) = rows(trace);
    Recorded {
        manifest,
        rows,
        said,
    }
}

/// Returns whether a source of switches runs here; otherwise prints that the test is skipped.
pub fn has_switches(recorded: &Recorded) -> bool {
    let kernel = recorded.manifest.kernel.as_ref().unwrap();
    let has = (kernel.sources.iter()).any(|s| s.used && s.tells.iter().any(|t| t == "switch_out"));
    if !has {
        println!("skipped: no source of context switches here: {kernel:?}");
    }
    has
}

/// Asserts that the kernel's count of a thread's switches lies between the numbers of rows in the
/// inner and in the outer stretch.
pub fn assert_accounted(recorded: &Recorded, word: &str) {
    let said = recorded.said(word);
    let (waits, others) = (said.numbers[0], said.numbers[1]);
    let inner = recorded.switches(said.tid, INNER);
    let outer = recorded.switches(said.tid, OUTER);
    assert!(
        inner.0 <= waits + others && waits + others <= outer.0,
        "{word}: {inner:?} {outer:?} {said:?}"
    );
    assert!(
        inner.1 <= waits && waits <= outer.1,
        "{word}: {inner:?} {outer:?} {said:?}"
    );
}

pub fn assert_sound(recorded: &Recorded) {
    let manifest = &recorded.manifest;
    let kernel = manifest.kernel.as_ref().unwrap();
    let rows: Vec<&Row> = recorded.kernel().collect();
    assert_eq!(rows.len() as u64, kernel.rows);
    assert_eq!((kernel.lost, kernel.losses_not_counted), (0, 0));
    assert!(rows.windows(2).all(|two| two[0].ts <= two[1].ts));
    assert!(rows.iter().all(|row| row.ring == -1));
    // The kernel's rows come before the user's.
    assert!(recorded.rows[..rows.len()].iter().all(|row| row.mode == 1));
    assert_eq!(manifest.events as usize, recorded.rows.len() - rows.len());
    let balance = kernel.balance.unwrap();
    assert_eq!(
        (balance.missing_in, balance.missing_out),
        (0, 0),
        "{balance:?} {:?} {:?}",
        kernel.comparison,
        kernel.sources
    );
    // Only the program's processes have rows: no other process, nor the recorder.
    let of_program = |pid: i32| {
        let mut said = recorded.said.iter();
        said.any(|said| ["main", "child"].contains(&said.word.as_str()) && said.tid == pid)
    };
    for row in rows {
        assert!(row.tid == 0 || of_program(row.pid), "{row:?}");
    }
}

/// Returns the manifest's bound on the error of the rows' times.
pub fn error_ticks(manifest: &Manifest) -> i64 {
    let error_ns = manifest.kernel.as_ref().unwrap().error_ns;
    assert!(error_ns < 100_000.0, "{error_ns}");
    (error_ns / manifest.clock.ns_per_tick()).ceil() as i64
}

/// Returns the source of that name, where it ran.
pub fn source<'a>(kernel: &'a Kernel, name: &str) -> Option<&'a KernelSource> {
    let source = kernel.sources.iter().find(|source| source.name == name)?;
    if !source.used {
        println!("skipped: {name}: {}", source.why);
    }
    source.used.then_some(source)
}
