use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::super::test_harness;
use super::*;

#[test]
fn values_lie_apart_aligned_and_do_not_overlap() {
    let memory = SharedMemory::new(1 << 16).unwrap();
    let byte = memory.place(7_u8);
    let word = memory.place(AtomicU64::new(1));
    let one = memory.place_apart(AtomicU32::new(2));
    let two = memory.place_apart(AtomicU32::new(3));
    let after = memory.place(4_u8);
    let at = |address: *const u8| address.addr();
    assert_eq!(at(std::ptr::from_ref(word).cast()) % 8, 0);
    let (one_at, two_at) = (
        at(std::ptr::from_ref(one).cast()),
        at(std::ptr::from_ref(two).cast()),
    );
    assert_eq!((one_at % 128, two_at % 128), (0, 0));
    assert!(two_at >= one_at + 128);
    assert!(at(after) >= two_at + 128);
    assert_eq!((*byte, *after), (7, 4));
    assert_eq!(word.load(Ordering::Relaxed), 1);
    assert_eq!(one.load(Ordering::Relaxed), 2);
    assert_eq!(two.load(Ordering::Relaxed), 3);
}

#[test]
fn more_than_asked_for_has_room_too() {
    let memory = SharedMemory::new(4096).unwrap();
    let kept: Vec<&u64> = (0..10_000).map(|n| memory.place(n)).collect();
    let large = memory.bytes(3 << 20).unwrap();
    // SAFETY: within the bytes just taken, which nobody else has.
    let bytes = unsafe { std::slice::from_raw_parts_mut(large.as_ptr(), 3 << 20) };
    assert!(bytes.iter().all(|byte| *byte == 0));
    bytes.fill(0xff);
    assert!(kept.iter().enumerate().all(|(n, kept)| n as u64 == **kept));
    let all = memory.place_all((0..1000_u16).collect());
    assert!(
        all.iter()
            .enumerate()
            .all(|(n, kept)| n == usize::from(*kept))
    );
}

#[test]
fn a_child_writes_what_its_parent_reads() {
    let memory = SharedMemory::new(4096).unwrap();
    let word = memory.place(AtomicU32::new(1));
    test_harness::processes(2, &[], |me| {
        word.fetch_add(10 + me as u32, Ordering::Relaxed);
    });
    assert_eq!(word.load(Ordering::Relaxed), 1 + 10 + 11);
}
