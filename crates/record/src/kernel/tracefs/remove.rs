//! Removes an instance without waiting for the kernel, which takes 0.1 s and more: it waits until no
//! CPU can be using the instance. Neither the end of a recording nor the user's shell should.

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use rustix::pipe::PipeFlags;

/// The largest descriptor that is closed by itself, where the kernel cannot close a range.
const MOST_FILES: libc::c_int = 4096;

/// The threads that wait for removals.
fn removals() -> MutexGuard<'static, Vec<JoinHandle<()>>> {
    static REMOVALS: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());
    let mut removals = REMOVALS.lock().unwrap_or_else(PoisonError::into_inner);
    removals.retain(|removal| !removal.is_finished());
    removals
}

/// Waits until all removals that this process began are over. Each disables events, which interrupts
/// all CPUs: nothing should be measured at that time.
pub(super) fn wait() {
    let all = std::mem::take(&mut *removals());
    for removal in all {
        let _ = removal.join();
    }
}

/// Closes all descriptors of a range, both ends included.
///
/// # Safety
/// Nothing in this process uses them any more.
unsafe fn close_all(first: libc::c_int, last: libc::c_int) {
    if first > last {
        return;
    }
    // SAFETY: as the caller says.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, last, 0) != 0 {
            for file in first..=last.min(MOST_FILES) {
                libc::close(file);
            }
        }
    }
}

/// Removes a directory in another process; false if there is none. If that process is killed, the
/// next recording removes what is left.
pub(super) fn in_another_process(dir: &Path) -> bool {
    let Ok(path) = CString::new(dir.as_os_str().as_bytes()) else {
        return false;
    };
    // Until the child has closed its copies, locks on our files stay held, whatever we close.
    let Ok((closed, open)) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC) else {
        return false;
    };
    // Without a signal at its end: the wait for any child of the recorder, which is over when
    // none is left, does not see it.
    // SAFETY: as fork; the child makes system calls only, on memory of its own, and ends.
    let child = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) };
    match child {
        ..=-1 => false,
        0 => {
            // SAFETY: system calls; `path` is a string that ends in a zero.
            unsafe {
                // A reader of our output waits until nobody has it open, and Ctrl-C is not for
                // this process. The pipe last: it says that all others are closed.
                close_all(0, open.as_raw_fd() - 1);
                close_all(open.as_raw_fd() + 1, libc::c_int::MAX);
                libc::close(open.as_raw_fd());
                libc::setpgid(0, 0);
                libc::rmdir(path.as_ptr());
                libc::_exit(0)
            }
        }
        child => {
            drop(open);
            let _ = File::from(closed).read(&mut [0]);
            // A process that records repeatedly would collect zombies, and must be able to wait.
            let wait = move || {
                let nothing = std::ptr::null_mut();
                // SAFETY: no status is wanted.
                unsafe { libc::waitpid(child as libc::pid_t, nothing, libc::__WCLONE) };
            };
            let thread = Builder::new().name("undertick rmdir".to_owned());
            removals().extend(thread.spawn(wait));
            true
        }
    }
}
