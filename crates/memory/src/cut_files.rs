//! Mapped files that the program may truncate while we read them.
//!
//! A load beyond the end of a mapped file raises SIGBUS, which ends a process. The program can
//! truncate the files of a session: only files without a name can be sealed against that, and
//! reading by system calls instead would cost one for each check of each ring. So a load beyond
//! the end reads zeros: a handler maps private memory there, and records that it did. This costs
//! nothing as long as no file is truncated.
//!
//! The same happens where a hole of a file is read while its file system is full.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// A place where a file is mapped. It is reused but never freed: the handler may be walking the
/// list.
struct Area {
    /// 0: nothing is mapped.
    start: AtomicUsize,
    end: AtomicUsize,
    is_cut: AtomicBool,
    next: *const Area,
}

// SAFETY: `next` is set before the area is shared, and areas are never freed.
unsafe impl Sync for Area {}

static AREAS: AtomicPtr<Area> = AtomicPtr::new(null_mut());
static UNUSED: Mutex<Vec<&'static Area>> = Mutex::new(Vec::new());
/// Bytes of a page, a power of two.
static PAGE: AtomicUsize = AtomicUsize::new(4096);
/// The action of the signal before ours was installed.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(null_mut());

/// A mapping that may be cut.
#[derive(Debug)]
pub struct Watched {
    area: &'static Area,
}

impl std::fmt::Debug for Area {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let from = self.start.load(Ordering::Relaxed);
        write!(f, "{from:#x}..{:#x}", self.end.load(Ordering::Relaxed))
    }
}

impl Watched {
    /// Watches the pages that start at `base`.
    ///
    /// # Safety
    /// They are a mapping of the caller's own, which nothing but atomics access and
    /// which stays until [`Self::end`] or until `self` is dropped.
    pub unsafe fn new(base: *mut u8, bytes: usize) -> Self {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(install);
        let mut unused = UNUSED.lock().unwrap_or_else(PoisonError::into_inner);
        let area = unused.pop().unwrap_or_else(|| {
            let area = Box::leak(Box::new(Area {
                start: AtomicUsize::new(0),
                end: AtomicUsize::new(0),
                is_cut: AtomicBool::new(false),
                next: AREAS.load(Ordering::Relaxed),
            }));
            // Stored only under the lock of `UNUSED`. Partner: `on_bus_error`.
            AREAS.store(area, Ordering::Release);
            area
        });
        area.is_cut.store(false, Ordering::Relaxed);
        area.end.store(base as usize + bytes, Ordering::Relaxed);
        area.start.store(base as usize, Ordering::Release);
        Self { area }
    }

    /// Stops watching: what is mapped there from now on is something else.
    pub fn end(&self) {
        self.area.start.store(0, Ordering::Release);
    }

    /// Whether zeros have been read in place of lost content.
    pub fn is_cut(&self) -> bool {
        self.area.is_cut.load(Ordering::Relaxed)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.end();
        let mut unused = UNUSED.lock().unwrap_or_else(PoisonError::into_inner);
        unused.push(self.area);
    }
}

fn install() {
    PAGE.store(rustix::param::page_size(), Ordering::Relaxed);
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all zeros are a valid sigaction.
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut c_void) = on_bus_error;
    ours.sa_sigaction = handler as usize;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: `before` is filled by the first call where it succeeds, and kept for ever
    // before the second installs a handler that uses it, which does only what a handler may.
    unsafe {
        if libc::sigaction(libc::SIGBUS, null(), before.as_mut_ptr()) == 0 {
            BEFORE.store(Box::leak(Box::new(before.assume_init())), Ordering::Release);
            libc::sigaction(libc::SIGBUS, &raw const ours, null_mut());
        }
    }
}

/// Maps zeros from the page of the fault to the mapping's end; the load is then repeated. What
/// lies before that page is left as it is.
extern "C" fn on_bus_error(signal: libc::c_int, about: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a valid siginfo, whose address is set for this signal.
    let at = unsafe { (*about).si_addr() } as usize;
    let mut area = AREAS.load(Ordering::Acquire).cast_const();
    // SAFETY: areas are never freed.
    while let Some(here) = unsafe { area.as_ref() } {
        let start = here.start.load(Ordering::Acquire);
        let end = here.end.load(Ordering::Relaxed);
        if start != 0 && (start..end).contains(&at) {
            let from = at & !(PAGE.load(Ordering::Relaxed) - 1);
            // SAFETY: errno is this thread's own; the pages are within a mapping that the
            // thread which faults is using, and lost what they held.
            let mapped = unsafe {
                let errno = *libc::__errno_location();
                let mapped = libc::mmap(
                    from as *mut c_void,
                    end - from,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                );
                *libc::__errno_location() = errno;
                mapped
            };
            if mapped != libc::MAP_FAILED {
                here.is_cut.store(true, Ordering::Relaxed);
                return;
            }
        }
        area = here.next;
    }
    hand_on(signal, about, context);
}

/// Passes on a signal that does not concern us, as if we were not there.
fn hand_on(signal: libc::c_int, about: *mut libc::siginfo_t, context: *mut c_void) {
    let before = BEFORE.load(Ordering::Acquire);
    // SAFETY: set before the handler was installed, never freed; a handler of that
    // kind takes these arguments.
    unsafe {
        match (*before).sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {
                // The load is repeated, and ends the process.
                libc::sigaction(signal, before, null_mut());
            }
            handler if (*before).sa_flags & libc::SA_SIGINFO != 0 => {
                let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut c_void) =
                    std::mem::transmute(handler);
                handler(signal, about, context);
            }
            handler => {
                let handler: extern "C" fn(libc::c_int) = std::mem::transmute(handler);
                handler(signal);
            }
        }
    }
}

#[cfg(test)]
mod tests;
