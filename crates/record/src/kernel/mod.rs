//! What the kernel did to the program's threads: taken off a CPU, interrupted, moved, woken.
//!
//! **Question.** Which named disturbance fell into an interval that was too long?
//!
//! **Method.** Each permitted source runs while the program runs: perf's context switches of the
//! program's own threads (no privilege), the kernel's trace buffers (tracefs; root or
//! permission), and the steal counters. Their records go to a raw file (`kernel.utk`), which a
//! crash only cuts short. When the recording ends, the records are put in order of time, on the
//! trace clock, and separated by thread. They are stored as rows with mode 1 in `kernel.parquet`.
//!
//! **Caveats.** The bound on the times is in the manifest
//! ([`undertick_format::manifest::Kernel`]), as are losses, and sources that could not be used. Programs that write to another session are not
//! distinguished from this one.

mod anchors;
mod compare;
mod decode;
pub(crate) mod finalize;
mod format;
mod opening;
mod order;
mod page;
mod perf;
pub(crate) mod raw;
pub mod rows;
pub(crate) mod sampling;
mod steal;
pub(crate) mod threads;
mod times;
mod tracefs;

use std::fs::File;
use std::os::fd::RawFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use anchors::Anchors;
pub use opening::Opening;
use perf::Perf;
use raw::{Record, RecordKind, Writer};
pub use sampling::MIN_EVERY;
use sampling::Sampling;
use steal::Steal;
use tracefs::Tracefs;
use undertick_clock::facts::Facts;
use undertick_clock::{ClockId, Source};
use undertick_format::TraceError;
use undertick_format::manifest::{Kernel, KernelSource};

use crate::perturbation::Epoch;
use crate::trace_dir::TraceDir;

/// Which kernel events a recording is to hold as evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// All sources that are permitted here.
    #[default]
    Auto,
    /// As `Auto`, but a recording that can have no source is refused.
    On,
    /// None.
    Off,
}

/// Pause between two rounds over the sources.
const ROUND_EVERY: Duration = Duration::from_millis(10);
/// Pause between two readings of the steal counters, which move in steps of 10 ms.
const STEAL_EVERY: Duration = Duration::from_millis(100);

/// The sources that a recording could use here, each opened and closed again; of those that it
/// could not use, why.
#[must_use]
pub fn sources_here(clock: ClockId) -> Vec<KernelSource> {
    vec![
        of_tracefs(&Tracefs::open(clock, &cpus()), clock),
        of_perf(&Perf::open(clock, None, None), clock),
        of_steal(&Steal::open(), clock),
    ]
}

/// Waits until what earlier recordings of this process opened is removed, which takes time of all
/// CPUs.
pub fn wait_for_removals() {
    tracefs::wait_for_removals();
}

/// Which processes' events are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A program that will be started.
    Child,
    /// A running process, and its future children.
    Running(i32),
}

/// Which part of the events is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// All events from the beginning on.
    All,
    /// The last records, for a flight recorder.
    Last,
}

/// The open sources while the program runs.
#[derive(Debug)]
pub(crate) struct Watcher {
    writer: Writer,
    clock: Source,
    tracefs: Option<Tracefs>,
    /// The previous round read everything.
    complete: bool,
    perf: Option<Perf>,
    sampling: Option<Sampling>,
    steal: Option<Steal>,
    /// Switches of the measuring points; they become rows among the kernel's.
    epochs: Option<Receiver<Epoch>>,
    anchors: Option<Anchors>,
    next_steal: Instant,
}

