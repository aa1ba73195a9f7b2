//! The file in which all rings of a session lie, mapped by the recorder or read-only.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use rustix::fs::FallocateFlags;
use rustix::mm::{Advice, ProtFlags};
use undertick_format::TraceError;
use undertick_ring::Mapped;
use undertick_ring::layout::pool::{self, Queue, Shape};
use undertick_ring::layout::{self, SEGMENT_BYTES, cell, ring};
use undertick_ring::pool::MappedLine;

use crate::control_page::map_as;
use crate::cut_files::Watched;
use crate::session_dir::SessionDir;

/// `fcntl` command that sets the signal for a lease being broken; the same on all machines.
const F_SETSIG: libc::c_int = 10;

/// The mapped file of a session's rings.
#[derive(Debug)]
pub struct PoolMap {
    base: *mut u8,
    shape: Shape,
    file: File,
    /// The program can truncate the file.
    cut: Watched,
    may_write: bool,
}

// SAFETY: the mapping is accessed through atomics only.
unsafe impl Send for PoolMap {}
// SAFETY: as above.
unsafe impl Sync for PoolMap {}

impl PoolMap {
    /// Makes the file of a session, with nothing in its queues.
    ///
    /// # Errors
    /// It cannot be made, or mapped.
    pub fn make(dir: &SessionDir, shape: Shape) -> Result<Self, TraceError> {
        let path = dir.path().join(layout::POOL_FILE);
        let file = dir.create(layout::POOL_FILE)?;
        file.set_len(shape.bytes())
            .map_err(TraceError::io(&path, "cannot set its size"))?;
        let map = Self::map(dir, file, shape, true)?;
        // The queues and the pages that programs read: nothing may touch a page that does not
        // exist yet.
        if !map.populate(0, shape.heads_at()) {
            let full = rustix::io::Errno::NOSPC.into();
            return Err(TraceError::io(&path, "cannot write")(full));
        }
        for (offset, value) in [
            (pool::OFF_VERSION, layout::VERSION),
            (pool::OFF_HEADS, shape.heads),
            (pool::OFF_SEGMENTS, shape.segments),
        ] {
            map.field(offset).store(value, Ordering::Relaxed);
        }
        Ok(map)
    }

    /// Allows programs to use it from here on.
    pub fn open_to_programs(&self) {
        let (low, high) = (pool::MAGIC as u32, (pool::MAGIC >> 32) as u32);
        self.field(pool::OFF_MAGIC + 4)
            .store(high, Ordering::Relaxed);
        self.field(pool::OFF_MAGIC).store(low, Ordering::Release);
    }

