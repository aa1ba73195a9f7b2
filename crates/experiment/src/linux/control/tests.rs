use std::time::Instant;

use super::*;
use crate::linux::test_harness::{self, RunAs};
use crate::script::Words;

const ROUNDS: u64 = 20_000;

pub(super) fn backends() -> impl Iterator<Item = Backend> {
    Backend::WORDS.iter().map(|(_, backend)| *backend)
}

/// Makes members none of which is watched, or all of them.
pub(super) fn made(
    backend: Backend,
    members: usize,
    events: &[u32],
    memory: &SharedMemory,
) -> Control {
    let blocked = Blocked::create(&vec![true; members], memory);
    Control::create(backend, blocked, events, memory).unwrap()
}

fn memory() -> SharedMemory {
    SharedMemory::new(1 << 16).unwrap()
}

/// Two members wake each other in turn; each counts, and finds the other's count at the expected
/// value.
fn ping_pong(backend: Backend, run_as: RunAs, on: &[usize]) {
    let memory = memory();
    let control = made(backend, 2, &[], &memory);
    let turns = memory.place_apart(AtomicU32::new(0));
    test_harness::run(run_as, 2, on, |me| {
        let member = control.member(me);
        let (mut wake, mut block) = (member.wakeup(1 - me), member.block());
        for round in 0..ROUNDS {
            if me == 1 {
                block();
            }
            let expected = 2 * round + me as u64;
            let found = turns.fetch_add(1, Ordering::Relaxed);
            assert_eq!(u64::from(found), expected, "{backend:?} came through early");
            wake();
            if me == 0 {
                block();
            }
        }
    });
    assert_eq!(u64::from(turns.load(Ordering::Relaxed)), 2 * ROUNDS);
}

#[test]
fn no_wakeup_is_lost_futex() {
    everywhere(Backend::Futex);
}

#[test]
fn no_wakeup_is_lost_eventfd() {
    everywhere(Backend::Eventfd);
}

#[test]
fn no_wakeup_is_lost_pipe() {
    everywhere(Backend::Pipe);
}

#[test]
fn no_wakeup_is_lost_condvar() {
    everywhere(Backend::Condvar);
}

#[test]
fn no_wakeup_is_lost_signal() {
    everywhere(Backend::Signal);
}

fn everywhere(backend: Backend) {
    for (run_as, on) in test_harness::configurations() {
        ping_pong(backend, run_as, &on);
    }
}

#[test]
fn a_wakeup_before_the_block_is_kept() {
    for backend in backends() {
        let memory = memory();
        let control = made(backend, 2, &[], &memory);
        test_harness::processes(1, &[], |_| {
            let (one, two) = (control.member(0), control.member(1));
            for _ in 0..100 {
                one.wakeup(1)();
                two.block()();
            }
        });
    }
}

#[test]
fn a_wakeup_before_the_member_has_joined_is_kept() {
    for backend in backends() {
        let memory = memory();
        let control = made(backend, 2, &[], &memory);
        test_harness::processes(1, &[], |_| {
            control.member(0).wakeup(1)();
            let late = control.member(1);
            late.block()();
            // There was only one wakeup.
            returns_only_when_released(&control, || late.block()());
        });
    }
}

#[test]
fn two_wakeups_before_a_block_count_once() {
    for backend in backends() {
        let memory = memory();
        let control = made(backend, 2, &[], &memory);
        test_harness::processes(1, &[], |_| {
            let (one, two) = (control.member(0), control.member(1));
            let mut wake = one.wakeup(1);
            for _ in 0..50 {
                wake();
                wake();
                wake();
                two.block()();
            }
            wake();
            wake();
            two.block()();
            returns_only_when_released(&control, || two.block()());
        });
    }
}

/// Blocks until the release, which another thread makes after a while.
pub(super) fn returns_only_when_released(control: &Control, blocks: impl FnOnce()) {
    let released = &AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            released.store(1, Ordering::SeqCst);
            control.release_all();
        });
        blocks();
        assert_eq!(released.load(Ordering::SeqCst), 1, "came through before");
    });
}

#[test]
fn a_release_ends_every_block_and_those_to_come() {
    for backend in backends() {
        let memory = memory();
        let control = made(backend, 3, &[], &memory);
        let here = memory.place_apart(AtomicU32::new(0));
        test_harness::processes(4, &[], |me| {
            if me == 3 {
                while here.load(Ordering::Acquire) < 3 {
                    std::thread::yield_now();
                }
                std::thread::sleep(Duration::from_millis(5));
                control.release_all();
                return;
            }
            let member = control.member(me);
            let mut block = member.block();
            here.fetch_add(1, Ordering::AcqRel);
            (0..1000).for_each(|_| block());
            // An extra wakeup makes no difference.
            member.wakeup((me + 1) % 3)();
            (0..1000).for_each(|_| block());
        });
    }
}

