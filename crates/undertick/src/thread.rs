//! A thread's rings and the fast path.

mod destructor;
mod mark;
mod reading;
mod record_words;
mod slow_path;

use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, Ordering, compiler_fence};

use undertick_ring::layout::control;
use undertick_ring::{Kind, Mapped, Overflow, Writer, state};

use crate::clock;
use crate::giving_up;
use crate::pool::Pool;
use crate::process::{self, Session};
use crate::sampled;
use crate::session_switch::{self, is_on};

pub use destructor::make_key;
pub(crate) use mark::arm;
use mark::{NO_RSEQ, Rseq};
pub use reading::Reading;
use reading::read;
use record_words::{finish, put};
pub(crate) use slow_path::{Job, record_slow};
use slow_path::{record_end_slow, record_first};

pub(crate) struct OneRing {
    pub(crate) retry_in: u32,
    /// The pool of the ring; `None`: there is no ring.
    pub(crate) pool: Option<&'static Pool>,
    /// A segment that was taken but got no pages.
    pub(crate) spare: Option<u32>,
    pub(crate) writer: Writer<Mapped>,
}

impl OneRing {
    pub(crate) const fn new() -> Self {
        // SAFETY: no segment is ever taken from it: the state is NoRing.
        let nowhere = unsafe { Mapped::new(null_mut(), null_mut(), 0, 0) };
        Self {
            retry_in: 0,
            pool: None,
            spare: None,
            writer: Writer::new(nowhere, Overflow::Drop, 0),
        }
    }

    /// Returns the state that an interrupting handler examines: see [`undertick_ring::state`].
    #[inline(always)]
    pub(crate) fn state(&self) -> u32 {
        // SAFETY: a field of our own.
        unsafe { (&raw const self.writer.state).read_volatile() }
    }

    #[inline(always)]
    pub(crate) fn set_state(&mut self, state: u32) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { (&raw mut self.writer.state).write_volatile(state) };
        compiler_fence(Ordering::SeqCst);
    }

    /// Sets the state and returns the previous one, in one instruction.
    pub(crate) fn swap_state(&mut self, state: u32) -> u32 {
        // SAFETY: a field of our own, aligned.
        let field = unsafe { AtomicU32::from_ptr(&raw mut self.writer.state) };
        let was = field.swap(state, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        was
    }

    /// Marks the ring as being written by the frame that executes this; a handler that interrupts
    /// it uses the other ring. The low half of the stack pointer shows later whether that frame
    /// still exists.
    #[inline(always)]
    pub(crate) fn enter(&mut self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: one store to a field of our own.
        unsafe {
            core::arch::asm!(
                "mov dword ptr [{ring} + {state}], esp",
                ring = in(reg) &raw mut *self,
                state = const core::mem::offset_of!(Self, writer.state),
                options(nostack, preserves_flags)
            );
        }
        #[cfg(not(target_arch = "x86_64"))]
        self.set_state(giving_up::stack_pointer());
        compiler_fence(Ordering::SeqCst);
    }
}

pub(crate) struct Thread {
    rseq: *const Rseq,
    pub(crate) own: OneRing,
    /// The ring of handlers that interrupt a write to `own`.
    pub(crate) nested: OneRing,
    pub(crate) sampling: sampled::Sampling,
    /// Value of the switch while all events are recorded of the session that this thread has
    /// joined.
    pub(crate) on: u32,
    pub(crate) leaving: session_switch::Leaving,
    /// Number of points that found `own` being written.
    pub(crate) interrupted: u32,
    /// Number of times that the thread's destructor was called.
    pub(crate) ends: u32,
}

thread_local! {
    static THREAD: UnsafeCell<Thread> = const {
        UnsafeCell::new(Thread {
            rseq: &raw const NO_RSEQ,
            own: OneRing::new(),
            nested: OneRing::new(),
            sampling: sampled::Sampling::NONE,
            on: control::ALL,
            leaving: session_switch::Leaving::NONE,
            interrupted: 0,
            ends: 0,
        })
    };
}

/// Returns the calling thread's own memory.
///
/// Not by `LocalKey::with`, which the standard library does not mark for inlining: in some builds
/// each point then called it, which costs 1 to 2.5 ns.
#[inline(always)]
pub(crate) fn own_memory() -> *mut Thread {
    // SAFETY: an access fails only where the value has a destructor that was called; this has none.
    unsafe { THREAD.try_with(UnsafeCell::get).unwrap_unchecked() }
}

