//! Makes a snapshot when the program meets a rule.

mod kept;
mod reason;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Instant;

use undertick_clock::{ClockId, Source};
use undertick_format::{TraceError, manifest};
use undertick_trigger::{Hit, Measured, Rule, Watch};

use super::Snapshot;
use crate::collector::Collector;
use crate::follow::Follow;
use crate::snapshot::{Part, numbered_from, snapshot_of};
use crate::trace_dir::TraceDir;
use crate::triggers::{SnapshotMade, Triggers};
use kept::{Kept, remove_oldest};
use reason::reason;

/// Most reasons that are written to a snapshot; of more only the number.
const MOST_REASONS: usize = 16;

/// The rules of a recording, and what they have caused.
pub(super) struct Triggered {
    triggers: Triggers,
    clock: Source,
    ns_per_tick: f64,
    waiting: Option<Waiting>,
    running: Option<JoinHandle<VecDeque<Kept>>>,
    /// When the snapshots of the last stretch of time were begun.
    begun: VecDeque<Instant>,
    /// Snapshots, the oldest first.
    kept: VecDeque<Kept>,
    /// Lowest number for the next one: the name of one that was removed is not used again.
    number: u64,
    /// Number of hits for which no snapshot was made.
    ignored: u64,
    /// When this recorder came, ticks; 0 if it was there from the beginning. What came before was
    /// another recorder's.
    since: u64,
    /// Losses were not counted so far.
    is_first_look: bool,
}

/// A snapshot that will be made.
struct Waiting {
    /// `None`: not before the end.
    due: Option<Instant>,
    part: Part,
}

impl Triggered {
    /// Begins to apply rules to what a collector sees. `given` are names that replace those of the
    /// program. With `has_past`, what the rings hold already was judged by an earlier recorder.
    ///
    /// # Errors
    /// The clock cannot be read.
    pub(super) fn start(
        triggers: Triggers,
        collector: &mut Collector,
        clock: ClockId,
        ns_per_tick: f64,
        given: &[manifest::Name],
        has_past: bool,
    ) -> Result<Self, TraceError> {
        let clock = Source::open(clock)
            .map_err(|error| TraceError::Recording(format!("the trace clock: {error:?}")))?;
        let watch = Watch::new(triggers.rules.clone(), ns_per_tick);
        collector.follow = Some(Follow::new(watch, given.to_vec()));
        let mut new = Self::new(triggers, clock, ns_per_tick);
        new.since = if has_past { clock.read_ticks() } else { 0 };
        Ok(new)
    }

    const fn new(triggers: Triggers, clock: Source, ns_per_tick: f64) -> Self {
        Self {
            triggers,
            clock,
            ns_per_tick,
            waiting: None,
            running: None,
            begun: VecDeque::new(),
            kept: VecDeque::new(),
            number: 1,
            ignored: 0,
            since: 0,
            is_first_look: true,
        }
    }

    /// Takes what the rules have found; `lost` is the number of events that programs could not write
    /// so far.
    pub(super) fn look(&mut self, watch: &mut Watch, lost: u64, session: &Path) {
        let now = self.clock.read_ticks();
        watch.look(now, lost);
        let (mut hits, mut more) = watch.hits();
        if self.since > 0 {
            let is_first = std::mem::replace(&mut self.is_first_look, false);
            hits.retain(|hit| {
                let is_of_before = is_first && matches!(hit.measured, Measured::Lost(_));
                hit.at >= self.since && !is_of_before
            });
            more = if is_first { 0 } else { more };
        }
        self.take(&hits, watch.rules(), now, session);
        match &mut self.waiting {
            Some(waiting) => waiting.part.more += more,
            None => self.ignored += more,
        }
    }

