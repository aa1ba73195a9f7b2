//! Real-time signals to the member's thread, and `sigtimedwait(2)`. There are no events.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{Joining, Means, Member, Port, joined};
use crate::linux::fail::{again_if_interrupted, fail_last};
use crate::linux::shared_memory::SharedMemory;

pub(super) struct Threads(&'static [&'static Thread]);

/// The state of a member.
#[derive(Debug, Default)]
struct Thread {
    /// Process and thread; 0 before it joins.
    ids: AtomicU64,
    /// 1: a signal is pending, or on its way. The kernel queues each real-time signal, so with more
    /// than one, wakeups before a block would count twice.
    waiting: AtomicU32,
}

/// Number of a signal that neither the C library nor the recorder uses.
fn number() -> i32 {
    libc::SIGRTMIN() + 5
}

fn set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the set is made empty before it is used; the signal exists.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), number());
        set.assume_init()
    }
}

/// Blocks the signal for the calling thread, and the processes and threads that it starts: the
/// signal stays pending until it is awaited, rather than ending the process.
fn block_signal() -> io::Result<()> {
    let set = set();
    // SAFETY: the set is live; the old one is not asked for.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

impl Thread {
    fn send(&self) {
        let ids = self.ids.load(Ordering::SeqCst);
        if ids == 0 {
            // The member checks the switch when it joins.
            return;
        }
        let (process, thread) = ((ids >> 32) as i32, ids as u32 as i32);
        // SAFETY: no pointers.
        let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, number()) };
        // A member that has ended needs no wakeup.
        if sent != 0 && io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH) {
            fail_last("send a signal");
        }
    }

    #[inline]
    fn wake(&self) {
        if self.waiting.swap(1, Ordering::SeqCst) == 0 {
            self.send();
        }
    }

    fn join(&self) {
        // SAFETY: no arguments.
        let (process, thread) = unsafe { (libc::getpid(), libc::syscall(libc::SYS_gettid)) };
        let ids = (process as u64) << 32 | thread as u64;
        self.ids.store(ids, Ordering::SeqCst);
        // The wakeup came before the member joined: the signal was never sent, or is just being
        // sent. `block` ignores a second signal.
        if self.waiting.load(Ordering::SeqCst) != 0 {
            self.send();
        }
    }
}

impl Threads {
    pub(super) fn create(members: usize, memory: &SharedMemory) -> io::Result<Self> {
        block_signal()?;
        let all = (0..members)
            .map(|_| memory.place_apart(Thread::default()))
            .collect();
        Ok(Self(memory.place_all(all)))
    }
}

impl Means for Threads {
    fn join(&self, joining: Joining) -> Box<dyn Member> {
        // The blocked signal is inherited, unless the process was started in another way.
        if let Err(error) = block_signal() {
            crate::linux::fail::fail("block a signal", error);
        }
        self.0[joining.me].join();
        let all = self.0;
        joined(ThreadPort { all, joining }, joining)
    }

    fn release(&self) {
        for thread in self.0 {
            thread.wake();
        }
    }
}

struct ThreadPort {
    all: &'static [&'static Thread],
    joining: Joining,
}

impl Port for ThreadPort {
    fn wakeup(&self, target: usize) -> impl FnMut() + 'static {
        let thread = self.all[target];
        move || thread.wake()
    }

    fn block(&self) -> impl FnMut() + 'static {
        let thread = self.all[self.joining.me];
        let sign = self.joining.sign;
        let set = set();
        move || {
            sign.raise();
            loop {
                // SAFETY: the set is live; neither details nor a time limit.
                let taken = again_if_interrupted(|| unsafe {
                    let (details, limit) = (std::ptr::null_mut(), std::ptr::null());
                    libc::sigtimedwait(&raw const set, details, limit) as isize
                });
                if taken.is_none() {
                    fail_last("sigtimedwait");
                }
                // A wakeup between the two counts for this block.
                if thread.waiting.swap(0, Ordering::SeqCst) != 0 {
                    break;
                }
            }
            sign.lower();
        }
    }

    fn wake_notified(&self, _: usize, _: usize) -> impl FnMut() + 'static {
        no_events
    }

    fn add(&self, _: usize) -> impl FnMut() + 'static {
        no_events
    }

    fn remove(&self, _: usize) -> impl FnMut(bool) + 'static {
        |_| no_events()
    }

    fn sleep(&self) -> impl FnMut() + 'static {
        no_events
    }
}

/// Fails: `Control::create` has refused events, so there can be no such step.
fn no_events() {
    crate::linux::fail::fail("events", "signals have none");
}
