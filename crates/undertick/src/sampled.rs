//! Sampled spans, by the same protocol as undertick.h, where it is described.

mod cell;

use core::ptr::null_mut;
use core::sync::atomic::{Ordering, compiler_fence};

use undertick_ring::layout::cell::{BUSY, CELLS, OPEN};
use undertick_ring::layout::{control, ring};
use undertick_ring::{Kind, Mapped, state};

use crate::clock;
use crate::giving_up;
use crate::process::{self, Session};
use crate::session_switch;
use crate::thread::{Job, Reading, Thread, own_memory, put_in_own, record, record_slow};

use cell::{Cell, NO_CELLS, cell_of, count_down, idle, low_half, near, recorded, table};

/// A thread's state of sampled spans, in addition to the cells in its ring.
pub struct Sampling {
    /// Address of the cells of the thread's ring, less the address of `NO_CELLS`. It is in the
    /// thread's private page, which `fork` fills with zeros, or always zero.
    cells: *mut usize,
    /// State of the generator; 0: not seeded yet.
    random: u64,
    /// The page of `cells` while it is not used, or null.
    spare: *mut usize,
}

impl Sampling {
    /// The state of a thread that has begun no sampled span.
    pub const NONE: Self = Self {
        cells: NO_CELLS.0.get().cast(),
        random: 0,
        spare: null_mut(),
    };

    /// Returns whether the thread has begun any.
    #[inline(always)]
    fn is_used(&self) -> bool {
        self.cells != Self::NONE.cells
    }

    /// Frees the state when the thread ends, and its ring with it.
    pub fn forget(&mut self, session: &Session) {
        self.lay_aside();
        let page = core::mem::replace(&mut self.spare, null_mut());
        compiler_fence(Ordering::SeqCst);
        if !page.is_null() {
            // SAFETY: the page mapped by `find`; only this thread knows it, and it has
            // forgotten it.
            unsafe { session.instance().unmap_page(page.cast()) };
        }
    }

    /// Detaches the cells of a ring that is given up while the thread goes on. The page stays
    /// mapped, because a span may be looking for its cell at this moment.
    pub fn lay_aside(&mut self) {
        if self.is_used() {
            // SAFETY: the page mapped by `find`.
            unsafe { self.cells.write_volatile(0) };
            self.spare = self.cells;
            self.cells = Self::NONE.cells;
        }
    }

    /// Makes the fast path find the cells; if this fails, all spans take the slow path.
    #[cold]
    fn find(&mut self, session: &Session, cells: *mut Cell) {
        if session.is_told_by_pid() {
            return; // nobody would forget them in a child
        }
        // SAFETY: a page of our own, private to this thread.
        unsafe {
            if !self.spare.is_null() {
                self.cells = core::mem::replace(&mut self.spare, null_mut());
            }
            if self.cells == Self::NONE.cells {
                let protection = libc::PROT_READ | libc::PROT_WRITE;
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                let page = libc::mmap(null_mut(), 4096, protection, flags, -1, 0);
                if page == libc::MAP_FAILED {
                    return;
                }
                if libc::madvise(page, 4096, libc::MADV_WIPEONFORK) != 0 {
                    libc::munmap(page, 4096);
                    return;
                }
                self.cells = page.cast();
                session.instance().note_page(page.cast());
            }
            let offset = (cells as usize).wrapping_sub(NO_CELLS.0.get() as usize);
            self.cells.write_volatile(offset);
        }
    }

