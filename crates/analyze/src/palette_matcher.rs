//! A faster path for the common rows of a raw block than [`crate::fast_path`]. The meaning of an
//! event, and the slot for its samples, are looked up once for each word of the block's palette.
//! Whether a span begins or ends is not predictable, so the loop has no branch for it. Every row
//! makes a start and a sample, and the next row overwrites what the row does not mean. The
//! results are the same, to the last digit.

use std::ops::Range;

use undertick_format::palette_block::PaletteBlock;
use undertick_format::rows::Key;

use crate::cells::TOO_MANY;
use crate::fast_path::is_fast_sample;
use crate::kinds::{BEGIN, END, INSTANT};
use crate::match_context::MatchContext;
use crate::reading::{Inner, Reading};
use crate::ring::{Counts, Edge, Last, Open, Ring};
use crate::tally::Parent;
use crate::tree::{Path, Tree};
use crate::waiting::{FastSample, MOST, Samples};

/// Most words of a palette.
const MOST_WORDS: usize = 256;
/// Number of cells. Those of the instants come first, then those of the stack and the one below
/// its first: a power of two, so that no index lies outside.
const CELLS: usize = 2048;
const STACK: usize = MOST_WORDS;
/// Greatest depth of the stack, to leave room for others.
const DEEPEST: usize = 1000;
/// Marks a missing place.
const NOWHERE: u32 = u32::MAX;
/// Mark of an interval in a cell: only the general path ends it.
const GENERAL_PATH: u32 = 1 << 31;

/// The action of the rows of one word of the palette. An instant ends what the last one began.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))] // so that its place is found by a shift
struct WordAction {
    /// What must be in the cell, as far as these bits go; otherwise the general path takes the
    /// row. For a start it is the interval around it, for an end or an instant its own.
    expected: u32,
    compared: u32,
    /// Bits of the payload that send the row to the general path.
    payload: u32,
    /// Interval that it begins.
    interval: u32,
    /// Its cell: that of an instant, or the start of the stack and the bits of the depth to add.
    cell: u32,
    stacked: u32,
    /// Change of the stack's depth.
    deeper: i16,
    /// 1 where it ends something, else 0.
    ends: u8,
    /// The slot of its samples.
    slot: u8,
    /// 1 where its reading is an event's.
    is_event: u8,
    /// Whether it begins a span.
    begins: bool,
}

impl WordAction {
    /// The general path takes it: no cell has what it expects.
    const ODD: Self = Self {
        expected: GENERAL_PATH - 2,
        compared: u32::MAX,
        payload: 0,
        interval: NOWHERE,
        cell: 0,
        stacked: 0,
        deeper: 0,
        ends: 0,
        slot: 0,
        is_event: 0,
        begins: false,
    };

    /// A span whose samples so far all had the parent `parent`.
    fn start(interval: u32, slot: u8, parent: Parent) -> Self {
        let (expected, compared) = match parent {
            Parent::Various => (0, 0),
            Parent::One(outer) => (outer, !GENERAL_PATH),
            Parent::Unseen => (Self::ODD.expected, Self::ODD.compared),
        };
        Self {
            expected,
            compared,
            payload: u32::MAX,
            interval,
            cell: STACK as u32,
            stacked: u32::MAX,
            deeper: 1,
            ends: 0,
            slot,
            is_event: 0,
            begins: true,
        }
    }

    fn end(interval: u32, slot: u8) -> Self {
        Self {
            expected: interval,
            compared: u32::MAX,
            deeper: -1,
            ends: 1,
            begins: false,
            ..Self::start(interval, slot, Parent::Various)
        }
    }

    fn instant(interval: u32, slot: u8, cell: u32) -> Self {
        Self {
            expected: interval,
            interval,
            cell,
            ends: 1,
            slot,
            is_event: 1,
            ..Self::ODD
        }
    }
}

/// A start with only such readings as [`FastSample`]s have.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Begun {
    ts: i64,
    /// Readings so far, including its own.
    plain: Inner,
    interval: u32,
    path: Path,
}

const NOTHING: Begun = Begun {
    ts: 0,
    plain: Inner::NONE,
    interval: NOWHERE,
    path: Path::ROOT,
};

impl Begun {
    fn from_open(open: &Open) -> Self {
        Self {
            ts: open.at.ts,
            plain: open.counts.plain,
            interval: open.interval,
            path: open.path,
        }
    }

    /// Adds the other counts, which rows of the fast path do not change.
    fn open(&self, now: Counts, reading: Reading) -> Open {
        Open {
            at: Edge::alone(self.ts, reading),
            counts: Counts {
                plain: self.plain,
                ..now
            },
            interval: self.interval,
            path: self.path,
        }
    }
}

/// The meaning of the words of a block's palette here.
#[derive(Debug)]
struct WordActions {
    each: [WordAction; MOST_WORDS],
    /// Rows of each word that are not counted yet, and their slice.
    rows: [u32; MOST_WORDS],
    counted: [u32; MOST_WORDS],
    /// Number of samples that wait in each slot.
    waiting: [u32; MOST_WORDS],
}

