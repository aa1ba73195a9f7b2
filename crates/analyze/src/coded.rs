//! The common rows of a raw block by a way that is shorter still than that of
//! [`crate::plain`]: what an event is, and where its samples go, is looked up once for each word of the
//! block's palette. Whether a span begins or ends nobody can foretell, so the loop has no
//! branch for it: of every row a start and a sample are made, and one of the two counts.
//! What comes out is the same, to the last digit.

use undertick_trace::coded::Coded;
use undertick_trace::rows::Key;

use crate::engine::{Engine, TOO_MANY};
use crate::matching::{BEGIN, END, INSTANT};
use crate::plain::{MOST, Plain, is_plain};
use crate::ring::{Counts, Edge, Last, Open, Ring};

/// Words of a palette at most.
const CODES: usize = 256;
/// Cells of the stack, the one below its first included.
const DEEP: usize = 64;
/// Cells of the stack, and behind them one for each instant: a power of two, so that no place lies
/// outside.
const CELLS: usize = 2 * CODES;
/// No more starts than these are taken over: others need room.
const MOST_BEFORE: usize = DEEP / 2;
/// No place of anything.
const NOWHERE: u32 = u32::MAX;

/// What the rows of one word of the palette do. An instant ends what it began the last time.
#[derive(Clone, Copy)]
struct Code {
    /// Interval that it begins or ends.
    interval: u32,
    /// 1 where it ends something, else 0.
    ends: u32,
    /// So much deeper is the stack afterwards, modulo 2^32.
    deeper: u32,
    /// Cell of an instant; 0 of a span's start or end, which is on the stack.
    cell: u32,
    /// Bits of the depth that say which cell: none of an instant.
    stacked: u32,
    /// Bits of the payload with which only the general way takes them.
    payload: u32,
    /// Not 0 where it must take them whatever that is.
    odd: u32,
}

impl Code {
    const ODD: Self = Self {
        interval: 0,
        ends: 0,
        deeper: 0,
        cell: 0,
        stacked: 0,
        payload: 0,
        odd: 1,
    };

    fn start(interval: u32) -> Self {
        Self {
            interval,
            ends: 0,
            deeper: 1,
            cell: 0,
            stacked: DEEP as u32 - 1,
            payload: u32::MAX,
            odd: 0,
        }
    }

    fn end(interval: u32) -> Self {
        Self {
            ends: 1,
            deeper: 1_u32.wrapping_neg(),
            ..Self::start(interval)
        }
    }

    fn instant(interval: u32, cell: u32) -> Self {
        Self {
            interval,
            ends: 1,
            cell,
            odd: 0,
            ..Self::ODD
        }
    }
}

/// What the words of a block's palette mean here.
struct Codes {
    each: [Code; CODES],
    /// Rows of counts.
    counted: [u32; CODES],
    /// Rows that are not counted yet.
    rows: [u32; CODES],
    /// Places of the last instants, in the order of their cells.
    instants: Vec<u32>,
}

impl Codes {
    /// With room for what waits of their intervals.
    fn of(keys: &[Key], set: usize, engine: &mut Engine) -> Self {
        let mut codes = Self {
            each: [Code::ODD; CODES],
            counted: [NOWHERE; CODES],
            rows: [0; CODES],
            instants: Vec::new(),
        };
        for (at, key) in keys.iter().enumerate().take(CODES) {
            let cell = engine.cells[set].get(key.event as u32 as usize).copied();
            let Some(cell) = cell.filter(|cell| cell.counted < TOO_MANY && key.descheduled == 0)
            else {
                continue;
            };
            match key.kind {
                BEGIN if cell.span < TOO_MANY => {
                    codes.each[at] = Code::start(cell.span);
                    codes.counted[at] = cell.counted;
                    engine.let_wait(cell.span);
                }
                END if cell.span < TOO_MANY => {
                    codes.each[at] = Code::end(cell.span);
                    engine.let_wait(cell.span);
                }
                INSTANT if cell.period < TOO_MANY && cell.instant < TOO_MANY => {
                    // The same event may have several words: of each CPU one.
                    let known = codes.instants.iter().position(|&i| i == cell.instant);
                    let place = known.unwrap_or(codes.instants.len());
                    if known.is_none() {
                        codes.instants.push(cell.instant);
                    }
                    codes.each[at] = Code::instant(cell.period, (DEEP + place) as u32);
                    codes.counted[at] = cell.counted;
                    engine.let_wait(cell.period);
                }
                _ => {}
            }
        }
        codes
    }

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

/// A start between plain readings alone.
#[derive(Clone, Copy, PartialEq)]
struct Begun {
    ts: i64,
    /// Plain readings so far, its own included.
    plain: u32,
    interval: u32,
}

impl Begun {
    fn of(open: &Open) -> Self {
        Self {
            ts: open.at.ts,
            plain: open.counts.plain,
            interval: open.interval,
        }
    }

