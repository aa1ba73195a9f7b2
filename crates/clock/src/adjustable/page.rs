//! The page that shows the clock: eight words of 32 bits, native byte order.
//!
//! | word | content |
//! |---|---|
//! | 0 | `0x55544331`, "UTC1": a page of this layout |
//! | 1 | sequence number of the latch, odd while the writer writes |
//! | 2, 3 | ticks, low word and high word |
//! | 4, 5 | length of a tick in ns, low word and high word; never changes |
//! | 6, 7 | 0 |

use core::sync::atomic::{AtomicU32, Ordering, fence};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::wide::latched::{self, Busy, Cells, MOST_TRIES};

const MAGIC: u32 = 0x5554_4331;
const SEQUENCE: usize = 1;
const LOW: usize = 2;
const TICK: usize = 4;
const WORDS: usize = 8;
const BYTES: usize = WORDS * size_of::<u32>();

/// Maximum number of times that a reader yields its CPU to a writer that was interrupted in the
/// middle of a write.
const MOST_WAITS: u32 = 10_000;

/// A mapped clock page.
#[derive(Debug)]
pub struct Page {
    words: *const [AtomicU32; WORDS],
    fd: OwnedFd,
    tick_ns: u64,
}

// SAFETY: the mapping is reached through atomics only, and lives as long as this.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    /// Creates a page in shared memory, at tick 0.
    pub(super) fn create(tick_ns: u64) -> io::Result<Self> {
        // SAFETY: the name is a static C string.
        let fd = unsafe { libc::memfd_create(c"undertick-clock".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor that nobody else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: no pointers involved.
        if unsafe { libc::ftruncate(fd.as_raw_fd(), BYTES as libc::off_t) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let page = Self::at(fd, libc::PROT_READ | libc::PROT_WRITE, tick_ns)?;
        page.word(TICK).store(tick_ns as u32, Ordering::Relaxed);
        let high = (tick_ns >> 32) as u32;
        page.word(TICK + 1).store(high, Ordering::Relaxed);
        // Stored last: a reader that sees it sees the tick too.
        page.word(0).store(MAGIC, Ordering::Release);
        Ok(page)
    }

    /// Maps the page of another process's clock for reading.
    ///
    /// # Errors
    /// The descriptor is not a clock page, or cannot be mapped.
    pub fn map(fd: OwnedFd) -> io::Result<Self> {
        let no_page = || io::Error::new(io::ErrorKind::InvalidData, "not a clock page");
        // SAFETY: all zeros is a valid `stat`, which fstat overwrites.
        let mut stat = unsafe { core::mem::zeroed::<libc::stat>() };
        // SAFETY: `stat` is a live local.
        let known = unsafe { libc::fstat(fd.as_raw_fd(), &raw mut stat) } == 0;
        // A shorter file would raise SIGBUS at the first access.
        if !known || stat.st_size < BYTES as libc::off_t {
            return Err(no_page());
        }
        let mut page = Self::at(fd, libc::PROT_READ, 0)?;
        if page.word(0).load(Ordering::Acquire) != MAGIC {
            return Err(no_page());
        }
        let part = |i| u64::from(page.word(i).load(Ordering::Relaxed));
        page.tick_ns = part(TICK) | part(TICK + 1) << 32;
        Ok(page)
    }

    /// Maps the same page again.
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        let fd = self.fd.try_clone()?;
        Self::at(fd, libc::PROT_READ | libc::PROT_WRITE, self.tick_ns)
    }

    fn at(fd: OwnedFd, protection: libc::c_int, tick_ns: u64) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                BYTES,
                protection,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            words: start.cast(),
            fd,
            tick_ns,
        })
    }

    #[inline]
    fn word(&self, index: usize) -> &AtomicU32 {
        // SAFETY: the page is mapped while `self` lives, is aligned, and is
        // changed through atomics only.
        unsafe { &(*self.words)[index] }
    }

    /// Returns the length of a tick, ns.
    #[must_use]
    pub const fn tick_ns(&self) -> u64 {
        self.tick_ns
    }

    /// Returns the ticks shown now.
    ///
    /// # Errors
    /// The writer was in the middle of a write all the time: it has died there.
    #[inline]
    pub fn try_read_ticks(&self) -> Result<u64, Busy> {
        for _ in 0..MOST_WAITS {
            if let Ok(ticks) = latched::read(self, MOST_TRIES / 100) {
                return Ok(ticks);
            }
            // The writer may be waiting for this very CPU.
            std::thread::yield_now();
        }
        Err(Busy)
    }

    #[inline]
    pub(super) fn read_ticks(&self) -> u64 {
        match self.try_read_ticks() {
            Ok(ticks) => ticks,
            Err(busy) => panic!("{busy}"),
        }
    }

    pub(super) fn write_ticks(&self, ticks: u64) {
        latched::write(self, ticks);
    }
}

impl AsFd for Page {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing borrows from it any more.
        unsafe { libc::munmap(self.words.cast_mut().cast(), BYTES) };
    }
}

impl Cells for Page {
    #[inline]
    fn sequence_acquire(&self) -> u32 {
        self.word(SEQUENCE).load(Ordering::Acquire)
    }
    #[inline]
    fn sequence(&self) -> u32 {
        self.word(SEQUENCE).load(Ordering::Relaxed)
    }
    #[inline]
    fn set_sequence(&self, sequence: u32) {
        self.word(SEQUENCE).store(sequence, Ordering::Relaxed);
    }
    #[inline]
    fn set_sequence_release(&self, sequence: u32) {
        self.word(SEQUENCE).store(sequence, Ordering::Release);
    }
    #[inline]
    fn word(&self, index: usize) -> u32 {
        self.word(LOW + index).load(Ordering::Relaxed)
    }
    #[inline]
    fn set_word(&self, index: usize, word: u32) {
        self.word(LOW + index).store(word, Ordering::Relaxed);
    }
    #[inline]
    fn fence_acquire(&self) {
        fence(Ordering::Acquire);
    }
    #[inline]
    fn fence_release(&self) {
        fence(Ordering::Release);
    }
}
