//! Recording a program: start it in a session, drain, keep.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::{Origin, WithOrigin};
use signal_hook::low_level::siginfo::Cause;
use undertick_clock::facts::Facts;
use undertick_clock::{Choice, Source};

use crate::TraceError;
use crate::collector::{Collector, Progress};
use crate::functions::{Functions, Recorded};
use crate::keep::{self, MANIFEST_FILE, RAW_FILE};
use crate::kernel::raw::RAW_KERNEL_FILE;
use crate::kernel::{self, Wanted, Watcher, Watching};
use crate::manifest::{self, Anchor, Calibration, Manifest, SCHEMA_VERSION, State};
use crate::perturbation::{self, Levels, Switcher};
use crate::session::{Session, Settings, open_control};

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
    /// What was found out about it.
    pub facts: Facts,
    /// What recording costs here, where that was measured.
    pub calibration: Option<Calibration>,
    /// Names from a file; they replace those of the program.
    pub names: Vec<manifest::Name>,
    /// Which evidence of the kernel to keep beside it.
    pub kernel: Wanted,
    /// Which measuring points to switch off and on at random; `None`: all are on.
    pub perturbation: Option<perturbation::Wanted>,
    /// Functions to record of a program that nobody edited.
    pub functions: Option<Functions>,
}

/// What the user sees meanwhile.
#[derive(Clone, Copy, Debug)]
pub enum Tell {
    /// The program runs.
    Recording(Progress, Duration),
    /// The program has ended; the share of the trace that is kept, 0 to 1.
    Keeping(f64),
}

/// Pause between two rounds, unless there was much to do: 1 ms of one thread at
/// full speed is 1.5 MB in its ring.
const PAUSE: Duration = Duration::from_millis(1);
/// What is much.
const BUSY_BYTES: u64 = 4 << 20;
/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(200);

/// Records a program until it and its children have ended.
///
/// # Errors
/// The program could not be started, or the trace could not be kept; what was
/// recorded is still in the trace directory.
pub fn record(request: Request, mut told: impl FnMut(Tell)) -> Result<Manifest, TraceError> {
    let trace = &request.trace;
    let session = Session::create(request.settings.clone())?;
    // From here on orphans of the program are our children, so that the
    // recording ends when the last one has.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::Pid::INIT));
    let mut signals = SignalsInfo::<WithOrigin>::new([
        SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD,
    ])
    .map_err(|e| TraceError::Recording(format!("cannot watch for signals: {e}")))?;
    make_trace_dir(trace)?;
    let started = Instant::now();
    let mut manifest = first_manifest(&request, &session);
    let raw = trace.join(RAW_FILE);
    let Begun {
        mut collector,
        kernel,
        switcher,
        functions,
        child,
    } = match begin(&request, &session, &mut manifest) {
        Ok(begun) => begun,
        Err(error) => {
            remove_empty(trace);
            return Err(error);
        }
    };
    // Held while we record: who opens the trace meanwhile sees it.
    let lock = std::fs::File::open(&raw).map_err(TraceError::io(&raw, "cannot open"))?;
    let _ = rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive);

    let exit = watch(&session, &mut collector, child, &mut signals, |progress| {
        told(Tell::Recording(progress, started.elapsed()));
    });
    let pairs = switcher.map(Switcher::finish);
    session.switch(false);
    while collector.round(&session, true) > 0 {}
    if let (Some(about), Some(levels)) = (&mut manifest.perturbation, &collector.levels) {
        about.pairs = pairs.unwrap_or(0);
        (about.kept, about.half_ns) = (levels.kept(), levels.half_ns());
        manifest.warnings.extend(perturbation::remark(about));
    }
    manifest.warnings.extend(kernel.and_then(Watching::finish));
    let lost_no_ring = session.lost_no_ring();
    let (names, threads) = crate::names::read(session.dir());
    if let Some(functions) = functions {
        manifest.warnings.extend(functions.finish(&names));
    }
    manifest.sampled = std::mem::take(&mut collector.sampled);
    manifest.sampled.sort_by_key(|s| (s.ring, s.event));
    let (rings, warnings, written) = collector.close();

    manifest.exit = Some(exit);
    manifest.duration_ns = i64::try_from(started.elapsed().as_nanos()).ok();
    manifest.clock.anchors.extend(anchor(&request));
    manifest.names = merge_names(names, &request.names);
    manifest.threads = threads;
    manifest.rings = rings;
    manifest.lost = lost_no_ring;
    manifest.session = None;
    manifest.warnings.extend(warnings);
    if manifest.rings.is_empty() && lost_no_ring == 0 && request.functions.is_none() {
        manifest.warnings.push(
            "the program recorded no event: is it built with undertick.h or the undertick crate, and not with UNDERTICK_DISABLE?"
                .to_owned(),
        );
    }
    if lost_no_ring > 0 {
        manifest.warnings.push(format!(
            "{lost_no_ring} events lost because their thread could get no ring (is {} full?)",
            session
                .dir()
                .parent()
                .unwrap_or(Path::new("/dev/shm"))
                .display()
        ));
    }
    drop(session);
    if let Err(error) = written {
        manifest
            .warnings
            .push(format!("the disk refused data while recording: {error}"));
        let _ = keep::write_manifest(trace, &manifest);
        return Err(TraceError::io(
            &raw,
            "recording ended early; what is there can be read",
        )(error));
    }
    keep::write_manifest(trace, &manifest)?;
    drop(lock);
    keep::finish(trace, &mut manifest, |share| told(Tell::Keeping(share)))?;
    Ok(manifest)
}

