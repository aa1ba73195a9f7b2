//! The common rows of a raw block by a way that is shorter still than that of
//! [`crate::plain`]: what an event is, and where its samples go, is looked up once for each word of the
//! block's palette. Whether a span begins or ends nobody can foretell, so the loop has no
//! branch for it: of every row a start and a sample are made, and one of the two counts.
//! What comes out is the same, to the last digit.

use undertick_trace::coded::Coded;
use undertick_trace::rows::Key;

use crate::engine::{Engine, TOO_MANY};
use crate::matching::{BEGIN, END, INSTANT};
use crate::plain::{MOST, Of, Plain, is_plain, open, plain};
use crate::ring::{Counts, Edge, Last, Open, Ring};

/// Words of a palette at most.
const CODES: usize = 256;
/// Cells of the stack: a power of two, so that no place lies outside.
const DEEP: usize = 64;
/// No more starts than these are taken over: others need room.
const MOST_BEFORE: usize = DEEP / 2;
/// Rows whose payloads are looked at together.
const TOGETHER: usize = 512;
/// No place of anything.
const NOWHERE: u32 = u32::MAX;

/// What the rows of one word of the palette do.
#[derive(Clone, Copy)]
struct Code {
    /// Interval of a span's start or end.
    span: u32,
    /// 1 of an end, else 0.
    ends: u32,
    /// Not 0 where the general way must take them.
    odd: u32,
    /// Place of the last instant; [`NOWHERE`] of a span's ends.
    instant: u32,
}

impl Code {
    const ODD: Self = Self {
        span: 0,
        ends: 0,
        odd: 1,
        instant: NOWHERE,
    };
}

/// What the words of a block's palette mean here.
struct Codes {
    each: [Code; CODES],
    /// Payload bits that only the general way takes.
    payloads: [u32; CODES],
    /// Rows of counts.
    counted: [u32; CODES],
    /// Rows that are not counted yet.
    rows: [u32; CODES],
}

impl Codes {
    /// With room for what waits of their intervals.
    fn of(keys: &[Key], set: usize, engine: &mut Engine) -> Self {
        let mut codes = Self {
            each: [Code::ODD; CODES],
            payloads: [0; CODES],
            counted: [NOWHERE; CODES],
            rows: [0; CODES],
        };
        for (at, key) in keys.iter().enumerate().take(CODES) {
            let cell = engine.cells[set].get(key.event as u32 as usize).copied();
            let Some(cell) = cell.filter(|cell| cell.counted < TOO_MANY && key.descheduled == 0)
            else {
                continue;
            };
            match key.kind {
                BEGIN | END if cell.span < TOO_MANY => {
                    codes.each[at] = Code {
                        span: cell.span,
                        ends: u32::from(key.kind == END),
                        odd: 0,
                        instant: NOWHERE,
                    };
                    codes.payloads[at] = u32::MAX;
                    codes.counted[at] = if key.kind == BEGIN {
                        cell.counted
                    } else {
                        NOWHERE
                    };
                    engine.let_wait(cell.span);
                }
                INSTANT if cell.period < TOO_MANY && cell.instant < TOO_MANY => {
                    codes.each[at] = Code {
                        odd: 0,
                        instant: cell.instant,
                        ..Code::ODD
                    };
                    codes.counted[at] = cell.counted;
                    engine.let_wait(cell.period);
                }
                _ => {}
            }
        }
        codes
    }

