//! The last seconds of a recording in progress, as far as they were observed.
//!
//! **Question.** How long do the spans of a running program take now, at a cost that does not
//! grow with what it writes?
//!
//! **Method.** Records are taken in windows of time, the same for all threads. What lies in them
//! is a fair sample of what happens, busy and quiet threads in their proportion. [`Look`] takes
//! the records of a window out of the stream, at the cost of a comparison for each block.
//! [`Recent`] holds those of the last windows and analyses them as a report does
//! ([`crate::Analysis`]).
//!
//! **Caveats.** Of a span that begins or ends outside of a window only one end is seen. It is
//! counted at its end ([`RecentReport::ends`]), and has no duration. Where spans are as long as
//! windows, long ones are missed more often than short ones, which [`RecentReport::cut`] shows.
//! Kernel events are not included: samples are dropped only by the descheduled flag.

use std::collections::VecDeque;

use undertick_document::{IntervalReport, Report};
use undertick_format::block::BlockHeader;
use undertick_format::manifest::Manifest;
use undertick_format::rows::Rows;
use undertick_ring::{Kind, Record};

use crate::analysis::Analysis;
use crate::error::Error;
use crate::options::Options;
use crate::shard::Worker;

/// A stretch of time, ticks of the recording clock: from the first on, until before the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First reading in it.
    pub from: u64,
    /// First reading after it.
    pub until: u64,
}

impl Window {
    /// A window that holds nothing.
    pub const EMPTY: Self = Self { from: 0, until: 0 };

    const fn ticks(self) -> u64 {
        self.until.saturating_sub(self.from)
    }

    /// The common part of two windows.
    fn and(self, other: Self) -> Self {
        let from = self.from.max(other.from);
        Self {
            from,
            until: self.until.min(other.until).max(from),
        }
    }
}

/// Consecutive records of one ring.
#[derive(Clone, Debug)]
struct Run {
    header: BlockHeader,
    records: Vec<[u64; 2]>,
}

impl Run {
    /// Position in the ring of the record that would follow.
    fn end(&self) -> u64 {
        self.header.position + 16 * self.records.len() as u64
    }

    /// The part of it that was written in a window.
    fn within(&self, window: Window) -> Option<Self> {
        let part = part_within(&self.records, window);
        (!part.is_empty()).then(|| Self {
            header: BlockHeader {
                position: self.header.position + 16 * part.start as u64,
                ..self.header
            },
            records: self.records[part].to_vec(),
        })
    }
}

/// Takes the records of a window out of the stream of a recording.
#[derive(Debug)]
pub struct Look {
    window: Window,
    /// The window that was closed last.
    before: Window,
    /// Number of records after which the window is closed.
    most: usize,
    records: usize,
    late: usize,
    runs: Vec<Run>,
}

/// The records of a window.
#[derive(Debug)]
pub struct Taken {
    window: Window,
    runs: Vec<Run>,
    late: usize,
    /// The window was closed early, because it had more records than could be taken.
    pub is_cut: bool,
}

impl Taken {
    /// Number of records in it.
    #[must_use]
    pub fn records(&self) -> usize {
        self.runs.iter().map(|run| run.records.len()).sum()
    }
}

/// For a thread that is far behind, at most this many times the requested records are taken; then
/// the window is given up.
const FAR_TOO_MANY: usize = 4;

impl Default for Look {
    /// Observes nothing yet.
    fn default() -> Self {
        Self {
            window: Window::EMPTY,
            before: Window::EMPTY,
            most: 0,
            records: 0,
            late: 0,
            runs: Vec::new(),
        }
    }
}

