//! The log of names that the program gives to its events and threads.

use core::ptr::null_mut;
use core::sync::atomic::Ordering;

use undertick_ring::layout::{self, control, names};

use super::session;
use crate::ring_allocation::file_limit;

/// Appends to the names log by one write, whole or not done.
pub fn append_name(what: u16, event: u16, text: &str) {
    let Some(session) = session() else { return };
    let mut cut = text.len().min(names::MAX_TEXT_BYTES);
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    let mut record = [0u8; names::HEADER_BYTES + names::MAX_TEXT_BYTES];
    // SAFETY: these calls only return numbers.
    let (pid, tid) = unsafe { (libc::getpid(), libc::syscall(libc::SYS_gettid) as i32) };
    record[0..2].copy_from_slice(&names::MAGIC.to_le_bytes());
    record[2..4].copy_from_slice(&what.to_le_bytes());
    record[4..6].copy_from_slice(&event.to_le_bytes());
    record[6..8].copy_from_slice(&(cut as u16).to_le_bytes());
    record[8..12].copy_from_slice(&pid.to_le_bytes());
    record[12..16].copy_from_slice(&tid.to_le_bytes());
    record[16..16 + cut].copy_from_slice(&text.as_bytes()[..cut]);
    if let Some(attach_page) = session.attach_page() {
        return attach_page.keep_name(&record[..names::HEADER_BYTES + cut]);
    }
    let is_kept = session.with_path(layout::NAMES_FILE, |path| {
        let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        // SAFETY: the path ends with zero, the record is as long as said, the
        // descriptor is ours.
        unsafe {
            let fd = libc::open(path.as_ptr(), flags);
            fd >= 0 && {
                let is_kept = write_name(fd, &record[..names::HEADER_BYTES + cut]);
                libc::close(fd);
                is_kept
            }
        }
    });
    if is_kept != Some(true) {
        let lost = session.field_u32(control::OFF_NAMES_LOST);
        lost.fetch_add(1, Ordering::Relaxed);
    }
}

/// Appends to the log of names, to which other processes also append; returns whether the record is
/// in it. Beyond the limit of file sizes a write ends the program, so none is tried. If another
/// process was faster, the signal is taken back.
fn write_name(fd: i32, record: &[u8]) -> bool {
    let limit = file_limit();
    // SAFETY: `fd` is open, the record is as long as said; all zeros are valid sets, a
    // valid stat and a valid time.
    unsafe {
        let write = || {
            let written = libc::write(fd, record.as_ptr().cast(), record.len());
            usize::try_from(written) == Ok(record.len())
        };
        if limit == u64::MAX {
            return write();
        }
        let mut status: libc::stat = core::mem::zeroed();
        let (mut ours, mut before, mut pending): (libc::sigset_t, libc::sigset_t, libc::sigset_t) =
            core::mem::zeroed();
        libc::sigemptyset(&raw mut ours);
        libc::sigaddset(&raw mut ours, libc::SIGXFSZ);
        if libc::fstat(fd, &raw mut status) != 0
            || status.st_size as u64 + record.len() as u64 > limit
            || libc::pthread_sigmask(libc::SIG_BLOCK, &raw const ours, &raw mut before) != 0
        {
            return false;
        }
        libc::sigpending(&raw mut pending);
        let is_kept = write();
        if libc::sigismember(&raw const pending, libc::SIGXFSZ) == 0 {
            let now: libc::timespec = core::mem::zeroed();
            libc::sigtimedwait(&raw const ours, null_mut(), &raw const now);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut());
        is_kept
    }
}
