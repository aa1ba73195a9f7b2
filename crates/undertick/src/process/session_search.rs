//! Finds the session of the process: the one in which it was started, or an attach page, through
//! which one may come later.

use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use undertick_ring::layout::{self, attach_page, control};

use super::{Location, NO_KEY, Session, map};
use crate::attach_page::AttachPage;
use crate::instance::{PAGE_BYTES, Pages};

/// An advice that no kernel knows.
const NO_ADVICE: i32 = 0x7ead;

/// How a child is distinguished from its parent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ForkDetection {
    ByPage,
    ByPid,
}

/// Determines how a child is distinguished. Some emulators (qemu-user) accept every advice and do
/// nothing: one that no kernel knows shows it. `None`: the kernel cannot wipe pages.
///
/// # Safety
/// `page` is a mapping of ours, of `bytes` bytes.
unsafe fn fork_detection(page: *mut c_void, bytes: usize) -> Option<ForkDetection> {
    // SAFETY: the caller's promise.
    unsafe {
        if libc::madvise(page, bytes, libc::MADV_WIPEONFORK) != 0 {
            return None;
        }
        Some(match libc::madvise(page, bytes, NO_ADVICE) {
            0 => ForkDetection::ByPid,
            _ => ForkDetection::ByPage,
        })
    }
}

pub(super) fn attach() -> Option<Session> {
    // SAFETY: AT_SECURE is a number the kernel gave this process.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    let pages = Pages::take()?;
    // SAFETY: a page of our own.
    let detection = unsafe { fork_detection(pages.first().cast::<c_void>(), PAGE_BYTES) };
    let found = detection.and_then(|detection| {
        let by_attach_page = || {
            AttachPage::make()
                .map(|(control, attach_page)| (control, Location::AttachPage(attach_page)))
        };
        Some((detection, open_session().or_else(by_attach_page)?))
    });
    let Some((detection, (control_page, location))) = found else {
        pages.give_back();
        return None;
    };
    let attach_page_bytes = if matches!(location, Location::AttachPage(_)) {
        attach_page::BYTES
    } else {
        0
    };
    let session = Session {
        control: control_page,
        armed: pages.begin(control_page, (control::BYTES + attach_page_bytes) as usize),
        pages,
        by_pid: AtomicU32::new(match detection {
            ForkDetection::ByPage => 0,
            ForkDetection::ByPid => std::process::id(),
        }),
        clock: AtomicU32::new(0),
        location,
        names: crate::names::table(),
        key: AtomicU32::new(crate::thread::make_key().unwrap_or(NO_KEY)),
    };
    let is_by_page = u32::from(detection == ForkDetection::ByPage);
    session
        .wiped()
        .same_process
        .store(is_by_page, Ordering::Relaxed);
    let clock = session
        .field_u32(control::OFF_CLOCK)
        .load(Ordering::Relaxed);
    session.clock.store(clock, Ordering::Relaxed);
    if let Some(attach_page) = session.attach_page() {
        attach_page.open();
    }
    Some(session)
}

/// Opens the control page of the session in which the program was started.
fn open_session() -> Option<(*mut u8, Location)> {
    let dir = std::env::var_os(layout::SESSION_ENV)?;
    if !dir.as_bytes().starts_with(b"/") || dir.len() > 200 {
        return None;
    }
    let dir = CString::new(dir.as_bytes()).ok()?;
    let mut path = dir.clone().into_bytes();
    path.extend_from_slice(b"/control\0");
    // SAFETY: the path ends with a zero byte.
    let fd = unsafe {
        libc::open(
            path.as_ptr().cast::<c_char>(),
            libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW,
        )
    };
    if fd < 0 {
        return None;
    }
    let page = map(
        control::BYTES as usize,
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_SHARED,
        fd,
    );
    // SAFETY: ours, opened above.
    unsafe { libc::close(fd) };
    let page = page?;
    // SAFETY: within the page just mapped, aligned; it stays mapped if it is sound.
    let sound = unsafe {
        let word = |offset: usize| AtomicU32::from_ptr(page.add(offset).cast());
        AtomicU64::from_ptr(page.add(control::OFF_MAGIC).cast()).load(Ordering::Acquire)
            == control::MAGIC
            && word(control::OFF_VERSION).load(Ordering::Relaxed) == layout::VERSION
            && u64::from(word(control::OFF_SEGMENT_BYTES).load(Ordering::Relaxed))
                == layout::SEGMENT_BYTES
    };
    if !sound {
        // SAFETY: mapped above, not used any more.
        unsafe { libc::munmap(page.cast(), control::BYTES as usize) };
        return None;
    }
    Some((page, Location::Dir(dir)))
}