impl Look {
    /// Closes the window, at `until` if that comes first, and begins another one, which must not
    /// begin earlier. Records that were written in the old one and have not come yet are left
    /// out, so wait a moment before the call.
    ///
    /// `most` is roughly how many records may be taken; with more the window is closed for all
    /// threads alike.
    pub fn at(&mut self, until: u64, next: Window, most: usize) -> Taken {
        let from = self.window.from;
        let closed = Window {
            from,
            until: self.window.until.min(until).max(from),
        };
        let runs = std::mem::take(&mut self.runs);
        let taken = Taken {
            window: closed,
            runs: runs.iter().filter_map(|run| run.within(closed)).collect(),
            late: self.late,
            is_cut: self.is_cut(),
        };
        let runs: Vec<Run> = runs.iter().filter_map(|run| run.within(next)).collect();
        *self = Self {
            window: next,
            before: closed,
            most,
            records: runs.iter().map(|run| run.records.len()).sum(),
            late: 0,
            runs,
        };
        taken
    }

    /// Whether the window had more records than could be taken.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.records > self.most
    }

    /// Number of records taken so far.
    #[must_use]
    pub const fn records(&self) -> usize {
        self.records
    }

    /// The part of the window that is over at `now`, ticks.
    #[must_use]
    pub fn looked(&self, now: u64) -> u64 {
        self.window.until.min(now).saturating_sub(self.window.from)
    }

    /// Takes the records of a block that were written in the window. Blocks of a ring come in
    /// order.
    pub fn offer(&mut self, header: BlockHeader, records: &[[u64; 2]]) {
        self.late += part_within(records, self.before).len();
        let part = part_within(records, self.window);
        if part.is_empty() {
            return;
        }
        let taken = &records[part.clone()];
        self.records += taken.len();
        if self.records > FAR_TOO_MANY * self.most {
            self.window = Window::EMPTY;
            self.runs.clear();
            return;
        }
        if self.records > self.most
            && let Some(last) = taken.iter().rev().find_map(reading)
        {
            self.window.until = self.window.until.min(last + 1);
        }
        let position = header.position + 16 * part.start as u64;
        match self.runs.last_mut() {
            Some(run) if run.header.ring == header.ring && run.end() == position => {
                run.records.extend_from_slice(taken);
            }
            _ => self.runs.push(Run {
                header: BlockHeader { position, ..header },
                records: taken.to_vec(),
            }),
        }
    }
}

/// The reading of a record; `None` for one that belongs to the one before it.
fn reading(words: &[u64; 2]) -> Option<u64> {
    let record = Record::from_words(*words);
    (record.kind != Kind::Continuation).then_some(record.ts)
}

/// The range of a ring's records that were written in a window, with what belongs to them.
fn part_within(records: &[[u64; 2]], window: Window) -> std::ops::Range<usize> {
    let first_from = |ts: u64| {
        let (mut low, mut high) = (0, records.len());
        while low < high {
            let middle = low.midpoint(high);
            // The next record with a reading decides for those before it.
            let read = (records[middle..high].iter().enumerate())
                .find_map(|(i, words)| Some((middle + i, reading(words)?)));
            match read {
                Some((at, read)) if read < ts => low = at + 1,
                _ => high = middle,
            }
        }
        // A record that belongs to the one before it is not the first.
        let more = records[low..].iter().take_while(|w| reading(w).is_none());
        if low == 0 { 0 } else { low + more.count() }
    };
    if window.ticks() == 0 {
        return 0..0;
    }
    let from = first_from(window.from);
    from..first_from(window.until).max(from)
}

/// The records that were taken in the last seconds.
#[derive(Debug, Default)]
pub struct Recent {
    windows: VecDeque<Taken>,
}

/// The results for the last seconds.
#[derive(Debug)]
pub struct RecentReport {
    /// Estimates from the records taken. Its counts are of those, and values for the trace as a
    /// whole (losses, threads) are unknown here.
    pub report: Report,
    /// Total length of the windows, seconds.
    pub looked_s: f64,
    /// Time from the first window to the end of the last one, seconds.
    pub of_s: f64,
    /// Number of records taken.
    pub records: usize,
}

impl Recent {
    /// Adds a window. If records of the previous one came after it was closed, the earlier
    /// windows are incomplete and are removed.
    pub fn add(&mut self, taken: Taken) {
        if taken.late > 0 {
            self.windows.clear();
        }
        if taken.window.ticks() > 0 {
            self.windows.push_back(taken);
        }
    }

