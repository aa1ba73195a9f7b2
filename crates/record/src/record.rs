//! Recording a program: starts it in a session, drains its rings and finalizes the trace.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::RawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::Resource;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::{Origin, WithOrigin};
use signal_hook::low_level::siginfo::Cause;
use undertick_format::TraceError;
use undertick_format::manifest::{self, Manifest};

use crate::kernel::Opening;
use crate::kernel::{self, Target};
use crate::preload::Preloads;
use crate::recording_loop::RecordingLoop;
pub use crate::request::{OnManifest, RecordingProgress, Request, Watch};
use crate::session::Session;

/// Records a program until it and its children have ended.
///
/// # Errors
/// The program could not be started, or the trace could not be finalized; what was
/// recorded is still in the trace directory.
pub fn record(
    request: Request,
    progress: &mut dyn FnMut(RecordingProgress),
) -> Result<Manifest, TraceError> {
    record_with(request, With::default(), progress)
}

/// Optional parts of a recording.
#[derive(Default)]
pub struct With {
    /// Receives the records while the program runs.
    pub watch: Option<Watch>,
    /// Where the program's standard output and error go; its standard input is then empty.
    /// `None`: they go where ours go.
    pub output: Option<File>,
    /// The kernel's trace buffers, if they are being opened already.
    pub opening: Option<Opening>,
}

/// As [`record()`], and passes the records to a watcher while they arrive.
///
/// # Errors
/// As [`record()`].
pub fn record_watched(
    request: Request,
    watch: Watch,
    progress: &mut dyn FnMut(RecordingProgress),
) -> Result<Manifest, TraceError> {
    let with = With {
        watch: Some(watch),
        ..With::default()
    };
    record_with(request, with, progress)
}

/// As [`record()`], with optional parts.
///
/// # Errors
/// As [`record()`].
pub fn record_with(
    request: Request,
    with: With,
    progress: &mut dyn FnMut(RecordingProgress),
) -> Result<Manifest, TraceError> {
    ignore_file_limit();
    let session = Session::create(request.settings.clone())?;
    // From here on orphans of the program become our children, so that the recording ends when
    // the last of them has ended.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::Pid::INIT));
    let mut signals = vec![SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD];
    signals.extend(RecordingLoop::snapshot_signal(&request.settings));
    let mut signals = watch_signals(&signals)?;
    let (mut recording, child) = RecordingLoop::begin(
        &request,
        session,
        Target::Child,
        with.opening,
        |session, announces, preloads| {
            let command = command(&request.command, with.output.as_ref())?;
            start(command, session, announces, preloads)
        },
    )?;
    recording.is_of(child.id() as i32, false);
    let pause = recording.watched(with.watch);
    let exit = watch(&mut recording, child, &mut signals, pause, progress);
    recording.finish(exit, progress)
}

/// The disposition of SIGXFSZ, the signal for a write beyond the file size limit, before it was
/// ignored.
static BEFORE_FILE_LIMIT: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

/// Makes a write beyond the file size limit (`ulimit -f`) an error that does not end the
/// recorder.
fn ignore_file_limit() {
    // SAFETY: changes what a signal does that nothing here waits for.
    let before = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    if before != libc::SIG_IGN && before != libc::SIG_ERR {
        BEFORE_FILE_LIMIT.store(before, Ordering::Relaxed);
    }
}

/// Starts to watch for signals; the result returns those that arrive from now on. From then on a write
/// beyond the file size limit is an error (SIGXFSZ is ignored).
///
/// # Errors
/// A signal cannot be watched.
pub fn watch_signals(signals: &[libc::c_int]) -> Result<SignalsInfo<WithOrigin>, TraceError> {
    ignore_file_limit();
    SignalsInfo::<WithOrigin>::new(signals)
        .map_err(|e| TraceError::Recording(format!("cannot watch for signals: {e}")))
}