/// Open starts of a ring, actions of its rows, and samples that wait to be tallied. They may wait
/// as long as no other rows come.
#[derive(Debug)]
pub(crate) struct PaletteMatcher {
    actions: WordActions,
    cells: Box<[Begun; CELLS]>,
    depth: usize,
    samples: Box<[Samples; MOST_WORDS]>,
    /// Interval of each slot that is in use.
    intervals: Vec<u32>,
    /// Places of the last instants, in the order of their cells.
    instants: Vec<u32>,
}

impl PaletteMatcher {
    pub(crate) fn new() -> Self {
        let cells = vec![NOTHING; CELLS].into_boxed_slice();
        let samples = vec![Samples::NONE; MOST_WORDS].into_boxed_slice();
        Self {
            actions: WordActions {
                each: [WordAction::ODD; MOST_WORDS],
                rows: [0; MOST_WORDS],
                counted: [NOWHERE; MOST_WORDS],
                waiting: [0; MOST_WORDS],
            },
            cells: cells.try_into().unwrap_or_else(|_| unreachable!()),
            depth: 0,
            samples: samples.try_into().unwrap_or_else(|_| unreachable!()),
            intervals: Vec::new(),
            instants: Vec::new(),
        }
    }

    /// Takes rows of one ring from `from` on, as long as the fast path handles them; returns the
    /// first that it does not handle. Their times lie between `lo` and `hi`. Their samples wait:
    /// call [`Self::tally`] before other rows come.
    pub(crate) fn rows(
        &mut self,
        ring: &mut Ring,
        context: &mut MatchContext,
        block: &PaletteBlock,
        from: usize,
        (lo, hi): (i64, i64),
    ) -> usize {
        if ring.stack.len() >= DEEPEST || ring.never_waits {
            return from;
        }
        self.learn(block.keys(), ring.set, context);
        self.take_over(ring, context);
        let until = block.ts().len();
        let mut row = from;
        let mut stopped = false;
        while row < until && !stopped {
            let ts = block.ts()[row];
            // Most blocks lie in one slice of time.
            let to = match context.slices.is_one(lo, hi) {
                true => until,
                false => row + context.slices.alike(&block.ts()[row..until]),
            };
            while row < to && !stopped {
                // This many rows cannot nest too deeply.
                let end = to.min(row + DEEPEST.saturating_sub(self.depth));
                let (n, full) =
                    self.run(&mut context.tree, &mut ring.counts.plain, block, row..end);
                row += n;
                match full {
                    Some(slot) => self.tally_slot(slot, context),
                    None => stopped = row < end || n == 0,
                }
            }
            self.actions.count(context, ts);
        }
        self.leave(ring);
        row
    }

    /// Looks up the actions of these words.
    fn learn(&mut self, keys: &[Key], set: usize, context: &mut MatchContext) {
        if self.intervals.len() + keys.len() > MOST_WORDS {
            self.tally(context);
        }
        self.instants.clear();
        self.actions.each = [WordAction::ODD; MOST_WORDS];
        self.actions.counted = [NOWHERE; MOST_WORDS];
        for (at, key) in keys.iter().enumerate().take(MOST_WORDS) {
            let cell = context.cells[set].get(key.event as u32 as usize).copied();
            let Some(cell) = cell.filter(|cell| cell.counted < TOO_MANY && key.descheduled == 0)
            else {
                continue;
            };
            let parent = |interval: u32| context.tallies[interval as usize].parent;
            self.actions.each[at] = match key.kind {
                BEGIN if cell.span < TOO_MANY => {
                    self.actions.counted[at] = cell.counted;
                    WordAction::start(cell.span, self.slot(cell.span), parent(cell.span))
                }
                END if cell.span < TOO_MANY => WordAction::end(cell.span, self.slot(cell.span)),
                // Its first samples decide that they have no parent.
                INSTANT
                    if cell.period < TOO_MANY
                        && cell.instant < TOO_MANY
                        && parent(cell.period) == Parent::Various =>
                {
                    self.actions.counted[at] = cell.counted;
                    // The same event may have several words, one for each CPU.
                    let place = place_of(cell.instant, &mut self.instants);
                    WordAction::instant(cell.period, self.slot(cell.period), place as u32)
                }
                _ => continue,
            };
        }
    }

    /// Returns the slot for samples of an interval; there is room for those of a palette.
    fn slot(&mut self, interval: u32) -> u8 {
        place_of(interval, &mut self.intervals) as u8
    }

