//! The pool of a session, as this process has it mapped. The first thread that needs it maps it. It
//! stays until no ring of the process is in it and another session has come. The same as in
//! undertick.h.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use undertick_ring::layout::pool::{self, Queue, Shape};
use undertick_ring::layout::{self, SEGMENT_BYTES, control, ring};
use undertick_ring::pool::{MappedLine, take};
use undertick_ring::{Mapped, Overflow};

use crate::instance::PAGE_BYTES;
use crate::process::Session;

/// The data before the mapping of the file. An instance that was unloaded leaves it to another one,
/// which may be of undertick.h.
#[repr(C)]
pub(crate) struct Pool {
    file: *mut u8,
    /// One byte per segment: 1 when the collector has written its pages.
    written: *mut u8,
    heads: *mut u8,
    segments: *mut u8,
    head_count: u32,
    segment_count: u32,
    /// Serial number of the session.
    serial: u32,
    /// A head that was taken but got no pages, plus 1; 0: none.
    spare_head: AtomicU32,
    /// Bytes of this and of the mapping.
    bytes: usize,
    /// Number of rings of this process that lie in it.
    users: AtomicUsize,
    /// Pool of an earlier session.
    before: AtomicPtr<Pool>,
}

/// The page of an instance that `fork` fills with zeros in the child, where it also unmaps the
/// pool.
#[repr(C)]
pub struct Wiped {
    /// Whether the known rings belong to this process, and not to its parent.
    pub same_process: AtomicU32,
    /// Number of threads that look for a pool, or unmap one.
    at_pools: AtomicU32,
    /// Pool of the last session.
    pool: AtomicPtr<Pool>,
}

impl Wiped {
    /// Returns the pool of the session `serial`, for one more ring; the first thread that needs it
    /// maps it.
    fn join(&self, session: &Session, serial: u32) -> Option<&'static Pool> {
        self.at_pools.fetch_add(1, Ordering::SeqCst);
        let found = self.find(session, serial);
        if let Some(pool) = found {
            pool.users.fetch_add(1, Ordering::SeqCst);
        }
        self.tidy();
        found
    }

    fn find(&self, session: &Session, serial: u32) -> Option<&'static Pool> {
        // SAFETY: none is unmapped that a thread which is counted here can find.
        let is_it = |pool: *mut Pool| unsafe { pool.as_ref() }.filter(|it| it.serial == serial);
        let mut found = self.pool.load(Ordering::SeqCst);
        if let Some(pool) = is_it(found) {
            return Some(pool);
        }
        let mapped = map(session, serial)?;
        loop {
            // SAFETY: just mapped, and stays so as above.
            unsafe { &*mapped }.before.store(found, Ordering::Relaxed);
            let put =
                (self.pool).compare_exchange(found, mapped, Ordering::SeqCst, Ordering::SeqCst);
            let Err(other) = put else {
                return is_it(mapped);
            };
            if let Some(pool) = is_it(other) {
                // SAFETY: nobody else has seen it: another thread was faster.
                unsafe { unmap(mapped) };
                return Some(pool);
            }
            found = other;
        }
    }

    /// Ends this thread's work on pools, for which it was counted in `at_pools`. A thread that is
    /// alone there unmaps the pools of earlier sessions without a ring of the process; a thread
    /// that arrives later finds the last one. If no thread was alone, the last one to leave checks
    /// again.
    fn tidy(&self) {
        loop {
            let is_alone = self.at_pools.load(Ordering::SeqCst) == 1;
            if is_alone {
                // SAFETY: the last one is never unmapped here.
                if let Some(last) = unsafe { self.pool.load(Ordering::SeqCst).as_ref() } {
                    // SAFETY: this thread is alone.
                    unsafe { last.unmap_unused_before() };
                }
            }
            if self.at_pools.fetch_sub(1, Ordering::SeqCst) != 1 || is_alone {
                return;
            }
            self.at_pools.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Counts a ring that has left that pool.
    pub(crate) fn leave(&self, pool: &Pool) {
        self.at_pools.fetch_add(1, Ordering::SeqCst);
        pool.users.fetch_sub(1, Ordering::SeqCst);
        self.tidy();
    }

    /// Forgets the rings of the parent, whose page this is a copy of.
    pub(crate) fn forget(&self) {
        self.pool.store(null_mut(), Ordering::SeqCst);
        self.at_pools.store(0, Ordering::SeqCst);
    }

    /// Unmaps the pools of an instance that was unloaded.
    ///
    /// # Safety
    /// None of its code runs any more.
    pub(crate) unsafe fn clear(&self) {
        // SAFETY: the caller's promise.
        unsafe { unmap_all(&self.pool) };
        self.at_pools.store(0, Ordering::Relaxed);
    }
}

/// # Safety
/// Nobody uses the pool from here on.
unsafe fn unmap(pool: *mut Pool) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(pool.cast(), (*pool).bytes) };
}

