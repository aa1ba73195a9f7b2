//! A stream that is written while it is read: a device, a pipe, a FIFO.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;

use undertick_format::TraceError;
use undertick_record::record::watch_signals;

/// How long a poll of the device waits for data before signals are checked again.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Reads the stream. It ends at the device's end, or when SIGINT, SIGTERM, SIGHUP or SIGQUIT
/// comes (an error of kind `Interrupted`). A FIFO that no writer has opened yet is waited for.
pub struct Device {
    file: File,
    signals: SignalsInfo<WithOrigin>,
}

impl Device {
    /// Opens the device for reading.
    ///
    /// # Errors
    /// It does not exist, or may not be read.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        // Without O_NONBLOCK opening a FIFO would wait, and no signal could end that.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)
            .map_err(TraceError::io(path, "cannot open"))?;
        Ok(Self {
            file,
            signals: watch_signals(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT])?,
        })
    }

    /// Whether there is something to read, including the end.
    fn is_ready(&self) -> bool {
        let mut look = [PollFd::new(&self.file, PollFlags::IN)];
        poll(&mut look, Some(&LOOK)).is_ok_and(|ready| ready > 0)
    }
}

impl Read for Device {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            if self.signals.pending().next().is_some() {
                return Err(std::io::ErrorKind::Interrupted.into());
            }
            if !self.is_ready() {
                continue;
            }
            match self.file.read(buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}
