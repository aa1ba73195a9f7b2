//! Was this thread taken off its CPU since the last check? The mark tells, without privilege and
//! without a system call.
//!
//! A thread's `rseq_cs` (in the `struct rseq` that the C library registers) points at a restartable
//! section. If the kernel finds the thread outside of that section when it takes it off the CPU, it
//! clears the pointer. So a pointer to a section whose code is never executed is a mark that
//! disappears whenever the thread was descheduled, or got a signal. Kernels before 6.19 clear it at
//! every deschedule, later ones only when the thread was interrupted in user mode.

use core::ffi::CStr;
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::sync::OnceLock;
// These are not the model checker's atomics, as the other side is the kernel.
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

/// Bytes that [`write_section`] needs.
pub const SECTION_BYTES: usize = 1024;
/// Offset at which the section's code would start, and to which it aborts.
const CODE: usize = 256;
const ABORT: usize = 512;

/// The word that the kernel requires before the abort address.
#[cfg(not(target_arch = "aarch64"))]
const SIGNATURE: u32 = 0x5305_3053;
#[cfg(target_arch = "aarch64")]
const SIGNATURE: u32 = 0xd428_bc00;

/// The kernel's `struct rseq`, limited to the fields needed here.
#[repr(C)]
struct Rseq {
    cpu_id_start: AtomicU32,
    cpu_id: AtomicU32,
    rseq_cs: AtomicU64,
}

/// Writes a section (`struct rseq_cs`) that is never executed, and returns what
/// `rseq_cs` must hold to point at it.
///
/// # Safety
/// [`SECTION_BYTES`] writable bytes from `at` on, aligned to 32, that stay for
/// as long as any thread's `rseq_cs` points at them.
pub unsafe fn write_section(at: *mut u8) -> u64 {
    let address = at as u64;
    let section = at.cast::<u64>();
    // SAFETY: all within the bytes given: version and flags, start, length,
    // abort; before the abort address the signature that the kernel checks.
    unsafe {
        section.write(0);
        section.add(1).write(address + CODE as u64);
        section.add(2).write(8);
        section.add(3).write(address + ABORT as u64);
        at.add(ABORT - 4).cast::<u32>().write(SIGNATURE);
    }
    address
}

/// Returns the address of this thread's `struct rseq` in the C library, if it has one.
#[must_use]
pub fn area() -> Option<*mut u8> {
    let find = |name: &CStr| {
        // SAFETY: a look-up by name.
        NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
    };
    let offset = find(c"__rseq_offset")?.cast::<isize>();
    let size = find(c"__rseq_size")?.cast::<u32>();
    // SAFETY: the C library's documented variables of these types.
    let (offset, size) = unsafe { (offset.read(), size.read()) };
    if size == 0 {
        return None;
    }
    let this: usize;
    // SAFETY: the thread pointer; reading it has no effect.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("mov {}, fs:0", out(reg) this, options(nostack, readonly));
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) this, options(nostack));
    }
    Some(this.wrapping_add_signed(offset) as *mut _)
}

/// The mark of one thread. Only one part of a thread may use its `rseq_cs`: two of them overwrite
/// each other's mark, and both then see false deschedules.
#[derive(Debug)]
pub struct Mark {
    rseq: *const Rseq,
    armed: u64,
    /// The mark belongs to its thread.
    not_send: PhantomData<*mut ()>,
}

#[repr(align(32))]
struct Bytes([u8; SECTION_BYTES]);

impl Mark {
    /// Returns the mark of the calling thread, set. `None` without a registered `struct rseq`.
    #[must_use]
    pub fn of_this_thread() -> Option<Self> {
        static SECTION: OnceLock<u64> = OnceLock::new();
        let armed = *SECTION.get_or_init(|| {
            // Never freed: the kernel may read it while a pointer to it remains.
            let bytes = Box::leak(Box::new(Bytes([0; SECTION_BYTES])));
            // SAFETY: as large and aligned as needed, never freed.
            unsafe { write_section(bytes.0.as_mut_ptr()) }
        });
        let rseq = area()?.cast::<Rseq>().cast_const();
        let mark = Self {
            rseq,
            armed,
            not_send: PhantomData,
        };
        if (mark.rseq().cpu_id.load(Ordering::Relaxed) as i32) < 0 {
            return None;
        }
        mark.set();
        Some(mark)
    }

    fn rseq(&self) -> &Rseq {
        // SAFETY: the thread's own, for as long as the thread lives; the mark
        // does not leave its thread.
        unsafe { &*self.rseq }
    }

    /// Sets the mark.
    #[inline]
    pub fn set(&self) {
        self.rseq().rseq_cs.store(self.armed, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// Returns whether the mark is gone.
    #[inline]
    #[must_use]
    pub fn is_gone(&self) -> bool {
        compiler_fence(Ordering::SeqCst);
        self.rseq().rseq_cs.load(Ordering::Relaxed) != self.armed
    }

    /// Returns the CPU that the thread runs on, or ran on a moment ago.
    #[inline]
    #[must_use]
    pub fn cpu(&self) -> u32 {
        self.rseq().cpu_id.load(Ordering::Relaxed)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.rseq().rseq_cs.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(miri)))]
mod tests;