fn command(words: &[OsString], output: Option<&File>) -> Result<Command, TraceError> {
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| TraceError::Usage("no program to record was given".to_owned()))?;
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(file) = output {
        let again = || {
            (file.try_clone())
                .map_err(|e| TraceError::Recording(format!("the program's output: {e}")))
        };
        (command.stdin(Stdio::null()))
            .stdout(again()?)
            .stderr(again()?);
    }
    Ok(command)
}

/// Raises our limit of open files as far as allowed. The kernel's evidence takes files for each
/// CPU, and attaching takes some for each program. The program keeps the limit that it would have
/// without us.
pub(crate) fn allow_many_files() {
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = rustix::process::setrlimit(Resource::Nofile, limit);
}

fn start(
    mut command: Command,
    session: &Session,
    announces: Option<(RawFd, RawFd)>,
    preloads: &Preloads,
) -> Result<Child, TraceError> {
    command
        .env(undertick_ring::layout::SESSION_ENV, session.dir())
        .envs(preloads.variable());
    let limit = rustix::process::getrlimit(Resource::Nofile);
    allow_many_files();
    // SAFETY: sigprocmask, signal, getpid, setrlimit and write are safe between fork and
    // exec.
    unsafe {
        command.pre_exec(move || {
            let _ = rustix::process::setrlimit(Resource::Nofile, limit);
            if let Some(file) = announces {
                kernel::announce(file);
            }
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::signal(libc::SIGXFSZ, BEFORE_FILE_LIMIT.load(Ordering::Relaxed));
            Ok(())
        });
    }
    command.spawn().map_err(|error| {
        let name = command.get_program().to_string_lossy();
        let mend = match error.kind() {
            std::io::ErrorKind::NotFound => {
                "no such program; give its path, or a name that is in PATH"
            }
            std::io::ErrorKind::PermissionDenied => {
                "not executable; chmod +x it, or is it a directory?"
            }
            _ => "could not be started",
        };
        TraceError::Usage(format!("{name}: {mend} ({error})"))
    })
}

/// Drains until all children have ended, or until the second Ctrl-C.
fn watch(
    recording: &mut RecordingLoop,
    child: Child,
    signals: &mut SignalsInfo<WithOrigin>,
    pause: Duration,
    progress: &mut dyn FnMut(RecordingProgress),
) -> manifest::Exit {
    let mut exit = manifest::Exit {
        status: None,
        signal: None,
        interrupted: false,
    };
    let main = child.id() as libc::pid_t;
    let mut interrupts = 0;
    loop {
        for origin in signals.pending() {
            if origin.signal == SIGCHLD {
                continue;
            }
            if origin.signal == libc::SIGRTMIN() {
                recording.snapshot();
                continue;
            }
            exit.interrupted |= matches!(origin.signal, SIGINT | SIGTERM | SIGQUIT | SIGHUP);
            interrupts += u32::from(origin.signal == SIGINT);
            pass_on(&origin, main);
        }
        let moved = recording.round(progress);
        let all_ended = reap(main, &mut exit);
        if all_ended || interrupts >= 2 {
            return exit;
        }
        recording.pause(moved, pause);
    }
}

/// Forwards a signal to the program, unless the terminal sent it to the program too.
fn pass_on(origin: &Origin, main: libc::pid_t) {
    let from_terminal = matches!(origin.cause, Cause::Kernel);
    if !from_terminal {
        // SAFETY: a signal to our own child.
        unsafe { libc::kill(main, origin.signal) };
    }
}

/// Records the exit of children that have ended; true when none are left.
fn reap(main: libc::pid_t, exit: &mut manifest::Exit) -> bool {
    loop {
        let mut status = 0;
        // SAFETY: `status` is valid for writing.
        match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
            0 => return false,
            pid if pid == main => {
                let status = std::process::ExitStatus::from_raw(status);
                exit.status = status.code();
                exit.signal = status.signal();
            }
            pid if pid > 0 => {}
            _ => return true,
        }
    }
}
