//! Makes a snapshot when the program meets a rule.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use undertick_format::files::{EVENTS_FILE, KERNEL_FILE, MANIFEST_FILE, RAW_FILE};
use undertick_format::manifest;
use undertick_trigger::{Hit, Measured, Rule};

use super::Snapshot;
use crate::snapshot::{Part, numbered_from, snapshot_of};
use crate::thread_state;
use crate::trace_dir::TraceDir;
use crate::triggers::{SnapshotMade, Triggers};

/// Most reasons that are written to a snapshot; of more only the number.
const MOST_REASONS: usize = 16;
/// A snapshot that waits for another one to be finished is made after this time at the latest, so
/// that what it is about is not overwritten.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The files of a complete snapshot.
const FILES: [&str; 4] = [MANIFEST_FILE, EVENTS_FILE, KERNEL_FILE, RAW_FILE];

/// The rules of a recording, and what they have caused.
pub(super) struct Triggered {
    triggers: Triggers,
    ns_per_tick: f64,
    waiting: Option<Waiting>,
    running: Option<JoinHandle<Option<Kept>>>,
    /// When the snapshots of the last stretch of time were begun.
    begun: VecDeque<Instant>,
    /// Snapshots, the oldest first.
    kept: VecDeque<Kept>,
    /// Lowest number for the next one: the name of one that was removed is not used again.
    number: u64,
    /// Number of hits for which no snapshot was made.
    ignored: u64,
}

/// A snapshot that was made.
#[derive(Clone, Debug)]
struct Kept {
    trace: PathBuf,
    /// Device and inode number: another directory at its path is not ours to remove.
    identity: (u64, u64),
    bytes: u64,
}

/// A snapshot that will be made.
struct Waiting {
    due: Instant,
    part: Part,
}

impl Triggered {
    pub(super) fn new(triggers: Triggers, ns_per_tick: f64) -> Self {
        Self {
            triggers,
            ns_per_tick,
            waiting: None,
            running: None,
            begun: VecDeque::new(),
            kept: VecDeque::new(),
            number: 1,
            ignored: 0,
        }
    }

    /// Takes what the rules found.
    pub(super) fn take(&mut self, hits: &[Hit], rules: &[Rule]) {
        let now = Instant::now();
        for hit in hits {
            if self.waiting.is_none() && !self.may_begin(now) {
                self.ignored += 1;
                continue;
            }
            let before_ticks = self.triggers.before.as_nanos() as f64 / self.ns_per_tick;
            let from = hit
                .began
                .unwrap_or(hit.at)
                .saturating_sub(before_ticks as u64);
            let due = now + self.triggers.after;
            let part = &mut self
                .waiting
                .get_or_insert_with(|| Waiting {
                    due,
                    part: Part::from_ticks(from),
                })
                .part;
            part.from_ticks = part.from_ticks.min(from);
            if part.triggered.len() < MOST_REASONS {
                part.triggered.push(reason(hit, &rules[hit.rule]));
            } else {
                part.more += 1;
            }
        }
    }

    /// Whether another snapshot may be begun, and counts it if so.
    fn may_begin(&mut self, now: Instant) -> bool {
        let (most, stretch) = self.triggers.at_most;
        while self
            .begun
            .front()
            .is_some_and(|&begun| now.duration_since(begun) >= stretch)
        {
            self.begun.pop_front();
        }
        let may = self.begun.len() < most as usize;
        if may {
            self.begun.push_back(now);
        }
        may
    }