impl Watcher {
    /// Opens the sources. For a program that will be started, this is called before that and on
    /// the thread that will start it; `opening` may have begun with it. `None` if no source is wanted and there are no `epochs` to
    /// record. The second value is the description for the manifest.
    ///
    /// # Errors
    /// [`Wanted::On`] was given and no source of context switches can be used, stacks are wanted and perf
    /// cannot be used, or the raw file cannot be made.
    pub(crate) fn start(
        (wanted, stacks): (Wanted, Option<Duration>),
        trace: &TraceDir,
        facts: &Facts,
        epochs: Option<Receiver<Epoch>>,
        target: Target,
        length: Length,
        opening: Option<Opening>,
    ) -> Result<Option<(Self, Kernel)>, TraceError> {
        if wanted == Wanted::Off && epochs.is_none() {
            return Ok(None);
        }
        let clock = Source::open(facts.clock)
            .map_err(|error| TraceError::Recording(format!("the trace clock: {error:?}")))?;
        let threads = match target {
            Target::Child => None,
            Target::Running(pid) => Some(threads_of(pid)),
        };
        let mut sampling = (stacks.filter(|_| wanted != Wanted::Off))
            .map(|every| Sampling::start(trace, every))
            .transpose()?;
        let (tracefs, perf, steal) = if wanted == Wanted::Off {
            let why = || "switched off by --kernel off".to_owned();
            (Err(why()), Err(why()), Err(why()))
        } else {
            let begun = opening.and_then(Opening::wait);
            (
                begun.unwrap_or_else(|| Tracefs::open(facts.clock, &cpus())),
                Perf::open(facts.clock, threads.as_deref(), sampling.as_mut()),
                Steal::open(),
            )
        };
        let sources = vec![
            of_tracefs(&tracefs, facts.clock),
            of_perf(&perf, facts.clock),
            of_steal(&steal, facts.clock),
        ];
        if wanted == Wanted::On && tracefs.is_err() && perf.is_err() {
            return Err(nothing(&sources));
        }
        if let (Some(_), Err(why)) = (&sampling, &perf) {
            return Err(TraceError::Recording(format!(
                "--stacks: {why}; or record without --stacks"
            )));
        }
        let (tracefs, perf) = (tracefs.ok(), perf.ok());
        let mapped = tracefs
            .as_ref()
            .is_some_and(|tracefs| tracefs.clock().mapped)
            || perf.as_ref().is_some_and(|perf| perf.clock().mapped);
        let mut watcher = Self {
            writer: match length {
                Length::All => Writer::create(trace)?,
                Length::Last => Writer::create(trace)?.keep_the_last(raw::MOST_LAST_BYTES),
            },
            clock,
            tracefs,
            complete: true,
            perf,
            sampling,
            steal: steal.ok(),
            epochs,
            anchors: if mapped { Anchors::new(facts) } else { None },
            next_steal: Instant::now() + STEAL_EVERY,
        };
        watcher.round(true);
        if let (Target::Running(pid), Some(tracefs)) = (target, &mut watcher.tracefs) {
            let (ticks, writer) = (watcher.clock.read_ticks(), &mut watcher.writer);
            tracefs.follow(pid, ticks, |record| writer.push(&record));
        }
        let kernel = Kernel {
            sources,
            stacks: (watcher.sampling.as_ref()).map(|sampling| sampling.description.clone()),
            ..Kernel::default()
        };
        Ok(Some((watcher, kernel)))
    }

    /// The files to which the child writes its process id, and then a 1, before it executes the
    /// program.
    pub(crate) fn child_announces(&self) -> Option<(RawFd, RawFd)> {
        self.tracefs.as_ref()?.child_announces()
    }

    /// The file that switches the kernel's trace off and on, if it is used.
    pub(crate) fn tracing_switch(&self) -> Option<File> {
        self.tracefs.as_ref()?.switch()
    }

    /// Records, as a row, that earlier events are missing.
    pub(crate) fn has_missed(&mut self) {
        let ticks = self.clock.read_ticks();
        for kind in [RecordKind::TracefsLost, RecordKind::PerfLost] {
            self.writer.push(&Record {
                payload: -1,
                ..Record::new(kind, ticks)
            });
        }
    }

    /// Continues in a separate thread: draining the rings must not wait for a disk that is slow
    /// to take these records, nor for their decoding.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn watch(mut self) -> Result<Watching, TraceError> {
        let (stop, stopped) = channel();
        let thread = Builder::new()
            .name("undertick trace".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(ROUND_EVERY) == Err(RecvTimeoutError::Timeout) {
                    self.round(false);
                }
                self
            })
            .map_err(|e| TraceError::Recording(format!("no thread for kernel events: {e}")))?;
        Ok(Watching { stop, thread })
    }

    /// Reads what the sources have; with `now`, also what is not yet due.
    fn round(&mut self, now: bool) {
        let at = Instant::now();
        let writer = &mut self.writer;
        // Read before the sources: what is not read in this round is later.
        let ticks = self.clock.read_ticks();
        if self.complete {
            writer.push(&Record::new(RecordKind::Round, ticks));
        }
        if let Some(anchors) = &mut self.anchors {
            anchors.take(at, now, writer);
        }
        if let Some(tracefs) = &mut self.tracefs {
            self.complete = tracefs.drain(|record| writer.push(&record));
        }
        if let Some(perf) = &mut self.perf {
            // Stacks are written before the records that refer to them, however many records there are.
            let mut records = Vec::new();
            perf.drain(self.sampling.as_mut(), |record| records.push(record));
            if let Some(sampling) = &mut self.sampling {
                sampling.flush();
            }
            records.iter().for_each(|record| writer.push(record));
        }
        for epoch in self.epochs.iter().flat_map(Receiver::try_iter) {
            writer.push(&Record {
                a: epoch.state as i32,
                payload: (epoch.after_ticks - epoch.before_ticks) as i64,
                ..Record::new(RecordKind::Epoch, epoch.before_ticks)
            });
        }
        if now || at >= self.next_steal {
            self.next_steal = at + STEAL_EVERY;
            if let Some(steal) = &mut self.steal {
                steal.sample(ticks, |record| writer.push(&record));
            }
        }
        writer.flush();
    }

    /// Makes the last round; returns a description of what went wrong before, if anything did.
    fn finish(mut self) -> Option<String> {
        if let Some(tracefs) = &mut self.tracefs {
            tracefs.stop();
        }
        self.round(true);
        while !self.complete {
            self.round(true);
        }
        let now = self.clock.read_ticks();
        if let Some(perf) = &mut self.perf {
            perf.unreported_losses(now, |record| self.writer.push(&record));
        }
        let of_stacks = self.sampling.and_then(Sampling::finish);
        let of_events = self.writer.finish().map(|error| {
            format!(
                "the disk refused evidence of the kernel while recording, it ends early: {error}"
            )
        });
        of_events.or(of_stacks)
    }
}

