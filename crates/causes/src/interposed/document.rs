//! What threads waited for and allocated, for the document.

use std::collections::{BTreeMap, HashMap};

use undertick_analyze::innermost::Around;
use undertick_document::{
    Allocations, Lock as LockOf, LockKind, LockWaits, Locks, PathAllocations, Report, Warning,
};
use undertick_format::interposed::WaitKind;
use undertick_format::manifest::Manifest;

use super::{Interposed, Lock, Spans};
use crate::states::facts;

/// Most rows of a report; further ones are in its totals.
const MOST_ROWS: usize = 4096;

/// Says why the report has no waits and no allocations.
pub(super) fn cannot(report: &mut Report, why: &str) {
    report.warnings.push(Warning {
        code: "interposed".to_owned(),
        text: format!("waits and allocations (record --with) are not in this report: {why}"),
    });
}

/// The names of locks, by process and address.
pub(super) type LockNames = HashMap<(i32, u64), String>;

pub(super) fn lock_names(manifest: &Manifest) -> LockNames {
    let locks = manifest.locks.iter();
    (locks.map(|lock| ((lock.pid, lock.address), lock.name.clone()))).collect()
}

pub(super) fn lock(lock: Lock, names: &LockNames) -> LockOf {
    LockOf {
        kind: match lock.kind {
            WaitKind::Mutex => LockKind::Mutex,
            WaitKind::Read => LockKind::RwLockToRead,
            WaitKind::Write => LockKind::RwLockToWrite,
            WaitKind::Condition => LockKind::Condition,
            WaitKind::Semaphore => LockKind::Semaphore,
        },
        pid: lock.pid,
        address: format!("{:#x}", lock.address),
        name: names.get(&(lock.pid, lock.address)).cloned(),
    }
}

pub(super) fn thread(tid: i32, names: &HashMap<i32, String>) -> String {
    match names.get(&tid) {
        Some(name) => format!("{name} ({tid})"),
        None => format!("thread {tid}"),
    }
}

/// The names of a span, from the role or the outermost span on; empty outside of all spans.
pub(super) fn names(around: &Around, report: &Report) -> Vec<String> {
    match around {
        Around::Path(path) => (report.path_names(*path as usize))
            .map(str::to_owned)
            .collect(),
        Around::StillOpen(names) => names.clone(),
        Around::Nothing => Vec::new(),
    }
}

/// Records of the libraries that are lost.
fn lost(manifest: &Manifest) -> u64 {
    (manifest.rings.iter())
        .filter(|ring| ring.interposed)
        .map(|ring| ring.dropped.saturating_add(ring.overwritten))
        .fold(0, u64::saturating_add)
}

pub(super) fn locks(found: &Interposed, spans: &Spans, manifest: &Manifest) -> Locks {
    let ns = manifest.clock.ns_per_tick();
    let (threads, names) = (facts::roles(manifest), lock_names(manifest));
    let mut locks = Locks {
        lost: lost(manifest),
        ..Locks::default()
    };
    // Threads of one name together, as in the tree.
    let role = |tid: i32| threads.get(&tid).cloned();
    type Key<'a> = (Lock, &'a Around, Option<Option<String>>, &'a Around);
    let mut rows: BTreeMap<Key<'_>, LockWaits> = BTreeMap::new();
    for ((wait, around), by) in found.waits.iter().zip(&spans.waiting).zip(&spans.by) {
        let waited_ns = wait.end.saturating_sub(wait.start).max(0) as f64 * ns;
        locks.waits += 1;
        locks.waited_ns += waited_ns;
        locks.still_waiting += u64::from(wait.is_open);
        let key = (wait.lock, around, wait.by.map(|(tid, _)| role(tid)), by);
        let row = rows.entry(key).or_insert_with(|| {
            let [(path, still_open), (by_path, by_still_open)] =
                [around, by].map(|around| around.clone().into_parts());
            LockWaits {
                lock: lock(wait.lock, &names),
                path,
                still_open,
                by: wait.by.and_then(|(tid, _)| role(tid)),
                by_is_known: wait.by.is_some(),
                by_path,
                by_still_open,
                ..LockWaits::default()
            }
        });
        row.n += 1;
        row.still_waiting += u64::from(wait.is_open);
        row.waited_ns += waited_ns;
        row.longest_ns = row.longest_ns.max(waited_ns);
    }
    locks.rows = rows.into_values().collect();
    (locks.rows).sort_by(|a, b| b.waited_ns.total_cmp(&a.waited_ns));
    locks.rows.truncate(MOST_ROWS);
    locks
}

pub(super) fn allocations(found: &Interposed, spans: &Spans, manifest: &Manifest) -> Allocations {
    let mut rows: BTreeMap<&Around, PathAllocations> = BTreeMap::new();
    for (chunk, around) in found.chunks.iter().zip(&spans.chunks) {
        let row = rows.entry(around).or_insert_with(|| {
            let (path, still_open) = around.clone().into_parts();
            PathAllocations {
                path,
                still_open,
                ..PathAllocations::default()
            }
        });
        row.calls += u64::from(chunk.calls);
        row.frees += u64::from(chunk.frees);
        row.bytes = row.bytes.saturating_add(found.bytes(chunk));
    }
    let mut rows: Vec<PathAllocations> = rows.into_values().collect();
    let sum = |of: fn(&PathAllocations) -> u64| rows.iter().map(of).fold(0, u64::saturating_add);
    let all = Allocations {
        calls: sum(|of| of.calls).saturating_add(found.unplaced.calls),
        bytes: sum(|of| of.bytes).saturating_add(found.unplaced.bytes),
        frees: sum(|of| of.frees).saturating_add(found.unplaced.frees),
        unplaced_calls: found.unplaced.calls,
        lost: lost(manifest),
        paths: Vec::new(),
    };
    rows.sort_by_key(|of| std::cmp::Reverse(of.calls));
    rows.truncate(MOST_ROWS);
    Allocations { paths: rows, ..all }
}
