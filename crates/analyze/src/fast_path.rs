//! The fast path for the common rows of a trace: plain boundaries of spans, with nothing between
//! them that the general path ([`crate::matching`]) would have to handle. Their samples wait
//! until there are many of one interval, and are then tallied together. The results are the same,
//! to the last digit.

use undertick_format::rows::RowsOfRing;

use crate::cells::{Cell, TOO_MANY};
use crate::kinds::{BEGIN, END, INSTANT};
use crate::match_context::MatchContext;
use crate::reading::{Inner, Reading};
use crate::ring::{Counts, Edge, Last, MOST_OPEN, Open, Ring};
use crate::slices::Counting;
use crate::tally::{Parent, Tally};
use crate::tree::{Path, Tree};
use crate::waiting::{FastSample, MOST, Samples, Waiting};

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
    root: Path,
    last: &'a mut [Option<Last>],
    gaps: u32,
    waiting: &'a mut Waiting,
    tallies: &'a [Tally],
    counting: Counting<'a>,
    tree: &'a mut Tree,
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
        root: ring.root,
        last: &mut ring.last,
        gaps: ring.gaps,
        waiting: &mut context.waiting,
        tallies: &context.tallies,
        counting: context.slices.counting(),
        tree: &mut context.tree,
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
        let around = self.stack.last().map_or(self.root, |open| open.path);
        let path = self.tree.child(around, cell.span);
        self.stack
            .push(open(now, cell.span, ts, (Reading::Plain, path)));
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
                open: open(now, interval, ts, (Reading::Unordered, Path::ROOT)),
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
fn open(mut now: Counts, interval: u32, ts: i64, (reading, path): (Reading, Path)) -> Open {
    now.note_reading(reading);
    Open {
        at: Edge::alone(ts, reading),
        counts: now,
        interval,
        path,
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
        path: open.path,
    }
}

#[cfg(test)]
#[path = "../tests/support/mod.rs"]
pub(crate) mod support;

#[cfg(test)]
pub(crate) mod tests;