    #[cold]
    fn first_seed(&self, session: &Session) -> u64 {
        let mut x = if session.clock() == clock::COUNTER {
            clock::counter()
        } else {
            clock::system(session.clock())
        };
        // SAFETY: only returns a number.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u64;
        x ^= tid << 32 ^ core::ptr::from_ref(self) as u64;
        x = (x ^ x >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x ^ x >> 29
    }

    /// Returns 32 random bits: the upper half of Knuth's linear congruential generator.
    #[inline(always)]
    fn random(&mut self, session: &Session) -> u32 {
        let mut x = self.random;
        if x == 0 {
            x = self.first_seed(session);
        }
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.random = x;
        (x >> 32) as u32
    }

    /// Returns a number of 1 ..= n, all equally likely.
    fn random_to(&mut self, session: &Session, n: u32) -> u32 {
        1 + ((u64::from(self.random(session)) * u64::from(n)) >> 32) as u32
    }

    /// Returns the first gap of a cell, or under a rate: the smaller of two different numbers of 1
    /// ..= 2r, which is the remainder of a gap at a random time.
    #[cold]
    fn first_gap(&mut self, session: &Session, one_in: u32) -> u32 {
        let a = self.random_to(session, 2 * one_in);
        let b = self.random_to(session, 2 * one_in - 1);
        a.min(b + u32::from(b >= a))
    }
}

/// Begins a sampled span.
#[inline(always)]
pub fn begin(event: u16) {
    let thread = own_memory();
    // SAFETY: the calling thread's.
    unsafe {
        let cell = near(thread, event);
        let state = cell.state.load(Ordering::Relaxed);
        if state == idle(event) {
            if count_down(cell) {
                begin_due(thread, cell, event);
            }
        } else if (*thread).sampling.is_used() || process::is_any_on() {
            begin_otherwise(thread, cell, event);
        }
    }
}

/// Ends a sampled span.
#[inline(always)]
pub fn end(event: u16) {
    let thread = own_memory();
    // SAFETY: the calling thread's.
    unsafe {
        let cell = near(thread, event);
        let state = cell.state.load(Ordering::Relaxed);
        if state == idle(event) {
            return;
        }
        if (*thread).sampling.is_used() || process::is_any_on() {
            end_due(thread, cell, event);
        }
    }
}

/// Makes the choices of the calling thread repeatable.
pub fn seed(seed: u64) {
    let thread = own_memory();
    // SAFETY: the calling thread's.
    unsafe { (*thread).sampling.random = seed.max(1) };
}

/// Begins a span when a recorded span of the event is open, the cell belongs to another event, or
/// there is none (yet).
#[cold]
#[inline(never)]
unsafe fn begin_otherwise(thread: *mut Thread, cell: &Cell, event: u16) {
    if process::is_any_on() || cell.state.load(Ordering::Relaxed) & OPEN != 0 {
        // SAFETY: as `begin_slow`.
        unsafe { begin_slow(thread, event, false, giving_up::stack_pointer()) };
    } else if let Some(session) = process::current().filter(|session| session.is_read()) {
        // SAFETY: the calling thread's.
        unsafe { session_switch::leave(session, thread, giving_up::stack_pointer()) };
    }
}

/// The common case of [`begin_slow`]: the execution is counted, and no recorded span of the event
/// is open.
#[inline(never)]
unsafe fn begin_due(thread: *mut Thread, cell: &Cell, event: u16) {
    // SAFETY: as `begin_slow`.
    unsafe {
        let own = &raw mut (*thread).own;
        let session = match process::current() {
            Some(session)
                if (*own).state() == state::READY && process::switch() == (*thread).on =>
            {
                session
            }
            _ => return begin_slow(thread, event, true, giving_up::stack_pointer()),
        };
        (*own).enter();
        cell.state.store(idle(event) | BUSY, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        if low_half(cell) >= 0 {
            // A handler interrupted this and was recorded for both.
            cell.state.store(idle(event), Ordering::Relaxed);
            (*own).set_state(state::READY);
            return;
        }
        let stands_for = recorded(&mut (*thread).sampling, session, cell, event);
        cell.open.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        cell.state.store(idle(event) | OPEN, Ordering::Relaxed);
        put_in_own(session, thread, Kind::Begin, event, stands_for);
    }
}

/// The common case of [`end_slow`]: one recorded span of the event is open, and none inside it.
#[inline(never)]
unsafe fn end_due(thread: *mut Thread, cell: &Cell, event: u16) {
    // SAFETY: as `begin_slow`.
    unsafe {
        let own = &raw mut (*thread).own;
        let session = match process::current() {
            Some(session)
                if (*own).state() == state::READY
                    && process::switch() == (*thread).on
                    && cell.state.load(Ordering::Relaxed) == idle(event) | OPEN
                    && cell.open.load(Ordering::Relaxed) == 1 =>
            {
                session
            }
            _ => {
                if process::is_any_on() || cell.state.load(Ordering::Relaxed) & OPEN != 0 {
                    end_slow(thread, event);
                }
                return;
            }
        };
        (*own).enter();
        let timed = u32::from(cell.timed.load(Ordering::Relaxed));
        put_in_own(session, thread, Kind::End, event, timed);
        // A handler that interrupts this leaves `open` as it found it.
        cell.open.store(0, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        cell.state.store(idle(event), Ordering::Relaxed);
    }
}

#[cold]
#[inline(never)]
unsafe fn begin_slow(thread: *mut Thread, event: u16, counted: bool, here: u32) {
    let Some(session) = process::current().or_else(process::session) else {
        return;
    };
    // SAFETY: as `thread::record`: the state tells whether `own` is free.
    unsafe {
        let joined = (*thread).on;
        let on = session_switch::is_on(thread, process::switch(), event);
        // The count belongs to the previous session.
        let counted = counted && (*thread).on == joined;
        let own = &raw mut (*thread).own;
        if (*own).state() == state::READY && session.is_same_process() {
            (*own).enter();
            let memory = *(*own).writer.memory();
            let stands_for = begun(session, thread, &memory, event, true, counted, on);
            (*own).set_state(state::READY);
            if stands_for != 0 {
                record(Kind::Begin, event, stands_for, Reading::Waiting);
            }
        } else if !counted && on {
            record_slow(session, thread, Job::Sampled { event }, here);
        } else if on && giving_up::is_left(thread, (*own).state(), here) {
            giving_up::choose(session, thread, here);
        }
        // Otherwise a handler that interrupts a write has counted it: the next one is recorded.
    }
}

/// Counts one execution that began in the ring that is being written; returns how many it stands
/// for if it is to be recorded, or 0.
///
/// # Safety
/// `thread` is the calling thread's, and the ring's state is "writing".
#[inline(always)]
pub unsafe fn begun(
    session: &Session,
    thread: *mut Thread,
    memory: &Mapped,
    event: u16,
    is_own: bool,
    counted: bool,
    on: bool,
) -> u32 {
    // SAFETY: the calling thread's; handlers leave it as they found it.
    let sampling = unsafe { &mut (*thread).sampling };
    // SAFETY: as above.
    let pool = unsafe { [(*thread).nested.pool, (*thread).own.pool][usize::from(is_own)] };
    let Some(cell) = cell_of(sampling, session, (memory, pool), event, is_own) else {
        return u32::from(on);
    };
    let open = cell.open.load(Ordering::Relaxed);
    // From here on no handler counts here.
    cell.state.store(idle(event) | BUSY, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    if !counted {
        count_down(cell);
    }
    let is_full = open >> 31 != 0;
    let (stands_for, open) = if low_half(cell) >= 0 || is_full {
        let deeper = cell.deeper.load(Ordering::Relaxed);
        cell.deeper
            .store(deeper + u32::from(is_full), Ordering::Relaxed);
        (0, if is_full { open } else { open << 1 })
    } else {
        let stands_for = recorded(sampling, session, cell, event);
        let n = if on { stands_for } else { 0 };
        (n, open << 1 | u32::from(on))
    };
    cell.open.store(open, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    let after = if open == 0 { 0 } else { OPEN };
    cell.state.store(idle(event) | after, Ordering::Relaxed);
    stands_for
}

#[cold]
#[inline(never)]
unsafe fn end_slow(thread: *mut Thread, event: u16) {
    let Some(session) = process::current() else {
        return;
    };
    if !session.is_same_process() {
        return; // nothing of this process is open
    }
    let running = process::switch();
    // SAFETY: the calling thread's.
    if running != control::NONE && running ^ unsafe { (*thread).on } > control::MODE {
        return; // nor of this session
    }
    // SAFETY: as `begin_slow`; a handler that comes in leaves the cell as it
    // found it.
    unsafe {
        let one = if (*thread).own.state() == state::READY {
            &raw const (*thread).own
        } else {
            &raw const (*thread).nested // as the begin did
        };
        if (*one).state() != state::READY {
            return;
        }
        let memory = *(*one).writer.memory();
        let there = memory.field_u32(ring::OFF_CELLS).load(Ordering::Relaxed);
        if there == 0 {
            return;
        }
        let cell = &*table(&memory).add(usize::from(event) % CELLS);
        let has_cells = there == CELLS as u32;
        let state = if has_cells {
            cell.state.load(Ordering::Relaxed)
        } else {
            0
        };
        if !has_cells || (state != 0 && state as u16 != event) {
            // No cell: all are recorded.
            return record(Kind::End, event, 1, Reading::Waiting);
        }
        let deeper = cell.deeper.load(Ordering::Relaxed);
        if deeper > 0 {
            cell.deeper.store(deeper - 1, Ordering::Relaxed);
            return;
        }
        if cell.open.load(Ordering::Relaxed) & 1 != 0 {
            let timed = cell.timed.load(Ordering::Relaxed);
            record(Kind::End, event, u32::from(timed), Reading::Waiting);
        }
        let open = cell.open.load(Ordering::Relaxed) >> 1;
        cell.open.store(open, Ordering::Relaxed);
        if open == 0 && state != 0 {
            cell.state.store(idle(event), Ordering::Relaxed);
        }
    }
}