    /// Begins the snapshot that is due; with `now`, also one whose time has not come.
    pub(super) fn begin(&mut self, trace: &Path, results: &Sender<Snapshot>, now: bool) {
        if self.running.as_ref().is_some_and(JoinHandle::is_finished) {
            self.wait();
        }
        let is_due = |waiting: &Waiting| now || Instant::now() >= waiting.due;
        if !self.waiting.as_ref().is_some_and(is_due) {
            return;
        }
        if self.running.is_some() {
            let is_late = |waiting: &Waiting| waiting.due.elapsed() >= LONGEST_WAIT;
            if !now && !self.waiting.as_ref().is_some_and(is_late) {
                return;
            }
            self.wait();
        }
        let Some(Waiting { part, .. }) = self.waiting.take() else {
            return;
        };
        let (number, out) = numbered_from(trace, self.number);
        self.number = number.saturating_add(1);
        let (trace, results) = (trace.to_owned(), results.clone());
        let limit = self.triggers.most_bytes;
        let mut kept = self.kept.clone();
        let make = move || {
            let why = part.triggered.first().map(|first| first.text.clone());
            let made = snapshot_of(&trace, &out, &part, &mut |_| {});
            let new = made.is_ok().then(|| Kept::at(&out)).flatten();
            let bytes = new.as_ref().map_or(0, |new| new.bytes);
            let removed = remove_oldest(&mut kept, bytes, limit);
            let said = made.map(|_| SnapshotMade {
                trace: out,
                why,
                removed,
            });
            let _ = results.send(said.map_err(|error| error.to_string()));
            new
        };
        self.running = std::thread::Builder::new()
            .name("undertick keep".to_owned())
            .spawn(make)
            .ok();
    }

    /// Waits until the snapshot that is being made is complete.
    fn wait(&mut self) {
        let Some(made) = self.running.take().and_then(|running| running.join().ok()) else {
            return;
        };
        self.kept.extend(made);
        self.kept.retain(|kept| kept.trace.exists());
    }

    /// Makes what is left; returns a warning if hits were ignored.
    pub(super) fn finish(&mut self, trace: &Path, results: &Sender<Snapshot>) -> Option<String> {
        self.begin(trace, results, true);
        self.wait();
        let (most, stretch) = self.triggers.at_most;
        (self.ignored > 0).then(|| {
            let times = if self.ignored == 1 { "once" } else { "times" };
            let often = match self.ignored {
                1 => times.to_owned(),
                n => format!("{n} {times}"),
            };
            format!(
                "a rule was met {often} more, for which no snapshot was made: --at-most allows {most} in {} s",
                stretch.as_secs()
            )
        })
    }
}

/// Removes the oldest snapshots of this recording until all, with the new one, are within the
/// limit.
fn remove_oldest(kept: &mut VecDeque<Kept>, new_bytes: u64, limit: Option<u64>) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    let mut all = kept
        .iter()
        .fold(new_bytes, |sum, kept| sum.saturating_add(kept.bytes));
    while limit.is_some_and(|limit| all > limit)
        && let Some(oldest) = kept.pop_front()
    {
        all = all.saturating_sub(oldest.bytes);
        if oldest.remove() {
            removed.push(oldest.trace);
        }
    }
    removed
}

impl Kept {
    fn at(trace: &Path) -> Option<Self> {
        let dir = TraceDir::open(trace).ok()?;
        Some(Self {
            trace: trace.to_owned(),
            identity: dir.identity().ok()?,
            bytes: FILES.iter().map(|file| dir.length(file)).sum(),
        })
    }

    /// Removes the files of the snapshot, and its directory if nothing else is in it.
    fn remove(&self) -> bool {
        let dir = TraceDir::open(&self.trace);
        let Some(dir) = dir
            .ok()
            .filter(|dir| dir.identity().ok() == Some(self.identity))
        else {
            return false;
        };
        for file in FILES {
            dir.remove(file);
        }
        std::fs::remove_dir(&self.trace).is_ok()
    }
}

fn reason(hit: &Hit, rule: &Rule) -> manifest::Triggered {
    let name = rule.name().unwrap_or_default();
    let (text, took_ns, is_open) = match hit.measured {
        Measured::Took(ns, limit) => {
            let text = format!("{name} took {}, more than {}", time(ns), time(limit));
            (text, Some(ns), false)
        }
        Measured::OpenFor(ns) => {
            let text = format!("{name} was open for {} and had not ended", time(ns));
            (text, Some(ns), true)
        }
        Measured::Came => (format!("{name} came"), None, false),
        Measured::PerSecond(rate) => (
            format!("{name} came {} times a second", figure(rate)),
            None,
            false,
        ),
        Measured::Lost(1) => ("1 event was lost".to_owned(), None, false),
        Measured::Lost(n) => (format!("{n} events were lost"), None, false),
    };
    let thread = hit.ring.map(|ring| (ring.pid, ring.tid));
    let state =
        (thread.filter(|_| is_open)).and_then(|(pid, tid)| thread_state::of_thread(pid, tid));
    manifest::Triggered {
        rule: rule.to_string(),
        text: match &state {
            Some(state) => format!("{text}: its thread was {}", says(state)),
            None => text,
        },
        pid: thread.map(|(pid, _)| pid),
        tid: thread.map(|(_, tid)| tid),
        ts: hit.at as i64,
        began_ts: hit.began.map(|began| began as i64),
        took_ns,
        state,
    }
}

