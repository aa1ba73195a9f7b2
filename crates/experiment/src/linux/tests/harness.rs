//! For tests: runs bodies in separate processes or threads, none of which can hang.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use undertick_clock::cpus;

/// A child that lives longer is killed by its alarm, seconds. A turn of several processes takes
/// milliseconds beside busy neighbours, and some bodies take a thousand turns.
const ALARM_S: u32 = 120;

/// Whether bodies run in processes or in threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunAs {
    Processes,
    Threads,
}

/// Kinds of bodies and CPUs to try: all on one CPU, and on two where there are two.
pub(super) fn configurations() -> Vec<(RunAs, Vec<usize>)> {
    let allowed = cpus::allowed();
    let mut configurations = vec![
        (RunAs::Processes, vec![allowed[0]]),
        (RunAs::Threads, vec![allowed[0]]),
    ];
    match allowed.get(..2) {
        Some(two) => {
            configurations.push((RunAs::Processes, two.to_vec()));
            configurations.push((RunAs::Threads, two.to_vec()));
        }
        None => println!("skipped: two CPUs, this process may use only one"),
    }
    configurations
}

/// Runs `body(0..count)`, with body n on CPU n of those given, cyclically. Fails when one of them
/// panics, fails or takes too long.
pub(super) fn run(run_as: RunAs, count: usize, on: &[usize], body: impl Fn(usize) + Sync) {
    match run_as {
        RunAs::Processes => processes(count, on, body),
        RunAs::Threads => processes(1, &[], |_| {
            std::thread::scope(|scope| {
                for me in 0..count {
                    let body = &body;
                    scope.spawn(move || {
                        // A panic here must end the process, because others may wait for this one.
                        child_body(|| {
                            pin(on, me);
                            body(me);
                        });
                    });
                }
            });
        }),
    }
}

fn pin(on: &[usize], me: usize) {
    if !on.is_empty() {
        cpus::pin(on[me % on.len()]).unwrap();
    }
}

/// As [`run`] with processes.
pub(super) fn processes(count: usize, on: &[usize], body: impl Fn(usize)) {
    let status = wait_statuses(count, on, body);
    assert!(
        status.iter().all(|status| *status == 0),
        "wait statuses {status:x?} (e is SIGALRM: it hung; 9: another one failed)"
    );
}

/// Runs bodies in processes and returns their wait statuses.
pub(super) fn wait_statuses(count: usize, on: &[usize], body: impl Fn(usize)) -> Vec<i32> {
    let children: Vec<_> = (0..count)
        .map(|me| {
            // SAFETY: the child uses what the C library keeps in order over a
            // fork, and ends by `_exit`.
            let child = unsafe { libc::fork() };
            assert!(child >= 0, "{}", std::io::Error::last_os_error());
            if child == 0 {
                // SAFETY: no pointers.
                unsafe {
                    libc::alarm(ALARM_S);
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                }
                child_body(|| {
                    pin(on, me);
                    body(me);
                });
                // SAFETY: ends the process.
                unsafe { libc::_exit(0) }
            }
            child
        })
        .collect();
    // When one has failed, the others are not awaited, because they may wait for it.
    let mut statuses = vec![None; count];
    while statuses.contains(&None) {
        for (child, status) in children.iter().zip(&mut statuses) {
            *status = status.or_else(|| wait_status(*child));
        }
        if statuses.iter().flatten().any(|status| *status != 0) {
            for (child, _) in children.iter().zip(&statuses).filter(|(_, s)| s.is_none()) {
                // SAFETY: a child that has not been waited for.
                unsafe { libc::kill(*child, libc::SIGKILL) };
            }
        }
        std::thread::sleep(std::time::Duration::from_micros(500));
    }
    statuses.into_iter().flatten().collect()
}

fn wait_status(child: libc::pid_t) -> Option<i32> {
    let mut status = 0;
    // SAFETY: the status is a live local.
    let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
    assert!(ended >= 0, "{}", std::io::Error::last_os_error());
    (ended == child).then_some(status)
}

/// Runs the body. A panic ends the process and is written to standard error directly, because the
/// test's own capture belongs to the parent.
fn child_body(body: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("panic");
        super::fail::fail("a body of a test", text);
    }
}

/// A shared counter without any protection.
#[derive(Debug, Default)]
pub(super) struct UnprotectedCounter(UnsafeCell<u64>);

// SAFETY: what the tests find out is whether a lock protects it.
unsafe impl Sync for UnprotectedCounter {}

impl UnprotectedCounter {
    /// Reads and writes the incremented value; an update in between is lost.
    pub(super) fn increment(&self) {
        // SAFETY: live; the race is the point.
        unsafe {
            let before = self.0.get().read_volatile();
            self.0.get().write_volatile(before + 1);
        }
    }

    pub(super) fn get(&self) -> u64 {
        // SAFETY: live.
        unsafe { self.0.get().read_volatile() }
    }
}
