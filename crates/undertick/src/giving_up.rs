//! Selects the ring that a point writes to: the thread's own, the one of signal handlers that
//! interrupt a write, or a new one after a jump out of the middle of a write. The same as in
//! undertick.h.

use core::sync::atomic::{Ordering, compiler_fence};

use undertick_ring::layout::{control, ring};
use undertick_ring::{Left, Writer, state};

use crate::pool::{close_ring, make_ring};
use crate::process::{self, Session};
use crate::session_switch;
use crate::thread::{self, OneRing, Thread};

/// Number of points until a ring that could not be made is tried again.
const RETRY: u32 = 4096;
/// Interval, in points, between checks of the signal stack for a frame that lies above the caller.
const LOOK_AFTER: u32 = 16;
/// The signals whose handlers may run while a ring is made: those of faults and of forbidden system
/// calls, which cannot wait.
const NOT_HELD: [i32; 6] = [
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGSYS,
];
/// Bytes of the kernel's set of signals.
const SET_BYTES: usize = 8;

/// Returns the low half of the stack pointer of the function that this is inlined into.
#[inline(always)]
pub(crate) fn stack_pointer() -> u32 {
    let here: usize;
    // SAFETY: copies a register.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("mov {}, rsp", out(reg) here, options(nomem, nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("mov {}, sp", out(reg) here, options(nomem, nostack, preserves_flags));
    }
    here as u32
}

/// A guard: while it lives, no signal handler runs.
pub(crate) struct HeldSignals {
    before: Option<u64>,
}

impl HeldSignals {
    pub(crate) fn hold() -> Self {
        let held = NOT_HELD
            .iter()
            .fold(!0u64, |set, signal| set & !(1 << (signal - 1)));
        let mut before = 0u64;
        // SAFETY: both sets have the kernel's size.
        let done = unsafe {
            libc::syscall(
                libc::SYS_rt_sigprocmask,
                libc::SIG_BLOCK,
                &raw const held,
                &raw mut before,
                SET_BYTES,
            )
        } == 0;
        Self {
            before: done.then_some(before),
        }
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: a set of the kernel's size, as it was.
            unsafe {
                libc::syscall(
                    libc::SYS_rt_sigprocmask,
                    libc::SIG_SETMASK,
                    &raw const before,
                    core::ptr::null_mut::<u64>(),
                    SET_BYTES,
                )
            };
        }
    }
}

/// Returns whether the session that the thread has joined is still running: after its end a ring
/// has no memory, and a store would allocate some.
///
/// # Safety
/// `thread` is the calling thread's.
pub(crate) unsafe fn is_joined(session: &Session, thread: *mut Thread) -> bool {
    // SAFETY: the calling thread's.
    session.attach_page().is_none() || process::switch() ^ unsafe { (*thread).on } <= control::MODE
}

/// Returns whether a jump left the frame that is writing to a ring; `here` is the stack pointer of
/// the caller. A handler that interrupted the write lies below the frame that it interrupts, or on
/// a signal stack, about which the kernel is asked. The order of addresses does not show what a
/// jump has left on a signal stack: this is checked every 16th time.
///
/// # Safety
/// `thread` is the calling thread's.
#[cold]
pub(crate) unsafe fn is_left(thread: *mut Thread, state: u32, here: u32) -> bool {
    if !state::is_writing(state) {
        return false;
    }
    let is_below = (here.wrapping_sub(state) as i32) < 0;
    // SAFETY: the calling thread's; all zeros is a valid stack.
    unsafe {
        if is_below {
            (*thread).interrupted = (*thread).interrupted.wrapping_add(1);
            if (*thread).interrupted % LOOK_AFTER != 0 {
                return false;
            }
        }
        let mut stack: libc::stack_t = core::mem::zeroed();
        if libc::sigaltstack(core::ptr::null(), &raw mut stack) != 0
            || stack.ss_flags & libc::SS_ONSTACK != 0
        {
            return false;
        }
        let into = state.wrapping_sub(stack.ss_sp as usize as u32);
        !is_below || (stack.ss_flags == 0 && into as usize <= stack.ss_size)
    }
}

