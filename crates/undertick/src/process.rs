//! State shared by a process: the control page, the mark of the scheduler, the page that
//! distinguishes a forked child from its parent.

mod name_log;
mod rates;
mod session_search;

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::ffi::CString;
use std::sync::OnceLock;

use undertick_ring::layout::{self, attach_page, control};

use crate::attach_page::AttachPage;
use crate::instance::{Instance, Pages};
use crate::pool::Wiped;

pub use name_log::append_name;
pub use rates::{one_in, set_rate};
use session_search::attach;

/// Value while no thread has looked for a session yet: the first event takes the slow path.
static UNKNOWN: AtomicU32 = AtomicU32::new(1);
static NO_SESSION: AtomicU32 = AtomicU32::new(0);
static ON: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const UNKNOWN).cast_mut());

/// The session this process records for.
pub struct Session {
    control: *mut u8,
    /// The first page holds 1, which `fork` makes 0 in the child. It always holds 0 where `fork`
    /// does not: then each point takes the slow path, which asks for the number of the process.
    pages: Pages,
    /// Process that owns these rings, or 0: the page tells.
    by_pid: AtomicU32,
    /// Value of a thread's `rseq_cs` while it was not descheduled.
    pub armed: u64,
    /// Clock code of the session that was joined last.
    clock: AtomicU32,
    location: Location,
    /// The numbers of names, of all instances; mapped at the start, because a sandbox may follow.
    names: Option<&'static crate::names::Table>,
    /// Key of the destructor that closes a thread's rings; [`NO_KEY`]: none.
    key: AtomicU32,
}

const NO_KEY: u32 = u32::MAX;

/// Where the session is.
enum Location {
    /// In a directory that was known at the start of the program.
    Dir(CString),
    /// In the directory that an attaching recorder writes to this attach page.
    AttachPage(AttachPage),
}

// SAFETY: the pointers are to memory that stays mapped for the life of the
// process and is accessed through atomics only.
unsafe impl Send for Session {}
// SAFETY: as above.
unsafe impl Sync for Session {}

static SESSION: OnceLock<Option<Session>> = OnceLock::new();
static CURRENT: AtomicPtr<Session> = AtomicPtr::new(null_mut());
/// 0: not started, 1: in progress, 2: done.
static ATTACHING: AtomicU8 = AtomicU8::new(0);

/// Returns which events are recorded now, and of which session, as in the control page.
#[inline(always)]
pub fn switch() -> u32 {
    // SAFETY: ON points at a static or at the control page, both for ever.
    unsafe { (*ON.load(Ordering::Relaxed)).load(Ordering::Relaxed) }
}

/// Returns whether any event is recorded now.
#[inline(always)]
pub fn is_any_on() -> bool {
    switch() != control::NONE
}

pub fn enabled() -> bool {
    is_any_on() && session().is_some()
}

/// Returns the session if one has already been found, without a call, for the fast path.
#[inline(always)]
pub fn current() -> Option<&'static Session> {
    // SAFETY: null or the session in the static.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// Returns the session, which the first call looks for. A signal handler that interrupts this
/// search gets none.
#[cold]
pub fn session() -> Option<&'static Session> {
    if ATTACHING.load(Ordering::Acquire) != 2 {
        if ATTACHING
            .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            return None;
        }
        let found = SESSION.get_or_init(attach);
        match found {
            Some(session) => {
                CURRENT.store(core::ptr::from_ref(session).cast_mut(), Ordering::Release);
                ON.store(
                    session.field_u32(control::OFF_ON).as_ptr().cast(),
                    Ordering::Release,
                );
            }
            None => ON.store((&raw const NO_SESSION).cast_mut(), Ordering::Release),
        }
        ATTACHING.store(2, Ordering::Release);
    }
    current()
}

impl Session {
    /// Returns the clock code.
    #[inline(always)]
    pub fn clock(&self) -> u32 {
        self.clock.load(Ordering::Relaxed)
    }

    /// Returns the attach page of a program that was started without a session.
    pub const fn attach_page(&self) -> Option<&AttachPage> {
        match &self.location {
            Location::AttachPage(attach_page) => Some(attach_page),
            Location::Dir(_) => None,
        }
    }

    /// Returns whether a session had attached and is over.
    pub fn is_over(&self) -> bool {
        self.attach_page().is_some_and(AttachPage::is_empty)
    }

    /// Returns whether it is over and the collector has read all of it.
    pub fn is_read(&self) -> bool {
        let alive = self.field_u32(control::OFF_COLLECTOR_ALIVE);
        self.is_over() && alive.load(Ordering::Relaxed) == 0
    }

    /// Returns whether the event's bit excludes it from recording while some events are recorded.
    #[inline(always)]
    pub fn is_switched_off(&self, event: u16) -> bool {
        let place = control::OFF_SWITCHED + usize::from(event / 8);
        // SAFETY: a bit for each event lies within the mapped file.
        let byte = unsafe { AtomicU8::from_ptr(self.control.add(place)) };
        byte.load(Ordering::Relaxed) >> (event % 8) & 1 != 0
    }

