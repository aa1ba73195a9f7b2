//! What recording a started program and recording a running one have in common: the trace
//! directory, the loop that drains, and the end.

mod account;
mod snapshots;
mod triggered;
mod watched;

use std::fs::File;
use std::os::fd::RawFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use undertick_clock::facts::Facts;
use undertick_clock::{ClockId, Source};
use undertick_format::TraceError;
use undertick_format::files::RAW_FILE;
use undertick_format::manifest::{self, Manifest};
use undertick_ring::Overflow;

use crate::accounts::Program;
use crate::collector::Collector;
use crate::description::{first_manifest, flight, keep_manifest, moved, nothing_recorded};
use crate::finalize::{self, remove_empty};
use crate::functions::Recorded;
use crate::interposed;
use crate::kernel::{self, Length, Opening, Target, Watcher, Watching};
use crate::output;
use crate::perturbation::{self, Levels, Switcher};
use crate::preload::Preloads;
use crate::request::{OnManifest, PAUSE, RecordingProgress, Request};
use crate::session::{Session, Settings};
use crate::session_identity;
use crate::trace_dir::TraceDir;
use crate::triggers::SnapshotMade;

use triggered::Triggered;

/// Pause of a flight recorder, which has nothing to drain: it only looks for threads that have
/// ended, while there is room for them.
const FLIGHT_PAUSE: Duration = Duration::from_millis(10);
/// A round that drains more than this is followed by the next one without a pause.
const BUSY_BYTES: u64 = 4 << 20;
/// How often progress is reported.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// How often requested sampling rates are passed to the program.
const RATES_EVERY: Duration = Duration::from_millis(100);
/// How long to wait for points that were executing when recording was switched off. A point takes
/// nanoseconds, unless its thread lost its CPU.
const LAST_POINTS: Duration = Duration::from_millis(5);
/// How long a ring that was being made at that time may take to become complete.
const LAST_RINGS: Duration = Duration::from_millis(200);

/// How long to drain rings that are still made after the program has ended or was told to stop
/// recording.
const LAST_ROUNDS: Duration = Duration::from_secs(10);
/// A snapshot, or why there is none.
type Snapshot = Result<SnapshotMade, String>;

/// The end of a recording that is finished later, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// How the program ended, as the recorder saw it.
    pub(crate) exit: Option<manifest::Exit>,
    pub(crate) duration_ns: Option<i64>,
    /// The clock has not restarted since.
    pub(crate) is_same_clock: bool,
}

/// A recording in progress.
pub(crate) struct RecordingLoop {
    trace: TraceDir,
    /// The clock of the trace.
    clock: ClockId,
    /// Names that replace those of the program.
    given: Vec<manifest::Name>,
    session: Session,
    manifest: Manifest,
    collector: Collector,
    kernel: Option<Watching>,
    switcher: Option<Switcher>,
    functions: Option<Recorded>,
    preloads: Preloads,
    started: Instant,
    /// How long earlier recorders, which were killed, had recorded.
    before: Duration,
    reported: Instant,
    passed_on: Instant,
    on_manifest: Option<OnManifest>,
    /// Rules that make snapshots.
    triggered: Option<Triggered>,
    /// Results of snapshots that were requested by a signal, or caused by a rule.
    snapshots: (Sender<Snapshot>, Receiver<Snapshot>),
    /// Held while we record, so that any reader of the trace can see it.
    lock: File,
    /// How the recording ended, where it is finished later.
    ended: Option<Ended>,
    /// The number of rings and names for which room is reserved for the manifest.
    set_aside: u64,
}

