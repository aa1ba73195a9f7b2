use undertick_document::explanation::CallWait;

use super::*;

fn wait(kind: LockKind, by: Option<&str>, by_in: &[&str]) -> CallWait {
    CallWait {
        lock: Lock {
            kind,
            pid: 1,
            address: "0x40".to_owned(),
            name: None,
        },
        n: 1,
        waited_ns: 3_100_000.0,
        by: by.map(str::to_owned),
        by_in: by_in.iter().map(|name| (*name).to_owned()).collect(),
    }
}

#[test]
fn a_wait_is_said_in_a_sentence() {
    let text = |wait: &CallWait| wait_text(wait).replace('\u{a0}', " ");
    let held = wait(LockKind::Mutex, Some("writer (7)"), &["commit", "flush"]);
    assert_eq!(
        text(&held),
        "waited 3.10 ms for mutex 0x40, held by writer (7) in commit/flush"
    );
    let posted = wait(LockKind::Semaphore, Some("thread 8"), &[]);
    let posted = CallWait { n: 1_200, ..posted };
    assert_eq!(
        text(&posted),
        "waited 3.10 ms for semaphore 0x40 (1 200 times), posted by thread 8"
    );
    assert_eq!(
        text(&wait(LockKind::RwLockToRead, None, &[])),
        "waited 3.10 ms for rwlock (read) 0x40"
    );
}

#[test]
fn bytes_have_three_digits() {
    let text = |n: u64| bytes(n).replace('\u{a0}', " ");
    assert_eq!(text(0), "0 B");
    assert_eq!(text(999), "999 B");
    assert_eq!(text(1000), "0.98 KiB");
    assert_eq!(text(10 * 1024), "10.0 KiB");
    assert_eq!(text(512 * 1024), "512 KiB");
    assert_eq!(text(5 << 30), "5.00 GiB");
    assert_eq!(text(u64::MAX), "16384 PiB");
}
