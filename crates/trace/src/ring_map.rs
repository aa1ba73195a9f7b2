//! A ring's file, as the collector has it mapped.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

use rustix::mm::{Advice, ProtFlags};
use undertick_ring::layout::{self, SEGMENT_BYTES, cell, ring};
use undertick_ring::{Mapped, Memory};

use crate::TraceError;
use crate::control_page::{map, map_as};
use crate::cut_files::Watched;
use crate::session_dir::SessionDir;

/// `fcntl`: the signal that says that a lease is being broken; the same on all machines.
const F_SETSIG: libc::c_int = 10;

/// A thread that has written less than this, bytes, may write no more: nothing is prepared.
const FEW_BYTES: u64 = 4096;

/// A thread that took more segments than this since the last time, about a millisecond ago, takes
/// them faster than they can be prepared: to try would only keep it from its CPU.
const TOO_FAST: u32 = 8;

/// Who maps a ring.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Collector,
    Looker,
}

/// A ring file as the collector has it mapped.
pub struct RingMap {
    memory: Mapped,
    bytes: usize,
    file: File,
    /// Its file's name in the session directory, to be removed when the ring is finished.
    pub name: String,
    /// Ring number, from the file's name (the content is not trusted).
    pub number: u32,
    /// Process and thread, as the ring says.
    pub pid: i32,
    /// See `pid`.
    pub tid: i32,
    prepared: u32,
    taken: u32,
    /// Segments that the writer had when some were prepared last.
    seen: u32,
    cut: Watched,
}

// SAFETY: accessed through atomics only.
unsafe impl Send for RingMap {}

impl RingMap {
    /// Opens ring `number` of the session, a file of `owner`'s; `None` if it is not
    /// there or not complete yet.
    ///
    /// # Errors
    /// It is there and is no ring.
    pub fn open(dir: &SessionDir, number: u32, owner: u32) -> Result<Option<Self>, TraceError> {
        Self::open_as(dir, number, owner, Access::Collector)
    }

