//! The end of a thread: its rings are closed.

use core::ffi::c_void;
use core::sync::atomic::{Ordering, compiler_fence};

use undertick_ring::state;

use super::{OneRing, Thread};
use crate::giving_up;
use crate::pool::close_ring;
use crate::process;
use crate::session_switch;

/// Maximum number of times that the destructors of a thread are called.
const DESTRUCTOR_ROUNDS: u32 = 4;

/// Makes a key whose destructor closes the rings of a thread that ends.
pub fn make_key() -> Option<libc::pthread_key_t> {
    let mut key = 0;
    // SAFETY: `key` is valid for writing.
    (unsafe { libc::pthread_key_create(&raw mut key, Some(end_of_thread)) } == 0).then_some(key)
}

/// Ends a thread: its rings are complete. Later destructors may record, so it asks to be called
/// again, as often as destructors are (`PTHREAD_DESTRUCTOR_ITERATIONS`); events after the last time
/// are counted as lost. A handler may run at any instruction: nothing is unmapped that it could
/// still find.
unsafe extern "C" fn end_of_thread(thread: *mut c_void) {
    let thread = thread.cast::<Thread>();
    let Some(session) = process::current() else {
        return;
    };
    // SAFETY: called by the thread itself, with what it gave to the key; its
    // static memory is there until after the destructors.
    unsafe {
        (*thread).ends += 1;
        let is_last = (*thread).ends >= DESTRUCTOR_ROUNDS;
        if !session.is_same_process() {
            session_switch::forget(session, thread);
        }
        let both = [&raw mut (*thread).own, &raw mut (*thread).nested];
        for one in both {
            let was = (*one).swap_state(state::ENDED);
            giving_up::account(session, one, was);
        }
        (*thread).sampling.forget(session);
        (*thread).leaving.let_go(session);
        for one in both {
            let (memory, pool) = (*(*one).writer.memory(), (*one).pool);
            let mut none = OneRing::new();
            none.writer.state = state::ENDED;
            one.write_volatile(none);
            compiler_fence(Ordering::SeqCst);
            let Some(pool) = pool else {
                continue;
            };
            close_ring(session, &memory, giving_up::is_joined(session, thread));
            session.wiped().leave(pool);
        }
        if !is_last && session.at_end_of_thread(thread.cast::<c_void>()) {
            for one in both.into_iter().rev() {
                (*one).set_state(state::NO_RING);
            }
        }
    }
}
