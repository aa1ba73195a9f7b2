//! Ends a process whose step failed.

use std::fmt::{self, Display, Write};
use std::io;

/// Maximum bytes of a message; the rest of a longer one is omitted.
const MOST: usize = 400;

struct Line {
    bytes: [u8; MOST],
    used: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // The last byte is reserved for the end of the line.
        let room = MOST - 1 - self.used;
        let part = &text.as_bytes()[..text.len().min(room)];
        self.bytes[self.used..self.used + part.len()].copy_from_slice(part);
        self.used += part.len();
        Ok(())
    }
}

/// Reports a failure on standard error and ends the process, with exit status 1. Nothing unwinds: a
/// forked child must not run its parent's cleanup. The line is one `write(2)`, so that lines of
/// several processes do not mix.
pub(crate) fn fail(what: &str, error: impl Display) -> ! {
    let mut line = Line {
        bytes: [0; MOST],
        used: 0,
    };
    // Writing to `Line` never fails.
    let _ = write!(line, "experiment: {what}: {error}");
    line.bytes[line.used] = b'\n';
    // SAFETY: that many bytes of a live local are read; `_exit` ends the process
    // without running anything.
    unsafe {
        libc::write(2, line.bytes.as_ptr().cast(), line.used + 1);
        libc::_exit(1)
    }
}

/// [`fail`]s with the error of the last system call.
#[cold]
#[inline(never)]
pub(crate) fn fail_last(what: &str) -> ! {
    fail(what, io::Error::last_os_error())
}

/// Returns the result of a system call; [`fail`]s if it is negative.
#[inline(always)]
pub(crate) fn done<T: Default + PartialOrd>(what: &str, result: T) -> T {
    if result < T::default() {
        fail_last(what)
    }
    result
}

/// Returns the result of a system call, or its error if it is negative.
pub(crate) fn made<T: Default + PartialOrd>(result: T) -> io::Result<T> {
    if result < T::default() {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// The error, preceded by the operation that failed.
pub(crate) fn because(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// Repeats a system call that a signal has interrupted. `None`: it would have to wait, or failed
/// otherwise; the reason is in the C library's `errno`.
#[inline(always)]
pub(crate) fn again_if_interrupted(mut call: impl FnMut() -> isize) -> Option<usize> {
    loop {
        if let Ok(done) = usize::try_from(call()) {
            return Some(done);
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
}