fn says(state: &manifest::ThreadState) -> String {
    match &state.waits_in {
        Some(function) => format!("{} in {function}", state.state),
        None => state.state.clone(),
    }
}

/// A time in words, with three digits.
fn time(ns: f64) -> String {
    let (unit, by) = match ns.abs() {
        ..1e3 => ("ns", 1.0),
        ..1e6 => ("us", 1e3),
        ..1e9 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    format!("{} {unit}", figure(ns / by))
}

/// A figure with three digits.
fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triggered(at_most: u32, stretch: Duration) -> Triggered {
        let triggers = Triggers {
            rules: Vec::new(),
            before: Duration::from_secs(2),
            after: Duration::ZERO,
            at_most: (at_most, stretch),
            most_bytes: None,
        };
        Triggered::new(triggers, 0.5)
    }

    fn hit(at: u64, began: u64) -> Hit {
        Hit {
            rule: 0,
            ring: None,
            at,
            began: Some(began),
            measured: Measured::Took(5.2e6, 5e6),
        }
    }

    /// Hits that come before a snapshot is begun are reasons of it; it begins before the first.
    #[test]
    fn hits_share_a_snapshot() {
        let rules = ["request > 5ms".parse().unwrap()];
        let mut triggered = triggered(1, Duration::from_secs(3600));
        let second = 2_000_000_000;
        triggered.take(&[hit(10 * second, 9 * second)], &rules);
        triggered.take(&[hit(11 * second, 8 * second)], &rules);
        let many = vec![hit(12 * second, 12 * second); 20];
        triggered.take(&many, &rules);
        let part = triggered.waiting.take().unwrap().part;
        assert_eq!(part.from_ticks, 6 * second);
        assert_eq!((part.triggered.len(), part.more), (MOST_REASONS, 6));
        assert_eq!(
            part.triggered[0].text,
            "request took 5.2 ms, more than 5 ms"
        );
        assert_eq!(part.triggered[0].began_ts, Some(9 * second as i64));
        // There is no second one within the hour.
        triggered.take(&many[..3], &rules);
        assert!(triggered.waiting.is_none());
        assert_eq!(triggered.ignored, 3);
    }

    #[test]
    fn the_oldest_snapshots_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let trace = |name: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("manifest.json"), "{}").unwrap();
            path
        };
        let traces = ["a-1.ut", "a-2.ut", "a-3.ut"].map(trace);
        let kept = |trace: &PathBuf| Kept {
            bytes: 100,
            ..Kept::at(trace).unwrap()
        };
        let mut kept: VecDeque<_> = traces.iter().map(kept).collect();
        assert_eq!(
            remove_oldest(&mut kept.clone(), 50, None),
            [] as [PathBuf; 0]
        );
        assert_eq!(remove_oldest(&mut kept, 150, Some(350)), traces[..1]);
        assert!(!traces[0].exists() && traces[1].exists());
        // Another directory has taken the place of the second; a file of somebody else is in the
        // third. A new one that is larger than the limit stays.
        std::fs::rename(&traces[1], dir.path().join("moved.ut")).unwrap();
        std::fs::create_dir(&traces[1]).unwrap();
        std::fs::write(traces[1].join("manifest.json"), "{}").unwrap();
        std::fs::write(traces[2].join("notes.txt"), "mine").unwrap();
        assert_eq!(remove_oldest(&mut kept, 999, Some(350)), [] as [PathBuf; 0]);
        assert!(traces[1].join("manifest.json").exists());
        assert!(traces[2].join("notes.txt").exists());
    }

    #[test]
    fn figures_have_three_digits() {
        let shown = [5.2e6, 999.4, 1.0e9, 12_345.0, 70.0].map(time);
        assert_eq!(shown, ["5.2 ms", "999 ns", "1 s", "12.3 us", "70 ns"]);
    }
}
