//! The fast path for the common rows of a trace: plain boundaries of spans, with nothing between
//! them that the general path ([`crate::matching`]) would have to handle. Their samples wait
//! until there are many of one interval, and are then tallied together. The results are the same,
//! to the last digit.

use undertick_format::rows::RowsOfRing;

use crate::cost::{CostTable, Ends, FastPathCosts, Inner, Reading};
use crate::match_context::{Cell, Family, MatchContext, Nearest, TOO_MANY};
use crate::matching::{BEGIN, END, INSTANT};
use crate::ring::{Counts, Edge, Last, MOST_OPEN, Open, Ring};
use crate::sampled::Sampling;
use crate::slices::Counting;
use crate::tally::{Dropping, Parent, Sample, Tally};

/// Samples of an interval tallied at a time; 8 bits can number them: 5 KiB.
pub(crate) const MOST: usize = 256;

/// A sample between the readings of a plain span or of two instants: not descheduled, not
/// sampled, with no pairs and no serialised readings inside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FastSample {
    /// Reading at its start.
    pub(crate) start: i64,
    /// Reading at its end.
    pub(crate) end: i64,
    /// Readings of the same ring strictly inside.
    pub(crate) inside: Inner,
}

impl FastSample {
    fn sample(&self, ends: Ends) -> Sample {
        Sample {
            ticks: self.end.saturating_sub(self.start),
            start: self.start,
            ends,
            pairs: [0; 2],
            inner: self.inside,
            inner_ordered: 0,
            hit: false,
            unknown: false,
            sampling: Sampling::default(),
        }
    }
}

/// Samples of one interval, stored by the columns of [`FastSample`].
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    starts: [i64; MOST],
    ends: [i64; MOST],
    inside: [Inner; MOST],
}

impl Samples {
    pub(crate) const NONE: Self = Self {
        starts: [0; MOST],
        ends: [0; MOST],
        inside: [Inner::NONE; MOST],
    };

    /// Stores a sample at that index.
    #[inline]
    pub(crate) fn put(&mut self, at: u8, sample: FastSample) {
        let at = usize::from(at);
        self.starts[at] = sample.start;
        self.ends[at] = sample.end;
        self.inside[at] = sample.inside;
    }

    pub(crate) fn first(&self, n: usize) -> Columns<'_> {
        Columns {
            starts: &self.starts[..n],
            ends: &self.ends[..n],
            inside: &self.inside[..n],
        }
    }
}

/// Columns of [`Samples`], of equal length.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    starts: &'a [i64],
    ends: &'a [i64],
    inside: &'a [Inner],
}

impl Columns<'_> {
    fn each(&self) -> impl Iterator<Item = FastSample> {
        let readings = self.starts.iter().zip(self.ends);
        readings
            .zip(self.inside)
            .map(|((&start, &end), &inside)| FastSample { start, end, inside })
    }

    /// Computes the duration of each; `None` where one does not fit into 64 bits.
    fn ticks(&self, ticks: &mut Vec<i64>) -> Option<()> {
        // The sign bit of this is set where a difference overflows: one check for all.
        let mut far = 0;
        ticks.clear();
        ticks.extend(self.ends.iter().zip(self.starts).map(|(&end, &start)| {
            let ticks = end.wrapping_sub(start);
            far |= (end ^ start) & (end ^ ticks);
            ticks
        }));
        (far >= 0).then_some(())
    }
}

/// Samples that wait to be tallied, by interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    by_interval: Vec<IntervalSamples>,
    /// Intervals that may have some.
    some: Vec<u32>,
    /// Buffers for their durations, and for those less the cost of recording.
    ticks: Vec<i64>,
    values: Vec<i64>,
}

/// The samples of one interval that wait.
#[derive(Clone, Debug)]
struct IntervalSamples {
    /// Space for [`MOST`] samples, or none yet.
    samples: Option<Box<Samples>>,
    /// Number of samples that wait.
    n: usize,
    /// Whether it is listed among the intervals that may have some.
    is_some: bool,
    /// All samples so far share one parent: the parent of the next one may matter.
    lies_in_one: bool,
}

