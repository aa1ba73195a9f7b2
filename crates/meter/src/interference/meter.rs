//! Runs the probe, observes the processes beside it, and makes the document.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use undertick_clock::facts::Facts;
use undertick_clock::{Choice, Source, bracket};
use undertick_document::Warning;
use undertick_experiment::ExperimentError;
use undertick_format::manifest::Manifest;
use undertick_record::kernel;
use undertick_record::record::{RecordingProgress, Request as Recording, Watch, record_watched};
use undertick_record::session::Settings;
use undertick_report::interference::{Interference, Probe};
use undertick_ring::Record;

use super::analysis::{self, Run, RunAnalysis};
use super::bursts::{Burst, Decoder, ProbeInfo};
use super::cpu_time::{Candidates, Glance, cpu_time_ns};
use super::probe::Schedule;
use super::suspects::{Look, look};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Request {
    /// The probe's schedule.
    pub schedule: Schedule,
    /// A command that must call [`probe_from`] in its own process: the name of a file with the
    /// schedule is appended.
    pub probe_command: Vec<OsString>,
    /// The recording clock.
    pub choice: Choice,
    /// Facts about that clock.
    pub facts: Facts,
    /// Trace directory to create.
    pub trace: PathBuf,
    /// The kernel evidence to keep in it.
    pub kernel: kernel::Wanted,
    /// Level of the intervals.
    pub level: f64,
}

/// Time between two drains of the rings.
const ROUND_EVERY: Duration = Duration::from_millis(20);
/// Time between two looks at the running processes.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Time between two readings of the processes that used a CPU: shorter than a burst.
const GLANCE_EVERY: Duration = Duration::from_millis(10);
/// Maximum share of the time for looks, and for readings.
const LOOK_SHARE: f64 = 0.01;

/// What has been received from the probe so far.
#[derive(Debug)]
pub(super) struct Heard {
    decoder: Decoder,
    /// The id of the probe's thread, and its process.
    tid: Option<i32>,
    pid: Option<i32>,
    pub(super) bursts: Vec<Burst>,
}

impl Heard {
    pub(super) fn new(ns_per_tick: f64) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            decoder: Decoder::new(ns_per_tick),
            tid: None,
            pid: None,
            bursts: Vec::new(),
        }))
    }

    pub(super) fn probe_info(&self) -> ProbeInfo {
        self.decoder.probe_info()
    }

    /// The tap for a recording.
    pub(super) fn tap(heard: &Rc<RefCell<Self>>, every: Duration) -> Watch {
        let heard = Rc::clone(heard);
        Watch {
            on_manifest: None,
            every,
            tap: Box::new(move |header, records| {
                let mut heard = heard.borrow_mut();
                // Only one thread of the probe writes; another one would not belong to the probe.
                if *heard.tid.get_or_insert(header.tid) != header.tid {
                    return;
                }
                heard.pid = Some(header.pid);
                for words in records {
                    let record = Record::from_words(*words);
                    let burst = heard.decoder.take(&record);
                    heard.bursts.extend(burst);
                }
            }),
        }
    }

    /// Prepares for another probe.
    pub(super) fn again(&mut self) {
        (self.tid, self.pid) = (None, None);
    }

    /// CPU time of this process, of the running probe and of those that have ended, s.
    pub(super) fn use_s(&self) -> f64 {
        let running_ns = self.pid.and_then(cpu_time_ns).unwrap_or(0.0);
        running_ns / 1e9 + own_use_s()
    }
}

