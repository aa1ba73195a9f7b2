//! Tests of notify, addevent, delevent and wait.

use super::tests::{backends, made, returns_only_when_released};
use super::*;
use crate::linux::test_harness;

fn with_events() -> impl Iterator<Item = Backend> {
    backends().filter(|backend| has_events(*backend))
}

/// Runs the body with two members, in one process, with events 10, 11 and 12.
fn for_each_backend(body: impl Fn(&Control, &dyn Member, &dyn Member)) {
    for backend in with_events() {
        let memory = SharedMemory::new(1 << 16).unwrap();
        let control = made(backend, 2, &[10, 11, 12], &memory);
        println!("{backend:?}");
        test_harness::processes(1, &[], |_| {
            body(&control, &*control.member(0), &*control.member(1));
        });
    }
}

#[test]
fn waiting_for_nothing_returns_at_once() {
    for_each_backend(|_, one, _| {
        let mut wait = one.wait();
        (0..10).for_each(|_| wait());
        one.add_event(10)();
        one.add_event(11)();
        one.del_event(10)();
        one.del_event(11)();
        (0..10).for_each(|_| wait());
    });
}

#[test]
fn an_event_before_the_wait_ends_it_at_once_and_once() {
    for_each_backend(|control, one, two| {
        for _ in 0..50 {
            one.add_event(10)();
            two.notify(10)();
            two.notify(10)();
            one.wait()();
        }
        one.add_event(10)();
        returns_only_when_released(control, || one.wait()());
    });
}

#[test]
fn a_notify_with_nobody_there_does_nothing() {
    for_each_backend(|control, one, two| {
        (0..10).for_each(|_| two.notify(10)());
        one.add_event(11)();
        (0..10).for_each(|_| two.notify(10)());
        one.add_event(10)();
        returns_only_when_released(control, || one.wait()());
    });
}

#[test]
fn an_event_deleted_is_not_waited_for_even_if_it_came() {
    for_each_backend(|control, one, two| {
        one.add_event(10)();
        one.add_event(11)();
        two.notify(10)();
        one.del_event(10)();
        two.notify(10)();
        // Deletes one event twice, and one that was never added.
        one.del_event(10)();
        one.del_event(12)();
        returns_only_when_released(control, || one.wait()());
    });
}

#[test]
fn an_event_deleted_and_added_again_starts_anew() {
    for_each_backend(|control, one, two| {
        one.add_event(10)();
        two.notify(10)();
        one.del_event(10)();
        one.add_event(10)();
        returns_only_when_released(control, || one.wait()());
    });
}

#[test]
fn waiting_takes_all_events_off() {
    for_each_backend(|control, one, two| {
        one.add_event(10)();
        one.add_event(11)();
        one.add_event(12)();
        two.notify(11)();
        two.notify(12)();
        one.wait()();
        // With no event added there is nothing to wait for.
        one.wait()();
        two.notify(10)();
        two.notify(11)();
        // An event that was notified but not waited for leaves nothing behind.
        one.add_event(10)();
        one.add_event(11)();
        one.add_event(12)();
        returns_only_when_released(control, || one.wait()());
    });
}

#[test]
fn adding_twice_is_adding_once() {
    for_each_backend(|control, one, two| {
        one.add_event(10)();
        one.add_event(10)();
        two.notify(10)();
        one.add_event(10)();
        one.wait()();
        one.wait()();
        one.add_event(10)();
        returns_only_when_released(control, || one.wait()());
    });
}

#[test]
fn wakeups_and_events_are_apart() {
    for_each_backend(|control, one, two| {
        one.add_event(10)();
        two.notify(10)();
        two.wakeup(0)();
        one.wait()();
        one.block()();
        // A wakeup does not end a wait.
        one.add_event(10)();
        two.wakeup(0)();
        returns_only_when_released(control, || one.wait()());
    });
    for_each_backend(|control, one, two| {
        // An event does not end a block.
        one.add_event(10)();
        two.notify(10)();
        returns_only_when_released(control, || one.block()());
    });
}

#[test]
fn a_member_may_notify_itself() {
    for_each_backend(|_, one, _| {
        one.add_event(10)();
        one.notify(10)();
        one.wait()();
    });
}