impl RecordingLoop {
    /// Makes the trace directory, opens the sources, and then lets `start` begin the program or
    /// attach to it. The kernel events are opened before the program starts, because it inherits
    /// them.
    ///
    /// # Errors
    /// Nothing was started, and nothing is left behind.
    pub(crate) fn begin<T>(
        request: &Request,
        session: Session,
        target: Target,
        opening: Option<Opening>,
        start: impl FnOnce(&Session, Option<(RawFd, RawFd)>, &Preloads) -> Result<T, TraceError>,
    ) -> Result<(Self, T), TraceError> {
        // Those of an earlier recording are children of this process, too: the recording of a program
        // ends when no child is left.
        kernel::wait_for_removals();
        let trace = TraceDir::make(&request.trace)?;
        let opened = Self::open(request, &trace, session, target, opening).and_then(
            |(mut recording, kernel)| {
                let announces = kernel.as_ref().and_then(Watcher::child_announces);
                recording.kernel = kernel.map(Watcher::watch).transpose()?;
                match start(&recording.session, announces, &recording.preloads) {
                    Ok(started) => {
                        if recording.session.is_attached() {
                            recording.started = Instant::now(); // what came before was not recorded
                        }
                        Ok((recording, started))
                    }
                    Err(error) => {
                        // Waits until what was opened is given back.
                        recording.switcher.map(Switcher::finish);
                        recording.kernel.and_then(Watching::finish);
                        Err(error)
                    }
                }
            },
        );
        if opened.is_err() {
            remove_empty(&request.trace);
        }
        opened
    }