/// Measures until the schedule is over, or until a signal ends the probe; calls `progress` with the
/// share done.
///
/// # Errors
/// The probe could not be recorded, or it ended before it sent any data.
pub fn measure(
    request: &Request,
    mut progress: impl FnMut(f64),
) -> Result<Interference, ExperimentError> {
    let ns_per_tick = request.facts.rate.claim.rate.ns_per_tick();
    let heard = Heard::new(ns_per_tick);
    let clock = clock_of(&request.facts)?;
    let aside = Aside::from(request.schedule.cpu);
    let watcher = Watcher::start(clock, ns_per_tick)?;
    let anchor = bracket::anchor(clock, 1);
    let used = own_use_s();
    let begun = Instant::now();
    let total = request.schedule.total.unwrap_or(Duration::MAX);
    let watch = Heard::tap(&heard, ROUND_EVERY);
    let manifest = run_probe(
        request,
        &request.schedule,
        &request.trace,
        watch,
        |elapsed| {
            progress(elapsed.as_secs_f64() / total.as_secs_f64());
        },
    );
    let own_use = (own_use_s() - used) / begun.elapsed().as_secs_f64();
    let (looks, glances) = watcher.finish();
    drop(aside); // what is said of this machine's CPUs must be of all of them
    let manifest = manifest?;
    let heard = heard.borrow();
    let found = analysis::analyse(&Run {
        bursts: &heard.bursts,
        probe_info: heard.probe_info(),
        looks: &looks,
        glances: &glances,
        burst_ns: request.schedule.burst.as_nanos() as f64,
        cpu: request.schedule.cpu,
        level: request.level,
    })
    .ok_or_else(|| {
        ExperimentError::machine("the probe was ended before its first burst was over")
    })?;
    let unix_s = |ns: f64| {
        anchor.map_or(f64::NAN, |a| {
            (a.unix_ns as f64 + (ns - a.ticks as f64 * ns_per_tick)) / 1e9
        })
    };
    let interrupted = manifest.exit.is_some_and(|exit| exit.interrupted);
    let mut document = document(request, heard.probe_info(), &heard.bursts, found, &manifest);
    document.probe.begun_unix_s = unix_s(heard.bursts[0].begun_ns);
    document.probe.own_use = Some(own_use);
    document.interrupted = interrupted;
    Ok(document)
}

/// Makes the document, except for the time of day.
pub(super) fn document(
    request: &Request,
    probe_info: ProbeInfo,
    bursts: &[Burst],
    found: RunAnalysis,
    manifest: &Manifest,
) -> Interference {
    let schedule = &request.schedule;
    let mut warnings = found.warnings;
    let mark = manifest.rings.iter().any(|ring| ring.received > 0)
        && !warnings.iter().any(|w| w.code == "taken_off_unknown");
    warnings.extend(remarks(schedule, bursts, manifest));
    let last = bursts.last();
    let end_ns = last.map_or(0.0, |b| b.begun_ns + b.wall_ns());
    Interference {
        schema_version: 1,
        probe: Probe {
            mix: schedule.mix.word().to_owned(),
            work: schedule.mix.unit().to_owned(),
            clean_rate: Some(found.clean_rate),
            cpu: schedule.cpu,
            footprint_bytes: probe_info.footprint_bytes,
            bursts: bursts.len() as u64,
            samples: found.samples,
            burst_s: schedule.burst.as_secs_f64(),
            every_s: schedule.every.as_secs_f64(),
            begun_unix_s: f64::NAN,
            seconds: (end_ns - bursts.first().map_or(0.0, |b| b.begun_ns)) / 1e9,
            own_use: None,
            taken_off_by: if mark { "mark" } else { "unknown" }.to_owned(),
        },
        peaks: found.peaks,
        disturbers: found.disturbers,
        mean_loss: found.mean_loss,
        losses: found.losses,
        reference_drift: Some(found.reference_drift),
        histogram: found.histogram,
        interruptions: found.interruptions,
        predictions: Vec::new(),
        compared: None,
        warnings,
        interrupted: false,
    }
}

fn remarks(schedule: &Schedule, bursts: &[Burst], manifest: &Manifest) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code: &str, text: String| {
        warnings.push(Warning {
            code: code.to_owned(),
            text,
        });
    };
    let elsewhere = |cpu: usize| {
        let on = |b: &&Burst| b.cpu.is_some_and(|c| usize::from(c) != cpu);
        bursts.iter().filter(on).count()
    };
    match schedule.cpu.map(|cpu| (cpu, elsewhere(cpu))) {
        Some((cpu, n)) if n > 0 => warn(
            "not_placed",
            format!(
                "{n} of {} bursts were not on CPU {cpu}: is it allowed here?",
                bursts.len()
            ),
        ),
        _ => {}
    }
    if let Some(total) = schedule.total {
        let due = (total.as_secs_f64() / schedule.every.as_secs_f64()).ceil() as usize;
        let exit = manifest.exit.is_some_and(|e| e.interrupted);
        if !exit && bursts.len() + due / 20 + 1 < due {
            warn(
                "bursts_left_out",
                format!(
                    "{} of {due} bursts were left out because the probe had no CPU when they were due: what \
                     kept it from its CPU is counted too little",
                    due - bursts.len()
                ),
            );
        }
    }
    if std::thread::available_parallelism().map_or(1, usize::from) == 1 {
        warn(
            "one_cpu",
            "This machine has one CPU: nobody can use the memory beside the probe but the host's other guests, \
             and the meter itself takes the probe's CPU now and then."
                .to_owned(),
        );
    }
    for text in &manifest.warnings {
        warn("recording", text.clone());
    }
    warnings
}

