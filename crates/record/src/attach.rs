//! Records a running program that was started without a session.
//!
//! **Method.** The program has an attach page (`docs/format.md`, section 10). We make a session
//! as usual, store its location in the attach page, and switch the program's points on. Each
//! thread enters with its first point. At the end the points are switched off, what is in the
//! rings is drained, and their memory is released.

use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use undertick_ring::Overflow;

pub use undertick_memory::attach_page::command_of;

use undertick_format::TraceError;
use undertick_format::manifest::{Exit, Manifest};
use undertick_memory::attach_page::Program;

use crate::kernel::Target;
use crate::record::watch_signals;
use crate::recording_loop::RecordingLoop;
use crate::request::{RecordingProgress, Request, Watch};
use crate::session::{self, Session};

/// Which program to record, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attach {
    /// Its process id.
    pub pid: i32,
    /// How long to record; `None`: until it ends, or SIGINT, SIGTERM, SIGHUP or SIGQUIT comes.
    pub length: Option<Duration>,
}

/// Checks whether a process can be recorded now.
///
/// # Errors
/// Why it cannot, and what to do.
pub fn check(pid: i32) -> Result<(), TraceError> {
    Program::find(pid, &session::parent_of(None)).map(|_| ())
}

/// Records a running program, and leaves it as it was. The request's command is replaced by the
/// program's.
///
/// # Errors
/// There is no such program, it is not linked with the recorder, another recorder records it, or
/// the trace could not be finalized; what was recorded is still in the trace directory.
pub fn attach(
    request: Request,
    to: Attach,
    progress: &mut dyn FnMut(RecordingProgress),
) -> Result<Manifest, TraceError> {
    attach_watched(request, to, None, progress)
}

/// As [`attach`], and passes the records to a watcher while they arrive.
///
/// # Errors
/// As [`attach`].
pub fn attach_watched(
    mut request: Request,
    to: Attach,
    watch: Option<Watch>,
    progress: &mut dyn FnMut(RecordingProgress),
) -> Result<Manifest, TraceError> {
    if request.settings.overflow == Overflow::Block {
        return Err(TraceError::Usage(
            "--overflow block with --pid: a recorder that is killed would leave the program waiting; \
             use grow, drop or overwrite"
                .to_owned(),
        ));
    }
    let place = session::parent_of(request.settings.parent.as_deref());
    let (program, attach_pages) = Program::find(to.pid, &place)?;
    request.command = program.command.iter().map(Into::into).collect();
    let (user, group) = program.owner;
    crate::record::allow_many_files();
    let mut session =
        Session::create_for(request.settings.clone(), attach_pages, (user, Some(group)))?;
    session.enter()?;
    let mut signals = vec![SIGINT, SIGTERM, SIGHUP, SIGQUIT];
    signals.extend(RecordingLoop::snapshot_signal(&request.settings));
    let mut signals = watch_signals(&signals)?;
    let (mut recording, ()) = RecordingLoop::begin(
        &request,
        session,
        Target::Running(to.pid),
        None,
        |session, _, _| {
            session.switch(true);
            Ok(())
        },
    )?;
    recording.is_of(to.pid, true);
    let pause = recording.watched(watch);
    let interrupted = loop {
        let moved = recording.round(progress);
        let was_over = program.has_ended();
        let length_is_over = (to.length).is_some_and(|length| recording.elapsed() >= length);
        let interrupted = end_is_wanted(&mut recording, &mut signals);
        if was_over || length_is_over || interrupted {
            break interrupted;
        }
        recording.pause(moved, pause);
    };
    let exit = Exit {
        status: None,
        signal: None,
        interrupted,
    };
    recording.finish(exit, progress)
}

/// Handles the signals that came; returns whether one ends the recording.
pub(crate) fn end_is_wanted(
    recording: &mut RecordingLoop,
    signals: &mut SignalsInfo<WithOrigin>,
) -> bool {
    let mut is_wanted = false;
    for origin in signals.pending() {
        if origin.signal == libc::SIGRTMIN() {
            recording.snapshot();
        } else {
            is_wanted = true;
        }
    }
    is_wanted
}