fn make_trace_dir(trace: &Path) -> Result<(), TraceError> {
    std::fs::create_dir(trace).map_err(|error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            TraceError::Usage(format!(
                "{}: exists already; remove it or give another name with -o",
                trace.display()
            ))
        } else {
            TraceError::io(trace, "cannot make the trace directory")(error)
        }
    })
}

/// What runs while the program does, and the program.
struct Begun {
    collector: Collector,
    kernel: Option<Watching>,
    switcher: Option<Switcher>,
    functions: Option<Recorded>,
    child: Child,
}

/// The kernel is watched before there is a program, because it inherits that.
fn begin(
    request: &Request,
    session: &Session,
    manifest: &mut Manifest,
) -> Result<Begun, TraceError> {
    let trace = &request.trace;
    let facts = &request.facts;
    let functions = (request.functions.as_ref())
        .map(|functions| functions.start(session.dir(), trace))
        .transpose()?;
    let (epochs, told) = request.perturbation.as_ref().map(|_| channel()).unzip();
    let (kernel, about) = Watcher::start(request.kernel, trace, facts, told)?.unzip();
    manifest.kernel = about;
    keep::write_manifest(trace, manifest)?;
    let mut collector = Collector::new(session, &trace.join(RAW_FILE))?;
    let plan = request.perturbation.as_ref().map(|wanted| {
        let levels = Levels::new(wanted.clone(), facts.rate.claim.rate.ns_per_tick());
        levels.start(|event, is_kept| session.keep(event, is_kept));
        let plan = levels.plan();
        collector.levels = Some(levels);
        plan
    });
    let switcher = match plan.zip(epochs) {
        Some((plan, epochs)) => {
            let clock = Source::open(facts.clock)
                .map_err(|error| TraceError::Recording(format!("the trace clock: {error:?}")))?;
            let page = open_control(session.dir())?;
            let of_kernel = request.perturbation == Some(perturbation::Wanted::Kernel);
            let tracing = kernel.as_ref().and_then(Watcher::tracing_switch);
            if of_kernel && tracing.is_none() {
                return Err(perturbation::without_tracefs(manifest.kernel.as_ref()));
            }
            let tracing = tracing.filter(|_| of_kernel);
            Some(Switcher::start(page, tracing, clock, plan, epochs)?)
        }
        None => None,
    };
    let announces = kernel.as_ref().and_then(Watcher::child_announces);
    let kernel = kernel.map(Watcher::watch).transpose()?;
    match start(&request.command, session, announces, functions.as_ref()) {
        Ok(child) => Ok(Begun {
            collector,
            kernel,
            switcher,
            functions,
            child,
        }),
        Err(error) => {
            // Waits until what was opened is given back.
            switcher.map(Switcher::finish);
            kernel.and_then(Watching::finish);
            Err(error)
        }
    }
}

/// Takes away a trace that never began: only what we made.
fn remove_empty(trace: &Path) {
    for file in [MANIFEST_FILE, RAW_FILE, RAW_KERNEL_FILE] {
        let _ = std::fs::remove_file(trace.join(file));
    }
    let _ = std::fs::remove_dir(trace);
}