    /// Takes over the open starts.
    fn take_over(&mut self, ring: &Ring, context: &MatchContext) {
        self.depth = ring.stack.len();
        self.cells[STACK] = Begun {
            path: ring.root,
            ..NOTHING
        };
        let mut around = Parent::Various;
        for (cell, open) in self.cells[STACK + 1..].iter_mut().zip(&ring.stack) {
            *cell = Begun::from_open(open);
            // The parent of those that begin here is checked when they begin.
            let parent = context.tallies[open.interval as usize].parent;
            if !is_fast_sample(open, ring.counts, Reading::Plain)
                || (parent != Parent::Various && parent != around)
            {
                cell.interval |= GENERAL_PATH;
            }
            around = Parent::One(open.interval);
        }
        for (cell, &instant) in self.cells.iter_mut().zip(&self.instants) {
            let last = ring.last.get(instant as usize).copied().flatten();
            let last = last.filter(|last| last.gaps == ring.gaps);
            let fast =
                last.filter(|last| is_fast_sample(&last.open, ring.counts, Reading::Unordered));
            *cell = fast.map_or(NOTHING, |last| Begun::from_open(&last.open));
        }
    }

    /// Returns the starts that are open now to the ring.
    fn leave(&self, ring: &mut Ring) {
        let now = ring.counts;
        let begun = &self.cells[STACK + 1..][..self.depth];
        let same = |(open, begun): &(&Open, &Begun)| {
            let interval = begun.interval & !GENERAL_PATH;
            Begun::from_open(open)
                == Begun {
                    interval,
                    ..**begun
                }
        };
        let stay = ring.stack.iter().zip(begun).take_while(same).count();
        ring.stack.truncate(stay);
        ring.stack
            .extend((begun[stay..].iter()).map(|begun| begun.open(now, Reading::Plain)));
        for (begun, &instant) in self.cells.iter().zip(&self.instants) {
            // An empty cell is what the general path left, and remains so.
            if *begun != NOTHING {
                ring.last[instant as usize] = Some(Last {
                    open: begun.open(now, Reading::Unordered),
                    gaps: ring.gaps,
                });
            }
        }
    }

    /// Takes rows of the fast path until there are enough samples of an interval; returns how many
    /// rows, and the slot of that interval.
    #[inline(never)] // by itself it keeps its state in registers
    fn run(
        &mut self,
        tree: &mut Tree,
        plain_so_far: &mut Inner,
        block: &PaletteBlock,
        rows: Range<usize>,
    ) -> (usize, Option<u8>) {
        let (actions, cells, samples) = (&mut self.actions, &mut *self.cells, &mut *self.samples);
        let mut depth = self.depth as u32;
        let mut plain = *plain_so_far;
        let mut n_taken = 0;
        let mut full = None;
        let (ts, code) = (&block.ts()[rows.clone()], &block.code()[rows.clone()]);
        let payload = &block.payload()[rows];
        for ((&ts, &code), &payload) in ts.iter().zip(code).zip(payload) {
            let action = &actions.each[usize::from(code)];
            let cell =
                |depth: u32| action.cell.wrapping_add(depth & action.stacked) as usize % CELLS;
            let top = cells[cell(depth)];
            let another = (top.interval ^ action.expected) & action.compared;
            if another | (payload & action.payload) != 0 {
                break;
            }
            let n = &mut actions.waiting[usize::from(action.slot)];
            samples[usize::from(action.slot)].put(
                *n as u8,
                FastSample {
                    start: top.ts,
                    end: ts,
                    inside: plain.since(top.plain),
                    path: top.path,
                },
            );
            *n += u32::from(action.ends);
            plain = plain.and(Inner::one_reading(action.is_event));
            n_taken += 1;
            cells[cell(depth.wrapping_add(1))] = Begun {
                ts,
                plain,
                interval: action.interval,
                path: tree.child_if(action.begins, top.path, action.interval),
            };
            depth = depth.wrapping_add_signed(i32::from(action.deeper));
            actions.rows[usize::from(code)] += 1;
            if *n as usize == MOST {
                full = Some(action.slot);
                break;
            }
        }
        self.depth = depth as usize;
        *plain_so_far = plain;
        (n_taken, full)
    }

    /// Tallies all samples that wait.
    pub(crate) fn tally(&mut self, context: &mut MatchContext) {
        for slot in 0..self.intervals.len() {
            self.tally_slot(slot as u8, context);
        }
        self.intervals.clear();
    }

    fn tally_slot(&mut self, slot: u8, context: &mut MatchContext) {
        let place = usize::from(slot);
        let n = std::mem::take(&mut self.actions.waiting[place]) as usize;
        context.tally(self.intervals[place], self.samples[place].first(n));
    }
}

/// Index of `this` in `among`, where it is appended if it is missing.
fn place_of(this: u32, among: &mut Vec<u32>) -> usize {
    let known = among.iter().position(|&other| other == this);
    known.unwrap_or_else(|| {
        among.push(this);
        among.len() - 1
    })
}

impl WordActions {
    /// Counts the rows so far, all of which lie in the slice of this reading.
    fn count(&mut self, context: &mut MatchContext, ts: i64) {
        for (n, &counted) in self.rows.iter_mut().zip(&self.counted) {
            if *n > 0 && counted != NOWHERE {
                context.slices.count_more(counted, ts, u64::from(*n));
            }
            *n = 0;
        }
    }
}
