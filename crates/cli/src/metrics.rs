//! What a recording does, as a file of metrics for Prometheus (`record --metrics FILE`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use rustix::time::{ClockId, clock_gettime};
use undertick_record::record::RecordingProgress;

use crate::Failure;

/// How often the file is written.
const EVERY: Duration = Duration::from_secs(1);

type Seconds = Counter<f64, AtomicU64>;
/// Whether a snapshot was made, in words.
type Outcome = [(&'static str, &'static str); 1];

/// The metrics of a recording, and their file, which is replaced as a whole each time.
pub struct Metrics {
    path: PathBuf,
    registry: Registry,
    events: Counter,
    lost: Counter,
    threads: Gauge,
    stored: Counter,
    running: Gauge,
    elapsed: Seconds,
    cpu: Seconds,
    snapshots: Family<Outcome, Counter>,
    written: Option<Instant>,
    failed: bool,
}

impl Metrics {
    /// Writes the file for the first time, of the recording of that trace.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn start(path: &Path, trace: &Path) -> Result<Self, Failure> {
        let name = trace.file_name().unwrap_or(trace.as_os_str());
        let label = ("trace".into(), name.to_string_lossy().into_owned().into());
        let mut metrics = Self {
            path: path.to_owned(),
            registry: Registry::with_prefix_and_labels("undertick", [label].into_iter()),
            events: Counter::default(),
            lost: Counter::default(),
            threads: Gauge::default(),
            stored: Counter::default(),
            running: Gauge::default(),
            elapsed: Seconds::default(),
            cpu: Seconds::default(),
            snapshots: Family::default(),
            written: None,
            failed: false,
        };
        metrics.register();
        metrics.running.set(1);
        for result in ["made", "failed"] {
            let _ = metrics
                .snapshots
                .get_or_create(&[("result", result)])
                .inc_by(0);
        }
        metrics.write().map_err(|error| {
            Failure::usage(format!(
                "--metrics {}: cannot be written ({error}); its directory must exist",
                path.display()
            ))
        })?;
        Ok(metrics)
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        let help = "Events kept; of a flight recorder those of threads that have ended, and at its end all";
        registry.register("events", help, self.events.clone());
        let help = "Events that the program could not record";
        registry.register("lost_events", help, self.lost.clone());
        let help = "Threads and recorder instances with a ring";
        registry.register("rings", help, self.threads.clone());
        let help = "Events stored, before compression";
        registry.register_with_unit("stored", help, Unit::Bytes, self.stored.clone());
        registry.register(
            "recording",
            "1 while the program is recorded",
            self.running.clone(),
        );
        let help = "Time since the recording began";
        registry.register_with_unit("recording", help, Unit::Seconds, self.elapsed.clone());
        let help = "CPU time that the recorder has used, its rules included";
        registry.register_with_unit("recorder_cpu", help, Unit::Seconds, self.cpu.clone());
        let help = "Snapshots, by rules and on request";
        registry.register("snapshots", help, self.snapshots.clone());
    }

    /// Notes what the recorder reports.
    pub fn update(&mut self, update: &RecordingProgress) {
        match update {
            RecordingProgress::Recording(progress, elapsed) => {
                raise(&self.events, progress.events);
                raise(&self.lost, progress.lost);
                raise(&self.stored, progress.bytes);
                self.threads
                    .set(i64::try_from(progress.rings).unwrap_or(i64::MAX));
                raise_seconds(&self.elapsed, elapsed.as_secs_f64());
            }
            RecordingProgress::Snapshot(made) => {
                let result = if made.is_ok() { "made" } else { "failed" };
                self.snapshots.get_or_create(&[("result", result)]).inc();
            }
            RecordingProgress::Finalizing(_) => {
                if self.running.set(0) == 0 {
                    return;
                }
                self.written = None;
            }
        }
        if self
            .written
            .is_none_or(|written| written.elapsed() >= EVERY)
        {
            self.write_or_say();
        }
    }

    /// Writes the last figures, of a recording that is over: events kept and lost.
    pub fn finish(mut self, (events, lost): (u64, u64)) {
        raise(&self.events, events);
        raise(&self.lost, lost);
        self.running.set(0);
        self.write_or_say();
    }

    fn write_or_say(&mut self) {
        if let Err(error) = self.write()
            && !self.failed
        {
            self.failed = true;
            alert!(
                "undertick: note: --metrics {}: {error}",
                self.path.display()
            );
        }
    }

    fn write(&mut self) -> io::Result<()> {
        self.written = Some(Instant::now());
        let used = clock_gettime(ClockId::ProcessCPUTime);
        raise_seconds(&self.cpu, used.tv_sec as f64 + used.tv_nsec as f64 / 1e9);
        let mut text = String::new();
        encode(&mut text, &self.registry).map_err(io::Error::other)?;
        // Beside it, so that a reader finds a whole file.
        let mut new = self.path.clone().into_os_string();
        new.push(".new");
        fs::write(&new, text)?;
        fs::rename(&new, &self.path)
    }
}