    /// Prepares recording for the session that attached; returns false if it does not belong to
    /// this user or to root: the attach page is shared with children that may have fewer rights.
    pub fn join(&self) -> bool {
        let owner = self.with_path(layout::NAMES_FILE, |path| {
            // SAFETY: all zeros is a valid stat; the path ends with zero.
            unsafe {
                let mut status: libc::stat = core::mem::zeroed();
                (libc::lstat(path.as_ptr(), &raw mut status) == 0).then_some(status.st_uid)
            }
        });
        // SAFETY: only returns a number.
        let user = unsafe { libc::geteuid() };
        let may = owner
            .flatten()
            .is_some_and(|owner| owner == 0 || owner == user);
        if may {
            let clock = self.field_u32(control::OFF_CLOCK).load(Ordering::Relaxed);
            self.clock.store(clock, Ordering::Relaxed);
        }
        may
    }

    pub fn field_u32(&self, offset: usize) -> &AtomicU32 {
        assert!((offset as u64) < control::BYTES && offset % 4 == 0);
        // SAFETY: within the mapped page, aligned.
        unsafe { AtomicU32::from_ptr(self.control.add(offset).cast()) }
    }

    pub fn field_u64(&self, offset: usize) -> &AtomicU64 {
        assert!((offset as u64) < control::BYTES && offset % 8 == 0);
        // SAFETY: within the mapped page, aligned.
        unsafe { AtomicU64::from_ptr(self.control.add(offset).cast()) }
    }

    /// Returns the numbers of names, of all instances; `None`: there can be none.
    pub(crate) const fn names(&self) -> Option<&'static crate::names::Table> {
        self.names
    }

    /// Returns the page that `fork` wipes.
    #[inline(always)]
    pub const fn wiped(&self) -> &'static Wiped {
        self.pages.wiped()
    }

    /// Returns false where [`Self::is_same_process`] has to be called.
    #[inline(always)]
    pub fn is_surely_same_process(&self) -> bool {
        self.wiped().same_process.load(Ordering::Relaxed) != 0
    }

    /// Returns whether the known rings belong to this process, and not to its parent.
    #[inline]
    pub fn is_same_process(&self) -> bool {
        self.is_surely_same_process() || {
            let pid = self.by_pid.load(Ordering::Relaxed);
            pid != 0 && pid == std::process::id()
        }
    }

    /// Declares that they belong to this process from here on.
    pub fn begin_process(&self) {
        if self.is_told_by_pid() {
            self.wiped().forget(); // nothing was wiped
            self.by_pid.store(std::process::id(), Ordering::Relaxed);
        } else {
            self.wiped().same_process.store(1, Ordering::Relaxed);
        }
    }

    /// Returns whether children are recognised by their process numbers alone.
    pub fn is_told_by_pid(&self) -> bool {
        self.by_pid.load(Ordering::Relaxed) != 0
    }

    /// Has `thread` passed to the destructor when the calling thread ends; returns false if this is
    /// not possible.
    pub fn at_end_of_thread(&self, thread: *const c_void) -> bool {
        let key = self.key.load(Ordering::Relaxed);
        // SAFETY: a key of ours.
        key != NO_KEY && unsafe { libc::pthread_setspecific(key, thread) } == 0
    }

    /// Returns the record of what this copy of the crate has mapped.
    pub fn instance(&self) -> &'static Instance {
        self.pages.instance()
    }

    pub fn count_lost(&self) {
        self.field_u64(control::OFF_LOST_NO_RING)
            .fetch_add(1, Ordering::Relaxed);
    }

    /// Calls `f` with the path of a file in the session directory, without
    /// allocating (a signal handler may be the caller).
    pub fn with_path<R>(&self, name: &str, f: impl FnOnce(&CStr) -> R) -> Option<R> {
        let mut buffer = [0u8; 320];
        let mut used = 0;
        let mut put = |bytes: &[u8]| -> Option<()> {
            buffer
                .get_mut(used..used + bytes.len())?
                .copy_from_slice(bytes);
            used += bytes.len();
            Some(())
        };
        match &self.location {
            Location::Dir(dir) => put(dir.as_bytes())?,
            Location::AttachPage(attach_page) => {
                put(attach_page.dir(&mut [0; attach_page::MAX_DIR_BYTES])?)?
            }
        }
        put(b"/")?;
        put(name.as_bytes())?;
        put(&[0])?;
        CStr::from_bytes_until_nul(&buffer).ok().map(f)
    }
}

pub fn map(length: usize, protection: i32, flags: i32, fd: i32) -> Option<*mut u8> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let at = unsafe { libc::mmap(null_mut(), length, protection, flags, fd, 0) };
    (at != libc::MAP_FAILED).then_some(at.cast())
}

/// Runs when the program is loaded, so that a recorder finds an attach page before the first event.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = {
    extern "C" fn at_start() {
        session();
    }
    at_start
};

/// Runs when the library is unloaded, or the program ends.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = {
    extern "C" fn at_end() {
        if let Some(session) = current() {
            let key = session.key.swap(NO_KEY, Ordering::Relaxed);
            if key != NO_KEY {
                // SAFETY: made by us; that of a library which is gone would call
                // what is gone.
                unsafe { libc::pthread_key_delete(key) };
            }
            if let Some(attach_page) = session.attach_page() {
                attach_page.close();
            }
            session.pages.leave();
        }
    }
    at_end
};
