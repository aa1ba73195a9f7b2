//! The scheduler's mark: the `rseq_cs` of a thread, which the kernel clears when it deschedules the
//! thread.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

use undertick_ring::{DeschedFlag, Record, mark};

use super::Thread;
use super::reading::{Reading, Readings, read};
use crate::process::Session;

/// The kernel's `struct rseq`, limited to the fields needed here.
#[repr(C)]
pub(super) struct Rseq {
    cpu_id_start: AtomicU32,
    cpu_id: AtomicU32,
    rseq_cs: AtomicU64,
}

/// Replacement where there is none: CPU unknown, never armed.
pub(super) static NO_RSEQ: Rseq = Rseq {
    cpu_id_start: AtomicU32::new(u32::MAX),
    cpu_id: AtomicU32::new(u32::MAX),
    rseq_cs: AtomicU64::new(0),
};

/// Sets the scheduler's mark for the calling thread.
///
/// # Safety
/// `thread` is the calling thread's.
pub(crate) unsafe fn arm(session: &Session, thread: *mut Thread) {
    if let Some(area) = mark::area() {
        let rseq = area.cast::<Rseq>();
        // SAFETY: the C library's registered area of this thread.
        unsafe {
            if ((*rseq).cpu_id.load(Ordering::Relaxed) as i32) >= 0 {
                (*rseq).rseq_cs.store(session.armed, Ordering::Relaxed);
                (*thread).rseq = rseq;
            }
        }
    }
}

/// Result of a check of the mark; the readings are new ones if it was gone.
pub(super) struct Look {
    pub(super) flag: DeschedFlag,
    pub(super) cpu: u16,
    pub(super) readings: Readings,
}

#[inline(always)]
pub(super) fn look(session: &Session, rseq: &Rseq, reading: Reading, readings: Readings) -> Look {
    let (mut flag, mut readings) = (DeschedFlag::No, readings);
    if rseq.rseq_cs.load(Ordering::Relaxed) != session.armed {
        let again;
        (flag, again) = rearm(session, rseq, reading);
        readings = again.unwrap_or(readings);
    }
    let cpu = match readings.cpu {
        Some(cpu) => cpu,
        None => rseq.cpu_id.load(Ordering::Relaxed),
    };
    Look {
        flag,
        cpu: cpu.min(u32::from(Record::CPU_UNKNOWN)) as u16,
        readings,
    }
}

/// Handles a mark that is not ours any more: the kernel cleared it, or other code uses `rseq_cs`.
/// Sets it again and reads the clock again, so that the reading lies after what the flag describes.
///
/// The first readings are not an argument: they would be written to the stack before each check.
#[cold]
#[inline(never)]
fn rearm(session: &Session, rseq: &Rseq, reading: Reading) -> (DeschedFlag, Option<Readings>) {
    if core::ptr::eq(rseq, &raw const NO_RSEQ) {
        return (DeschedFlag::Unknown, None);
    }
    let (mut flag, mut readings) = (DeschedFlag::No, None);
    for _ in 0..16 {
        match rseq.rseq_cs.load(Ordering::Relaxed) {
            seen if seen == session.armed => break,
            0 => flag = DeschedFlag::Yes,
            _ if flag == DeschedFlag::No => flag = DeschedFlag::Unknown,
            _ => {}
        }
        rseq.rseq_cs.store(session.armed, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        readings = Some(read(session, reading));
        compiler_fence(Ordering::SeqCst);
    }
    (flag, readings)
}