/// Records one event.
#[inline(always)]
pub fn record(kind: Kind, event: u16, payload: u32, reading: Reading) {
    if is_first(kind, reading) {
        return record_end(kind, event, payload, reading);
    }
    let on = process::switch();
    if on == control::NONE {
        return; // before the thread's own memory is looked for
    }
    let thread = own_memory();
    // SAFETY: the calling thread's.
    if !unsafe { is_on(thread, on, event) } {
        return;
    }
    let Some(session) = process::current() else {
        return record_first(kind, event, payload, reading, giving_up::stack_pointer());
    };
    // SAFETY: this thread's own, and the thread is running. A signal handler may
    // come in anywhere: it sees the state and touches `own` only when that is
    // Ready.
    unsafe {
        let own = &raw mut (*thread).own;
        if (*own).state() == state::READY && session.is_surely_same_process() {
            (*own).enter();
            // Not earlier: a handler that interrupts before this may fill the segment.
            if !(*own).writer.needs_room() {
                let rseq = &*(*thread).rseq;
                let writer = &mut (*own).writer;
                put(session, rseq, writer, kind, event, payload, reading);
                if kind == Kind::BeginOrdered {
                    clock::fence();
                }
                return;
            }
            (*own).set_state(state::READY);
        }
        record_slow(
            session,
            thread,
            Job::One {
                kind,
                event,
                payload,
                reading,
                early: None,
            },
            giving_up::stack_pointer(),
        );
    }
}

/// Returns whether the clock is read before any other check: at the end of a span.
#[inline(always)]
fn is_first(kind: Kind, reading: Reading) -> bool {
    kind == Kind::EndOrdered || (kind == Kind::End && reading == Reading::Waiting)
}

/// Records the end of a span: the clock is read before any other check, even whether to record.
#[inline(always)]
fn record_end(kind: Kind, event: u16, payload: u32, reading: Reading) {
    let thread = own_memory();
    // SAFETY: as `record`.
    unsafe {
        let own = &raw mut (*thread).own;
        let session = match (*own).state() {
            state::READY => process::current(),
            _ => None,
        };
        // Points that are switched off must not read the clock: the difference is their cost.
        let reads = |session| {
            reading != Reading::Waiting || session_switch::is_on_here(thread, session, event)
        };
        if let Some(session) = session.filter(|session| reads(session)) {
            (*own).enter();
            let readings = read(session, reading);
            compiler_fence(Ordering::SeqCst);
            if session_switch::is_on_here(thread, session, event)
                && session.is_surely_same_process()
                && state::is_writing((*own).state())
                && !(*own).writer.needs_room()
            {
                let rseq = &*(*thread).rseq;
                let words = finish(session, rseq, kind, event, payload, reading, readings);
                (*own).writer.put(words);
            } else {
                let end = (kind, event, payload, reading);
                record_end_slow(session, thread, end, readings);
            }
        } else if is_on(thread, process::switch(), event) {
            let here = giving_up::stack_pointer();
            record_first(kind, event, payload, reading, here);
        }
    }
}

/// Records an event with a 64-bit payload.
#[inline(always)]
pub fn record_wide(event: u16, value: u64) {
    let on = process::switch();
    if on == control::NONE {
        return;
    }
    let thread = own_memory();
    // SAFETY: as `record`; the slow path looks at every state.
    unsafe {
        if !is_on(thread, on, event) {
            return;
        }
        if let Some(session) = process::session() {
            let here = giving_up::stack_pointer();
            record_slow(session, thread, Job::Wide { event, value }, here);
        }
    }
}

/// Records an end of a span in the thread's ring, whose state is "writing", or drops and counts it.
///
/// # Safety
/// `thread` is the calling thread's.
#[inline(always)]
pub(crate) unsafe fn put_in_own(
    session: &'static Session,
    thread: *mut Thread,
    kind: Kind,
    event: u16,
    payload: u32,
) {
    // SAFETY: handlers that come in leave a ring alone that is being written.
    unsafe {
        let own = &raw mut (*thread).own;
        let rseq = &*(*thread).rseq;
        if (*own).writer.needs_room() {
            (*own).set_state(state::READY);
            return record_slow(
                session,
                thread,
                Job::One {
                    kind,
                    event,
                    payload,
                    reading: Reading::Waiting,
                    early: None,
                },
                giving_up::stack_pointer(),
            );
        }
        let writer = &mut (*own).writer;
        put(
            session,
            rseq,
            writer,
            kind,
            event,
            payload,
            Reading::Waiting,
        );
    }
}