/// Counts the event that a ring's writer was in, if the ring does not have it and it will never be
/// finished.
///
/// # Safety
/// `one` is one of the calling thread's, and its state is not `was` any more.
pub(crate) unsafe fn account(session: &Session, one: *mut OneRing, was: u32) {
    if !state::is_writing(was) {
        return;
    }
    // SAFETY: the calling thread's; its ring is mapped, because it was being written.
    let writer = unsafe { &mut (*one).writer };
    match writer.left() {
        Left::Published => {}
        Left::Dropped => writer
            .memory()
            .field_u64(ring::OFF_DROPPED)
            .store(writer.dropped(), Ordering::Relaxed),
        Left::Unfinished => session.count_lost(),
    }
}

/// Closes a ring that the thread no longer writes to, and which is complete. The ring keeps the
/// pool mapped until the next ring is given up: the caller may be a handler that interrupted the
/// thread just after it had seen that it has a ring.
///
/// # Safety
/// `thread` is the calling thread's; `which` is 0 for its own ring, 1 for the nested one.
pub(crate) unsafe fn give_up(session: &Session, thread: *mut Thread, which: usize) {
    // SAFETY: the calling thread's.
    unsafe {
        let one = [&raw mut (*thread).own, &raw mut (*thread).nested][which];
        let was = (*one).swap_state(state::MAKING);
        account(session, one, was);
        if which == 0 {
            (*thread).sampling.lay_aside();
        }
        let memory = *(*one).writer.memory();
        if !memory.head().is_null() {
            let pool = (*one).pool;
            let mut none = OneRing::new();
            none.writer.state = state::MAKING;
            one.write_volatile(none);
            compiler_fence(Ordering::SeqCst);
            close_ring(session, &memory, is_joined(session, thread));
            (*thread).leaving.hold(session, which, pool);
        }
        (*one).set_state(state::NO_RING);
    }
}

/// Makes the ring to write to, whose state is not "ready"; `left`: a jump left it in the middle of
/// a write.
///
/// # Safety
/// As [`give_up`].
unsafe fn new_ring(session: &Session, thread: *mut Thread, which: usize, left: bool) -> bool {
    // SAFETY: the calling thread's.
    unsafe {
        let one = [&raw mut (*thread).own, &raw mut (*thread).nested][which];
        if !left && (*one).retry_in > 0 {
            (*one).retry_in -= 1;
            return false;
        }
        // A handler that runs here could not record, and could jump out.
        let _held = HeldSignals::hold();
        if left {
            give_up(session, thread, which);
        }
        if (*one).state() != state::NO_RING {
            return (*one).state() == state::READY; // a handler was faster
        }
        (*one).set_state(state::MAKING);
        if which == 0 {
            thread::arm(session, thread);
        }
        let serial = (*thread).on >> control::SERIAL_SHIFT;
        let Some(made) = make_ring(session, serial, which == 1) else {
            (*one).retry_in = RETRY;
            (*one).set_state(state::NO_RING);
            return false;
        };
        let first = session
            .field_u32(control::OFF_RING_SEGMENTS)
            .load(Ordering::Relaxed);
        let mut writer = Writer::new(made.memory, made.policy, first);
        writer.state = state::MAKING;
        (&raw mut (*one).writer).write_volatile(writer);
        (*one).pool = Some(made.pool);
        session.at_end_of_thread(thread.cast());
        compiler_fence(Ordering::SeqCst);
        (*one).set_state(state::READY);
    }
    true
}

/// Returns the ring to use, in state "ready"; `None`: the event is lost, and has to be counted.
/// `here` is the stack pointer of the point.
///
/// # Safety
/// `thread` is the calling thread's.
pub(crate) unsafe fn choose(
    session: &Session,
    thread: *mut Thread,
    here: u32,
) -> Option<*mut OneRing> {
    // SAFETY: the calling thread's.
    unsafe {
        if !session.is_same_process() {
            // First event after fork: the child needs its own rings.
            session_switch::forget(session, thread);
        }
        let both = [&raw mut (*thread).own, &raw mut (*thread).nested];
        for (which, one) in both.into_iter().enumerate() {
            let state = (*one).state();
            let left = is_left(thread, state, here);
            if state == state::ENDED {
                return None;
            }
            if state == state::MAKING || (state::is_writing(state) && !left) {
                continue;
            }
            if state == state::READY && (*one).pool.is_none() {
                // A handler has given it up, and got no other.
                (*one).set_state(state::NO_RING);
                return None;
            }
            let is_there = state == state::READY || new_ring(session, thread, which, left);
            return is_there.then_some(one);
        }
    }
    None
}