    /// The first row, from `from` on, with a payload that only the general way takes.
    fn with_payload(&self, block: &Coded, from: usize) -> usize {
        let (code, payload) = (&block.code()[from..], &block.payload()[from..]);
        let chunks = code.chunks(TOGETHER).zip(payload.chunks(TOGETHER));
        let mut rows = from;
        for (code, payload) in chunks {
            let odd = |(code, payload): (&u8, &u32)| self.payloads[usize::from(*code)] & payload;
            let both = || code.iter().zip(payload);
            // No early exit: the whole chunk is looked at faster.
            if both().map(odd).fold(0, |all, bits| all | bits) != 0 {
                return rows + both().take_while(|row| odd(*row) == 0).count();
            }
            rows += code.len();
        }
        rows
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
#[derive(Clone, Copy)]
struct Begun {
    ts: i64,
    /// Plain readings so far, its own included.
    plain: u32,
    interval: u32,
}

/// The open starts of a ring.
struct Stack {
    cells: [Begun; DEEP],
    depth: usize,
    /// Those up to here only the general way ends: something fell into them.
    floor: usize,
}

impl Stack {
    fn of(opens: &[Open], now: Counts) -> Self {
        let nothing = Begun {
            ts: 0,
            plain: 0,
            interval: NOWHERE,
        };
        let mut stack = Self {
            cells: [nothing; DEEP],
            depth: opens.len(),
            floor: opens
                .iter()
                .rposition(|open| !is_plain(open, now))
                .map_or(0, |at| at + 1),
        };
        for (cell, open) in stack.cells[1..].iter_mut().zip(opens) {
            *cell = Begun {
                ts: open.at.ts,
                plain: open.counts.plain,
                interval: open.interval,
            };
        }
        stack
    }

    /// Leaves the starts that are open now.
    fn leave(&self, opens: &mut Vec<Open>, now: Counts) {
        let begun = &self.cells[1..=self.depth];
        let same = |(open, begun): &(&Open, &Begun)| {
            (open.at.ts, open.counts.plain, open.interval)
                == (begun.ts, begun.plain, begun.interval)
        };
        let stay = opens.iter().zip(begun).take_while(same).count();
        opens.truncate(stay);
        opens.extend(begun[stay..].iter().map(|begun| Open {
            at: Edge::plain(begun.ts),
            counts: Counts {
                plain: begun.plain,
                ..now
            },
            interval: begun.interval,
        }));
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
    let mut stack = Stack::of(&ring.stack, ring.counts);
    let until = codes.with_payload(block, from);
    let mut row = from;
    while row < until {
        let ts = block.ts()[row];
        // Most blocks lie in one slice of time.
        let to = match engine.slices.is_one(lo, hi) {
            true => until,
            false => row + engine.slices.alike(&block.ts()[row..until]),
        };
        let stopped = loop {
            let part = (&block.ts()[row..to], &block.code()[row..to]);
            let (n, full) = run(ring, engine, &mut codes, &mut stack, part);
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
    stack.leave(&mut ring.stack, ring.counts);
    engine.tally_all_waiting();
    row
}

/// Plain rows until there are enough samples of an interval; returns how many, and that
/// interval.
#[inline(never)] // by itself it keeps its state in registers
fn run(
    ring: &mut Ring,
    engine: &mut Engine,
    codes: &mut Codes,
    stack: &mut Stack,
    (ts, code): (&[i64], &[u8]),
) -> (usize, Option<u32>) {
    let of = &mut engine.waiting.of[..];
    let (cells, mut depth, floor) = (&mut stack.cells, stack.depth, stack.floor);
    let first = ring.counts.plain;
    let mut plain = first;
    let mut full = None;
    for (&ts, &code) in ts.iter().zip(code) {
        let does = &codes.each[usize::from(code)];
        let (interval, n) = if does.instant == NOWHERE {
            let ends = does.ends;
            let top = cells[depth % DEEP];
            let outer = cells[depth.wrapping_sub(ends as usize) % DEEP].interval;
            let Some(of) = of.get_mut(does.span as usize) else {
                break;
            };
            let another = (top.interval ^ does.span) | u32::from(depth <= floor);
            let elsewhere = (outer ^ of.parent) & of.lies_in_one;
            let odd = does.odd | u32::from(depth > DEEP - 2);
            if odd | ((another | elsewhere) & ends.wrapping_neg()) != 0 {
                break;
            }
            let Some(place) = of.samples.get_mut(of.n) else {
                break;
            };
            *place = Plain {
                ticks: ts.saturating_sub(top.ts),
                end: ts,
                inside: plain.wrapping_sub(top.plain),
            };
            of.n += ends as usize;
            depth += 1;
            cells[depth % DEEP] = Begun {
                ts,
                plain: plain.wrapping_add(1),
                interval: does.span,
            };
            depth -= 2 * ends as usize;
            (does.span, of.n)
        } else {
            let now = Counts {
                plain,
                ..ring.counts
            };
            match instant(&mut ring.last, does.instant, ring.gaps, of, now, ts) {
                Some(found) => found,
                None => break,
            }
        };
        codes.rows[usize::from(code)] += 1;
        plain = plain.wrapping_add(1);
        if n == MOST {
            full = Some(interval);
            break;
        }
    }
    stack.depth = depth;
    ring.counts.plain = plain;
    (plain.wrapping_sub(first) as usize, full)
}

/// From the last instant of the same event to this one: its interval, and how many samples of
/// that wait now. `None` where the general way must take it.
#[inline]
fn instant(
    last: &mut [Option<Last>],
    place: u32,
    gaps: u32,
    of: &mut [Of],
    now: Counts,
    ts: i64,
) -> Option<(u32, usize)> {
    let last = last.get_mut(place as usize)?.as_mut()?;
    let interval = last.open.interval;
    let of = of.get_mut(interval as usize)?;
    if last.gaps != gaps || of.lies_in_one != 0 || !is_plain(&last.open, now) {
        return None;
    }
    *of.samples.get_mut(of.n)? = plain(&last.open, now, ts);
    of.n += 1;
    last.open = open(now, interval, ts);
    Some((interval, of.n))
}