fn start(
    command: &[OsString],
    session: &Session,
    announces: Option<(RawFd, RawFd)>,
    functions: Option<&Recorded>,
) -> Result<Child, TraceError> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| TraceError::Usage("no program to record was given".to_owned()))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env(undertick_ring::layout::SESSION_ENV, session.dir())
        .envs(functions.map(Recorded::variable));
    // SAFETY: sigprocmask, signal, getpid and write are safe between fork and exec.
    unsafe {
        command.pre_exec(move || {
            if let Some(file) = announces {
                kernel::announce(file);
            }
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            Ok(())
        });
    }
    command.spawn().map_err(|error| {
        let name = program.to_string_lossy();
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
    session: &Session,
    collector: &mut Collector,
    child: Child,
    signals: &mut SignalsInfo<WithOrigin>,
    mut told: impl FnMut(Progress),
) -> manifest::Exit {
    let mut exit = manifest::Exit {
        status: None,
        signal: None,
        interrupted: false,
    };
    let main = child.id() as libc::pid_t;
    let mut interrupts = 0;
    let mut last_told = Instant::now();
    loop {
        for origin in signals.pending() {
            if origin.signal == SIGCHLD {
                continue;
            }
            exit.interrupted |= matches!(origin.signal, SIGINT | SIGTERM | SIGQUIT | SIGHUP);
            interrupts += u32::from(origin.signal == SIGINT);
            pass_on(&origin, main);
        }
        let moved = collector.round(session, false);
        let all_ended = reap(main, &mut exit);
        if all_ended || interrupts >= 2 {
            return exit;
        }
        if last_told.elapsed() >= TELL_EVERY {
            last_told = Instant::now();
            told(collector.progress(session));
        }
        if moved < BUSY_BYTES {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Hands a signal to the program, except one that the terminal sent to it too.
fn pass_on(origin: &Origin, main: libc::pid_t) {
    let from_terminal = matches!(origin.cause, Cause::Kernel);
    if !from_terminal {
        // SAFETY: a signal to our own child.
        unsafe { libc::kill(main, origin.signal) };
    }
}

/// Takes note of children that ended; true when there are none left.
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

fn merge_names(mut names: Vec<manifest::Name>, file: &[manifest::Name]) -> Vec<manifest::Name> {
    names.retain(|known| !file.iter().any(|given| given.event == known.event));
    names.extend_from_slice(file);
    names
}

fn anchor(request: &Request) -> Option<Anchor> {
    let source = Source::open(request.facts.clock).ok()?;
    let anchor = undertick_clock::bracket::anchor(source, 1)?;
    Some(Anchor {
        ticks: anchor.ticks as i64,
        unix_ns: anchor.unix_ns,
        error_ns: anchor.error_ns,
    })
}

fn first_manifest(request: &Request, session: &Session) -> Manifest {
    let uname = rustix::system::uname();
    let text = |c: &std::ffi::CStr| c.to_string_lossy().into_owned();
    let facts = &request.facts;
    let rate = &facts.rate.claim;
    let mut warnings = session.warnings.clone();
    if let undertick_clock::Why::Fallback(why) = &request.choice.why {
        warnings.push(format!(
            "recorded with {} because the counter is not usable: {why}",
            facts.clock.name()
        ));
    }
    warnings.extend(facts.rate.refused.iter().map(ToString::to_string));
    let started = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Manifest {
        schema_version: SCHEMA_VERSION,
        state: State::Recording,
        undertick_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ns: i64::try_from(started.as_nanos()).unwrap_or(i64::MAX),
        duration_ns: None,
        host: manifest::Host {
            name: text(uname.nodename()),
            kernel: text(uname.release()),
            arch: text(uname.machine()),
            cpus: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
            cpu_model: cpu_model(),
        },
        command: request
            .command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        exit: None,
        clock: manifest::Clock {
            name: facts.clock.name().to_owned(),
            ticks_per_second_numerator: rate.rate.numerator(),
            ticks_per_second_denominator: rate.rate.denominator(),
            rate_source: rate.source.name().to_owned(),
            rate_error_ppb: rate.error_ppb,
            granularity_ticks: facts.granularity.map_or(1, |g| g.step_ticks),
            read_cost_ns_median: facts.read_cost.map_or(f64::NAN, |cost| cost.cost_ns_median),
            anchors: anchor(request).into_iter().collect(),
            across_cpus: crate::clock_check::across_cpus(facts),
        },
        descheduled: crate::descheduled_self_test(),
        calibration: request.calibration.clone(),
        recorder: manifest::Recorder {
            overflow: format!("{:?}", session.settings().overflow).to_lowercase(),
            ring_bytes: session.settings().ring_bytes,
            budget_bytes: session.budget_bytes(),
        },
        names: request.names.clone(),
        threads: Vec::new(),
        rings: Vec::new(),
        sampled: Vec::new(),
        events: 0,
        lost: 0,
        parts: Vec::new(),
        kernel: None,
        perturbation: request
            .perturbation
            .as_ref()
            .map(perturbation::Wanted::about),
        session: Some(session.dir().to_string_lossy().into_owned()),
        warnings,
    }
}

fn cpu_model() -> String {
    std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_default()
}
