//! The common rows of a raw block by a way that is shorter still than that of
//! [`crate::plain`]: what an event is, and where its samples go, is looked up once for each word of the
//! block's palette. Whether a span begins or ends nobody can foretell, so the loop has no
//! branch for it: of every row a start and a sample are made, and what the row does not mean is
//! written over by the next one. What comes out is the same, to the last digit.

use undertick_trace::coded::Coded;
use undertick_trace::rows::Key;

use crate::cost::{Inner, Reading};
use crate::engine::{Engine, TOO_MANY};
use crate::matching::{BEGIN, END, INSTANT};
use crate::plain::{MOST, Plain, Samples, is_plain};
use crate::ring::{Counts, Edge, Last, Open, Ring};
use crate::tally::Parent;

/// Words of a palette at most.
const CODES: usize = 256;
/// Cells of the instants come first, then those of the stack, the one below its first included:
/// a power of two, so that no place lies outside.
const CELLS: usize = 2048;
const STACK: usize = CODES;
/// The stack grows no deeper: others need room.
const DEEPEST: usize = 1000;
/// No place of anything.
const NOWHERE: u32 = u32::MAX;
/// Of an interval in a cell: only the general way ends it.
const NOT_PLAIN: u32 = 1 << 31;

/// What the rows of one word of the palette do. An instant ends what it began the last time.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))] // so that its place is found by a shift
struct Code {
    /// What must be in the cell, as far as these bits go, or the general way takes the row: of a
    /// start the interval around it, of an end or an instant its own.
    expected: u32,
    compared: u32,
    /// Bits of the payload with which the general way takes the row.
    payload: u32,
    /// Interval that it begins.
    interval: u32,
    /// Its cell: of an instant, or where the stack begins and the bits of the depth to add.
    cell: u32,
    stacked: u32,
    /// So much deeper is the stack afterwards.
    deeper: i16,
    /// 1 where it ends something, else 0.
    ends: u8,
    /// Where its samples are.
    slot: u8,
    /// 1 where its reading is an event's.
    is_event: u8,
}

impl Code {
    /// The general way takes it: no cell has what it expects.
    const ODD: Self = Self {
        expected: NOT_PLAIN - 2,
        compared: u32::MAX,
        payload: 0,
        interval: NOWHERE,
        cell: 0,
        stacked: 0,
        deeper: 0,
        ends: 0,
        slot: 0,
        is_event: 0,
    };

    /// Of a span whose samples lay in `parent` so far.
    fn start(interval: u32, slot: u8, parent: Parent) -> Self {
        let (expected, compared) = match parent {
            Parent::Various => (0, 0),
            Parent::One(outer) => (outer, !NOT_PLAIN),
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
        }
    }