/// Makes a counter as high as a sum that somebody else keeps.
fn raise(counter: &Counter, to: u64) {
    counter.inc_by(to.saturating_sub(counter.get()));
}

fn raise_seconds(counter: &Seconds, to: f64) {
    counter.inc_by((to - counter.get()).max(0.0));
}

#[cfg(test)]
mod tests {
    use undertick_record::collector::CollectorProgress;

    use super::*;

    #[test]
    fn the_file_has_what_the_recorder_reports_and_is_whole() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("undertick.prom");
        let mut metrics = Metrics::start(&path, Path::new("dir/run.ut"))
            .unwrap_or_else(|failure| panic!("{}", failure.text));
        let of = |text: &str, name: &str| -> f64 {
            let labels = |name: &str| match name.split_once('{') {
                Some((name, more)) => format!("{name}{{trace=\"run.ut\",{more}"),
                None => format!("{name}{{trace=\"run.ut\"}}"),
            };
            let line = (text.lines()).find(|line| {
                let (series, _) = line.rsplit_once(' ').unwrap_or((line, ""));
                series == labels(name)
            });
            let value = line.and_then(|line| line.rsplit(' ').next()).expect(name);
            value.parse().expect("a number")
        };
        let progress = |events, lost| {
            let progress = CollectorProgress {
                events,
                lost,
                bytes: 4096,
                rings: 3,
            };
            RecordingProgress::Recording(progress, Duration::from_secs(7))
        };
        metrics.update(&progress(10, 0));
        metrics.written = None;
        metrics.update(&progress(1000, 5));
        metrics.update(&RecordingProgress::Snapshot(Err("no room".to_owned())));
        let text = fs::read_to_string(&path).expect("a file");
        assert_eq!(of(&text, "undertick_events_total"), 1000.0);
        assert_eq!(of(&text, "undertick_lost_events_total"), 5.0);
        assert_eq!(of(&text, "undertick_stored_bytes_total"), 4096.0);
        assert_eq!(of(&text, "undertick_rings"), 3.0);
        assert_eq!(of(&text, "undertick_recording"), 1.0);
        assert_eq!(of(&text, "undertick_recording_seconds_total"), 7.0);
        assert!(of(&text, "undertick_recorder_cpu_seconds_total") > 0.0);
        metrics.finish((2000, 6));
        let text = fs::read_to_string(&path).expect("a file");
        assert_eq!(of(&text, "undertick_events_total"), 2000.0);
        assert_eq!(of(&text, "undertick_recording"), 0.0);
        assert_eq!(
            of(&text, "undertick_snapshots_total{result=\"failed\"}"),
            1.0
        );
        assert_eq!(of(&text, "undertick_snapshots_total{result=\"made\"}"), 0.0);
        assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 1);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_refused_at_once() {
        let path = Path::new("/nowhere/undertick.prom");
        let refused = Metrics::start(path, Path::new("run.ut"))
            .err()
            .expect("refused");
        assert!(
            refused.text.contains("its directory must exist"),
            "{}",
            refused.text
        );
    }
}