    fn open(
        request: &Request,
        trace: &TraceDir,
        session: Session,
        target: Target,
        opening: Option<Opening>,
    ) -> Result<(Self, Option<Watcher>), TraceError> {
        let facts = &request.facts;
        let started = Instant::now();
        let mut manifest = first_manifest(request, &session);
        manifest.session_identity = Some(session_identity::bind(session.opened_dir(), trace)?);
        let wanted = (request.functions.as_ref(), request.with.as_slice());
        let (preloads, functions) = interposed::preload(wanted, &session, trace)?;
        let (epochs, switches) = request.perturbation.as_ref().map(|_| channel()).unzip();
        let (kernel, description) = Watcher::start(
            (request.kernel, request.stacks),
            trace,
            facts,
            switches,
            target,
            length_of(&request.settings),
            opening,
        )?
        .unzip();
        manifest.kernel = description;
        let raw = trace.join(RAW_FILE);
        let mut collector = Collector::new(&session, trace)?;
        let lock = (trace.read(RAW_FILE)).map_err(TraceError::io(&raw, "cannot open"))?;
        let _ = rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive);
        // After the lock: with its manifest the directory is a trace, and a process that finds it
        // unlocked would finish it.
        output::write_manifest(trace, &manifest)?;
        output::set_manifest_aside(trace, &manifest, 0, 0);
        let plan = request.perturbation.as_ref().map(|wanted| {
            let levels = Levels::new(wanted.clone(), facts.rate.claim.rate.ns_per_tick());
            levels.start(|event, is_kept| session.keep(event, is_kept));
            let plan = levels.plan();
            collector.levels = Some(levels);
            plan
        });
        let switcher = match plan.zip(epochs) {
            Some((plan, epochs)) => {
                let clock = Source::open(facts.clock).map_err(|error| {
                    TraceError::Recording(format!("the trace clock: {error:?}"))
                })?;
                let of_kernel = request.perturbation == Some(perturbation::Wanted::Kernel);
                let tracing = kernel.as_ref().and_then(Watcher::tracing_switch);
                if of_kernel && tracing.is_none() {
                    return Err(perturbation::without_tracefs(manifest.kernel.as_ref()));
                }
                let tracing = tracing.filter(|_| of_kernel);
                let pages = session.pages_again()?;
                Some(Switcher::start(pages, tracing, clock, plan, epochs)?)
            }
            None => None,
        };
        let ns_per_tick = facts.rate.claim.rate.ns_per_tick();
        let triggered = (request.triggers.clone())
            .map(|triggers| {
                Triggered::start(
                    triggers,
                    &mut collector,
                    facts.clock,
                    ns_per_tick,
                    &request.names,
                    false,
                )
            })
            .transpose()?;
        let recording = Self {
            triggered,
            trace: trace.clone(),
            clock: facts.clock,
            given: request.names.clone(),
            session,
            manifest,
            collector,
            kernel: None,
            switcher,
            functions,
            preloads,
            started,
            before: Duration::ZERO,
            reported: started,
            passed_on: started,
            on_manifest: None,
            snapshots: channel(),
            lock,
            ended: None,
            set_aside: 0,
        };
        Ok((recording, kernel))
    }

    /// Continues a recording after its recorder was killed; `lock` is the lock of its raw file.
    ///
    /// # Errors
    /// What was left cannot be read.
    pub(crate) fn again(
        trace: TraceDir,
        session: Session,
        manifest: Manifest,
        clock: ClockId,
        lock: File,
    ) -> Result<Self, TraceError> {
        let mut collector = Collector::new(&session, &trace)?;
        session
            .warnings
            .iter()
            .for_each(|text| collector.warn(text));
        let now = Instant::now();
        let before = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
            .saturating_sub(Duration::from_nanos(
                u64::try_from(manifest.started_unix_ns).unwrap_or(0),
            ));
        let mut manifest = manifest;
        if manifest.exit.is_none() {
            manifest.warnings.push(
                "the recorder ended before the program did, and another one went on: what found no room in the rings in between is counted as dropped".to_owned(),
            );
        }
        Ok(Self {
            triggered: None,
            trace,
            clock,
            given: manifest.names.clone(),
            session,
            manifest,
            collector,
            kernel: None,
            switcher: None,
            functions: None,
            preloads: Preloads::default(),
            started: now,
            before,
            reported: now,
            passed_on: now,
            on_manifest: None,
            snapshots: channel(),
            lock,
            ended: None,
            set_aside: 0,
        })
    }

    /// Records kernel events from here on, as far as the killed recorder did.
    ///
    /// # Errors
    /// They cannot be written.
    pub(crate) fn watch_kernel(&mut self, facts: &Facts, pid: i32) -> Result<(), TraceError> {
        let of_before = self.manifest.kernel.as_ref();
        if !of_before.is_some_and(|kernel| kernel.sources.iter().any(|source| source.used)) {
            return Ok(());
        }
        crate::record::allow_many_files();
        kernel::raw::set_aside(&self.trace)?;
        let length = length_of(self.session.settings());
        let stacks = of_before.and_then(|kernel| kernel.stacks.as_ref());
        let every = stacks.map(|stacks| Duration::from_nanos(stacks.every_ns));
        let target = Target::Running(pid);
        let start = |every| {
            let wanted = (kernel::Wanted::Auto, every);
            Watcher::start(wanted, &self.trace, facts, None, target, length, None)
        };
        let watcher = match start(every) {
            Err(error) if every.is_some() => {
                let warning = format!("from the resumption on no stacks were sampled: {error}");
                self.manifest.warnings.push(warning);
                start(None)?
            }
            started => started?,
        };
        if let Some((mut watcher, _)) = watcher {
            watcher.has_missed();
            self.kernel = Some(watcher.watch()?);
        }
        Ok(())
    }

    /// Marks the recording as one that ended earlier, as `ended` says.
    pub(crate) const fn end_as(&mut self, ended: Ended) {
        self.ended = Some(ended);
    }

    /// Sets whether rings that no process has open are searched for, among rings of processes
    /// whose ids mean nothing here.
    pub(crate) fn search_orphans(&mut self, is_wanted: bool) {
        self.collector.search_orphans(is_wanted);
    }

    /// Whether there is a ring that is not finished.
    pub(crate) fn has_rings(&self) -> bool {
        self.collector.has_rings()
    }

    /// Drains all rings once and reports progress now and then; returns the bytes drained.
    pub(crate) fn round(&mut self, progress: &mut dyn FnMut(RecordingProgress)) -> u64 {
        let moved = self.collector.round(&self.session, false);
        if self.triggered.is_some() {
            self.look_at_rules();
        }
        if self.reported.elapsed() >= REPORT_EVERY {
            self.reported = Instant::now();
            let counts = self.collector.progress(&self.session);
            progress(RecordingProgress::Recording(
                counts,
                self.before + self.started.elapsed(),
            ));
            self.pass_manifest();
        }
        for made in self.snapshots.1.try_iter() {
            progress(RecordingProgress::Snapshot(made));
        }
        if self.passed_on.elapsed() >= RATES_EVERY {
            self.passed_on = Instant::now();
            self.session.pass_rates_on();
            self.session.write_attach_page_state();
            self.set_manifest_aside();
        }
        moved
    }

    /// Reserves disk space for the manifest before events take it.
    fn set_manifest_aside(&mut self) {
        let (rings, names) = (self.collector.all_rings(), self.session.most_names());
        if rings + names > self.set_aside {
            // More than is needed now: the reservation is not renewed for each ring.
            self.set_aside = (rings + names) * 3 / 2 + 64;
            output::set_manifest_aside(&self.trace, &self.manifest, rings * 2, names * 2);
        }
    }

    /// Pauses until the next round, unless much was drained.
    pub(crate) fn pause(&self, moved: u64, pause: Duration) {
        let (used, budget) = self.collector.segments();
        if moved >= BUSY_BYTES {
        } else if self.is_flight() && used < budget / 2 {
            std::thread::sleep(pause.max(FLIGHT_PAUSE));
        } else {
            std::thread::sleep(pause);
        }
    }

    fn is_flight(&self) -> bool {
        self.session.settings().overflow == Overflow::Overwrite
    }

    /// Writes down which process is recorded, for a recorder that resumes if we are killed.
    pub(crate) fn is_of(&mut self, pid: i32, attached: bool) {
        let started = crate::accounts::started(pid).unwrap_or(0);
        self.collector.is_of(Program {
            pid,
            started,
            attached,
        });
    }

    /// Time since the recording began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Stops recording and drains everything recorded so far.
    fn stop(&mut self) {
        self.session.switch(false);
        if self.session.is_attached() {
            // The program runs on.
            self.collector.stop_counting();
            std::thread::sleep(LAST_POINTS);
            let since = Instant::now();
            self.collector.round(&self.session, false);
            while self.collector.awaits() && since.elapsed() < LAST_RINGS {
                std::thread::sleep(PAUSE);
                self.collector.round(&self.session, false);
            }
            self.session.leave_attach_pages();
        }
        // A program that keeps making rings must not delay the end.
        let since = Instant::now();
        loop {
            let moved = self.collector.round(&self.session, true);
            if moved == 0 || since.elapsed() > LAST_ROUNDS {
                break;
            }
        }
    }

    /// Ends the recording and finalizes the trace.
    ///
    /// # Errors
    /// The disk refused something; what was recorded is still there.
    pub(crate) fn finish(
        mut self,
        exit: manifest::Exit,
        progress: &mut dyn FnMut(RecordingProgress),
    ) -> Result<Manifest, TraceError> {
        let with_functions = self.functions.is_some();
        let pairs = self.switcher.take().map(Switcher::finish);
        // Checked before points are switched off.
        let damage = self.session.damage();
        self.finish_rules(progress);
        self.stop();
        self.account(exit, pairs);
        let (mut manifest, lock, trace) = (self.manifest, self.lock, self.trace);
        manifest.warnings.extend(damage);
        let collected = self.collector.close();
        manifest.rings = collected.rings;
        manifest.sampled = collected.sampled;
        manifest.sampled.sort_by_key(|s| (s.ring, s.event));
        manifest.warnings.extend(collected.warnings);
        if let Some(given_up) = collected.given_up {
            flight(&mut manifest, given_up, None);
        }
        if manifest.rings.is_empty() && manifest.lost == 0 && !with_functions {
            manifest
                .warnings
                .push(nothing_recorded(&self.session).to_owned());
        }
        let missing = interposed::missing(&manifest);
        manifest
            .warnings
            .extend(missing.into_iter().chain(moved(&trace)));
        if let Err(error) = &collected.written {
            manifest
                .warnings
                .push(format!("the disk refused data while recording: {error}"));
        }
        keep_manifest(&trace, &manifest, self.session)?;
        if let Err(error) = collected.written {
            return Err(TraceError::io(
                &trace.join(RAW_FILE),
                "recording ended early; `undertick record --finish` keeps what is there",
            )(error));
        }
        // The lock is held until all is done, so that no other process finishes it too.
        let finished = finalize::finish(&trace, &mut manifest, &mut |share| {
            progress(RecordingProgress::Finalizing(share))
        });
        drop(lock);
        finished?;
        Ok(manifest)
    }
}

/// Which part of the kernel's events is recorded.
fn length_of(settings: &Settings) -> Length {
    match settings.overflow {
        Overflow::Overwrite => Length::Last,
        _ => Length::All,
    }
}
