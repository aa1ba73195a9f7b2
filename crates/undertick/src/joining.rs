//! Whether an event is recorded now, and how a thread comes from one session to
//! the next in a program that was started without one. The same as in
//! undertick.h.

use core::ptr::null_mut;
use core::sync::atomic::{Ordering, compiler_fence};

use undertick_ring::Memory;
use undertick_ring::layout::{SEGMENT_BYTES, control};

use crate::process::{self, Session};
use crate::thread::{OneRing, State, Thread};

/// What a thread has of the session before.
pub(crate) struct Leaving {
    /// Its rings there, and their bytes: without memory, but still mapped.
    rings: [(*mut u8, usize); 2],
    /// Events until a session that could not be joined is tried again.
    refused_in: u32,
}

/// Events between two tries to join a session.
const RETRY: u32 = 4096;

impl Leaving {
    /// Of a thread that was in no session.
    pub(crate) const NONE: Self = Self {
        rings: [(null_mut(), 0); 2],
        refused_in: 0,
    };

    /// Nothing more can be written to them.
    pub(crate) fn unmap(&mut self) {
        for (base, bytes) in &mut self.rings {
            if !base.is_null() {
                // SAFETY: a ring of ours that nobody uses any more.
                unsafe { libc::munmap((*base).cast(), *bytes) };
                *base = null_mut();
            }
        }
    }
}

/// Whether the event is recorded; `on` is what the switch holds. One comparison
/// while all are. Joins a session that is new to the thread.
///
/// # Safety
/// `thread` is the calling thread's.
#[inline(always)]
pub(crate) unsafe fn is_on(thread: *mut Thread, on: u32, event: u16) -> bool {
    // SAFETY: the calling thread's.
    let joined = unsafe { (*thread).on };
    if on == joined {
        return true;
    }
    if on == control::NONE {
        return false;
    }
    if on ^ joined > control::MODE {
        // SAFETY: as here.
        return unsafe { join(thread, event) };
    }
    process::current().is_some_and(|session| !session.is_switched_off(event))
}

/// As [`is_on`], in the middle of a write: a session that is new to the thread
/// does not count.
///
/// # Safety
/// `thread` is the calling thread's.
#[inline(always)]
pub(crate) unsafe fn is_on_here(thread: *mut Thread, session: &Session, event: u16) -> bool {
    let on = process::switch();
    // SAFETY: the calling thread's.
    let joined = unsafe { (*thread).on };
    on == joined
        || (on != control::NONE && on ^ joined <= control::MODE && !session.is_switched_off(event))
}

/// The thread's first point in a session that came through the door: gives up
/// what it has of the one before. Whether the event is to be recorded.
#[cold]
#[inline(never)]
unsafe fn join(thread: *mut Thread, event: u16) -> bool {
    let Some(session) = process::session() else {
        return false;
    };
    let on = process::switch();
    if on == control::NONE {
        return false;
    }
    // SAFETY: the calling thread's; handlers that come in are kept out by `leave`.
    unsafe {
        if on ^ (*thread).on > control::MODE {
            if (*thread).leaving.refused_in > 0 {
                (*thread).leaving.refused_in -= 1;
                session.count_lost();
                return false;
            }
            // A handler that interrupts a write to a ring of the session before
            // cannot; nor can anybody while the session is being changed.
            if !leave(session, thread) || !session.join() {
                if (*thread).own.state == State::NoRing {
                    (*thread).leaving.refused_in = RETRY;
                }
                session.count_lost();
                return false;
            }
            (*thread).own.retry_in = 0;
            (*thread).nested.retry_in = 0;
            compiler_fence(Ordering::SeqCst);
            (*thread).on = on & !control::MODE | control::ALL;
        }
    }
    on & control::MODE == control::ALL || !session.is_switched_off(event)
}

/// What a child has of its parent's rings: nothing, they are not inherited.
///
/// # Safety
/// `thread` is the calling thread's, and the process has just been forked.
pub(crate) unsafe fn forget(session: &Session, thread: *mut Thread) {
    // SAFETY: the calling thread's.
    unsafe {
        (*thread).own = OneRing::new();
        (*thread).nested = OneRing::new();
        (*thread).leaving = Leaving::NONE;
    }
    session.same_process().store(1, Ordering::Relaxed);
}

/// Gives up the thread's rings of a session that is over; false if one of them
/// is being written. They have no memory from here on, but they stay mapped until
/// the next time: this may be a signal handler that came in when the thread had
/// just seen that it has a ring. What it then writes is harmless.
///
/// # Safety
/// `thread` is the calling thread's.
#[cold]
pub(crate) unsafe fn leave(session: &Session, thread: *mut Thread) -> bool {
    // SAFETY: the calling thread's; handlers that come in see by the states that
    // it has no rings.
    unsafe {
        if session.same_process().load(Ordering::Relaxed) == 0 {
            forget(session, thread);
        }
        let both = [&raw mut (*thread).own, &raw mut (*thread).nested];
        let were = both.map(|one| (*one).state);
        if !(were.iter()).all(|state| matches!(state, State::Ready | State::NoRing)) {
            return false;
        }
        for one in both {
            (&raw mut (*one).state).write_volatile(State::Making);
        }
        compiler_fence(Ordering::SeqCst);
        (*thread).sampling.lay_aside();
        let old = &mut (*thread).leaving.rings;
        for ((one, was), (base, bytes)) in both.into_iter().zip(were).zip(old) {
            if was != State::Ready {
                continue;
            }
            if !base.is_null() {
                libc::munmap((*base).cast(), *bytes);
            }
            let memory = *(*one).writer.memory();
            *base = memory.base();
            *bytes = (memory.max_segments() as usize + 1) * SEGMENT_BYTES as usize;
            libc::madvise((*base).cast(), *bytes, libc::MADV_REMOVE);
        }
        compiler_fence(Ordering::SeqCst);
        for one in both.into_iter().rev() {
            (&raw mut (*one).state).write_volatile(State::NoRing);
        }
    }
    true
}