    fn end(interval: u32, slot: u8) -> Self {
        Self {
            expected: interval,
            compared: u32::MAX,
            deeper: -1,
            ends: 1,
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

/// A start between such readings alone as [`Plain`] samples have.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Begun {
    ts: i64,
    /// Readings so far, its own included.
    plain: Inner,
    interval: u32,
}

const NOTHING: Begun = Begun {
    ts: 0,
    plain: Inner::NONE,
    interval: NOWHERE,
};

impl Begun {
    fn of(open: &Open) -> Self {
        Self {
            ts: open.at.ts,
            plain: open.counts.plain,
            interval: open.interval,
        }
    }

    /// With what else is counted, which plain rows do not change.
    fn open(&self, now: Counts, reading: Reading) -> Open {
        Open {
            at: Edge::alone(self.ts, reading),
            counts: Counts {
                plain: self.plain,
                ..now
            },
            interval: self.interval,
        }
    }
}

/// What the words of a block's palette mean here.
#[derive(Debug)]
struct Codes {
    each: [Code; CODES],
    /// Rows of each that are not counted yet, and where they are.
    rows: [u32; CODES],
    counted: [u32; CODES],
    /// Samples that wait in each slot.
    waiting: [u32; CODES],
}

/// What is open of a ring, what its rows do, and samples that wait to be tallied: so long as no
/// other rows come, they may.
#[derive(Debug)]
pub(crate) struct Coding {
    codes: Codes,
    cells: Box<[Begun; CELLS]>,
    depth: usize,
    samples: Box<[Samples; CODES]>,
    /// Interval of each slot that is in use.
    intervals: Vec<u32>,
    /// Places of the last instants, in the order of their cells.
    instants: Vec<u32>,
}

impl Coding {
    pub(crate) fn new() -> Self {
        let cells = vec![NOTHING; CELLS].into_boxed_slice();
        let samples = vec![Samples::NONE; CODES].into_boxed_slice();
        Self {
            codes: Codes {
                each: [Code::ODD; CODES],
                rows: [0; CODES],
                counted: [NOWHERE; CODES],
                waiting: [0; CODES],
            },
            cells: cells.try_into().unwrap_or_else(|_| unreachable!()),
            depth: 0,
            samples: samples.try_into().unwrap_or_else(|_| unreachable!()),
            intervals: Vec::new(),
            instants: Vec::new(),
        }
    }

    /// Rows of one ring from `from` on, as far as they are plain; returns the first that is not.
    /// Time was said to reach from `lo` to `hi` of them. Their samples wait: before other rows
    /// come [`Self::tally`] takes them.
    pub(crate) fn rows(
        &mut self,
        ring: &mut Ring,
        engine: &mut Engine,
        block: &Coded,
        from: usize,
        (lo, hi): (i64, i64),
    ) -> usize {
        if ring.stack.len() >= DEEPEST || ring.never_waits {
            return from;
        }
        self.learn(block.keys(), ring.set, engine);
        self.take_over(ring, engine);
        let until = block.ts().len();
        let mut row = from;
        let mut stopped = false;
        while row < until && !stopped {
            let ts = block.ts()[row];
            // Most blocks lie in one slice of time.
            let to = match engine.slices.is_one(lo, hi) {
                true => until,
                false => row + engine.slices.alike(&block.ts()[row..until]),
            };
            while row < to && !stopped {
                // Of so many rows none can lie too deep.
                let end = to.min(row + DEEPEST.saturating_sub(self.depth));
                let (n, full) = self.run(&mut ring.counts.plain, block, row, end);
                row += n;
                match full {
                    Some(slot) => self.tally_slot(slot, engine),
                    None => stopped = row < end || n == 0,
                }
            }
            self.codes.count(engine, ts);
        }
        self.leave(ring);
        row
    }

    /// Looks up what these words do.
    fn learn(&mut self, keys: &[Key], set: usize, engine: &mut Engine) {
        if self.intervals.len() + keys.len() > CODES {
            self.tally(engine);
        }
        self.instants.clear();
        self.codes.each = [Code::ODD; CODES];
        self.codes.counted = [NOWHERE; CODES];
        for (at, key) in keys.iter().enumerate().take(CODES) {
            let cell = engine.cells[set].get(key.event as u32 as usize).copied();
            let Some(cell) = cell.filter(|cell| cell.counted < TOO_MANY && key.descheduled == 0)
            else {
                continue;
            };
            let parent = |interval: u32| engine.tallies[interval as usize].parent;
            self.codes.each[at] = match key.kind {
                BEGIN if cell.span < TOO_MANY => {
                    self.codes.counted[at] = cell.counted;
                    Code::start(cell.span, self.slot(cell.span), parent(cell.span))
                }
                END if cell.span < TOO_MANY => Code::end(cell.span, self.slot(cell.span)),
                // Its first samples say that they lie in none.
                INSTANT
                    if cell.period < TOO_MANY
                        && cell.instant < TOO_MANY
                        && parent(cell.period) == Parent::Various =>
                {
                    self.codes.counted[at] = cell.counted;
                    // The same event may have several words: of each CPU one.
                    let place = place_of(cell.instant, &mut self.instants);
                    Code::instant(cell.period, self.slot(cell.period), place as u32)
                }
                _ => continue,
            };
        }
    }

    /// Where samples of an interval wait; there is room for those of a palette.
    fn slot(&mut self, interval: u32) -> u8 {
        place_of(interval, &mut self.intervals) as u8
    }

    /// Takes over what is open.
    fn take_over(&mut self, ring: &Ring, engine: &Engine) {
        self.depth = ring.stack.len();
        self.cells[STACK] = NOTHING;
        let mut around = Parent::Various;
        for (cell, open) in self.cells[STACK + 1..].iter_mut().zip(&ring.stack) {
            *cell = Begun::of(open);
            // Where those that begin here lie is looked at when they begin.
            let parent = engine.tallies[open.interval as usize].parent;
            if !is_plain(open, ring.counts, Reading::Plain)
                || (parent != Parent::Various && parent != around)
            {
                cell.interval |= NOT_PLAIN;
            }
            around = Parent::One(open.interval);
        }
        for (cell, &instant) in self.cells.iter_mut().zip(&self.instants) {
            let last = ring.last.get(instant as usize).copied().flatten();
            let last = last.filter(|last| last.gaps == ring.gaps);
            let plain = last.filter(|last| is_plain(&last.open, ring.counts, Reading::Unordered));
            *cell = plain.map_or(NOTHING, |last| Begun::of(&last.open));
        }
    }

    /// Leaves what is open now.
    fn leave(&self, ring: &mut Ring) {
        let now = ring.counts;
        let begun = &self.cells[STACK + 1..][..self.depth];
        let same = |(open, begun): &(&Open, &Begun)| {
            let interval = begun.interval & !NOT_PLAIN;
            Begun::of(open)
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
            // What was nothing is what the general way left, and still is.
            if *begun != NOTHING {
                ring.last[instant as usize] = Some(Last {
                    open: begun.open(now, Reading::Unordered),
                    gaps: ring.gaps,
                });
            }
        }
    }

    /// Plain rows until there are enough samples of an interval; returns how many, and the slot
    /// of that interval.
    #[inline(never)] // by itself it keeps its state in registers
    fn run(
        &mut self,
        plain_so_far: &mut Inner,
        block: &Coded,
        from: usize,
        to: usize,
    ) -> (usize, Option<u8>) {
        let (codes, cells, samples) = (&mut self.codes, &mut *self.cells, &mut *self.samples);
        let mut depth = self.depth as u32;
        let mut plain = *plain_so_far;
        let mut n_taken = 0;
        let mut full = None;
        let (ts, code) = (&block.ts()[from..to], &block.code()[from..to]);
        let payload = &block.payload()[from..to];
        for ((&ts, &code), &payload) in ts.iter().zip(code).zip(payload) {
            let does = &codes.each[usize::from(code)];
            let cell = |depth: u32| does.cell.wrapping_add(depth & does.stacked) as usize % CELLS;
            let top = cells[cell(depth)];
            let another = (top.interval ^ does.expected) & does.compared;
            if another | (payload & does.payload) != 0 {
                break;
            }
            let n = &mut codes.waiting[usize::from(does.slot)];
            samples[usize::from(does.slot)].put(
                *n as u8,
                Plain {
                    start: top.ts,
                    end: ts,
                    inside: plain.since(top.plain),
                },
            );
            *n += u32::from(does.ends);
            plain = plain.and(Inner::of(does.is_event));
            n_taken += 1;
            cells[cell(depth.wrapping_add(1))] = Begun {
                ts,
                plain,
                interval: does.interval,
            };
            depth = depth.wrapping_add_signed(i32::from(does.deeper));
            codes.rows[usize::from(code)] += 1;
            if *n as usize == MOST {
                full = Some(does.slot);
                break;
            }
        }
        self.depth = depth as usize;
        *plain_so_far = plain;
        (n_taken, full)
    }

    /// All samples that wait are tallied.
    pub(crate) fn tally(&mut self, engine: &mut Engine) {
        for slot in 0..self.intervals.len() {
            self.tally_slot(slot as u8, engine);
        }
        self.intervals.clear();
    }

    fn tally_slot(&mut self, slot: u8, engine: &mut Engine) {
        let place = usize::from(slot);
        let n = std::mem::take(&mut self.codes.waiting[place]) as usize;
        engine.tally(self.intervals[place], self.samples[place].first(n));
    }
}

/// Where it is among these; at their end from now on if it was not there.
fn place_of(this: u32, among: &mut Vec<u32>) -> usize {
    let known = among.iter().position(|&other| other == this);
    known.unwrap_or_else(|| {
        among.push(this);
        among.len() - 1
    })
}

impl Codes {
    /// Counts the rows so far, all of which lie in the slice of this reading.
    fn count(&mut self, engine: &mut Engine, ts: i64) {
        for (n, &counted) in self.rows.iter_mut().zip(&self.counted) {
            if *n > 0 && counted != NOWHERE {
                engine.slices.count_more(counted, ts, u64::from(*n));
            }
            *n = 0;
        }
    }
}
