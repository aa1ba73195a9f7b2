//! Determines whether an event is recorded now, and how a thread moves from one session to the next
//! in a program that was started without one. The same as in undertick.h.

use core::sync::atomic::{Ordering, compiler_fence};

use undertick_ring::layout::{control, ring};
use undertick_ring::state;

use crate::giving_up;
use crate::pool::Pool;
use crate::process::{self, Session};
use crate::ring_allocation;
use crate::thread::{OneRing, Thread};

/// What a thread still holds of an earlier session.
pub(crate) struct Leaving {
    /// Pools that hold given-up rings: the thread's own, the nested one.
    held: [Option<&'static Pool>; 2],
    /// Number of events until a session that could not be joined is tried again.
    refused_in: u32,
}

/// Number of events between two tries to join a session.
const RETRY: u32 = 4096;

impl Leaving {
    /// The state of a thread that was in no session.
    pub(crate) const NONE: Self = Self {
        held: [None; 2],
        refused_in: 0,
    };

    /// Releases the held pools: nothing more can be written to their rings.
    pub(crate) fn let_go(&mut self, session: &Session) {
        for which in 0..2 {
            self.hold(session, which, None);
        }
    }

    /// Makes a given-up ring hold its pool until the next one is given up.
    pub(crate) fn hold(&mut self, session: &Session, which: usize, pool: Option<&'static Pool>) {
        if let Some(before) = core::mem::replace(&mut self.held[which], pool) {
            session.wiped().leave(before);
        }
    }
}

/// Returns whether the event is recorded; `on` is the value of the switch. One comparison while all
/// events are recorded. Joins a session that is new to the thread.
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
        return unsafe { join(thread, event, giving_up::stack_pointer()) };
    }
    process::current().is_some_and(|session| !session.is_switched_off(event))
}

/// As [`is_on`], in the middle of a write: a session that is new to the thread does not count.
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

/// The thread's first point in a session that attached: gives up the rings of the previous session.
/// Returns whether the event is to be recorded.
#[cold]
#[inline(never)]
unsafe fn join(thread: *mut Thread, event: u16, here: u32) -> bool {
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
            // A handler that interrupts a write to a ring of the previous session cannot join;
            // neither can any thread while the session is being changed.
            if !leave(session, thread, here) || !session.join() {
                if (*thread).own.state() == state::NO_RING {
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

/// Forgets the parent's rings in a child: they are not inherited.
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
    ring_allocation::forget_pid_namespace();
    session.begin_process();
}

/// Gives up the thread's rings of a session that is over; returns false if one of them is being
/// written. `here` is the stack pointer of the point.
///
/// # Safety
/// `thread` is the calling thread's.
#[cold]
pub(crate) unsafe fn leave(session: &Session, thread: *mut Thread, here: u32) -> bool {
    // SAFETY: the calling thread's; no handler comes in.
    unsafe {
        if !session.is_same_process() {
            forget(session, thread);
        }
        let _held = giving_up::HeldSignals::hold();
        let states = [(*thread).own.state(), (*thread).nested.state()];
        let may = states.iter().all(|&state| {
            matches!(state, state::READY | state::NO_RING)
                || giving_up::is_left(thread, state, here)
        });
        if !may {
            return false;
        }
        for (which, state) in states.into_iter().enumerate() {
            if state != state::NO_RING {
                let one = [&raw const (*thread).own, &raw const (*thread).nested][which];
                let head = (*one).writer.memory().head();
                giving_up::give_up(session, thread, which);
                if !head.is_null() {
                    // The search for a cell took pages of a pool that has none any more.
                    libc::madvise(head.cast(), ring::HEAD_BYTES as usize, libc::MADV_REMOVE);
                }
            }
        }
    }
    true
}
