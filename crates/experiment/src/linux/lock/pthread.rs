//! The C library's locks, set up to work between processes.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;

use super::Exclusive;
use crate::linux::fail::fail;
use crate::linux::shared_memory::SharedMemory;

/// `pthread_mutex_t`.
#[derive(Debug)]
pub(crate) struct Mutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: only the C library's functions touch it, which are made for that.
unsafe impl Sync for Mutex {}

/// `pthread_spinlock_t`.
#[derive(Debug)]
pub(crate) struct SpinLock(UnsafeCell<libc::pthread_spinlock_t>);

// SAFETY: as above.
unsafe impl Sync for SpinLock {}

/// Converts the return value of these functions, which is the error.
pub(crate) fn made(error: libc::c_int) -> io::Result<()> {
    match error {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

#[cold]
fn refused(what: &str, error: libc::c_int) -> ! {
    fail(what, io::Error::from_raw_os_error(error))
}

impl Mutex {
    /// Creates a free mutex.
    pub(crate) fn create(memory: &SharedMemory) -> io::Result<&'static Self> {
        // It is initialised where it stays, because it must not be moved.
        let mutex = memory.place_apart(Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)));
        let mut attributes = MaybeUninit::uninit();
        let shared = libc::PTHREAD_PROCESS_SHARED;
        // SAFETY: the attributes are made before they are used and destroyed
        // after; nobody uses the mutex yet.
        unsafe {
            made(libc::pthread_mutexattr_init(attributes.as_mut_ptr()))?;
            let set = libc::pthread_mutexattr_setpshared(attributes.as_mut_ptr(), shared);
            let init = made(set)
                .and_then(|()| made(libc::pthread_mutex_init(mutex.0.get(), attributes.as_ptr())));
            libc::pthread_mutexattr_destroy(attributes.as_mut_ptr());
            init?;
        }
        Ok(mutex)
    }

    /// For `pthread_cond_wait`.
    pub(crate) fn raw(&self) -> *mut libc::pthread_mutex_t {
        self.0.get()
    }

    #[inline(always)]
    pub(crate) fn take(&self) {
        // SAFETY: made by `create`, never destroyed.
        let error = unsafe { libc::pthread_mutex_lock(self.0.get()) };
        if error != 0 {
            refused("pthread_mutex_lock", error);
        }
    }

    /// Unlocks; only by the user that has locked it.
    #[inline(always)]
    pub(crate) fn give(&self) {
        // SAFETY: as above.
        let error = unsafe { libc::pthread_mutex_unlock(self.0.get()) };
        if error != 0 {
            refused("pthread_mutex_unlock", error);
        }
    }
}

impl SpinLock {
    /// Creates a free lock.
    pub(super) fn create(memory: &SharedMemory) -> io::Result<&'static Self> {
        // SAFETY: all zeros is a value of the integer that it is.
        let lock = memory.place_apart(Self(UnsafeCell::new(unsafe { std::mem::zeroed() })));
        // SAFETY: nobody uses it yet.
        made(unsafe { libc::pthread_spin_init(lock.0.get(), libc::PTHREAD_PROCESS_SHARED) })?;
        Ok(lock)
    }
}

impl Exclusive for &'static Mutex {
    #[inline(always)]
    fn lock(self) {
        self.take();
    }

    #[inline(always)]
    fn unlock(self) {
        self.give();
    }
}

impl Exclusive for &'static SpinLock {
    #[inline(always)]
    fn lock(self) {
        // SAFETY: made by `create`, never destroyed.
        let error = unsafe { libc::pthread_spin_lock(self.0.get()) };
        if error != 0 {
            refused("pthread_spin_lock", error);
        }
    }

    #[inline(always)]
    fn unlock(self) {
        // SAFETY: as above.
        let error = unsafe { libc::pthread_spin_unlock(self.0.get()) };
        if error != 0 {
            refused("pthread_spin_unlock", error);
        }
    }
}