#[test]
fn an_interruption_is_no_wakeup() {
    extern "C" fn nothing(_: libc::c_int) {}
    for backend in backends() {
        let memory = memory();
        let events: &[u32] = if has_events(backend) { &[10] } else { &[] };
        let control = made(backend, 2, events, &memory);
        let pid = memory.place_apart(AtomicU32::new(0));
        let passes = memory.place_apart(AtomicU32::new(0));
        test_harness::processes(2, &[], |me| {
            let member = control.member(me);
            if me == 0 {
                let mut until = member.until_blocked(1, Duration::ZERO);
                let interrupt = || {
                    let pid = pid.load(Ordering::Acquire).cast_signed();
                    // SAFETY: no pointers; a process that has a handler for it.
                    assert_eq!(unsafe { libc::kill(pid, libc::SIGUSR1) }, 0);
                };
                for pass in 0..=events.len() as u32 {
                    for _ in 0..20 {
                        until();
                        interrupt();
                    }
                    until();
                    assert_eq!(passes.load(Ordering::Acquire), pass, "{backend:?}");
                    match pass {
                        0 => member.wakeup(1)(),
                        _ => member.notify(10)(),
                    }
                }
                return;
            }
            // SAFETY: all zeros is valid, without SA_RESTART; the handler does
            // nothing.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = nothing as *const () as usize;
                libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
            }
            pid.store(std::process::id(), Ordering::Release);
            member.block()();
            passes.fetch_add(1, Ordering::AcqRel);
            if has_events(backend) {
                member.add_event(10)();
                member.wait()();
                passes.fetch_add(1, Ordering::AcqRel);
            }
        });
    }
}

#[test]
fn until_blocked_returns_after_the_other_sleeps() {
    for backend in backends() {
        for (_, on) in test_harness::configurations().into_iter().step_by(2) {
            let memory = memory();
            let control = made(backend, 2, &[], &memory);
            let pid = memory.place_apart(AtomicU32::new(0));
            test_harness::processes(2, &on, |me| {
                let member = control.member(me);
                if me == 1 {
                    pid.store(std::process::id(), Ordering::Release);
                    let mut block = member.block();
                    (0..200).for_each(|_| block());
                    return;
                }
                let settle = Duration::from_micros(500);
                let mut until = member.until_blocked(1, settle);
                let mut wake = member.wakeup(1);
                for _ in 0..200 {
                    until();
                    // The kernel reports it in its own words; without another wakeup it cannot have
                    // changed.
                    let path = format!("/proc/{}/status", pid.load(Ordering::Acquire));
                    let status = std::fs::read_to_string(path).unwrap();
                    let asleep = status.contains("\nState:\tS (sleeping)");
                    assert!(asleep, "{backend:?} on {on:?}: {status}");
                    wake();
                }
            });
        }
    }
}

#[test]
fn until_blocked_waits_as_long_as_said() {
    let memory = memory();
    let blocked = Blocked::create(&[true, false], &memory);
    let up = memory.place_apart(AtomicU32::new(0));
    let (awake, settle) = (Duration::from_millis(20), Duration::from_millis(5));
    test_harness::processes(2, &[], |me| {
        if me == 0 {
            // It sleeps all the time, but raises its sign later.
            let sign = blocked.sign(0);
            up.store(1, Ordering::Release);
            std::thread::sleep(awake);
            let begin = Instant::now();
            sign.raise();
            while up.load(Ordering::Acquire) != 2 {
                std::thread::sleep(Duration::from_micros(100));
            }
            let found = begin.elapsed();
            assert!(found >= settle, "{found:?}");
            return;
        }
        while up.load(Ordering::Acquire) != 1 {
            std::thread::yield_now();
        }
        let begin = Instant::now();
        blocked.until(0, settle)();
        up.store(2, Ordering::Release);
        assert!(begin.elapsed() >= settle);
    });
}

#[test]
fn until_blocked_does_not_take_a_process_for_asleep_that_was_woken() {
    // On one CPU the woken member has not run yet when its waker continues.
    let on = undertick_clock::cpus::allowed()[0];
    for backend in backends() {
        let memory = memory();
        let control = made(backend, 2, &[], &memory);
        let passes = memory.place_apart(AtomicU32::new(0));
        test_harness::processes(2, &[on], |me| {
            let member = control.member(me);
            if me == 1 {
                let mut block = member.block();
                for _ in 0..300 {
                    block();
                    passes.fetch_add(1, Ordering::AcqRel);
                }
                return;
            }
            let mut until = member.until_blocked(1, Duration::from_micros(10));
            let mut wake = member.wakeup(1);
            for pass in 0..300 {
                until();
                assert_eq!(passes.load(Ordering::Acquire), pass, "{backend:?}");
                wake();
            }
        });
    }
}

#[test]
fn a_release_ends_waiting_for_another_to_block() {
    let memory = memory();
    let control = made(Backend::Futex, 2, &[], &memory);
    test_harness::processes(1, &[], |_| {
        // Member 1 never joins.
        let member = control.member(0);
        let mut until = member.until_blocked(1, Duration::ZERO);
        returns_only_when_released(&control, &mut until);
        until();
    });
}

#[test]
fn signals_have_no_events() {
    let memory = memory();
    let blocked = Blocked::create(&[false], &memory);
    let refused = Control::create(Backend::Signal, blocked, &[10], &memory);
    let why = refused.err().unwrap().to_string();
    assert!(why.contains("signals have no events"), "{why}");
    assert!(
        backends()
            .filter(|backend| !has_events(*backend))
            .eq([Backend::Signal])
    );
}