/// Records a probe.
pub(super) fn run_probe(
    request: &Request,
    schedule: &Schedule,
    trace: &Path,
    watch: Watch,
    mut progress: impl FnMut(Duration),
) -> Result<Manifest, ExperimentError> {
    let file = tempfile::NamedTempFile::new()
        .and_then(|file| {
            serde_json::to_writer(&file, schedule)?;
            Ok(file)
        })
        .map_err(|e| ExperimentError::machine(format!("no temporary file: {e}")))?;
    let mut command = request.probe_command.clone();
    command.push(file.path().as_os_str().to_owned());
    let recording = Recording {
        trace: trace.to_owned(),
        command,
        settings: Settings::growing(request.choice.clock),
        choice: request.choice,
        facts: request.facts.clone(),
        calibration: None,
        names: Vec::new(),
        kernel: request.kernel,
        stacks: None,
        perturbation: None,
        triggers: None,
        functions: None,
        with: Vec::new(),
    };
    let manifest = record_watched(recording, watch, &mut |update| {
        if let RecordingProgress::Recording(_, elapsed) = update {
            progress(elapsed);
        }
    })?;
    Ok(manifest)
}

/// Runs the probe in this process: `file` holds its schedule.
///
/// # Errors
/// There is no such file, or its content is not a schedule.
pub fn probe_from(file: &Path) -> Result<(), ExperimentError> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| ExperimentError::machine(format!("{}: {e}", file.display())))?;
    let schedule = serde_json::from_str(&text)
        .map_err(|e| ExperimentError::machine(format!("{}: {e}", file.display())))?;
    super::probe::probe(&schedule);
    Ok(())
}

pub(super) fn clock_of(facts: &Facts) -> Result<Source, ExperimentError> {
    Source::open(facts.clock)
        .map_err(|e| ExperimentError::machine(format!("the trace clock: {e:?}")))
}

/// CPU time of this process and of children that have ended, s.
fn own_use_s() -> f64 {
    let of = |who| {
        let mut used = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the kernel fills the live local, which is all zeros if it does not.
        let used = unsafe {
            libc::getrusage(who, used.as_mut_ptr());
            used.assume_init()
        };
        let s = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
        s(used.ru_utime) + s(used.ru_stime)
    };
    of(libc::RUSAGE_SELF) + of(libc::RUSAGE_CHILDREN)
}

/// CPU time of this thread, which may have waited for a CPU for longer than it used one.
fn own_thread_use() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

/// Keeps this thread and those that it creates off the probe's CPU while it lives, because the
/// meter must not be the disturber. Where there is no other CPU the thread stays.
pub(super) struct Aside(Option<rustix::thread::CpuSet>);

impl Aside {
    pub(super) fn from(probes: Option<usize>) -> Self {
        let before = rustix::thread::sched_getaffinity(None).ok();
        let moved = before.zip(probes).filter(|(before, cpu)| {
            let mut others = *before;
            others.unset(*cpu);
            others.count() > 0 && rustix::thread::sched_setaffinity(None, &others).is_ok()
        });
        Self(moved.map(|(before, _)| before))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = rustix::thread::sched_setaffinity(None, before);
        }
    }
}

/// Looks at the running processes, on a separate thread.
struct Watcher {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(Vec<Look>, Vec<Glance>)>,
}

impl Watcher {
    fn start(clock: Source, ns_per_tick: f64) -> Result<Self, ExperimentError> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let at_ns = move || clock.read_ticks() as f64 * ns_per_tick;
        let thread = std::thread::Builder::new()
            .name("who runs".to_owned())
            .spawn(move || {
                let mut looks: Vec<Look> = Vec::new();
                let mut candidates = Candidates::default();
                let mut due = Instant::now();
                while !stopped.load(Ordering::Relaxed) {
                    let (begun, used) = (Instant::now(), own_thread_use());
                    let rest = |every: Duration| {
                        every.max((own_thread_use() - used).mul_f64(1.0 / LOOK_SHARE))
                    };
                    if begun >= due {
                        looks.push(look(at_ns));
                        due = begun + rest(LOOK_EVERY);
                        if let [.., before, after] = &looks[..] {
                            candidates.choose(before, after);
                        }
                        std::thread::sleep(GLANCE_EVERY);
                    } else {
                        candidates.glance(at_ns);
                        std::thread::sleep(rest(GLANCE_EVERY));
                    }
                }
                (looks, candidates.glances)
            })
            .map_err(|e| ExperimentError::machine(format!("no thread to watch who runs: {e}")))?;
        Ok(Self { stop, thread })
    }

    fn finish(self) -> (Vec<Look>, Vec<Glance>) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}