    /// With what else is counted, which plain rows do not change.
    fn open(&self, now: Counts) -> Open {
        Open {
            at: Edge::plain(self.ts),
            counts: Counts {
                plain: self.plain,
                ..now
            },
            interval: self.interval,
        }
    }
}

/// What is open in a ring: its stack, the first in cell 1, and the last instants behind it.
struct Cells {
    each: [Begun; CELLS],
    depth: u32,
    /// Those up to here only the general way ends: something fell into them.
    floor: u32,
}

impl Cells {
    fn of(ring: &Ring, instants: &[u32]) -> Self {
        let nothing = Begun {
            ts: 0,
            plain: 0,
            interval: NOWHERE,
        };
        let mut cells = Self {
            each: [nothing; CELLS],
            depth: ring.stack.len() as u32,
            floor: (ring.stack.iter())
                .rposition(|open| !is_plain(open, ring.counts))
                .map_or(0, |at| at as u32 + 1),
        };
        for (cell, open) in cells.each[1..DEEP].iter_mut().zip(&ring.stack) {
            *cell = Begun::of(open);
        }
        for (cell, &instant) in cells.each[DEEP..].iter_mut().zip(instants) {
            let last = ring.last.get(instant as usize).copied().flatten();
            let last = last.filter(|last| last.gaps == ring.gaps);
            let plain = last.filter(|last| is_plain(&last.open, ring.counts));
            *cell = plain.map_or(nothing, |last| Begun::of(&last.open));
        }
        cells
    }

    /// Leaves what is open now.
    fn leave(&self, ring: &mut Ring, instants: &[u32]) {
        let now = ring.counts;
        let begun = &self.each[1..=self.depth as usize];
        let same = |(open, begun): &(&Open, &Begun)| Begun::of(open) == **begun;
        let stay = ring.stack.iter().zip(begun).take_while(same).count();
        ring.stack.truncate(stay);
        ring.stack
            .extend(begun[stay..].iter().map(|begun| begun.open(now)));
        for (begun, &instant) in self.each[DEEP..].iter().zip(instants) {
            // What was nothing is what the general way left, and still is.
            if begun.interval != NOWHERE {
                ring.last[instant as usize] = Some(Last {
                    open: begun.open(now),
                    gaps: ring.gaps,
                });
            }
        }
    }
}

/// Rows of one ring from `from` on, as far as they are plain; returns the first that is not.
/// Time was said to reach from `lo` to `hi` of them.
pub(crate) fn rows(
    ring: &mut Ring,
    engine: &mut Engine,
    block: &Coded,
    from: usize,
    (lo, hi): (i64, i64),
) -> usize {
    if ring.stack.len() > MOST_BEFORE {
        return from;
    }
    let mut codes = Codes::of(block.keys(), ring.set, engine);
    let mut cells = Cells::of(ring, &codes.instants);
    let until = block.ts().len();
    let mut row = from;
    while row < until {
        let ts = block.ts()[row];
        // Most blocks lie in one slice of time.
        let to = match engine.slices.is_one(lo, hi) {
            true => until,
            false => row + engine.slices.alike(&block.ts()[row..until]),
        };
        let stopped = loop {
            let part = (
                &block.ts()[row..to],
                &block.code()[row..to],
                &block.payload()[row..to],
            );
            let (n, full) = run(ring, engine, &mut codes, &mut cells, part);
            row += n;
            match full {
                Some(interval) => engine.tally_waiting(interval),
                None => break row < to,
            }
        };
        codes.count(engine, ts);
        if stopped {
            break;
        }
    }
    cells.leave(ring, &codes.instants);
    row
}

/// Plain rows until there are enough samples of an interval; returns how many, and that
/// interval.
#[inline(never)] // by itself it keeps its state in registers
fn run(
    ring: &mut Ring,
    engine: &mut Engine,
    codes: &mut Codes,
    cells: &mut Cells,
    (ts, code, payload): (&[i64], &[u8], &[u32]),
) -> (usize, Option<u32>) {
    let of = &mut engine.waiting.of[..];
    let (each, mut depth, floor) = (&mut cells.each, cells.depth, cells.floor);
    let first = ring.counts.plain;
    let mut plain = first;
    let mut full = None;
    for ((&ts, &code), &payload) in ts.iter().zip(code).zip(payload) {
        let does = &codes.each[usize::from(code)];
        let cell = |depth: u32| (does.cell | (depth & does.stacked)) as usize % CELLS;
        let top = each[cell(depth)];
        let outer = each[cell(depth.wrapping_sub(1))].interval;
        let Some(of) = of.get_mut(does.interval as usize) else {
            break;
        };
        let another = (top.interval ^ does.interval) | (u32::from(depth <= floor) & does.stacked);
        // Of an instant that is its own interval, in which none lies.
        let elsewhere = (outer ^ of.parent) & of.lies_in_one;
        let odd = does.odd | (payload & does.payload) | u32::from(depth > DEEP as u32 - 2);
        if odd | ((another | elsewhere) & does.ends.wrapping_neg()) != 0 {
            break;
        }
        let sample = Plain {
            start: top.ts,
            end: ts,
            inside: plain.wrapping_sub(top.plain),
        };
        let Some(samples) = of.samples.as_deref_mut() else {
            break;
        };
        if !samples.put(of.n, sample) {
            break;
        }
        of.n += does.ends as usize;
        plain = plain.wrapping_add(1);
        each[cell(depth.wrapping_add(1))] = Begun {
            ts,
            plain,
            interval: does.interval,
        };
        depth = depth.wrapping_add(does.deeper);
        codes.rows[usize::from(code)] += 1;
        if of.n == MOST {
            full = Some(does.interval);
            break;
        }
    }
    cells.depth = depth;
    ring.counts.plain = plain;
    (plain.wrapping_sub(first) as usize, full)
}