/// One member notifies, the others wait, round after round. They count rounds, which reveals a
/// notify that does not reach all of them, or lets one through too early.
#[test]
fn a_notify_wakes_all_who_wait() {
    for backend in with_events() {
        for (run_as, on) in test_harness::configurations() {
            for waiters in 1..=4 {
                notify_all(backend, run_as, &on, waiters);
            }
        }
    }
}

fn notify_all(backend: Backend, run_as: test_harness::RunAs, on: &[usize], waiters: usize) {
    const ROUNDS: u32 = 500;
    let memory = SharedMemory::new(1 << 16).unwrap();
    let control = made(backend, waiters + 1, &[10, 11], &memory);
    let round = memory.place_apart(AtomicU32::new(0));
    let ready = memory.place_apart(AtomicU32::new(0));
    let woken = memory.place_apart(AtomicU32::new(0));
    let all = waiters as u32;
    test_harness::run(run_as, waiters + 1, on, |me| {
        let member = control.member(me);
        if me == waiters {
            let mut notify = member.notify(10);
            for now in 1..=ROUNDS {
                reached(ready, now * all);
                // In half of the rounds they are asleep, in the other half on their way to sleep.
                for target in (0..waiters).filter(|_| now % 2 == 0) {
                    member.until_blocked(target, Duration::from_micros(20))();
                }
                assert_eq!(woken.load(Ordering::Acquire), (now - 1) * all);
                round.store(now, Ordering::Release);
                notify();
                reached(woken, now * all);
            }
            return;
        }
        let (mut add, mut wait) = (member.add_event(10), member.wait());
        let mut other = member.add_event(11);
        for now in 1..=ROUNDS {
            add();
            if now % 3 == 0 {
                other();
            }
            ready.fetch_add(1, Ordering::AcqRel);
            wait();
            assert_eq!(round.load(Ordering::Acquire), now, "{backend:?}: too early");
            woken.fetch_add(1, Ordering::AcqRel);
        }
    });
    assert_eq!(woken.load(Ordering::Acquire), ROUNDS * all);
}

/// Two events for one waiter come from two members at about the same time. One of them often comes
/// late, when the other has already ended the wait.
#[test]
fn a_late_notify_does_not_end_the_next_wait() {
    for backend in with_events() {
        for (run_as, on) in test_harness::configurations() {
            late_notify(backend, run_as, &on);
        }
    }
}

fn late_notify(backend: Backend, run_as: test_harness::RunAs, on: &[usize]) {
    const ROUNDS: u32 = 1000;
    let memory = SharedMemory::new(1 << 16).unwrap();
    let control = made(backend, 3, &[10, 11, 12], &memory);
    let phase = memory.place_apart(AtomicU32::new(0));
    let sent = memory.place_apart(AtomicU32::new(0));
    let allowed = memory.place_apart(AtomicU32::new(0));
    test_harness::run(run_as, 3, on, |me| {
        let member = control.member(me);
        if me > 0 {
            let mut notify = member.notify(9 + me as u32);
            let mut last = member.notify(12);
            for now in 1..=ROUNDS {
                reached(phase, 2 * now - 1);
                notify();
                sent.fetch_add(1, Ordering::AcqRel);
                if me == 1 {
                    reached(phase, 2 * now);
                    std::thread::yield_now();
                    allowed.store(now, Ordering::Release);
                    last();
                }
            }
            return;
        }
        let (mut one, mut two) = (member.add_event(10), member.add_event(11));
        let (mut three, mut wait) = (member.add_event(12), member.wait());
        for now in 1..=ROUNDS {
            one();
            two();
            phase.store(2 * now - 1, Ordering::Release);
            wait();
            // Both have notified, one of them perhaps after the wait. Neither notifies again before
            // event 12.
            reached(sent, 2 * now);
            one();
            two();
            three();
            phase.store(2 * now, Ordering::Release);
            wait();
            let found = allowed.load(Ordering::Acquire);
            assert_eq!(found, now, "{backend:?}: a notify of the wait before");
        }
    });
}

fn reached(count: &AtomicU32, value: u32) {
    while count.load(Ordering::Acquire) < value {
        std::thread::yield_now();
    }
}
