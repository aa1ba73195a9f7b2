//! The TSC's rate as the kernel uses it, without privilege.
//!
//! A perf event that counts nothing (`PERF_COUNT_SW_DUMMY`, user mode only) has a page that user
//! space may map. Where the kernel's scheduler clock is the TSC, the page shows how TSC ticks
//! become nanoseconds: `ns = ticks * time_mult >> time_shift`. That is `tsc_khz`, which no other
//! unprivileged interface shows. It is absent on guests whose scheduler clock is the hypervisor's,
//! and where perf is not permitted.

use core::sync::atomic::{AtomicU32, Ordering, fence};

use undertick_units::TickRate;

/// `perf_event_attr` as of its first version (64 bytes), which every kernel takes.
#[repr(C)]
#[derive(Default)]
struct EventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

/// `PERF_TYPE_SOFTWARE`.
const KIND_SOFTWARE: u32 = 1;
/// `PERF_COUNT_SW_DUMMY`.
const CONFIG_DUMMY: u64 = 9;
/// `PERF_TYPE_HARDWARE`.
const KIND_HARDWARE: u32 = 0;
/// `PERF_COUNT_HW_CPU_CYCLES`.
const CONFIG_CYCLES: u64 = 0;
/// `exclude_kernel` (bit 5) and `exclude_hv` (bit 6): allowed without privilege.
const USER_MODE_ONLY: u64 = 1 << 5 | 1 << 6;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// Offsets in `perf_event_mmap_page`, fixed by the kernel's user interface.
const LOCK: usize = 8;
const INDEX: usize = 12;
const CAPABILITIES: usize = 40;
const TIME_SHIFT: usize = 50;
const TIME_MULT: usize = 52;

/// `cap_user_rdpmc`: user space may read the counter.
const CAP_USER_RDPMC: u64 = 1 << 2;
/// `cap_user_time`: the two fields below are valid.
const CAP_USER_TIME: u64 = 1 << 3;

/// Maximum number of tries to read the page while the kernel does not write it.
const MOST_TRIES: u32 = 100;

/// Nanoseconds = ticks * mult >> shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeConversion {
    pub mult: u32,
    pub shift: u16,
}

impl TimeConversion {
    /// Returns the ticks per second: `1e9 * 2^shift / mult`; `None` for numbers that no kernel
    /// writes.
    pub(crate) fn rate(self) -> Option<TickRate> {
        let numerator = 1_000_000_000_u128 << self.shift.min(64);
        TickRate::new(u64::try_from(numerator).ok()?, u64::from(self.mult)).ok()
    }
}

/// Returns the conversion that the kernel publishes, if it does.
pub(crate) fn time_conversion() -> Option<TimeConversion> {
    let event = Event::open(KIND_SOFTWARE, CONFIG_DUMMY)?;
    let page = Page::map(&event)?;
    page.time_conversion()
}

/// A perf event that counts this thread's cycles, and its page.
pub(crate) struct CyclesCounter {
    page: Page,
    _event: Event,
}

impl CyclesCounter {
    pub(crate) fn open() -> Option<Self> {
        let event = Event::open(KIND_HARDWARE, CONFIG_CYCLES)?;
        let page = Page::map(&event)?;
        Some(Self {
            page,
            _event: event,
        })
    }

    /// Returns the index for `rdpmc`; `None` where the kernel forbids it or the event is not on a
    /// counter now.
    pub(crate) fn user_index(&self) -> Option<u32> {
        let capabilities: u64 = self.page.field(CAPABILITIES);
        let index: u32 = self.page.field(INDEX);
        (capabilities & CAP_USER_RDPMC != 0)
            .then(|| index.checked_sub(1))
            .flatten()
    }
}

/// An open perf event; closed when dropped.
struct Event(libc::c_int);

impl Event {
    fn open(kind: u32, config: u64) -> Option<Self> {
        let attributes = EventAttributes {
            kind,
            size: size_of::<EventAttributes>() as u32,
            config,
            flags: USER_MODE_ONLY,
            ..EventAttributes::default()
        };
        let this_process: libc::pid_t = 0;
        let any_cpu: libc::c_int = -1;
        let no_group: libc::c_int = -1;
        // SAFETY: the kernel reads `size` bytes from the live `attributes` and
        // writes nothing.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                this_process,
                any_cpu,
                no_group,
                CLOSE_ON_EXEC,
            )
        };
        libc::c_int::try_from(fd)
            .ok()
            .filter(|fd| *fd >= 0)
            .map(Self)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours and closed once.
        unsafe { libc::close(self.0) };
    }
}

/// The event's first page, mapped for reading; unmapped when dropped.
struct Page {
    start: *const u8,
    len: usize,
}

impl Page {
    fn map(event: &Event) -> Option<Self> {
        // SAFETY: no pointers involved.
        let len = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                len,
                libc::PROT_READ,
                libc::MAP_SHARED,
                event.0,
                0,
            )
        };
        (start != libc::MAP_FAILED).then_some(Self {
            start: start.cast(),
            len,
        })
    }

    /// Reads the fields between two equal, even values of the page's sequence
    /// count (its writer is the kernel, on this CPU).
    fn time_conversion(&self) -> Option<TimeConversion> {
        // SAFETY: the page is mapped while `self` lives, the offset is inside it
        // and 4-byte aligned; the kernel writes this field atomically.
        let lock = unsafe { AtomicU32::from_ptr(self.start.add(LOCK).cast_mut().cast()) };
        for _ in 0..MOST_TRIES {
            let before = lock.load(Ordering::Acquire);
            let capabilities: u64 = self.field(CAPABILITIES);
            let shift: u16 = self.field(TIME_SHIFT);
            let mult: u32 = self.field(TIME_MULT);
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && lock.load(Ordering::Relaxed) == before {
                return (capabilities & CAP_USER_TIME != 0 && mult != 0)
                    .then_some(TimeConversion { mult, shift });
            }
        }
        None
    }

    fn field<T: Copy>(&self, offset: usize) -> T {
        debug_assert!(offset + size_of::<T>() <= self.len);
        // SAFETY: the offsets above are inside the page and aligned for their
        // types, which are plain integers; volatile because the kernel writes too.
        unsafe { self.start.add(offset).cast::<T>().read_volatile() }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.cast_mut().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests;