    /// As [`Self::open`], to look only: the mapping cannot be written to.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn look(
        dir: &SessionDir,
        number: u32,
        owner: u32,
    ) -> Result<Option<Self>, TraceError> {
        Self::open_as(dir, number, owner, Access::Looker)
    }

    fn open_as(
        dir: &SessionDir,
        number: u32,
        owner: u32,
        access: Access,
    ) -> Result<Option<Self>, TraceError> {
        let name = format!("{}{number:08x}", layout::RING_PREFIX);
        let Some(file) = dir.file(&name, owner)? else {
            return Ok(None);
        };
        let path = || dir.path().join(&name);
        let length = file
            .metadata()
            .map_err(TraceError::io(&path(), "cannot look at"))?
            .len();
        let segments = (length / SEGMENT_BYTES)
            .saturating_sub(1)
            .min(u64::from(layout::MAX_SEGMENTS)) as u32;
        if segments == 0 {
            return Ok(None);
        }
        let bytes = (segments as usize + 1) * SEGMENT_BYTES as usize;
        let mapped = match access {
            Access::Collector => map(&file, bytes),
            Access::Looker => map_as(&file, bytes, ProtFlags::READ),
        };
        let base = mapped.map_err(|e| TraceError::io(&path(), "cannot map")(e.into()))?;
        // SAFETY: just mapped, of that size, page-aligned, unmapped on drop. Who only looks
        // calls nothing that writes: `snapshot` loads.
        let (memory, cut) = unsafe { (Mapped::new(base, segments), Watched::new(base, bytes)) };
        let u32_of = |offset| memory.field_u32(offset).load(Ordering::Relaxed);
        if memory.field_u64(ring::OFF_MAGIC).load(Ordering::Acquire) != ring::MAGIC {
            cut.end();
            // SAFETY: mapped above, not used any more.
            let _ = unsafe { rustix::mm::munmap(base.cast(), bytes) };
            return Ok(None);
        }
        let sound = u32_of(ring::OFF_VERSION) == layout::VERSION
            && u32_of(ring::OFF_MAX_SEGMENTS) == segments;
        let (pid, tid) = (u32_of(ring::OFF_PID) as i32, u32_of(ring::OFF_TID) as i32);
        let map = Self {
            memory,
            bytes,
            file,
            name,
            number,
            pid,
            tid,
            prepared: 0,
            taken: 0,
            seen: 0,
            cut,
        };
        if sound {
            Ok(Some(map))
        } else {
            let path = dir.path().join(&map.name);
            Err(TraceError::damaged(&path, "its header is not a ring's"))
        }
    }

    /// The memory, for a [`undertick_ring::Reader`].
    #[must_use]
    pub const fn memory(&self) -> Mapped {
        self.memory
    }

    /// Whether the program cut the file short, and zeros were read in its place.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut.is_cut()
    }

    /// Events the writer dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.memory
            .field_u64(ring::OFF_DROPPED)
            .load(Ordering::Relaxed)
    }

    /// Segments the writer took.
    #[must_use]
    pub fn allocated(&self) -> u32 {
        self.memory
            .field_u32(ring::OFF_ALLOCATED)
            .load(Ordering::Relaxed)
            .min(layout::MAX_SEGMENTS)
    }

    /// Whether the thread is gone without having said so (killed, `_exit`).
    /// Only where its numbers mean the same to us.
    #[must_use]
    pub fn writer_is_gone(&self, our_namespace: u32) -> bool {
        let theirs = self
            .memory
            .field_u32(ring::OFF_PID_NAMESPACE)
            .load(Ordering::Relaxed);
        if our_namespace == 0 || theirs != our_namespace || self.pid <= 0 || self.tid <= 0 {
            return false;
        }
        // SAFETY: signal 0 only asks.
        let answer = unsafe { libc::syscall(libc::SYS_tgkill, self.pid, self.tid, 0) };
        answer != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
    }

    /// Whether no process but this one has the file open or mapped: then its thread is
    /// gone, whatever the ring says of it, and in whatever namespace it was. The kernel
    /// tells by granting a lease, which is given back at once.
    #[must_use]
    pub fn nobody_else_has_it(&self) -> bool {
        let fd = self.file.as_raw_fd();
        // SAFETY: calls on a descriptor that is ours. The signal of a lease that is broken in
        // between is one that is ignored unless asked for.
        unsafe {
            libc::fcntl(fd, F_SETSIG, libc::SIGURG);
            let granted = libc::fcntl(fd, libc::F_SETLEASE, libc::F_WRLCK) == 0;
            if granted {
                libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK);
            }
            granted
        }
    }

    /// Whether the readings of its spans wait for all earlier instructions.
    #[must_use]
    pub fn spans_wait(&self) -> bool {
        self.memory
            .field_u32(ring::OFF_SPAN_READINGS)
            .load(Ordering::Relaxed)
            == ring::SPANS_WAIT
    }

    /// Whether the thread said that it is done.
    #[must_use]
    pub fn closed(&self) -> bool {
        self.memory
            .field_u32(ring::OFF_STATE)
            .load(Ordering::Acquire)
            == ring::STATE_CLOSED
    }

    /// Whether the thread is in a sandbox (seccomp), which may kill it for the system call
    /// that gets pages. False where its numbers mean nothing to us.
    pub(crate) fn is_in_sandbox(&self, our_namespace: u32) -> bool {
        let theirs = self
            .memory
            .field_u32(ring::OFF_PID_NAMESPACE)
            .load(Ordering::Relaxed);
        if our_namespace == 0 || theirs != our_namespace {
            return false;
        }
        let status = format!("/proc/{}/task/{}/status", self.pid, self.tid);
        std::fs::read_to_string(status).is_ok_and(|status| {
            (status.lines())
                .filter_map(|line| line.strip_prefix("Seccomp:"))
                .any(|mode| mode.trim() != "0")
        })
    }

    /// Keeps pages ready for the writer's next segments, so that growing costs
    /// it no page allocation: as many again as it uses and `first`, at most `limit`, and at
    /// most `most` more. How many more these are now.
    pub fn prepare(&mut self, first: u32, limit: u32, most: u32) -> u32 {
        let last = (self.bytes as u64 / SEGMENT_BYTES - 1) as u32;
        let grown = self.allocated().saturating_sub(self.seen);
        self.seen += grown;
        let writes_little = self.memory.load_head(Ordering::Relaxed) < FEW_BYTES;
        // Those that are wanted first are for threads that may not take any.
        if first == 0 && (grown > TOO_FAST || writes_little) {
            return 0;
        }
        let mut more = 0;
        while more < most {
            // It may have taken some since.
            let used = self.allocated();
            let target = used.saturating_mul(2).max(first).min(limit).min(last);
            // The one in use, too: of that the writer has taken only what it came to, and it
            // believes that all of it is there once a later one is said to be.
            let segment = self.prepared.max(used.saturating_sub(1));
            let has_table = || self.prepared > 0 || self.get_table();
            if segment >= target || !has_table() || !self.get_pages(segment) {
                break;
            }
            more += 1;
            self.prepared = segment + 1;
            self.memory
                .field_u32(ring::OFF_READY)
                .store(self.prepared, Ordering::Release);
        }
        self.taken += more;
        more
    }

    /// Has pages in the file for the whole table of uses, of which the writer takes one at a
    /// time; whether they are there.
    fn get_table(&self) -> bool {
        let segments = self.bytes as u64 / SEGMENT_BYTES - 1;
        let none = rustix::fs::FallocateFlags::empty();
        let bytes = ring::OFF_USES as u64 + 8 * segments;
        rustix::fs::fallocate(&self.file, none, 0, bytes).is_ok()
    }

    /// Has pages in the file for a segment; whether they are there. Written ones, if the
    /// kernel can do that without a signal where there is no room (5.14): only these are mapped
    /// many at a time when the writer looks at them.
    fn get_pages(&self, segment: u32) -> bool {
        let offset = (u64::from(segment) + 1) * SEGMENT_BYTES;
        // SAFETY: a segment of this mapping, whose bytes stay what they are.
        let written = unsafe {
            let start = self.memory.base().add(offset as usize);
            rustix::mm::madvise(
                start.cast(),
                SEGMENT_BYTES as usize,
                Advice::LinuxPopulateWrite,
            )
        };
        let none = rustix::fs::FallocateFlags::empty();
        match written {
            Err(rustix::io::Errno::INVAL) => {
                rustix::fs::fallocate(&self.file, none, offset, SEGMENT_BYTES).is_ok()
            }
            written => written.is_ok(),
        }
    }

    /// Segments for which [`Self::prepare`] has taken memory.
    #[must_use]
    pub const fn memory_taken(&self) -> u32 {
        self.taken
    }
}

