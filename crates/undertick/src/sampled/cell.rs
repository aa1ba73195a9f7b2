//! The cells in a ring's header: the number of executions until the next one that is recorded, and
//! the open spans of an event.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering, compiler_fence};

use undertick_ring::Mapped;
use undertick_ring::layout::cell::{BUSY, BYTES, CELLS, CLAIMED, executions};
use undertick_ring::layout::ring;

use super::Sampling;
use crate::pool::Pool;
use crate::process::{self, Session};
use crate::thread::Thread;

/// A cell of the ring's header, as layout.rs describes it.
#[repr(C)]
pub(super) struct Cell {
    left: AtomicU64,
    pub(super) state: AtomicU32,
    one_in: AtomicU16,
    pub(super) timed: AtomicU16,
    last: AtomicU64,
    pub(super) open: AtomicU32,
    pub(super) deeper: AtomicU32,
}

const _: () = assert!(size_of::<Cell>() == BYTES);

/// Cells that are never claimed: the fast path looks here while the thread's ring has none.
#[repr(C, align(64))]
pub(super) struct NoCells(pub(super) UnsafeCell<[u64; CELLS * BYTES / 8]>);

// SAFETY: zeros that are only read.
unsafe impl Sync for NoCells {}

pub(super) static NO_CELLS: NoCells = NoCells(UnsafeCell::new([0; CELLS * BYTES / 8]));

/// Returns the state of a cell of this event while no recorded span of it is open.
#[inline(always)]
pub(super) const fn idle(event: u16) -> u32 {
    event as u32 | CLAIMED
}

/// Returns the cell that the fast path examines.
///
/// # Safety
/// `thread` is the calling thread's.
#[inline(always)]
pub(super) unsafe fn near<'a>(thread: *mut Thread, event: u16) -> &'a Cell {
    // SAFETY: zero, or what leads to the cells of the ring that is mapped.
    unsafe {
        let offset = (*thread).sampling.cells.read_volatile();
        let table = NO_CELLS.0.get().cast::<Cell>().wrapping_byte_add(offset);
        &*table.add(usize::from(event) % CELLS)
    }
}

/// Counts one execution; returns whether it is to be recorded. The count changes in one instruction,
/// so that a signal handler runs before or after it.
#[inline(always)]
pub(super) fn count_down(cell: &Cell) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let is_due: u8;
        // SAFETY: changes the low half of `left`, which others only read.
        unsafe {
            core::arch::asm!(
                "sub dword ptr [{left}], 1",
                "sets {is_due}",
                left = in(reg) cell.left.as_ptr(),
                is_due = out(reg_byte) is_due,
                options(nostack)
            );
        }
        is_due != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // SAFETY: the low half of `left`, on a little-endian machine.
        let low = unsafe { core::sync::atomic::AtomicI32::from_ptr(cell.left.as_ptr().cast()) };
        low.fetch_sub(1, Ordering::Relaxed) <= 0
    }
}

pub(super) fn low_half(cell: &Cell) -> i32 {
    // SAFETY: the low half of `left`, on a little-endian machine.
    unsafe { AtomicU32::from_ptr(cell.left.as_ptr().cast()) }.load(Ordering::Relaxed) as i32
}

/// Called when the execution that is to be recorded has begun; returns how many it stands for.
#[inline(always)]
pub(super) fn recorded(sampling: &mut Sampling, session: &Session, cell: &Cell, event: u16) -> u32 {
    let last = cell.last.load(Ordering::Relaxed);
    // SAFETY: the high half of `left`, on a little-endian machine.
    let high = unsafe { AtomicU32::from_ptr(cell.left.as_ptr().cast::<u32>().add(1)) };
    let left = u64::from(high.load(Ordering::Relaxed)) << 32 | u64::from(low_half(cell) as u32);
    let now = executions(left, last);
    next_gap(sampling, session, cell, event, now);
    (now - last) as u32
}

/// Starts a new gap: one store, so that the count is right before and after.
#[inline(always)]
fn next_gap(sampling: &mut Sampling, session: &Session, cell: &Cell, event: u16, executions: u64) {
    let one_in = process::one_in(session, event);
    let before = cell.one_in.load(Ordering::Relaxed);
    let gap = if one_in == u32::from(before) {
        sampling.random_to(session, 2 * one_in - 1)
    } else {
        // There was none before, or the rate has changed: this one is treated as if it had been in
        // force for long.
        cell.one_in.store(one_in as u16, Ordering::Relaxed);
        sampling.first_gap(session, one_in)
    };
    cell.timed.store(before, Ordering::Relaxed);
    let high = (executions as u32).wrapping_add(gap - 1);
    cell.left.store(
        u64::from(high) << 32 | u64::from(gap - 1),
        Ordering::Relaxed,
    );
    compiler_fence(Ordering::SeqCst);
    cell.last.store(executions, Ordering::Relaxed);
}

pub(super) fn table(memory: &Mapped) -> *mut Cell {
    memory.head().wrapping_add(ring::OFF_CELL_TABLE).cast()
}

/// Returns the event's cell in a ring; `None`: there is none, and every span is recorded.
#[inline(always)]
pub(super) fn cell_of<'a>(
    sampling: &mut Sampling,
    session: &Session,
    (memory, pool): (&Mapped, Option<&Pool>),
    event: u16,
    is_own: bool,
) -> Option<&'a Cell> {
    if memory.field_u32(ring::OFF_CELLS).load(Ordering::Relaxed) == CELLS as u32 {
        // SAFETY: within the header, whose pages are there.
        let cell = unsafe { &*table(memory).add(usize::from(event) % CELLS) };
        let state = cell.state.load(Ordering::Relaxed);
        if state as u16 == event && state != 0 {
            return Some(cell);
        }
    }
    make_cell(sampling, session, (memory, pool), event, is_own)
}

#[cold]
#[inline(never)]
fn make_cell<'a>(
    sampling: &mut Sampling,
    session: &Session,
    (memory, pool): (&Mapped, Option<&Pool>),
    event: u16,
    is_own: bool,
) -> Option<&'a Cell> {
    let there = memory.field_u32(ring::OFF_CELLS);
    let cells = table(memory);
    if there.load(Ordering::Relaxed) != CELLS as u32 {
        // Gets pages first, as for segments.
        let got = there.load(Ordering::Relaxed) == 0
            && pool.is_some_and(|pool| pool.populate(session, cells.cast(), CELLS * BYTES));
        if !got {
            there.store(u32::MAX, Ordering::Relaxed);
            return None;
        }
        there.store(CELLS as u32, Ordering::Release);
    }
    // SAFETY: the thread's own page, or zeros.
    if is_own && unsafe { sampling.cells.read_volatile() } == 0 {
        sampling.find(session, cells);
    }
    // SAFETY: within the header, whose pages are there.
    let cell = unsafe { &*cells.add(usize::from(event) % CELLS) };
    if cell.state.load(Ordering::Relaxed) == 0 {
        next_gap(sampling, session, cell, event, 0);
        compiler_fence(Ordering::SeqCst);
        cell.state.store(idle(event) | BUSY, Ordering::Relaxed);
    }
    (cell.state.load(Ordering::Relaxed) as u16 == event).then_some(cell)
}
