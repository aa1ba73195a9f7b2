//! A ring's file, as the collector has it mapped.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use rustix::mm::ProtFlags;
use undertick_ring::Mapped;
use undertick_ring::layout::{self, SEGMENT_BYTES, cell, ring};

use crate::TraceError;
use crate::session::{map, map_as};

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
    /// Its path, to be removed when the ring is finished.
    pub path: PathBuf,
    /// Ring number, from the file's name (the content is not trusted).
    pub number: u32,
    /// Process and thread, as the ring says.
    pub pid: i32,
    /// See `pid`.
    pub tid: i32,
    prepared: u32,
}

// SAFETY: accessed through atomics only.
unsafe impl Send for RingMap {}

impl RingMap {
    /// Opens ring `number` of the session, a file of `owner`'s; `None` if it is not
    /// there or not complete yet.
    ///
    /// # Errors
    /// It is there and is no ring.
    pub fn open(dir: &Path, number: u32, owner: u32) -> Result<Option<Self>, TraceError> {
        Self::open_as(dir, number, owner, Access::Collector)
    }

    /// As [`Self::open`], to look only: the mapping cannot be written to.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn look(dir: &Path, number: u32, owner: u32) -> Result<Option<Self>, TraceError> {
        Self::open_as(dir, number, owner, Access::Looker)
    }

    fn open_as(
        dir: &Path,
        number: u32,
        owner: u32,
        access: Access,
    ) -> Result<Option<Self>, TraceError> {
        let path = dir.join(format!("{}{number:08x}", layout::RING_PREFIX));
        let is_ours = access == Access::Collector;
        let file = match OpenOptions::new()
            .read(true)
            .write(is_ours)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)
        {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(TraceError::io(&path, "cannot open")(e)),
        };
        let meta = file
            .metadata()
            .map_err(TraceError::io(&path, "cannot look at"))?;
        let segments = (meta.len() / SEGMENT_BYTES)
            .saturating_sub(1)
            .min(u64::from(layout::MAX_SEGMENTS)) as u32;
        if meta.uid() != owner || !meta.is_file() {
            return Err(TraceError::damaged(&path, "not a file of ours"));
        }
        if segments == 0 {
            return Ok(None);
        }
        let bytes = (segments as usize + 1) * SEGMENT_BYTES as usize;
        let mapped = match access {
            Access::Collector => map(&file, bytes),
            Access::Looker => map_as(&file, bytes, ProtFlags::READ),
        };
        let base = mapped.map_err(|e| TraceError::io(&path, "cannot map")(e.into()))?;
        // SAFETY: just mapped, of that size, page-aligned, unmapped on drop. Who only looks
        // calls nothing that writes: `snapshot` loads.
        let memory = unsafe { Mapped::new(base, segments) };
        let u32_of = |offset| memory.field_u32(offset).load(Ordering::Relaxed);
        if memory.field_u64(ring::OFF_MAGIC).load(Ordering::Acquire) != ring::MAGIC {
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
            path,
            number,
            pid,
            tid,
            prepared: 0,
        };
        if sound {
            Ok(Some(map))
        } else {
            Err(TraceError::damaged(&map.path, "its header is not a ring's"))
        }
    }

    /// The memory, for a [`undertick_ring::Reader`].
    #[must_use]
    pub const fn memory(&self) -> Mapped {
        self.memory
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

    /// Whether the thread said that it is done.
    #[must_use]
    pub fn closed(&self) -> bool {
        self.memory
            .field_u32(ring::OFF_STATE)
            .load(Ordering::Acquire)
            == ring::STATE_CLOSED
    }

    /// Keeps pages ready for the writer's next segments, so that growing costs
    /// it no page allocation: as many again as it uses, at most `limit`.
    pub fn prepare(&mut self, limit: u32) {
        let used = self.allocated();
        let target = used
            .saturating_mul(2)
            .min(limit)
            .min((self.bytes as u64 / SEGMENT_BYTES - 1) as u32);
        if used == 0 || self.prepared >= target {
            return;
        }
        let from = self.prepared.max(used);
        // A few at a time: the rings must not wait for it.
        let to = target.min(from + 8);
        if from < to {
            let offset = (u64::from(from) + 1) * SEGMENT_BYTES;
            let bytes = u64::from(to - from) * SEGMENT_BYTES;
            if rustix::fs::fallocate(
                &self.file,
                rustix::fs::FallocateFlags::empty(),
                offset,
                bytes,
            )
            .is_err()
            {
                return;
            }
        }
        self.prepared = to;
        self.memory
            .field_u32(ring::OFF_READY)
            .store(to, Ordering::Release);
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
        // SAFETY: mapped in `open`; the readers that borrow it are gone.
        let _ = unsafe { rustix::mm::munmap(self.memory.base().cast(), self.bytes) };
    }
}