impl RingMap {
    /// No event has a cell any more, which a sampled span looks at before it asks
    /// whether anything is recorded; false if there are none.
    pub(crate) fn unclaim_cells(&self) -> bool {
        let there = self.memory.field_u32(ring::OFF_CELLS);
        if there.load(Ordering::Acquire) != cell::CELLS as u32 {
            return false;
        }
        for place in 0..cell::CELLS {
            let at = ring::OFF_CELL_TABLE + place * cell::BYTES + cell::OFF_STATE;
            self.memory.field_u32(at).store(0, Ordering::Relaxed);
        }
        true
    }

    /// The program runs on and has the ring mapped still: takes its memory away,
    /// after the last look at it, but for the cells' pages, which stay until the
    /// thread's next sampled span.
    pub(crate) fn give_back_memory(&self) {
        let bytes = self.bytes as u64;
        let (cells, after) = if self.unclaim_cells() {
            let first = ring::OFF_CELL_TABLE as u64;
            (first, first + (cell::CELLS * cell::BYTES) as u64)
        } else {
            (bytes, bytes)
        };
        let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        for (from, to) in [(0, cells), (after, bytes)] {
            if from < to {
                let _ = rustix::fs::fallocate(&self.file, flags, from, to - from);
            }
        }
    }
}

