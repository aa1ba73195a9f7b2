//! A mutex and a condition variable for each process, shared between processes.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Joining, Means, Member, Port, joined};
use crate::linux::fail::fail;
use crate::linux::lock::pthread::{Mutex, made};
use crate::linux::shared_memory::SharedMemory;

pub(super) struct Condvars(&'static [&'static MemberCondvar]);

/// The state of a member. Only this member waits in it, so one signal is enough.
struct MemberCondvar {
    mutex: &'static Mutex,
    condition: UnsafeCell<libc::pthread_cond_t>,
    /// The wakeup-waiting switch; accessed only under the mutex.
    woken: AtomicU32,
}

// SAFETY: only the C library's functions touch the condition, which are made for
// that.
unsafe impl Sync for MemberCondvar {}

impl MemberCondvar {
    fn create(memory: &SharedMemory) -> io::Result<&'static Self> {
        let condvar = memory.place_apart(Self {
            mutex: Mutex::create(memory)?,
            condition: UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER),
            woken: AtomicU32::new(0),
        });
        let mut attributes = MaybeUninit::uninit();
        let shared = libc::PTHREAD_PROCESS_SHARED;
        // SAFETY: the attributes are made before they are used and destroyed
        // after; nobody uses the condition yet.
        unsafe {
            made(libc::pthread_condattr_init(attributes.as_mut_ptr()))?;
            let set = libc::pthread_condattr_setpshared(attributes.as_mut_ptr(), shared);
            let init = made(set).and_then(|()| {
                made(libc::pthread_cond_init(
                    condvar.condition.get(),
                    attributes.as_ptr(),
                ))
            });
            libc::pthread_condattr_destroy(attributes.as_mut_ptr());
            init?;
        }
        Ok(condvar)
    }

    /// Wakes its member. The caller holds the mutex, so that the signal does not fall between the
    /// member's last check and its sleep.
    #[inline]
    fn signal(&self) {
        // SAFETY: made by `create`, never destroyed.
        let error = unsafe { libc::pthread_cond_signal(self.condition.get()) };
        if error != 0 {
            fail("pthread_cond_signal", io::Error::from_raw_os_error(error));
        }
    }

    /// Sleeps until signalled, or wakes spuriously; the caller holds the mutex.
    #[inline]
    fn sleep(&self) {
        // SAFETY: made by `create`, never destroyed; the caller has the mutex.
        let error = unsafe { libc::pthread_cond_wait(self.condition.get(), self.mutex.raw()) };
        if error != 0 {
            fail("pthread_cond_wait", io::Error::from_raw_os_error(error));
        }
    }

    /// Wakes its member.
    fn wake(&self) {
        self.mutex.take();
        self.signal();
        self.mutex.give();
    }
}

impl Condvars {
    pub(super) fn create(members: usize, memory: &SharedMemory) -> io::Result<Self> {
        let all: io::Result<Vec<_>> = (0..members)
            .map(|_| MemberCondvar::create(memory))
            .collect();
        Ok(Self(memory.place_all(all?)))
    }
}

impl Means for Condvars {
    fn join(&self, joining: Joining) -> Box<dyn Member> {
        let all = self.0;
        joined(CondvarPort { all, joining }, joining)
    }

    fn release(&self) {
        for condvar in self.0 {
            condvar.wake();
        }
    }
}

struct CondvarPort {
    all: &'static [&'static MemberCondvar],
    joining: Joining,
}

impl Port for CondvarPort {
    fn wakeup(&self, target: usize) -> impl FnMut() + 'static {
        let condvar = self.all[target];
        move || {
            condvar.mutex.take();
            condvar.woken.store(1, Ordering::Relaxed);
            condvar.signal();
            condvar.mutex.give();
        }
    }

    fn block(&self) -> impl FnMut() + 'static {
        let condvar = self.all[self.joining.me];
        let Joining { sign, released, .. } = self.joining;
        move || {
            condvar.mutex.take();
            if condvar.woken.load(Ordering::Relaxed) == 0 {
                sign.raise();
                while condvar.woken.load(Ordering::Relaxed) == 0 && !released.is_set() {
                    condvar.sleep();
                }
                sign.lower();
            }
            condvar.woken.store(0, Ordering::Relaxed);
            condvar.mutex.give();
        }
    }

    fn wake_notified(&self, target: usize, _: usize) -> impl FnMut() + 'static {
        let condvar = self.all[target];
        move || condvar.wake()
    }

    fn add(&self, _: usize) -> impl FnMut() + 'static {
        || ()
    }

    fn remove(&self, _: usize) -> impl FnMut(bool) + 'static {
        |_| ()
    }

    fn sleep(&self) -> impl FnMut() + 'static {
        let condvar = self.all[self.joining.me];
        let states = self.joining.events.row(self.joining.me);
        let Joining { sign, released, .. } = self.joining;
        move || {
            let is_notified = || states.iter().any(super::events::State::is_notified);
            condvar.mutex.take();
            if !is_notified() {
                sign.raise();
                while !is_notified() && !released.is_set() {
                    condvar.sleep();
                }
                sign.lower();
            }
            condvar.mutex.give();
        }
    }
}
