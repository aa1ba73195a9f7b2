use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::linux::test_harness::{self, RunAs, UnprotectedCounter};
use crate::script::Words;

const TIMES: u64 = 100_000;

/// A user stops after this time however many times it had the lock. Locks that serve in turn are
/// slow where the next user is seldom on a CPU: beside a busy program each turn costs a time slice.
const LONGEST: Duration = Duration::from_secs(1);

fn kinds() -> impl Iterator<Item = LockKind> {
    LockKind::WORDS.iter().map(|(_, kind)| *kind)
}

/// The users, which all begin together, increment an unprotected counter under the lock, and
/// sometimes yield their CPU while they hold it.
fn no_update_is_lost(kind: LockKind, users: usize, run_as: RunAs, on: &[usize]) {
    let memory = SharedMemory::new(1 << 16).unwrap();
    let lock = Lock::create(kind, &memory, users).unwrap();
    let counter = memory.place_apart(UnprotectedCounter::default());
    let here = memory.place_apart(AtomicUsize::new(0));
    let passed = memory.place_apart(AtomicU64::new(0));
    test_harness::run(run_as, users, on, |me| {
        let (mut take, mut give) = lock.acts(me);
        let mut long = lock.lock_unlock(me, 10);
        here.fetch_add(1, Ordering::AcqRel);
        while here.load(Ordering::Acquire) < users {
            std::thread::yield_now();
        }
        let began = Instant::now();
        let mut passes = 0;
        while passes < TIMES && (passes % 16 != 0 || began.elapsed() < LONGEST) {
            take();
            counter.increment();
            if passes % 2000 == 1000 {
                std::thread::yield_now();
            }
            give();
            if passes % 1000 == 0 {
                long();
            }
            passes += 1;
        }
        passed.fetch_add(passes, Ordering::AcqRel);
    });
    let passed = passed.load(Ordering::Acquire);
    assert!(passed >= 16 * users as u64, "{kind:?}: {passed}");
    assert_eq!(
        counter.get(),
        passed,
        "{kind:?}, {users} users as {run_as:?} on {on:?}"
    );
}

#[test]
fn a_bare_counter_shows_when_there_is_no_lock() {
    let Some((run_as, on)) = test_harness::configurations()
        .into_iter()
        .find(|(_, on)| on.len() > 1)
    else {
        return;
    };
    let memory = SharedMemory::new(1 << 16).unwrap();
    let counter = memory.place_apart(UnprotectedCounter::default());
    let counted = memory.place_apart(AtomicU64::new(0));
    // There are two CPUs, on each of which a user counts for 20 ms. Beside six busy loops these
    // times still overlap in part. A machine that keeps one of the users off its CPU each time has
    // two minutes.
    let began = Instant::now();
    let mut lost = false;
    while !lost && began.elapsed() < Duration::from_secs(120) {
        test_harness::run(run_as, 2, &on, |_| {
            let (from, mut steps) = (Instant::now(), 0);
            while from.elapsed() < Duration::from_millis(20) {
                (0..1000).for_each(|_| counter.increment());
                steps += 1000;
            }
            counted.fetch_add(steps, Ordering::AcqRel);
        });
        lost = counter.get() < counted.load(Ordering::Acquire);
    }
    assert!(lost);
}

#[test]
fn pthread_mutex() {
    all_places(LockKind::Pthread);
}

#[test]
fn pthread_spin() {
    all_places(LockKind::PthreadSpin);
}

#[test]
fn spin() {
    all_places(LockKind::Spin);
}

#[test]
fn ticket() {
    all_places(LockKind::Ticket);
}

#[test]
fn mcs() {
    all_places(LockKind::Mcs);
}

#[test]
fn futex() {
    all_places(LockKind::Futex);
}

fn all_places(kind: LockKind) {
    for (run_as, on) in test_harness::configurations() {
        for users in [2, 4] {
            no_update_is_lost(kind, users, run_as, &on);
        }
    }
}

#[test]
fn a_holder_keeps_the_others_out_for_long() {
    // The holder sleeps while it has the lock, on the CPU of the waiters. They wait in whatever
    // way, and none gets the lock.
    for kind in kinds() {
        let memory = SharedMemory::new(1 << 16).unwrap();
        let lock = Lock::create(kind, &memory, 3).unwrap();
        let counter = memory.place_apart(UnprotectedCounter::default());
        let on = undertick_clock::cpus::allowed()[0];
        test_harness::processes(3, &[on], |me| {
            let (mut take, mut give) = lock.acts(me);
            for _ in 0..5 {
                take();
                let before = counter.get();
                std::thread::sleep(Duration::from_millis(2));
                assert_eq!(counter.get(), before, "{kind:?}");
                counter.increment();
                give();
            }
        });
        assert_eq!(counter.get(), 15, "{kind:?}");
    }
}
