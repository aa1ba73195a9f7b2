//! The attach page of a program that was started without a session: a file in no directory, through
//! which `undertick record --pid` attaches. The same as in undertick.h; docs/format.md describes it
//! in prose.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use undertick_ring::layout::{self, attach_page, control, names};

use crate::process::map;
use crate::ring_allocation::file_limit;

/// Lowest number of the attach page's descriptor, so that the program's own descriptors keep their
/// usual numbers.
const LOWEST_FD: i32 = 200;

/// The attach page of this process and of the children that share its memory.
pub struct AttachPage {
    /// The memory after the control page.
    base: *mut u8,
    fd: i32,
    inode: u64,
    /// The process that made it.
    pid: u32,
}

impl AttachPage {
    /// Makes an attach page, and the control page before it; `None` if the program is to have none,
    /// or cannot have one.
    pub fn make() -> Option<(*mut u8, Self)> {
        if std::env::var_os(attach_page::WISH_ENV).is_some_and(|wish| wish == "0") {
            return None;
        }
        let bytes = (control::BYTES + attach_page::BYTES) as usize;
        let (fd, inode) = open_file(bytes)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let Some(page) = map(bytes, protection, libc::MAP_SHARED, fd) else {
            // SAFETY: ours, opened above.
            unsafe { libc::close(fd) };
            return None;
        };
        let base = page.wrapping_add(control::BYTES as usize);
        let pid = std::process::id();
        Some((
            page,
            Self {
                base,
                fd,
                inode,
                pid,
            },
        ))
    }

    fn u32_at(&self, offset: usize) -> &AtomicU32 {
        assert!(offset < attach_page::OFF_DIR && offset % 4 == 0);
        // SAFETY: within the mapping, aligned.
        unsafe { AtomicU32::from_ptr(self.base.add(offset).cast()) }
    }

    fn byte(&self, offset: usize) -> &AtomicU8 {
        assert!((offset as u64) < attach_page::BYTES);
        // SAFETY: within the mapping.
        unsafe { AtomicU8::from_ptr(self.base.add(offset)) }
    }

    /// Makes the page visible: from here on recorders may attach.
    pub fn open(&self) {
        self.u32_at(attach_page::OFF_VERSION)
            .store(layout::VERSION, Ordering::Relaxed);
        self.magic().store(attach_page::MAGIC, Ordering::Release);
    }

    /// Closes the descriptor of the attach page, unless the program has already closed it and uses
    /// the number for something else. The mapping stays: other threads may still record. If no
    /// session is attached, its memory is freed, and points read that nothing is recorded.
    pub fn close(&self) {
        if inode_of(self.fd) == Some(self.inode) {
            // SAFETY: ours, as just seen.
            unsafe { libc::close(self.fd) };
        }
        // Not in a child, which shares the memory.
        if self.is_empty() && self.pid == std::process::id() {
            self.magic().store(0, Ordering::Release);
            let page = self.base.wrapping_sub(control::BYTES as usize);
            let bytes = (control::BYTES + attach_page::BYTES) as usize;
            // SAFETY: the mapping of `make`, which stays.
            unsafe { libc::madvise(page.cast(), bytes, libc::MADV_REMOVE) };
        }
    }

    fn magic(&self) -> &AtomicU64 {
        // SAFETY: within the mapping, aligned.
        unsafe { AtomicU64::from_ptr(self.base.add(attach_page::OFF_MAGIC).cast()) }
    }

    /// Returns whether no session is attached.
    pub fn is_empty(&self) -> bool {
        self.byte(attach_page::OFF_DIR).load(Ordering::Relaxed) == 0
    }