impl Default for IntervalSamples {
    fn default() -> Self {
        Self {
            samples: None,
            n: 0,
            is_some: false,
            lies_in_one: true,
        }
    }
}

impl Waiting {
    #[inline]
    pub(crate) fn has(&self, interval: u32) -> bool {
        (self.by_interval.get(interval as usize)).is_some_and(|samples| samples.n > 0)
    }

    /// Extends the table to this many intervals.
    fn know(&mut self, intervals: usize) {
        if self.by_interval.len() < intervals {
            self.by_interval
                .resize_with(intervals, IntervalSamples::default);
        }
    }
}

/// Takes rows from `from` on, as long as the fast path handles them; returns the first that it does
/// not handle.
pub(crate) fn rows(
    ring: &mut Ring,
    context: &mut MatchContext,
    columns: &RowsOfRing<'_>,
    from: usize,
) -> usize {
    context.waiting.know(context.tallies.len());
    let mut row = from;
    loop {
        let (to, full) = run(ring, context, columns, row);
        row = to;
        match full {
            Some(interval) => context.tally_waiting(interval),
            None => return row,
        }
    }
}

/// What the rows of a run change, gathered so that nothing is looked up twice.
struct Run<'a> {
    stack: &'a mut Vec<Open>,
    last: &'a mut [Option<Last>],
    gaps: u32,
    waiting: &'a mut Waiting,
    tallies: &'a [Tally],
    counting: Counting<'a>,
}

/// The result of a row.
enum Taken {
    Yes,
    /// There are now [`MOST`] samples of this interval.
    Full(u32),
    /// The fast path does not handle it; nothing was done.
    No,
}

/// Takes rows of the fast path until there are enough samples of an interval; returns the first row
/// that was not taken, and that interval.
#[inline(never)] // by itself it keeps its state in registers
fn run(
    ring: &mut Ring,
    context: &mut MatchContext,
    columns: &RowsOfRing<'_>,
    from: usize,
) -> (usize, Option<u32>) {
    let cells = context.cells[ring.set].as_slice();
    let mut run = Run {
        stack: &mut ring.stack,
        last: &mut ring.last,
        gaps: ring.gaps,
        waiting: &mut context.waiting,
        tallies: &context.tallies,
        counting: context.slices.counting(),
    };
    // For these rows only the plain readings are counted.
    let mut now = ring.counts;
    let mut full = None;
    let mut row = from;
    let rows = (columns.kind[from..]
        .iter()
        .zip(&columns.descheduled[from..]))
    .zip(columns.event[from..].iter().zip(&columns.payload[from..]))
    .zip(&columns.ts[from..]);
    for (((&kind, &flag), (&event, &payload)), &ts) in rows {
        let Some(cell) = cells.get(event as u32 as usize) else {
            break;
        };
        if flag != 0 || cell.counted >= TOO_MANY {
            break;
        }
        let (taken, reading) = match kind {
            BEGIN if payload == 0 => (run.begin(cell, now, ts), Inner::SPAN),
            END if payload == 0 => (run.end(cell, now, ts), Inner::SPAN),
            INSTANT => (run.instant(cell, now, ts), Inner::EVENT),
            _ => (Taken::No, Inner::NONE),
        };
        match taken {
            Taken::Yes => {}
            Taken::Full(interval) => full = Some(interval),
            Taken::No => break,
        }
        now.plain = now.plain.and(reading);
        row += 1;
        if full.is_some() {
            break;
        }
    }
    ring.counts.plain = now.plain;
    (row, full)
}

