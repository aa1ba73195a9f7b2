//! How a ring comes to be: its file, its mapping, its segments.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, Ordering};

use undertick_ring::layout::{self, PIECE_BYTES, SEGMENT_BYTES, control, ring};
use undertick_ring::{Mapped, Overflow, Source};

use crate::giving_up::bytes_of;
use crate::process::Session;

/// Where a ring gets its segments from.
pub(crate) struct Supply {
    pub(crate) session: &'static Session,
    pub(crate) memory: Mapped,
    /// Of [`Made`].
    pub(crate) has_first: bool,
    /// How often it has waited for a recorder.
    pub(crate) waits: u32,
}

/// After so many waits, 10 ms or more, it is looked whether there is a recorder.
const LOOK_AFTER_WAITS: u32 = 200;

impl Source for Supply {
    fn take_segment(&mut self, segment: u32) -> u64 {
        let used = self.session.field_u32(control::OFF_SEGMENTS_USED);
        let budget = self
            .session
            .field_u32(control::OFF_BUDGET_SEGMENTS)
            .load(Ordering::Relaxed);
        let there = match used.fetch_add(1, Ordering::Relaxed) < budget {
            true => self.more_pages(segment, 0),
            false => 0,
        };
        if there > 0 {
            self.memory
                .field_u32(ring::OFF_ALLOCATED)
                .store(segment + 1, Ordering::Relaxed);
        } else {
            used.fetch_sub(1, Ordering::Relaxed);
        }
        there
    }

    /// An error instead of a SIGBUS where there are none. Where the collector has written
    /// them no system call is made, for which a sandbox may kill, and one load is enough: at a
    /// load the kernel maps the 64 KiB around it, at a store one page. Else so few that nobody
    /// waits for long: 16 KiB take some 10 us, a segment up to 70.
    fn more_pages(&mut self, segment: u32, from: u64) -> u64 {
        let is_written = segment
            < self
                .memory
                .field_u32(ring::OFF_READY)
                .load(Ordering::Acquire);
        let at = ((u64::from(segment) + 1) * SEGMENT_BYTES + from) as usize;
        if is_written {
            // SAFETY: in a segment of our own ring's mapping, which is in the file.
            unsafe { self.memory.base().add(at).read_volatile() };
            return (from | (SEGMENT_BYTES / 2 - 1)) + 1;
        }
        if segment == 0 && self.has_first {
            // Page faults here, and not one in every 256th record.
            for page in (at..at + PIECE_BYTES as usize).step_by(4096) {
                // SAFETY: as above; nothing has been written there.
                unsafe { self.memory.base().add(page).cast::<u64>().write_volatile(0) };
            }
            return from + PIECE_BYTES;
        }
        from + u64::from(self.populate(at, PIECE_BYTES as usize)) * PIECE_BYTES
    }

    /// Kernels that cannot populate rely on the collector, which takes the whole table with
    /// the first segment that it prepares.
    fn has_entry(&mut self, index: u32) -> bool {
        const OF_A_PAGE: u32 = 512;
        index == 0
            || !index.is_multiple_of(OF_A_PAGE)
            || self.populate(ring::OFF_USES + 8 * index as usize, 8)
            || self
                .memory
                .field_u32(ring::OFF_READY)
                .load(Ordering::Acquire)
                > 0
    }

    fn wait(&mut self) -> bool {
        if self
            .session
            .field_u32(control::OFF_COLLECTOR_ALIVE)
            .load(Ordering::Relaxed)
            == 0
        {
            return false;
        }
        let pause = libc::timespec {
            tv_sec: 0,
            tv_nsec: 50_000,
        };
        // SAFETY: a valid time; nanosleep is safe in signal handlers.
        unsafe { libc::nanosleep(&raw const pause, null_mut()) };
        self.waits = self.waits.wrapping_add(1);
        if self.waits.is_multiple_of(LOOK_AFTER_WAITS) {
            look_for_recorder(self.session);
        }
        true
    }
}

impl Supply {
    /// Takes the pages of these bytes of the ring's file; whether they are there. Kernels
    /// before 5.14 cannot.
    fn populate(&self, at: usize, bytes: usize) -> bool {
        // SAFETY: whole pages of our own ring's mapping; the call only returns a number.
        unsafe {
            let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
            let from = at - at % page;
            let start = self.memory.base().add(from).cast();
            libc::madvise(start, at + bytes - from, libc::MADV_POPULATE_WRITE) == 0
        }
    }
}

/// A recorder for which programs wait holds a lock, which the kernel takes back when it
/// is killed.
fn look_for_recorder(session: &Session) {
    session.with_path(layout::CONTROL_FILE, None, |path| {
        let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        // SAFETY: the path ends with zero, the descriptor is ours.
        unsafe {
            let fd = libc::open(path.as_ptr(), flags);
            if fd >= 0 {
                if libc::flock(fd, libc::LOCK_EX | libc::LOCK_NB) == 0 {
                    session
                        .field_u32(control::OFF_COLLECTOR_ALIVE)
                        .store(0, Ordering::Relaxed);
                }
                libc::close(fd);
            }
        }
    });
}

/// Bytes that a file of this process may have. Whoever asks for more gets a signal that
/// ends the program, so nobody does.
pub(crate) fn file_limit() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is valid for writing.
    match unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } {
        0 => limit.rlim_cur,
        _ => u64::MAX,
    }
}

/// A ring that is there.
pub(crate) struct Made {
    pub(crate) memory: Mapped,
    pub(crate) policy: Overflow,
    /// The file has the pages of the first segment.
    pub(crate) has_first: bool,
}

