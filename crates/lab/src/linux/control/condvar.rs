//! A mutex and a condition variable for each process, shared between processes.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Joining, Means, Port, Verbs, joined};
use crate::linux::fail::fail;
use crate::linux::lock::pthread::{Mutex, made};
use crate::linux::shared_memory::SharedMemory;

pub(super) struct Rooms(&'static [&'static Room]);

/// The state of a member. Only this member waits in it, so one signal is enough.
struct Room {
    mutex: &'static Mutex,
    condition: UnsafeCell<libc::pthread_cond_t>,
    /// The wakeup-waiting switch; accessed only under the mutex.
    woken: AtomicU32,
}

// SAFETY: only the C library's functions touch the condition, which are made for
// that.
unsafe impl Sync for Room {}

impl Room {
    fn create(memory: &SharedMemory) -> io::Result<&'static Self> {
        let room = memory.place_apart(Self {
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
                    room.condition.get(),
                    attributes.as_ptr(),
                ))
            });
            libc::pthread_condattr_destroy(attributes.as_mut_ptr());
            init?;
        }
        Ok(room)
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

impl Rooms {
    pub(super) fn create(members: usize, memory: &SharedMemory) -> io::Result<Self> {
        let all: io::Result<Vec<_>> = (0..members).map(|_| Room::create(memory)).collect();
        Ok(Self(memory.place_all(all?)))
    }
}

impl Means for Rooms {
    fn join(&self, joining: Joining) -> Box<dyn Verbs> {
        let all = self.0;
        joined(RoomPort { all, joining }, joining)
    }

    fn release(&self) {
        for room in self.0 {
            room.wake();
        }
    }
}

struct RoomPort {
    all: &'static [&'static Room],
    joining: Joining,
}

impl Port for RoomPort {
    fn wakeup(&self, target: usize) -> impl FnMut() + 'static {
        let room = self.all[target];
        move || {
            room.mutex.take();
            room.woken.store(1, Ordering::Relaxed);
            room.signal();
            room.mutex.give();
        }
    }

    fn block(&self) -> impl FnMut() + 'static {
        let room = self.all[self.joining.me];
        let Joining { sign, released, .. } = self.joining;
        move || {
            room.mutex.take();
            if room.woken.load(Ordering::Relaxed) == 0 {
                sign.raise();
                while room.woken.load(Ordering::Relaxed) == 0 && !released.is_set() {
                    room.sleep();
                }
                sign.lower();
            }
            room.woken.store(0, Ordering::Relaxed);
            room.mutex.give();
        }
    }

    fn wake_notified(&self, target: usize, _: usize) -> impl FnMut() + 'static {
        let room = self.all[target];
        move || room.wake()
    }

    fn add(&self, _: usize) -> impl FnMut() + 'static {
        || ()
    }

    fn remove(&self, _: usize) -> impl FnMut(bool) + 'static {
        |_| ()
    }

    fn sleep(&self) -> impl FnMut() + 'static {
        let room = self.all[self.joining.me];
        let states = self.joining.events.row(self.joining.me);
        let Joining { sign, released, .. } = self.joining;
        move || {
            let is_notified = || states.iter().any(super::events::State::is_notified);
            room.mutex.take();
            if !is_notified() {
                sign.raise();
                while !is_notified() && !released.is_set() {
                    room.sleep();
                }
                sign.lower();
            }
            room.mutex.give();
        }
    }
}