    /// Opens the file of a session that another recorder made, read-only or to resume the
    /// session.
    ///
    /// # Errors
    /// It does not exist, or is not a pool of this version.
    pub fn open(dir: &SessionDir, may_write: bool) -> Result<Self, TraceError> {
        let path = dir.path().join(layout::POOL_FILE);
        let damaged = |why| TraceError::damaged(&path, why);
        let owner = dir.owner().unwrap_or(u32::MAX);
        let file = (dir.file(layout::POOL_FILE, owner)?).ok_or_else(|| damaged("it is gone"))?;
        let mut head = [0; 24];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut head, 0).map_err(
            |error| match error.kind() {
                std::io::ErrorKind::UnexpectedEof => damaged("cut short"),
                _ => TraceError::io(&path, "cannot read")(error),
            },
        )?;
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let magic = u64::from_le_bytes(head[..8].try_into().expect("eight bytes"));
        let shape = Shape::new(word(pool::OFF_HEADS), word(pool::OFF_SEGMENTS));
        let bytes = file
            .metadata()
            .map_err(TraceError::io(&path, "cannot look at"))?
            .len();
        if magic == pool::MAGIC && word(pool::OFF_VERSION) != layout::VERSION {
            return Err(TraceError::other_version(&path));
        }
        let shape = shape.filter(|shape| magic == pool::MAGIC && shape.bytes() == bytes);
        let shape = shape.ok_or_else(|| damaged("not a pool of rings"))?;
        Self::map(dir, file, shape, may_write)
    }

    fn map(
        dir: &SessionDir,
        file: File,
        shape: Shape,
        may_write: bool,
    ) -> Result<Self, TraceError> {
        let allowed = match may_write {
            true => ProtFlags::READ | ProtFlags::WRITE,
            false => ProtFlags::READ,
        };
        let path = dir.path().join(layout::POOL_FILE);
        let bytes = shape.bytes() as usize;
        let base = map_as(&file, bytes, allowed).map_err(|error| match error {
            rustix::io::Errno::NOMEM => TraceError::Recording(format!(
                "{}: cannot map {} MiB, more than this process may have (ulimit -v): give less with --budget",
                path.display(),
                bytes >> 20
            )),
            error => TraceError::io(&path, "cannot map")(error.into()),
        })?;
        // SAFETY: just mapped, of that size, unmapped on drop.
        let cut = unsafe { Watched::new(base, bytes) };
        Ok(Self {
            base,
            shape,
            file,
            cut,
            may_write,
        })
    }

    /// How many heads and segments it has.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// Its file.
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Whether the program truncated the file, and zeros were read in place of its content.
    pub fn is_cut(&self) -> bool {
        self.cut.is_cut()
    }

    /// Whether no process but this one has the file open or mapped. Then all writers of its rings
    /// are gone, whatever the rings say, and in whatever namespace they were. The kernel shows it
    /// by granting a lease, which is released at once.
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

    /// A 32-bit field of the first page.
    pub fn field(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset < pool::OFF_QUEUES);
        // SAFETY: within the first page, aligned.
        unsafe { AtomicU32::from_ptr(self.base.add(offset).cast()) }
    }

    /// Returns a queue; putting in and taking out need a writable mapping.
    pub fn line(&self, queue: Queue) -> MappedLine {
        // SAFETY: mapped, of that shape; whoever has the line has the map.
        unsafe { MappedLine::new(self.base, self.shape, queue) }
    }

    /// The flag that tells programs whether all pages of a segment are written.
    pub fn written(&self, segment: u32) -> &AtomicU8 {
        assert!(segment < self.shape.segments);
        // SAFETY: a byte for each segment.
        unsafe { AtomicU8::from_ptr(self.base.add(self.shape.written_at() + segment as usize)) }
    }

    /// The ring at a head, of at most `max_segments` segments.
    pub fn ring(&self, head: u32, max_segments: u32) -> Mapped {
        let first = self.shape.segments_at() as usize;
        // SAFETY: both lie in the mapping, which outlives the ring's users; `max_segments` is
        // bounded. A map that is only to look at is asked for nothing that writes.
        unsafe {
            Mapped::new(
                self.base.add(self.head_at(head) as usize),
                self.base.add(first),
                self.shape.segments,
                max_segments.min(layout::MAX_SEGMENTS),
            )
        }
    }

    /// Whether a ring was made at a head. This reads the file: reading a missing page through its
    /// mapping would make one.
    pub fn has_ring(&self, head: u32) -> bool {
        let mut magic = [0; 8];
        let at = self.head_at(head) + ring::OFF_MAGIC as u64;
        std::os::unix::fs::FileExt::read_exact_at(&self.file, &mut magic, at).is_ok()
            && u64::from_le_bytes(magic) == ring::MAGIC
    }

    /// Offset of a head in the file.
    fn head_at(&self, head: u32) -> u64 {
        assert!(head < self.shape.heads);
        self.shape.heads_at() + u64::from(head) * ring::HEAD_BYTES
    }

    fn segment_at(&self, segment: u32) -> u64 {
        assert!(segment < self.shape.segments);
        self.shape.segments_at() + u64::from(segment) * SEGMENT_BYTES
    }

    /// Writes the first pages of a head; returns whether they exist.
    pub fn populate_head(&self, head: u32) -> bool {
        self.populate(self.head_at(head), ring::READY_BYTES)
    }

    /// Writes the pages of a ring's whole table of uses.
    pub fn populate_table(&self, head: u32) -> bool {
        let bytes = (ring::OFF_CELL_TABLE - ring::OFF_USES) as u64;
        self.populate(self.head_at(head) + ring::OFF_USES as u64, bytes)
    }

    /// Writes the pages of a segment and keeps their content; returns whether they exist.
    pub fn populate_segment(&self, segment: u32) -> bool {
        self.populate(self.segment_at(segment), SEGMENT_BYTES)
    }

    /// Writes pages, if the kernel can do that without a signal where there is no room (5.14).
    /// Pages written this way are mapped many at a time when a program accesses them.
    fn populate(&self, at: u64, bytes: u64) -> bool {
        assert!(self.may_write);
        // SAFETY: of this mapping, whose bytes stay what they are.
        let written = unsafe {
            let start = self.base.add(at as usize).cast();
            rustix::mm::madvise(start, bytes as usize, Advice::LinuxPopulateWrite)
        };
        match written {
            Err(rustix::io::Errno::INVAL) => {
                rustix::fs::fallocate(&self.file, FallocateFlags::empty(), at, bytes).is_ok()
            }
            written => written.is_ok(),
        }
    }

    /// Releases the memory of a head; it reads as zeros.
    pub fn empty_head(&self, head: u32) {
        self.punch(self.head_at(head), ring::HEAD_BYTES);
    }

    /// Releases the memory of a head, except that of its first pages.
    pub fn empty_table(&self, head: u32) {
        let at = self.head_at(head) + ring::READY_BYTES;
        self.punch(at, ring::HEAD_BYTES - ring::READY_BYTES);
    }

    /// The first `uses` entries of the table of uses at a head, from the file.
    pub fn table_of_uses(&self, head: u32, uses: u32) -> Vec<u64> {
        let mut bytes = vec![0; 8 * uses as usize];
        let at = self.head_at(head) + ring::OFF_USES as u64;
        let _ = std::os::unix::fs::FileExt::read_exact_at(&self.file, &mut bytes, at);
        let (words, _) = bytes.as_chunks();
        words.iter().map(|word| u64::from_le_bytes(*word)).collect()
    }

    /// See [`Self::empty_head`].
    pub fn empty_segment(&self, segment: u32) {
        self.punch(self.segment_at(segment), SEGMENT_BYTES);
    }

    /// Releases the memory, which programs that continue to run still have mapped. A sampled span
    /// reads its cell before anything else, so the pages of cells stay.
    pub fn empty(&self) {
        let mut from = 0;
        for head in 0..self.shape.heads {
            if !self.has_ring(head) || !self.has_cells(head) {
                continue;
            }
            let at = self.head_at(head) + ring::OFF_CELL_TABLE as u64;
            self.punch(from, at - from);
            from = self.head_at(head) + ring::HEAD_BYTES;
        }
        self.punch(from, self.shape.bytes() - from);
    }

    fn has_cells(&self, head: u32) -> bool {
        let mut cells = [0; 4];
        let at = self.head_at(head) + ring::OFF_CELLS as u64;
        std::os::unix::fs::FileExt::read_exact_at(&self.file, &mut cells, at).is_ok()
            && u32::from_le_bytes(cells) == cell::CELLS as u32
    }

    fn punch(&self, at: u64, bytes: u64) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = rustix::fs::fallocate(&self.file, flags, at, bytes);
    }
}

impl Drop for PoolMap {
    fn drop(&mut self) {
        self.cut.end();
        // SAFETY: mapped in `of`; whoever has something of it has the map, too.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), self.shape.bytes() as usize) };
    }
}