impl Run<'_> {
    #[inline]
    fn begin(&mut self, cell: &Cell, now: Counts, ts: i64) -> Taken {
        if cell.span >= TOO_MANY || self.stack.len() >= MOST_OPEN {
            return Taken::No;
        }
        self.counting.count(cell.counted, ts);
        self.stack.push(open(now, cell.span, ts, Reading::Plain));
        Taken::Yes
    }

    #[inline]
    fn end(&mut self, cell: &Cell, now: Counts, ts: i64) -> Taken {
        let Some((open, around)) = self.stack.split_last() else {
            return Taken::No;
        };
        if open.interval != cell.span || !is_fast_sample(open, now, Reading::Plain) {
            return Taken::No;
        }
        let parent = around
            .last()
            .map_or(Parent::Various, |outer| Parent::One(outer.interval));
        let (depth, sample) = (around.len(), fast_sample(open, now, ts));
        let taken = self.wait(cell.span, sample, parent);
        if !matches!(taken, Taken::No) {
            self.stack.truncate(depth);
        }
        taken
    }

    /// Takes the sample from the last instant of the same event to this one.
    #[inline]
    fn instant(&mut self, cell: &Cell, now: Counts, ts: i64) -> Taken {
        let Some(Some(last)) = self.last.get(cell.instant as usize) else {
            return Taken::No;
        };
        let interval = last.open.interval;
        let is_fast_sample = is_fast_sample(&last.open, now, Reading::Unordered);
        if last.gaps != self.gaps || interval >= TOO_MANY || !is_fast_sample {
            return Taken::No;
        }
        let taken = self.wait(interval, fast_sample(&last.open, now, ts), Parent::Various);
        if !matches!(taken, Taken::No) {
            self.last[cell.instant as usize] = Some(Last {
                open: open(now, interval, ts, Reading::Unordered),
                gaps: self.gaps,
            });
            self.counting.count(cell.counted, ts);
        }
        taken
    }

    /// Stores a sample with the parent `parent`.
    #[inline]
    fn wait(&mut self, interval: u32, sample: FastSample, parent: Parent) -> Taken {
        let Some(waiting) = self.waiting.by_interval.get_mut(interval as usize) else {
            return Taken::No;
        };
        if waiting.lies_in_one {
            let before = self.tallies[interval as usize].parent;
            if before != parent && before != Parent::Various {
                return Taken::No;
            }
            waiting.lies_in_one = before != Parent::Various;
        }
        if !waiting.is_some {
            waiting.is_some = true;
            self.waiting.some.push(interval);
        }
        let samples = waiting
            .samples
            .get_or_insert_with(|| Box::new(Samples::NONE));
        samples.put(waiting.n as u8, sample);
        waiting.n += 1;
        match waiting.n {
            MOST.. => Taken::Full(interval),
            _ => Taken::Yes,
        }
    }
}

/// Opens a start at a plain reading; `now` is before it.
#[inline]
fn open(mut now: Counts, interval: u32, ts: i64, reading: Reading) -> Open {
    now.note_reading(reading);
    Open {
        at: Edge::alone(ts, reading),
        counts: now,
        interval,
    }
}

/// Whether a sample from `open` to a reading of that kind here is a [`FastSample`].
#[inline]
pub(crate) fn is_fast_sample(open: &Open, now: Counts, reading: Reading) -> bool {
    let at = &open.at;
    (now.changes ^ open.counts.changes) | at.pair | at.sampled == 0 && at.reading == reading
}

#[inline]
fn fast_sample(open: &Open, now: Counts, end: i64) -> FastSample {
    FastSample {
        start: open.at.ts,
        end,
        inside: now.plain.since(open.counts.plain),
    }
}

impl MatchContext {
    /// Whether samples may wait: nothing needs them in the order in which they end, or asks for
    /// what only the general path finds.
    pub(crate) fn lets_wait(&self) -> bool {
        !self.scanning
            && self.spans.is_none()
            && self.nearest == Nearest::None
            && !self.pairs.gathering
            && self.dropping != Some(Dropping::OverLimit)
    }

    /// Tallies all samples that wait.
    pub(crate) fn tally_all_waiting(&mut self) {
        while let Some(interval) = self.waiting.some.pop() {
            self.waiting.by_interval[interval as usize].is_some = false;
            self.tally_waiting(interval);
        }
    }

    /// Tallies the samples of one interval that wait.
    #[inline(never)]
    pub(crate) fn tally_waiting(&mut self, interval: u32) {
        let place = interval as usize;
        let waiting = &mut self.waiting.by_interval[place];
        let n = std::mem::take(&mut waiting.n);
        let Some(samples) = waiting.samples.take() else {
            return;
        };
        self.tally(interval, samples.first(n));
        self.waiting.by_interval[place].samples = Some(samples);
    }