/// Makes the ring file and maps it.
pub(crate) fn make_ring(session: &Session, nested: bool) -> Option<Made> {
    let policy = Overflow::from_code(
        session
            .field_u32(control::OFF_OVERFLOW)
            .load(Ordering::Relaxed),
    )?;
    let limit = match policy {
        Overflow::Grow => control::OFF_BUDGET_SEGMENTS,
        _ => control::OFF_RING_SEGMENTS,
    };
    let segments = session
        .field_u32(limit)
        .load(Ordering::Relaxed)
        .min(layout::MAX_SEGMENTS);
    // The header, too.
    let fitting = file_limit() / SEGMENT_BYTES;
    let segments = u64::from(segments).min(fitting.saturating_sub(1)) as u32;
    if segments == 0 {
        return None;
    }
    let number = session
        .field_u32(control::OFF_NEXT_RING)
        .fetch_add(1, Ordering::Relaxed);
    session
        .with_path(layout::RING_PREFIX, Some(number), |path| {
            let flags =
                libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
            // SAFETY: the path ends with zero; the descriptor is ours.
            unsafe {
                let fd = libc::open(path.as_ptr(), flags, 0o600);
                if fd < 0 {
                    return None;
                }
                let base = map_ring(fd, segments);
                // A thread that goes into a sandbox may not ask for pages there: the first
                // segment is taken whole, and its pages are written by 16 KiB as it comes to
                // them. Not beyond the budget: threads that end faster than they are collected
                // would fill the file system.
                let field = |offset| session.field_u32(offset).load(Ordering::Relaxed);
                let is_within =
                    field(control::OFF_SEGMENTS_USED) < field(control::OFF_BUDGET_SEGMENTS);
                let (at, bytes) = (SEGMENT_BYTES as libc::off_t, SEGMENT_BYTES as libc::off_t);
                let has_first = is_within && libc::fallocate(fd, 0, at, bytes) == 0;
                libc::close(fd);
                if base.is_none() {
                    libc::unlink(path.as_ptr());
                }
                base.map(|base| {
                    let memory = Mapped::new(base, segments);
                    session.instance().note_ring(base, bytes_of(&memory));
                    (memory, has_first)
                })
            }
        })
        .flatten()
        .map(|(memory, has_first)| {
            let put = |offset, value: u32| memory.field_u32(offset).store(value, Ordering::Relaxed);
            put(ring::OFF_VERSION, layout::VERSION);
            put(ring::OFF_SEGMENT_BYTES, SEGMENT_BYTES as u32);
            put(ring::OFF_RING, number);
            put(ring::OFF_MAX_SEGMENTS, segments);
            // SAFETY: these calls only return numbers.
            unsafe {
                put(ring::OFF_PID, libc::getpid() as u32);
                put(ring::OFF_TID, libc::syscall(libc::SYS_gettid) as u32);
            }
            put(ring::OFF_PID_NAMESPACE, pid_namespace());
            put(ring::OFF_WRITER, 1);
            put(ring::OFF_SPAN_READINGS, ring::SPANS_WAIT);
            put(ring::OFF_NESTED, u32::from(nested));
            put(ring::OFF_STATE, ring::STATE_OPEN);
            memory
                .field_u64(ring::OFF_MAGIC)
                .store(ring::MAGIC, Ordering::Release);
            Made {
                memory,
                policy,
                has_first,
            }
        })
}

/// Inode number of this process's pid namespace, low half; 0: not asked for yet, or not known.
static PID_NAMESPACE: AtomicU32 = AtomicU32::new(0);

/// A child may be in another one.
pub(crate) fn forget_pid_namespace() {
    PID_NAMESPACE.store(0, Ordering::Relaxed);
}

/// So that the collector knows whether it may ask the kernel for us by our
/// numbers; 0 if that cannot be said.
fn pid_namespace() -> u32 {
    let known = PID_NAMESPACE.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: all zeros is a valid stat; the path ends with zero.
    let found = unsafe {
        let mut status: libc::stat = core::mem::zeroed();
        match libc::stat(c"/proc/self/ns/pid".as_ptr(), &raw mut status) {
            0 => status.st_ino as u32,
            _ => 0,
        }
    };
    PID_NAMESPACE.store(found, Ordering::Relaxed);
    found
}

/// Reserve, unlock (a program under mlockall must not lock it all), map,
/// aligned to the segment size.
unsafe fn map_ring(fd: i32, segments: u32) -> Option<*mut u8> {
    let align = SEGMENT_BYTES as usize;
    let bytes = (segments as usize + 1) * align;
    // SAFETY: a new reservation, of which the aligned part is replaced by the
    // file and the rest given back.
    unsafe {
        // The first pages of the header now, so that a full /dev/shm is an error here and no
        // SIGBUS later; those of the table of uses and of segments when each is needed.
        let header = ring::OFF_USES + 4096;
        if libc::ftruncate(fd, bytes as libc::off_t) != 0
            || libc::fallocate(fd, 0, 0, header as libc::off_t) != 0
        {
            return None;
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let area = libc::mmap(null_mut(), bytes + align, libc::PROT_NONE, flags, -1, 0);
        if area == libc::MAP_FAILED {
            return None;
        }
        let before = area.cast::<u8>().align_offset(align);
        let start = area.cast::<u8>().add(before);
        let flags = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE;
        libc::mmap(start.cast(), bytes, libc::PROT_NONE, flags, fd, 0);
        libc::munlock(start.cast(), bytes);
        libc::mprotect(start.cast(), bytes, libc::PROT_READ | libc::PROT_WRITE);
        libc::madvise(start.cast(), bytes, libc::MADV_DONTFORK);
        if before > 0 {
            libc::munmap(area, before);
        }
        if before < align {
            libc::munmap(start.add(bytes).cast(), align - before);
        }
        Some(start)
    }
}