/// # Safety
/// As [`unmap`], for all of the list.
unsafe fn unmap_all(first: &AtomicPtr<Pool>) {
    let mut next = first.swap(null_mut(), Ordering::Relaxed);
    // SAFETY: the caller's promise.
    while let Some(pool) = unsafe { next.as_ref() } {
        let this = next;
        next = pool.before.load(Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { unmap(this) };
    }
}

/// Maps the pool of the session: it reserves address space, unlocks it (a program under mlockall
/// must not lock all of it), and maps the file.
fn map(session: &Session, serial: u32) -> Option<*mut Pool> {
    const BEFORE: usize = SEGMENT_BYTES as usize;
    let field = |offset| session.field_u32(offset).load(Ordering::Relaxed);
    let shape = Shape::new(
        field(control::OFF_HEADS),
        field(control::OFF_BUDGET_SEGMENTS),
    )?;
    let bytes = shape.bytes() as usize;
    let fd = session.with_path(layout::POOL_FILE, |path| {
        let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        // SAFETY: the path ends with zero.
        unsafe { libc::open(path.as_ptr(), flags) }
    })?;
    if fd < 0 {
        return None;
    }
    // SAFETY: the descriptor is ours; a new reservation, all of which but the first segment
    // is replaced by the file.
    let start = unsafe {
        let mut status: libc::stat = core::mem::zeroed();
        let is_whole = libc::fstat(fd, &raw mut status) == 0 && status.st_size >= bytes as i64;
        let area = match is_whole {
            true => reserve(BEFORE + bytes),
            false => None,
        };
        let mapped = area.filter(|area| {
            let start = area.add(BEFORE).cast();
            let flags = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE;
            let is_mapped = libc::mmap(start, bytes, libc::PROT_NONE, flags, fd, 0) == start
                && libc::mprotect(area.cast(), PAGE_BYTES, READ_WRITE) == 0;
            if !is_mapped {
                libc::munmap(area.cast(), BEFORE + bytes);
            }
            is_mapped
        });
        libc::close(fd);
        let area = mapped?;
        libc::munlock(area.cast(), BEFORE + bytes);
        libc::mprotect(area.add(BEFORE).cast(), bytes, READ_WRITE);
        libc::madvise(area.cast(), BEFORE + bytes, libc::MADV_DONTFORK);
        area.add(BEFORE)
    };
    // SAFETY: both lie in the mapping, by the shape.
    unsafe {
        let mapped = start.sub(BEFORE).cast::<Pool>();
        mapped.write(Pool {
            file: start,
            written: start.add(shape.written_at()),
            heads: start.add(shape.heads_at() as usize),
            segments: start.add(shape.segments_at() as usize),
            head_count: shape.heads,
            segment_count: shape.segments,
            serial,
            spare_head: AtomicU32::new(0),
            bytes: BEFORE + bytes,
            users: AtomicUsize::new(0),
            before: AtomicPtr::new(null_mut()),
        });
        let is = |offset, value| (*mapped).field(offset).load(Ordering::Relaxed) == value;
        let magic = AtomicU64::from_ptr(start.add(pool::OFF_MAGIC).cast());
        let is_sound = magic.load(Ordering::Acquire) == pool::MAGIC
            && is(pool::OFF_VERSION, layout::VERSION)
            && is(pool::OFF_HEADS, shape.heads)
            && is(pool::OFF_SEGMENTS, shape.segments);
        if !is_sound {
            unmap(mapped);
            return None;
        }
        Some(mapped)
    }
}

/// Reserves address space at a multiple of the segment size: the 64 KiB that a load maps are
/// aligned pages.
fn reserve(bytes: usize) -> Option<*mut u8> {
    const SLACK: usize = SEGMENT_BYTES as usize;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let reserved = crate::process::map(bytes + SLACK, libc::PROT_NONE, flags, -1)?;
    let before = (reserved as usize).next_multiple_of(SLACK) - reserved as usize;
    let area = reserved.wrapping_add(before);
    // SAFETY: both lie in what was just reserved, beside the area.
    unsafe {
        if before > 0 {
            libc::munmap(reserved.cast(), before);
        }
        if before < SLACK {
            libc::munmap(area.wrapping_add(bytes).cast(), SLACK - before);
        }
    }
    Some(area)
}

const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

impl Pool {
    /// Unmaps the pools of earlier sessions that contain no ring.
    ///
    /// # Safety
    /// No other thread looks at the list.
    unsafe fn unmap_unused_before(&self) {
        let mut at = &self.before;
        // SAFETY: what is in the list is mapped.
        while let Some(pool) = unsafe { at.load(Ordering::Relaxed).as_ref() } {
            if pool.users.load(Ordering::SeqCst) != 0 {
                at = &pool.before;
                continue;
            }
            let unused = at.load(Ordering::Relaxed);
            at.store(pool.before.load(Ordering::Relaxed), Ordering::Relaxed);
            // SAFETY: no ring is in it, and none can come.
            unsafe { unmap(unused) };
        }
    }

    fn field(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: of the pool's first page, aligned.
        unsafe { AtomicU32::from_ptr(self.file.add(offset).cast()) }
    }

    fn take(&self, queue: Queue) -> Option<u32> {
        let shape = Shape {
            heads: self.head_count,
            segments: self.segment_count,
        };
        // SAFETY: the pool is mapped, of that shape.
        let line = unsafe { MappedLine::new(self.file, shape, queue) };
        // Other processes write there, too.
        take(&line).filter(|number| *number < shape.room(queue))
    }

    /// Takes a segment for a ring.
    pub(crate) fn take_segment(&self) -> Option<u32> {
        self.take(Queue::SegmentsReady)
            .or_else(|| self.take(Queue::Segments))
    }

    /// Takes a head for a ring, with pages.
    fn take_head(&self, session: &Session) -> Option<*mut u8> {
        let place = |number: u32| {
            let at = u64::from(number) * ring::HEAD_BYTES;
            self.heads.wrapping_add(at as usize)
        };
        let spare = self.spare_head.swap(0, Ordering::Relaxed).checked_sub(1);
        if spare.is_none() {
            if let Some(number) = self.take(Queue::HeadsReady) {
                return Some(place(number));
            }
        }
        let number = spare.or_else(|| self.take(Queue::Heads))?;
        if self.populate(session, place(number), ring::READY_BYTES as usize) {
            return Some(place(number));
        }
        self.spare_head.store(number + 1, Ordering::Relaxed);
        None
    }

    /// Returns whether the collector has written all pages of a segment.
    pub(crate) fn is_written(&self, segment: u32) -> bool {
        assert!(segment < self.segment_count);
        // SAFETY: a byte for each segment.
        let byte =
            unsafe { core::sync::atomic::AtomicU8::from_ptr(self.written.add(segment as usize)) };
        byte.load(Ordering::Acquire) != 0
    }

    /// Allocates the pages of these bytes of the pool; returns whether they are present.
    pub(crate) fn populate(&self, session: &Session, at: *mut u8, bytes: usize) -> bool {
        // SAFETY: whole pages of the pool; the calls only return numbers.
        unsafe {
            let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
            let before = at as usize % page;
            let (start, bytes) = (at.wrapping_sub(before), bytes + before);
            if libc::madvise(start.cast(), bytes, libc::MADV_POPULATE_WRITE) == 0 {
                return true;
            }
            if *libc::__errno_location() != libc::EINVAL {
                return false;
            }
            // For kernels before 5.14.
            let offset = (start as usize - self.file as usize) as libc::off_t;
            let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW;
            let done = session.with_path(layout::POOL_FILE, |path| {
                let fd = libc::open(path.as_ptr(), flags);
                fd >= 0 && {
                    let done = libc::fallocate(fd, 0, offset, bytes as libc::off_t) == 0;
                    libc::close(fd);
                    done
                }
            });
            done == Some(true)
        }
    }
}

/// A ring that has been made.
pub(crate) struct Made {
    pub(crate) memory: Mapped,
    pub(crate) policy: Overflow,
    pub(crate) pool: &'static Pool,
}

/// Makes a ring from a free head of the pool of the session `serial`.
pub(crate) fn make_ring(session: &Session, serial: u32, nested: bool) -> Option<Made> {
    let overflow = session.field_u32(control::OFF_OVERFLOW);
    let policy = Overflow::from_code(overflow.load(Ordering::Relaxed))?;
    let pool = session.wiped().join(session, serial)?;
    let Some(head) = pool.take_head(session) else {
        session.wiped().leave(pool);
        return None;
    };
    let wanted = match policy {
        Overflow::Grow => pool.segment_count,
        _ => session
            .field_u32(control::OFF_RING_SEGMENTS)
            .load(Ordering::Relaxed),
    };
    let segments = wanted.clamp(1, layout::MAX_SEGMENTS);
    // SAFETY: a head of the pool, mapped as long as this ring is counted.
    let memory = unsafe { Mapped::new(head, pool.segments, pool.segment_count, segments) };
    let put = |offset, value: u32| memory.field_u32(offset).store(value, Ordering::Relaxed);
    put(ring::OFF_VERSION, layout::VERSION);
    put(ring::OFF_SEGMENT_BYTES, SEGMENT_BYTES as u32);
    let next = pool.field(pool::OFF_NEXT_RING);
    put(ring::OFF_RING, next.fetch_add(1, Ordering::Relaxed));
    put(ring::OFF_MAX_SEGMENTS, segments);
    // SAFETY: these calls only return numbers.
    unsafe {
        put(ring::OFF_PID, libc::getpid() as u32);
        put(ring::OFF_TID, libc::syscall(libc::SYS_gettid) as u32);
    }
    put(
        ring::OFF_PID_NAMESPACE,
        crate::ring_allocation::pid_namespace(),
    );
    put(ring::OFF_WRITER, 1);
    put(ring::OFF_SPAN_READINGS, ring::SPANS_WAIT);
    put(ring::OFF_NESTED, u32::from(nested));
    put(ring::OFF_STATE, ring::STATE_OPEN);
    memory
        .field_u64(ring::OFF_MAGIC)
        .store(ring::MAGIC, Ordering::Release);
    session.instance().note_ring(&memory);
    Some(Made {
        memory,
        policy,
        pool,
    })
}

/// Closes a complete ring that is no longer written to: its head and segments now belong to the
/// collector. It still counts in the pool.
pub(crate) fn close_ring(session: &Session, memory: &Mapped, is_joined: bool) {
    session.instance().forget_ring(memory);
    if is_joined {
        memory
            .field_u32(ring::OFF_STATE)
            .store(ring::STATE_CLOSED, Ordering::Release);
    }
}