    /// Tallies samples of an interval whose parent is that of its samples before.
    pub(crate) fn tally(&mut self, interval: u32, samples: Columns<'_>) {
        let place = interval as usize;
        let parent = self.tallies[place].parent;
        if !samples.ends.is_empty() && !self.tally_together(place, samples) {
            let ends = self.tallies[place].fast_sample_ends();
            for sample in samples.each() {
                self.take(interval, &sample.sample(ends), sample.end, parent);
            }
        }
    }

    /// Tallies these together if possible; returns false, having changed nothing, if not.
    fn tally_together(&mut self, place: usize, samples: Columns<'_>) -> bool {
        if self.evidence.is_there() && self.is_hit(samples) {
            return false;
        }
        let tally = &mut self.tallies[place];
        let Waiting { ticks, values, .. } = &mut self.waiting;
        if samples.ticks(ticks).is_none() {
            return false;
        }
        let Some(values) = tally.add_fast_samples(samples, ticks, &self.costs, values) else {
            return false;
        };
        (self.slices).keep_all(tally.row, samples.ends, values);
        if let Some(perturbation) = &mut self.perturbation
            && tally.can_be_slowed()
        {
            for (s, &ticks) in samples.each().zip(&*ticks) {
                perturbation.take(place as u32, s.start, ticks, s.inside.records());
            }
        }
        true
    }

    /// Whether the kernel's rows contain anything between the first start and the last end.
    fn is_hit(&self, samples: Columns<'_>) -> bool {
        let from = samples.starts.iter().min().copied().unwrap_or(i64::MAX);
        let until = samples.ends.iter().max().copied().unwrap_or(i64::MIN);
        self.evidence.is_anything(from, until)
    }
}

impl Tally {
    /// How the ends of its [`FastSample`]s were read.
    fn fast_sample_ends(&self) -> Ends {
        match self.family {
            Some(Family::Period) => Ends::Unordered,
            _ => Ends::Plain,
        }
    }

    /// Adds samples without any cause in them; each has its ticks and its number of readings
    /// inside. This works only if the cost subtracted from them leaves the stored form unchanged;
    /// otherwise nothing is done. Returns them compensated.
    fn add_fast_samples<'a>(
        &mut self,
        samples: Columns<'_>,
        ticks: &'a [i64],
        costs: &CostTable,
        room: &'a mut Vec<i64>,
    ) -> Option<&'a [i64]> {
        let inside = samples.inside;
        let costs = match self.is_compensated() {
            true => costs.fast_path_costs(self.fast_sample_ends()),
            false => FastPathCosts::NONE,
        };
        let filled: u32 = inside.iter().map(|&i| u32::from(i != Inner::NONE)).sum();
        let without = costs.cost(Inner::NONE);
        // Before its first sample an interval has none, and the general path takes that sample.
        let constant = self.cost_so_far()?;
        let mut is_constant = true;
        let mut rounded = without * i64::from(filled);
        let values = if filled == 0 || costs.are_constant() {
            is_constant = without == constant;
            match without {
                0 => ticks,
                _ => {
                    room.clear();
                    room.extend(ticks.iter().map(|ticks| ticks.saturating_sub(without)));
                    &room[..]
                }
            }
        } else {
            rounded = 0;
            room.clear();
            room.extend(ticks.iter().zip(inside).map(|(ticks, &inside)| {
                let cost = costs.cost(inside);
                is_constant &= cost == constant;
                rounded += cost * i64::from(inside != Inner::NONE);
                ticks.saturating_sub(cost)
            }));
            &room[..]
        };
        if !is_constant && !self.has_uncompensated() {
            return None;
        }
        self.negative += ticks.iter().map(|&ticks| u64::from(ticks < 0)).sum::<u64>();
        let ends = self.fast_sample_ends();
        self.kept_costs.add_fast_samples(ends, inside, rounded);
        self.keep(values, ticks, samples.starts);
        Some(values)
    }
}

#[cfg(test)]
#[path = "../tests/support/mod.rs"]
pub(crate) mod support;

#[cfg(test)]
pub(crate) mod tests;