/// The sources, watched by a thread.
#[derive(Debug)]
pub(crate) struct Watching {
    stop: Sender<()>,
    thread: JoinHandle<Watcher>,
}

impl Watching {
    /// Reads the rest; returns a description of what went wrong before, if anything did.
    pub(crate) fn finish(self) -> Option<String> {
        drop(self.stop);
        match self.thread.join() {
            Ok(watcher) => watcher.finish(),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn nothing(sources: &[KernelSource]) -> TraceError {
    let why: Vec<String> = sources
        .iter()
        .filter(|source| !source.used)
        .map(|source| format!("{}: {}", source.name, source.why))
        .collect();
    TraceError::Recording(format!(
        "--kernel on: no source of context switches can be used here; {}; or record with --kernel auto",
        why.join("; ")
    ))
}

fn source(name: &str, tells: &[&str], clock: &str) -> KernelSource {
    KernelSource {
        name: name.to_owned(),
        used: true,
        why: String::new(),
        tells: tells.iter().map(ToString::to_string).collect(),
        records: 0,
        lost: 0,
        clock: clock.to_owned(),
        error_ns: 0.0,
    }
}

fn of_tracefs(tracefs: &Result<Tracefs, String>, trace: ClockId) -> KernelSource {
    let tells = [
        "switch_out",
        "switch_in",
        "migrate",
        "waking",
        "interrupt",
        "soft_interrupt",
        "fault",
        "frequency",
    ];
    let mut about = source("tracefs", &tells, trace.name());
    match tracefs {
        Ok(tracefs) => {
            if tracefs.clock().mapped {
                ClockId::MonotonicRaw.name().clone_into(&mut about.clock);
            }
            if !tracefs.missing.is_empty() {
                about.why = format!("this kernel has no {}", tracefs.missing.join(", "));
            }
        }
        Err(why) => (about.used, about.why) = (false, why.clone()),
    }
    about
}

fn of_perf(perf: &Result<Perf, String>, trace: ClockId) -> KernelSource {
    let clock = perf::PerfClock::for_trace(trace);
    let tells = ["switch_out", "switch_in", "migrate"];
    let mut about = source("perf", &tells, clock.name());
    match perf {
        Ok(perf) => {
            if let Some(bytes) = perf.small() {
                about.why = format!(
                    "its buffers are only {} KiB a CPU, because no more memory may be locked (ulimit -l, \
                     /proc/sys/kernel/perf_event_mlock_kb): records are lost sooner",
                    bytes / 1024
                );
            }
        }
        Err(why) => (about.used, about.why) = (false, why.clone()),
    }
    about
}

fn of_steal(steal: &Result<Steal, String>, trace: ClockId) -> KernelSource {
    let mut about = source("proc_stat", &["steal"], trace.name());
    if let Err(why) = steal {
        (about.used, about.why) = (false, why.clone());
    }
    about
}

/// Writes the calling process's id to the first file and 1 to the second, between fork and exec:
/// it allocates no memory and takes no lock.
pub(crate) fn announce((file, on): (RawFd, RawFd)) {
    let mut text = [0; 12];
    let mut at = text.len();
    // SAFETY: getpid always succeeds.
    let mut rest = unsafe { libc::getpid() };
    while rest > 0 {
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let digits = &text[at..];
    // SAFETY: the bytes are there. If it fails the recording has no evidence from
    // there, and says so.
    unsafe {
        if libc::write(file, digits.as_ptr().cast(), digits.len()) > 0 {
            libc::write(on, c"1".as_ptr().cast(), 1);
        }
    }
}

/// The threads of a process.
fn threads_of(pid: i32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let tids = tasks.into_iter().flatten().flatten();
    tids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The CPUs that are online now.
#[must_use]
pub fn cpus() -> Vec<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    list_of_cpus(&text)
}

/// Parses a list of CPUs: `0-3,8` is 0, 1, 2, 3, 8.
fn list_of_cpus(text: &str) -> Vec<u32> {
    text.trim()
        .split(',')
        .filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some(first.parse::<u32>().ok()?..=last.parse().ok()?)
        })
        .flatten()
        .take(1 << 14)
        .collect()
}

#[cfg(test)]
mod tests;
