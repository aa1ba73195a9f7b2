//! The request for a recording, and the progress that it reports.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use undertick_clock::Choice;
use undertick_clock::facts::Facts;
use undertick_format::manifest::{self, Calibration, Manifest};

use crate::collector::{CollectorProgress, Tap};
use crate::functions::Functions;
use crate::interposed::Library;
use crate::kernel::Wanted;
use crate::perturbation;
use crate::session::Settings;
use crate::triggers::{SnapshotMade, Triggers};

/// Pause between two rounds, unless the last one drained much: 1 ms of one thread at full speed
/// is 1.5 MB in its ring.
pub(crate) const PAUSE: Duration = Duration::from_millis(1);

/// What to record and how.
pub struct Request {
    /// Trace directory to make; it must not exist.
    pub trace: PathBuf,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// How the rings behave.
    pub settings: Settings,
    /// The recording clock and why it was chosen.
    pub choice: Choice,
    /// What was measured of that clock.
    pub facts: Facts,
    /// What recording costs here, where that was measured.
    pub calibration: Option<Calibration>,
    /// Names from a file; they replace those of the program.
    pub names: Vec<manifest::Name>,
    /// Which kernel events to record as evidence.
    pub kernel: Wanted,
    /// Time on the CPU between two samples of the program's threads with their stacks; `None`: there are
    /// none. They come with the kernel's events.
    pub stacks: Option<Duration>,
    /// Which measuring points to switch off and on at random; `None`: all are on.
    pub perturbation: Option<perturbation::Wanted>,
    /// Functions to record of a program that nobody edited.
    pub functions: Option<Functions>,
    /// Libraries that the program preloads: what its threads wait for and allocate.
    pub with: Vec<Library>,
    /// Rules that make snapshots; for a recording that overwrites.
    pub triggers: Option<Triggers>,
}

/// Progress of a recording, for the user.
#[derive(Clone, Debug)]
pub enum RecordingProgress {
    /// The program runs.
    Recording(CollectorProgress, Duration),
    /// A snapshot was requested by a signal, or caused by a rule; or why there is none.
    Snapshot(Result<SnapshotMade, String>),
    /// The program has ended; the share of the trace that is finalized, 0 to 1.
    Finalizing(f64),
}

/// How records are watched while the program runs.
pub struct Watch {
    /// Pause between two rounds over the rings. Each round costs about 10 us of a CPU; during the
    /// pause the rings must hold what the program writes.
    pub every: Duration,
    /// Receives the records.
    pub tap: Tap,
    /// Receives the description of the recording.
    pub on_manifest: Option<OnManifest>,
}

impl Watch {
    /// Watches with the pause that every recording uses.
    #[must_use]
    pub fn new(tap: Tap) -> Self {
        Self {
            every: PAUSE,
            tap,
            on_manifest: None,
        }
    }
}

/// Called at the start, and five times a second from then on, with what is known of the
/// recording: its clock and costs, and the names that the program has given so far.
pub type OnManifest = Box<dyn FnMut(&Manifest)>;
