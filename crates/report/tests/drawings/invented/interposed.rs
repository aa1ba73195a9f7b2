//! Invented waits and allocations.

use undertick_document::explanation::CallWait;
use undertick_document::{
    Allocations, IntervalReport, Lock, LockKind, LockWaits, Locks, PathAllocations,
};

fn lock(kind: LockKind) -> Lock {
    Lock {
        kind,
        pid: 4711,
        address: "0x55e0<b>12c0".to_owned(),
        name: None,
    }
}

pub(super) fn wait() -> CallWait {
    CallWait {
        lock: lock(LockKind::Mutex),
        n: 2,
        waited_ns: 870_000.0,
        by: Some("<i>writer (8)".to_owned()),
        by_in: vec!["server".to_owned(), "<b>commit".to_owned()],
    }
}

pub(super) fn locks(intervals: &[IntervalReport]) -> Option<Locks> {
    (!intervals.is_empty()).then(|| Locks {
        waits: 12,
        waited_ns: 9_000_000.0,
        still_waiting: 1,
        lost: 3,
        rows: vec![
            LockWaits {
                lock: lock(LockKind::RwLockToWrite),
                path: Some(0),
                by_is_known: true,
                by_still_open: vec!["<script>alert(3)</script>".to_owned()],
                n: 11,
                waited_ns: 8_000_000.0,
                longest_ns: 1_000_000.0,
                ..LockWaits::default()
            },
            LockWaits {
                lock: lock(LockKind::Condition),
                by: Some("<b>consumer".to_owned()),
                by_is_known: true,
                n: 1,
                still_waiting: 1,
                waited_ns: 1_000_000.0,
                longest_ns: 1_000_000.0,
                ..LockWaits::default()
            },
        ],
    })
}

pub(super) fn allocations(intervals: &[IntervalReport]) -> Option<Allocations> {
    (!intervals.is_empty()).then(|| Allocations {
        calls: 1_234_567,
        bytes: 5 << 40,
        frees: 1_234_000,
        unplaced_calls: 7,
        lost: 1,
        paths: vec![
            PathAllocations {
                path: Some(0),
                calls: 1_234_000,
                bytes: 5 << 40,
                frees: 1_234_000,
                ..PathAllocations::default()
            },
            PathAllocations {
                calls: 560,
                bytes: 999,
                ..PathAllocations::default()
            },
        ],
    })
}