    /// Removes what was written before that reading.
    pub fn forget(&mut self, before: u64) {
        while (self.windows.front()).is_some_and(|oldest| oldest.window.until <= before) {
            self.windows.pop_front();
        }
    }

    /// Gathers the records of the time in `span`; `manifest` is that of the recording. The cost
    /// of this grows with the records, that of [`Gathered::report`] with the intervals.
    ///
    /// # Errors
    /// The recording does not support the options.
    pub fn gather(
        &self,
        manifest: &Manifest,
        options: Options,
        span: Window,
    ) -> Result<Gathered, Error> {
        let mut analysis = Analysis::new(manifest, options)?;
        let mut runs: Vec<&Run> = self.windows.iter().flat_map(|w| &w.runs).collect();
        runs.sort_by_key(|run| (run.header.ring, run.header.position));
        let runs: Vec<Run> = runs.iter().filter_map(|run| run.within(span)).collect();
        for _ in 0..analysis.passes() {
            let mut worker = analysis.worker(true);
            take(&mut worker, &runs)?;
            analysis.absorb(worker.finish());
            analysis.finish_pass();
        }
        let seconds = |ticks: u64| ticks as f64 * manifest.clock.ns_per_tick() * 1e-9;
        let looked = self.windows.iter().map(|w| w.window.and(span));
        let looked: Vec<Window> = looked.filter(|window| window.ticks() > 0).collect();
        let of = match (looked.first(), looked.last()) {
            (Some(first), Some(last)) => last.until.saturating_sub(first.from),
            _ => 0,
        };
        Ok(Gathered {
            analysis,
            looked_s: seconds(looked.iter().map(|window| window.ticks()).sum()),
            of_s: seconds(of),
            records: runs.iter().map(|run| run.records.len()).sum(),
        })
    }
}

/// Takes runs in the order of their rings.
fn take(worker: &mut Worker, runs: &[Run]) -> Result<(), Error> {
    let (mut rows, mut decoded) = (Rows::default(), Vec::new());
    // Position after the last record: without a gap, a span that begins in one run may end in the
    // next; otherwise the next run counts as another ring.
    let (mut after, mut as_ring) = (None::<(u32, u64)>, 0);
    for run in runs {
        let header = run.header;
        if after.is_some_and(|after| after != (header.ring, header.position)) {
            as_ring += 1;
        }
        after = Some((header.ring, run.end()));
        let header = BlockHeader {
            ring: as_ring,
            ..header
        };
        decoded.clear();
        decoded.extend(run.records.iter().map(|words| Record::from_words(*words)));
        rows.clear();
        rows.push(header, &decoded);
        worker.push_rows(header, &rows.of_ring())?;
    }
    Ok(())
}

/// The records of the last seconds, before estimation.
#[derive(Debug)]
pub struct Gathered {
    analysis: Analysis,
    looked_s: f64,
    of_s: f64,
    /// Number of records in them.
    pub records: usize,
}

impl Gathered {
    /// Returns the estimates.
    ///
    /// # Errors
    /// The recording does not support the options.
    pub fn report(self) -> Result<RecentReport, Error> {
        Ok(RecentReport {
            report: self.analysis.finish()?,
            looked_s: self.looked_s,
            of_s: self.of_s,
            records: self.records,
        })
    }
}

impl RecentReport {
    /// Number of times an interval ended in the windows.
    #[must_use]
    pub const fn ends(interval: &IntervalReport) -> u64 {
        interval.count + interval.culled.count + interval.unmatched_ends
    }

    /// Number of times an interval was executed in the windows; for a sampled one, the executions
    /// that the recorded ones stand for.
    #[must_use]
    pub fn executions(interval: &IntervalReport) -> u64 {
        (interval.sampled.as_ref()).map_or(Self::ends(interval), |sampled| sampled.executions)
    }

    /// Share of the ends of an interval whose start was not seen; `None` without ends.
    #[must_use]
    pub fn cut(interval: &IntervalReport) -> Option<f64> {
        let ends = Self::ends(interval);
        (ends > 0).then(|| interval.unmatched_ends as f64 / ends as f64)
    }
}
