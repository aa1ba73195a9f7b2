//! How a ring gets its segments.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, Ordering};

use undertick_ring::layout::{self, PIECE_BYTES, SEGMENT_BYTES, control, ring};
use undertick_ring::{Mapped, Memory, Source};

use crate::clock;
use crate::pool::Pool;
use crate::process::Session;

/// The source of a ring's segments.
pub(crate) struct Supply {
    pub(crate) session: &'static Session,
    pub(crate) memory: Mapped,
    pub(crate) pool: &'static Pool,
    /// Whether the ring has no segment yet.
    pub(crate) is_first: bool,
    /// A segment that was taken but got no pages.
    pub(crate) spare: Option<u32>,
    /// Index of the next use in the table.
    pub(crate) index: u32,
    /// Number of times that it has waited for a recorder.
    pub(crate) waits: u32,
}

/// Number of waits, 10 ms or more, after which it checks whether there is a recorder.
const LOOK_AFTER_WAITS: u32 = 200;

impl Source for Supply {
    /// The segment is noted at once as the next use's, so that its owner is known.
    fn take_segment(&mut self) -> Option<(u32, u64)> {
        let segment = self.spare.take().or_else(|| self.pool.take_segment())?;
        self.memory.store_use(self.index, ring::use_of(segment, 0));
        let there = self.more_pages(segment, 0);
        if there == 0 {
            self.spare = Some(segment);
            return None;
        }
        self.is_first = false;
        Some((segment, there))
    }

    /// Gets pages, with an error instead of a SIGBUS where there are none. Where the collector has
    /// written the pages no system call is made, for which a sandbox may kill. One load is then
    /// enough: at a load the kernel maps the 64 KiB around it, at a store one page. Otherwise it
    /// gets so few that no thread waits for long: 16 KiB take some 10 us, a segment up to 70. It
    /// gets all pages of a ring's first segment, because a thread that enters a sandbox may not
    /// request them there.
    fn more_pages(&mut self, segment: u32, from: u64) -> u64 {
        let at = self.memory.segment(segment).wrapping_add(from as usize);
        if self.pool.is_written(segment) {
            // SAFETY: in a segment of our own ring, which is in the file.
            unsafe { at.read_volatile() };
            return (from | (SEGMENT_BYTES / 2 - 1)) + 1;
        }
        let bytes = if self.is_first {
            SEGMENT_BYTES
        } else {
            PIECE_BYTES
        };
        let got = self.pool.populate(self.session, at, bytes as usize);
        from + u64::from(got) * bytes
    }

    fn has_entry(&mut self, index: u32) -> bool {
        const OF_A_PAGE: u32 = 512;
        self.index = index;
        let has_table = self.memory.field_u32(ring::OFF_HAS_TABLE);
        index == 0 || index % OF_A_PAGE != 0 || has_table.load(Ordering::Acquire) != 0 || {
            let at = ring::OFF_USES + 8 * index as usize;
            let at = self.memory.head().wrapping_add(at);
            self.pool.populate(self.session, at, 8)
        }
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
        if self.waits % LOOK_AFTER_WAITS == 0 {
            look_for_recorder(self.session);
        }
        true
    }

    /// Takes a sample of the read cost here and now: neighbours and the core's frequency change it
    /// while a program runs. A sample that was interrupted, three times the smallest, does not
    /// count.
    fn found(&mut self) {
        let [samples, least] = [ring::OFF_READ_COST_SAMPLES, ring::OFF_READ_COST_LEAST]
            .map(|field| self.memory.field_u32(field));
        let sums = [ring::OFF_READ_COST_TICKS, ring::OFF_READ_COST_SQUARES]
            .map(|field| self.memory.field_u64(field));
        let clock = self.session.clock();
        let mut ticks = clock::time_reads(clock);
        if samples.load(Ordering::Relaxed) == 0 {
            // There is no earlier sample to compare with.
            ticks = ticks.min(clock::time_reads(clock));
            least.store(ticks, Ordering::Relaxed);
        }
        if ticks < least.load(Ordering::Relaxed) / 3 {
            // All earlier samples were interrupted.
            samples.store(0, Ordering::Relaxed);
            sums.iter().for_each(|sum| sum.store(0, Ordering::Relaxed));
        }
        let shortest = ticks.min(least.load(Ordering::Relaxed));
        least.store(shortest, Ordering::Relaxed);
        if ticks / 3 > shortest {
            return;
        }
        let ticks = u64::from(ticks);
        for (sum, more) in sums.iter().zip([ticks, ticks * ticks]) {
            let more = sum.load(Ordering::Relaxed).wrapping_add(more);
            sum.store(more, Ordering::Relaxed);
        }
        let one_more = samples.load(Ordering::Relaxed).wrapping_add(1);
        samples.store(one_more, Ordering::Relaxed);
    }
}

/// Checks for a recorder. A recorder for which programs wait holds a lock, which the kernel
/// releases when the recorder is killed.
fn look_for_recorder(session: &Session) {
    session.with_path(layout::CONTROL_FILE, |path| {
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

/// Returns the maximum file size of this process, bytes. A program that exceeds it gets a signal
/// that ends it, so it is never exceeded.
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

/// Inode number of this process's pid namespace, low half; 0: not requested yet, or not known.
static PID_NAMESPACE: AtomicU32 = AtomicU32::new(0);

/// Forgets the namespace: a child may be in another one.
pub(crate) fn forget_pid_namespace() {
    PID_NAMESPACE.store(0, Ordering::Relaxed);
}

/// Returns the pid namespace, so that the collector knows whether it may query the kernel by our
/// process and thread numbers; 0 if it is unknown.
pub(crate) fn pid_namespace() -> u32 {
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