    fn take(&mut self, hits: &[Hit], rules: &[Rule], now_ticks: u64, session: &Path) {
        let now = Instant::now();
        for hit in hits {
            if self.waiting.is_none() && !self.may_begin(now) {
                self.ignored += 1;
                continue;
            }
            let before_ticks = self.triggers.before.as_nanos() as f64 / self.ns_per_tick;
            // A program may write any time.
            let began = hit.began.unwrap_or(hit.at).min(now_ticks);
            let from = began.saturating_sub(before_ticks as u64);
            let due = now.checked_add(self.triggers.after);
            let new = || Waiting {
                due,
                part: Part::from_ticks(from),
            };
            let part = &mut self.waiting.get_or_insert_with(new).part;
            part.from_ticks = part.from_ticks.min(from);
            if part.triggered.len() < MOST_REASONS {
                part.triggered.push(reason(hit, &rules[hit.rule], session));
            } else {
                part.more += 1;
            }
        }
    }

    /// Whether another snapshot may be begun, and counts it if so.
    fn may_begin(&mut self, now: Instant) -> bool {
        let (most, stretch) = self.triggers.at_most;
        let is_over = |&begun: &Instant| now.duration_since(begun) >= stretch;
        while self.begun.front().is_some_and(is_over) {
            self.begun.pop_front();
        }
        let may = self.begun.len() < most as usize;
        if may {
            self.begun.push_back(now);
        }
        may
    }

    /// Begins the snapshot that is due, unless another one is being made: draining the rings does
    /// not wait for that. At the end it does, and a snapshot is due whose time has not come.
    pub(super) fn begin(&mut self, trace: &TraceDir, results: &Sender<Snapshot>, is_end: bool) {
        if is_end || self.running.as_ref().is_some_and(JoinHandle::is_finished) {
            self.wait();
        }
        let is_due =
            |waiting: &Waiting| is_end || waiting.due.is_some_and(|due| Instant::now() >= due);
        if self.running.is_some() || !self.waiting.as_ref().is_some_and(is_due) {
            return;
        }
        let Some(Waiting { part, .. }) = self.waiting.take() else {
            return;
        };
        let trace = trace.path_now();
        let (number, out) = numbered_from(&trace, self.number);
        self.number = number.saturating_add(1);
        let hits = part.triggered.len() as u64 + part.more;
        let of_thread = results.clone();
        let limit = self.triggers.most_bytes;
        let mut kept = self.kept.clone();
        let make = move || {
            let why = part.triggered.first().map(|first| first.text.clone());
            let made = snapshot_of(&trace, &out, &part, &mut |_| {});
            let removed = match limit {
                Some(limit) if made.is_ok() => {
                    kept.extend(Kept::at(&out));
                    remove_oldest(&mut kept, limit)
                }
                _ => Vec::new(),
            };
            let said = made.map(|_| SnapshotMade {
                trace: out,
                why,
                removed,
            });
            let _ = of_thread.send(said.map_err(|error| error.to_string()));
            kept
        };
        let thread = std::thread::Builder::new().name("undertick keep".to_owned());
        match thread.spawn(make) {
            Ok(running) => self.running = Some(running),
            Err(error) => {
                self.ignored += hits;
                let _ = results.send(Err(format!("no thread for it: {error}")));
            }
        }
    }

    /// Waits until the snapshot that is being made is complete.
    fn wait(&mut self) {
        if let Some(kept) = self.running.take().and_then(|running| running.join().ok()) {
            self.kept = kept;
        }
    }

    /// Makes what is left; returns a warning if hits were ignored.
    pub(super) fn finish(
        &mut self,
        trace: &TraceDir,
        results: &Sender<Snapshot>,
    ) -> Option<String> {
        self.begin(trace, results, true);
        self.wait();
        let (most, stretch) = self.triggers.at_most;
        let often = match self.ignored {
            0 => return None,
            1 => "once".to_owned(),
            n => format!("{n} times"),
        };
        Some(format!(
            "rules were met {often} more, without a snapshot of that: --at-most allows {most} in {stretch:?}"
        ))
    }
}

#[cfg(test)]
mod tests;
