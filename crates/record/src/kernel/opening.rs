//! Opening the kernel's trace buffers while the rest of a recording is prepared.

use std::thread::{Builder, JoinHandle};

use undertick_clock::ClockId;

use super::tracefs::Tracefs;
use super::{Wanted, cpus};

/// The kernel's trace buffers while they are being opened, which takes some 0.05 s. It can begin
/// before the rest of a recording is prepared.
#[derive(Debug)]
pub struct Opening(Option<JoinHandle<Result<Tracefs, String>>>);

impl Opening {
    /// Begins to open the trace buffers for a recording by this clock; `None` if no kernel events
    /// are wanted.
    #[must_use]
    pub fn begin(wanted: Wanted, clock: ClockId) -> Option<Self> {
        if wanted == Wanted::Off {
            return None;
        }
        let thread = Builder::new()
            .name("undertick open".to_owned())
            .spawn(move || Tracefs::open(clock, &cpus()));
        Some(Self(Some(thread.ok()?)))
    }

    /// Waits for the result; `None` if the thread could not deliver one.
    pub(super) fn wait(mut self) -> Option<Result<Tracefs, String>> {
        self.0.take().and_then(|thread| thread.join().ok())
    }
}

impl Drop for Opening {
    /// Closes them again, where no recording came.
    fn drop(&mut self) {
        drop(self.0.take().map(JoinHandle::join));
    }
}
