use std::ffi::CStr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};
use std::time::Duration;

use crate::manifest::Descheduled;

/// Finds out what the deschedule flag means under this kernel: points the
/// thread's `rseq_cs` at a section that is never executed, sleeps, and looks
/// whether the kernel took the pointer away (kernels before 6.19 do whenever
/// the thread leaves the CPU; later ones only when it was interrupted).
#[must_use]
pub fn self_test() -> Descheduled {
    // On a thread of its own, so that whatever uses rseq_cs here is undisturbed.
    std::thread::spawn(probe)
        .join()
        .unwrap_or(Descheduled::Unavailable)
}

#[repr(C, align(32))]
struct Section {
    version_and_flags: u64,
    start: u64,
    length: u64,
    abort: u64,
    before_abort: [u32; 7],
    signature: u32,
    code: [u8; 32],
}

#[cfg(target_arch = "x86_64")]
const SIGNATURE: u32 = 0x5305_3053;
#[cfg(not(target_arch = "x86_64"))]
const SIGNATURE: u32 = 0xd428_bc00;

fn probe() -> Descheduled {
    let find = |name: &CStr| {
        // SAFETY: a look-up by name.
        let at = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!at.is_null()).then_some(at)
    };
    let (Some(offset), Some(size)) = (find(c"__rseq_offset"), find(c"__rseq_size")) else {
        return Descheduled::Unavailable;
    };
    // SAFETY: the C library's documented variables of these types.
    let (offset, size) = unsafe { (*offset.cast::<isize>(), *size.cast::<u32>()) };
    if size == 0 {
        return Descheduled::Unavailable;
    }
    let thread: usize;
    // SAFETY: the thread pointer; reading it has no effect.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        std::arch::asm!("mov {}, fs:0", out(reg) thread, options(nostack, readonly));
        #[cfg(target_arch = "aarch64")]
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) thread, options(nostack));
    }
    let area = thread.wrapping_add_signed(offset);
    // SAFETY: the C library's registered struct rseq of this thread: cpu_id at
    // 4, rseq_cs at 8.
    let (cpu_id, rseq_cs) = unsafe {
        (
            &*((area + 4) as *const AtomicU32),
            &*((area + 8) as *const AtomicU64),
        )
    };
    if (cpu_id.load(Ordering::Relaxed) as i32) < 0 {
        return Descheduled::Unavailable;
    }
    // For ever: the kernel may look at it as long as the pointer stands.
    let section = Box::leak(Box::new(Section {
        version_and_flags: 0,
        start: 0,
        length: 8,
        abort: 0,
        before_abort: [0; 7],
        signature: SIGNATURE,
        code: [0; 32],
    }));
    section.start = (&raw const section.code) as u64;
    section.abort = (&raw const section.code) as u64;
    section.start += 16;
    let armed = (&raw const *section) as u64;
    let mut cleared = 0;
    for _ in 0..3 {
        rseq_cs.store(armed, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(2));
        compiler_fence(Ordering::SeqCst);
        cleared += u32::from(rseq_cs.load(Ordering::Relaxed) == 0);
    }
    rseq_cs.store(0, Ordering::Relaxed);
    if cleared >= 2 {
        Descheduled::AnyDeschedule
    } else {
        Descheduled::PreemptionOnly
    }
}