impl Drop for RingMap {
    fn drop(&mut self) {
        self.cut.end();
        // SAFETY: mapped in `open`; the readers that borrow it are gone.
        let _ = unsafe { rustix::mm::munmap(self.memory.base().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use rustix::fs::SeekFrom;

    use super::*;

    const SEGMENTS: u64 = 8;

    /// A ring whose writer is in the middle of its third segment, of which it has taken 16 KiB.
    fn ring(dir: &SessionDir) -> (File, RingMap) {
        let file = dir.create("ring-00000000").unwrap();
        file.set_len((SEGMENTS + 1) * SEGMENT_BYTES).unwrap();
        let put = |at: usize, value: u32| {
            file.write_all_at(&value.to_le_bytes(), at as u64).unwrap();
        };
        put(ring::OFF_VERSION, layout::VERSION);
        put(ring::OFF_MAX_SEGMENTS, SEGMENTS as u32);
        put(ring::OFF_ALLOCATED, 3);
        let written = 2 * SEGMENT_BYTES + layout::PIECE_BYTES;
        let records = vec![1; written as usize];
        file.write_all_at(&records, SEGMENT_BYTES).unwrap();
        let head = written.to_le_bytes();
        file.write_all_at(&head, ring::OFF_HEAD as u64).unwrap();
        let magic = ring::MAGIC.to_le_bytes();
        file.write_all_at(&magic, ring::OFF_MAGIC as u64).unwrap();
        let owner = rustix::process::getuid().as_raw();
        let map = RingMap::open(dir, 0, owner).unwrap().unwrap();
        (file, map)
    }

    /// Whether the file has all pages of a segment.
    fn is_whole(file: &File, segment: u64) -> bool {
        let begin = (segment + 1) * SEGMENT_BYTES;
        let hole = rustix::fs::seek(file, SeekFrom::Hole(begin)).unwrap();
        hole >= begin + SEGMENT_BYTES
    }

    /// The writer believes that the pages of its segment are there once a later one's are said
    /// to be: so they are, and all that is said is.
    #[test]
    fn what_is_said_to_be_there_is() {
        let parent = tempfile::tempdir().unwrap();
        let dir = SessionDir::make(parent.path()).unwrap();
        let (file, mut map) = ring(&dir);
        // Three at once are not too fast, and are as many again as there are.
        assert_eq!(map.prepare(0, u32::MAX, 100), 4);
        let memory = map.memory;
        let ready = memory.field_u32(ring::OFF_READY);
        assert_eq!(ready.load(Ordering::Acquire), 6);
        for segment in 0..6 {
            assert!(is_whole(&file, segment), "{segment}");
        }
        assert!(!is_whole(&file, 6));
        assert_eq!(map.memory_taken(), 4);
        // Bytes that were there are still.
        let mut byte = [0];
        file.read_exact_at(&mut byte, 3 * SEGMENT_BYTES).unwrap();
        assert_eq!(byte, [1]);
    }

    /// Nothing for a thread that has hardly written, or runs ahead; as much as is asked for
    /// first, and as may be, in any case.
    #[test]
    fn who_gets_pages() {
        let parent = tempfile::tempdir().unwrap();
        let dir = SessionDir::make(parent.path()).unwrap();
        let (_file, mut map) = ring(&dir);
        let memory = map.memory;
        let far = memory.load_head(Ordering::Relaxed);
        memory.store_head(FEW_BYTES - 16, Ordering::Relaxed);
        assert_eq!(map.prepare(0, u32::MAX, 100), 0);
        memory.store_head(far, Ordering::Relaxed);
        map.seen = 0;
        let allocated = memory.field_u32(ring::OFF_ALLOCATED);
        allocated.store(TOO_FAST + 1, Ordering::Relaxed);
        assert_eq!(map.prepare(0, u32::MAX, 100), 0);
        allocated.store(3, Ordering::Relaxed);
        map.seen = 0;
        assert_eq!(map.prepare(0, u32::MAX, 2), 2);
        assert_eq!(map.prepare(0, 5, 100), 1);
        assert_eq!(map.prepare(7, u32::MAX, 100), 2);
        assert_eq!(map.prepare(7, u32::MAX, 100), 0);
        // Never more than the file has.
        assert_eq!(map.prepare(100, u32::MAX, 100), 1);
    }
}