    /// Returns the directory of the attached session.
    pub fn dir<'a>(&self, into: &'a mut [u8; attach_page::MAX_DIR_BYTES]) -> Option<&'a [u8]> {
        for (i, byte) in into.iter_mut().enumerate() {
            *byte = self.byte(attach_page::OFF_DIR + i).load(Ordering::Relaxed);
        }
        let dir = CStr::from_bytes_until_nul(into).ok()?.to_bytes();
        dir.starts_with(b"/").then_some(dir)
    }

    /// Stores a name for future sessions; a name that its event or thread already has is not stored
    /// again.
    pub fn keep_name(&self, record: &[u8]) {
        if self.is_known(record) {
            return;
        }
        let bytes = record.len().next_multiple_of(8);
        let reserve = |used: u32| {
            let end = used as usize + bytes;
            (end <= attach_page::NAMES_BYTES).then_some(end as u32)
        };
        let used = self.u32_at(attach_page::OFF_NAMES_USED);
        let Ok(at) = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve) else {
            self.u32_at(attach_page::OFF_NAMES_LOST)
                .fetch_add(1, Ordering::Relaxed);
            return;
        };
        let at = attach_page::OFF_NAMES + at as usize;
        // The magic is stored last: a concurrent reader finds none.
        for (i, byte) in record.iter().enumerate().skip(2) {
            self.byte(at + i).store(*byte, Ordering::Relaxed);
        }
        for (i, byte) in record[..2].iter().enumerate() {
            self.byte(at + i).store(*byte, Ordering::Release);
        }
    }

    /// Returns whether the last name of the record's event or thread is this one.
    fn is_known(&self, record: &[u8]) -> bool {
        let used = self
            .u32_at(attach_page::OFF_NAMES_USED)
            .load(Ordering::Acquire) as usize;
        let used = used.min(attach_page::NAMES_BYTES);
        let (mut at, mut known) = (0, false);
        let mut found = [0; names::HEADER_BYTES + names::MAX_TEXT_BYTES];
        while at + names::HEADER_BYTES <= used {
            let read = |into: &mut [u8], from: usize| {
                for (i, byte) in into.iter_mut().enumerate() {
                    *byte = self
                        .byte(attach_page::OFF_NAMES + from + i)
                        .load(Ordering::Relaxed);
                }
            };
            read(&mut found[..names::HEADER_BYTES], at);
            let text = usize::from(u16::from_le_bytes([found[6], found[7]]));
            let all = names::HEADER_BYTES + text;
            if all <= found.len() && at + all <= used {
                read(
                    &mut found[names::HEADER_BYTES..all],
                    at + names::HEADER_BYTES,
                );
                // The names of an event belong to its process, whichever thread gave them.
                let is_thread = record[2..4] == names::THREAD.to_le_bytes();
                let same_key = found[..6] == record[..6]
                    && found[8..12] == record[8..12]
                    && (!is_thread || found[12..16] == record[12..16]);
                if same_key {
                    known = found[16..all] == record[16..];
                }
            }
            at += all.next_multiple_of(8);
        }
        known
    }
}

fn open_file(bytes: usize) -> Option<(i32, u64)> {
    let name = c"undertick-door";
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    if file_limit() < bytes as u64 {
        return None;
    }
    let seals = libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
    // SAFETY: the name ends with zero; the descriptors are ours.
    unsafe {
        // Kernels before 6.3 lack the flag that it can never be executed.
        let mut fd = libc::memfd_create(name.as_ptr(), flags | libc::MFD_NOEXEC_SEAL);
        if fd < 0 {
            fd = libc::memfd_create(name.as_ptr(), flags);
        }
        if fd < 0 {
            return None;
        }
        let high = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, LOWEST_FD);
        if high >= 0 {
            libc::close(fd);
            fd = high;
        }
        let sized = libc::ftruncate(fd, bytes as libc::off_t) == 0
            && libc::fcntl(fd, libc::F_ADD_SEALS, seals) == 0;
        match inode_of(fd) {
            Some(inode) if sized => Some((fd, inode)),
            _ => {
                libc::close(fd);
                None
            }
        }
    }
}

fn inode_of(fd: i32) -> Option<u64> {
    // SAFETY: all zeros is a valid stat.
    unsafe {
        let mut status: libc::stat = core::mem::zeroed();
        (libc::fstat(fd, &raw mut status) == 0).then_some(status.st_ino)
    }
}
