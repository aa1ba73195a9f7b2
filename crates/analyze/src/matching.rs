//! Turns rows into samples: by the pairs that events form themselves, or by a table.

use arrow_array::RecordBatch;
use serde::{Deserialize, Serialize};
use undertick_format::rows::RowsOfRing;

use crate::cells::UNSEEN;
use crate::fast_path;
use crate::kinds::{BEGIN, BEGIN_ORDERED, END, END_ORDERED, GAP, INSTANT, NEXT, PAIR};
use crate::match_context::{MOST_LASTS, MatchContext};
use crate::messages::{Boundary, Message};
use crate::reading::{Ends, Inner, Reading};
use crate::ring::{Edge, Last, Open, Ring};
use crate::rules::Action;
use crate::sample::{Sample, Sampling};
use crate::table::{Matching, Table};
use crate::tally::Parent;
use crate::tree::Path;

/// Counts of the rows themselves.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RowCounts {
    /// Rows that are events.
    pub(crate) events: u64,
    /// Rows with meaningless codes.
    pub(crate) bad: u64,
    /// Rows of the kernel.
    pub(crate) kernel: u64,
    /// Gaps, and the events lost in them.
    pub(crate) gaps: u64,
    pub(crate) lost_in_gaps: u64,
}

impl RowCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.bad += other.bad;
        self.kernel += other.kernel;
        self.gaps += other.gaps;
        self.lost_in_gaps = self.lost_in_gaps.saturating_add(other.lost_in_gaps);
    }
}

/// Takes rows of one ring, in order. Without a table, `table` is `None`.
pub(crate) fn rows(
    ring: &mut Ring,
    context: &mut MatchContext,
    columns: &RowsOfRing<'_>,
    table: Option<&Table>,
) -> RowCounts {
    let mut seen = RowCounts::default();
    let by_fast_path = table.is_none() && context.lets_wait() && !ring.never_waits;
    let mut next = 0;
    while next < columns.ts.len() {
        if by_fast_path {
            let to = fast_path::rows(ring, context, columns, next);
            seen.events += (to - next) as u64;
            next = to;
        }
        if next == columns.ts.len() {
            break;
        }
        let i = next;
        next += 1;
        let row = Row {
            never_waits: ring.never_waits,
            ..Row::new(columns, i)
        };
        ring.counts.note_flag(row.flag);
        if row.kind == GAP {
            seen.gaps += 1;
            seen.lost_in_gaps = seen
                .lost_in_gaps
                .saturating_add(row.payload.max(0).unsigned_abs());
            ring.abandon(context, true);
            continue;
        }
        let Ok(event) = u16::try_from(columns.event[i]) else {
            seen.bad += 1;
            continue;
        };
        let taken = match table {
            None => by_themselves(ring, context, &row, event),
            Some(table) => by_table(ring, context, table, &row, event),
        };
        seen.events += u64::from(taken);
        seen.bad += u64::from(!taken);
    }
    context.tally_all_waiting();
    seen
}

/// Takes a row by the pairs that events form themselves. Returns whether the row is meaningful.
#[inline]
fn by_themselves(ring: &mut Ring, context: &mut MatchContext, row: &Row, event: u16) -> bool {
    let set = ring.set;
    let &Row {
        kind, ts, payload, ..
    } = row;
    match kind {
        BEGIN | BEGIN_ORDERED => {
            let at = row.edge();
            context.pairs.note(at.pair);
            ring.counts.note_record(&at);
            if let Some(interval) = context.count_and_span(set, event, ts) {
                if at.sampled > 0 {
                    ring.note_sampled(event, at.sampled);
                    context.tallies[interval as usize].strata.executions += u64::from(at.sampled);
                    let counted = context.cell(set, event).counted;
                    (context.slices).count_more(counted, ts, u64::from(at.sampled) - 1);
                }
                ring.open(context, at, interval);
            }
        }
        END | END_ORDERED => {
            let at = row.edge();
            context.pairs.note(at.pair);
            if let Some(interval) = context.span(set, event) {
                ring.close(context, at, interval);
            }
            ring.counts.note_record(&at);
        }
        NEXT => {
            let Ok(entered) = u16::try_from(payload) else {
                return false;
            };
            let at = row.edge();
            if let Some(interval) = context.span(set, event) {
                context.mark_stage(interval);
                ring.close(context, at, interval);
            }
            ring.counts.note_reading(at.reading);
            if let Some(interval) = context.count_and_span(set, entered, ts) {
                context.mark_stage(interval);
                ring.open(context, at, interval);
            }
        }
        INSTANT => {
            context.count(set, event, ts);
            if context.watch.is_some() {
                let place = context.cell(set, event).counted;
                ring.watched.event(place, payload, ts);
            }
            period(ring, context, event, ts);
        }
        PAIR => {
            context.count(set, event, ts);
            context.pairs.add(ts, payload, row.flag);
            if let Some(interval) = context.pair(set, event) {
                context.note_depth(ring.stack.len());
                take_pair(context, interval, row.flag, ts, payload);
            }
            // Two readings inside all spans that enclose them.
            ring.counts.note_reading(row.reading());
            ring.counts.note_reading(row.reading());
        }
        _ => return false,
    }
    true
}

/// Takes the sample from the last instant of the same event in this ring to this one.
#[inline]
fn period(ring: &mut Ring, context: &mut MatchContext, event: u16, ts: i64) {
    let place = context.instant(ring.set, event);
    let before = ring.counts;
    ring.counts.note_reading(Reading::Unordered);
    if ring.last.len() <= place {
        let more = place + 1 - ring.last.len();
        if context.lasts + more > MOST_LASTS {
            context.crowded += 1;
            return;
        }
        context.lasts += more;
        ring.last.resize(place + 1, None);
    }
    let known = ring.last[place].filter(|last| last.gaps == ring.gaps);
    let interval = match known {
        Some(last) => last.open.interval,
        None => UNSEEN,
    };
    if let Some(last) = known
        && interval != UNSEEN
    {
        let sample = last
            .open
            .sample(Edge::alone(ts, Reading::Unordered), before);
        context.note_depth(ring.stack.len());
        context.take(interval, &sample, ts, Parent::Various);
    }
    let interval = if interval == UNSEEN {
        context.period(ring.set, event).unwrap_or(UNSEEN)
    } else {
        interval
    };
    ring.last[place] = Some(Last {
        open: Open {
            at: Edge::alone(ts, Reading::Unordered),
            counts: ring.counts,
            interval,
            path: Path::ROOT,
        },
        gaps: ring.gaps,
    });
}

/// Takes two successive readings; their record carries the difference. Only the record's own flag
/// tells whether the thread was descheduled between them.
fn take_pair(context: &mut MatchContext, interval: u32, flag: i8, ts: i64, ticks: i64) {
    let sample = Sample {
        ticks,
        start: ts.saturating_sub(ticks),
        ends: Ends::Plain,
        pairs: [0; 2],
        inner: Inner::NONE,
        inner_ordered: 0,
        hit: flag == 1,
        unknown: flag != 0 && flag != 1,
        sampling: Sampling::default(),
        path: Path::ROOT,
    };
    context.take(interval, &sample, ts, Parent::Various);
}

/// Takes a row by the intervals of a table.
fn by_table(
    ring: &mut Ring,
    context: &mut MatchContext,
    table: &Table,
    row: &Row,
    event: u16,
) -> bool {
    let (ends, starts) = match row.kind {
        INSTANT | PAIR => (Some(event), Some(event)),
        BEGIN | BEGIN_ORDERED => (None, Some(event)),
        END | END_ORDERED => (Some(event), None),
        NEXT => match u16::try_from(row.payload) {
            Ok(entered) => (Some(event), Some(entered)),
            Err(_) => return false,
        },
        _ => return false,
    };
    if let Some(event) = ends {
        let list = context.actions_of(table, ring.set, event);
        for k in 0..context.actions[list].len() {
            if let Action::End(rule) = context.actions[list][k] {
                end(ring, context, rule, row);
            }
        }
    }
    if row.kind == PAIR {
        context.pairs.add(row.ts, row.payload, row.flag);
    } else {
        context.pairs.note(row.edge().pair);
    }
    let at = row.edge();
    for _ in 0..if row.kind == PAIR { 2 } else { 1 } {
        ring.counts.note_record(&at);
    }
    let stands_for = at.sampled;
    if row.kind == BEGIN && stands_for > 0 {
        ring.note_sampled(event, stands_for);
    }
    if let Some(event) = starts {
        let list = context.actions_of(table, ring.set, event);
        for k in 0..context.actions[list].len() {
            match context.actions[list][k] {
                Action::End(_) => {}
                Action::Start(rule) => start(ring, context, rule, row),
                Action::Count(frequency) => count(ring, context, frequency, row),
            }
        }
    }
    true
}

/// The parts of a row that matching uses.
pub(crate) struct Row {
    kind: i8,
    flag: i8,
    pub(crate) ts: i64,
    payload: i64,
    never_waits: bool,
}

/// Bit in the payload of a begin or an end: its reading waited for nothing.
const UNORDERED: u32 = undertick_format::schema::UNORDERED;

impl Row {
    pub(crate) fn new(rows: &RowsOfRing<'_>, at: usize) -> Self {
        Self {
            never_waits: false,
            kind: rows.kind[at],
            flag: rows.descheduled[at],
            ts: rows.ts[at],
            payload: rows.payload[at],
        }
    }

    /// Whether the event of the row itself ends or begins something.
    pub(crate) fn does(&self, end: bool) -> bool {
        match self.kind {
            INSTANT | PAIR => true,
            BEGIN | BEGIN_ORDERED => !end,
            END | END_ORDERED | NEXT => end,
            _ => false,
        }
    }

    fn is_ordered(&self) -> bool {
        matches!(self.kind, BEGIN_ORDERED | END_ORDERED)
    }

    /// How the clock was read.
    fn reading(&self) -> Reading {
        let carried = u32::try_from(self.payload).unwrap_or(0);
        match self.kind {
            BEGIN_ORDERED | END_ORDERED => Reading::Ordered,
            INSTANT => Reading::Unordered,
            BEGIN | END if carried & UNORDERED != 0 => Reading::Unordered,
            _ if self.never_waits => Reading::Unordered,
            _ => Reading::Plain,
        }
    }

    /// The reading as one end of a sample. A serialised boundary carries a pair in its payload, a
    /// plain one the sampling rate or the executions that it stands for.
    #[inline]
    fn edge(&self) -> Edge {
        let carried = u32::try_from(self.payload).unwrap_or(0);
        let (pair, sampled) = match self.kind {
            BEGIN_ORDERED | END_ORDERED => (carried, 0),
            BEGIN | END => (0, carried & !UNORDERED),
            _ => (0, 0),
        };
        Edge {
            ts: self.ts,
            reading: self.reading(),
            pair,
            sampled,
        }
    }

    /// The key that it carries. A `next` carries a stage instead, a serialised boundary its pair,
    /// any other what sampling needs. Between threads all these have one key, so the k-th start
    /// belongs to the k-th end.
    pub(crate) fn key(&self, matching: Matching) -> Option<i64> {
        let is_edge = matches!(self.kind, BEGIN | END | NEXT) || self.is_ordered();
        let payload = if is_edge { 0 } else { self.payload };
        match matching {
            Matching::Nested => None,
            Matching::Key if self.kind == NEXT => None,
            Matching::Key | Matching::Message => Some(payload),
        }
    }
}

fn end(ring: &mut Ring, context: &mut MatchContext, place: u32, row: &Row) {
    let rule = &context.rules[place as usize];
    let (matching, within, period) = (rule.matching, rule.within, rule.period);
    if matching == Matching::Message {
        message((ring.host, context), place, row, false);
        return;
    }
    let is_period = period && row.kind == INSTANT;
    let key = row.key(matching);
    ring.close_ruled(context, row.edge(), place, within, key, is_period);
}

fn start(ring: &mut Ring, context: &mut MatchContext, place: u32, row: &Row) {
    let rule = &context.rules[place as usize];
    let (matching, within) = (rule.matching, rule.within);
    if matching == Matching::Message {
        message((ring.host, context), place, row, true);
        return;
    }
    let key = row.key(matching);
    let at = row.edge();
    context.tallies[place as usize].strata.executions += u64::from(at.sampled);
    ring.open_ruled(context, at, place, within, key);
}

/// Takes a boundary of an interval between threads.
fn message((host, context): (i16, &mut MatchContext), place: u32, row: &Row, is_start: bool) {
    let Some(key) = row.key(Matching::Message) else {
        return;
    };
    let boundary = Boundary {
        ts: row.ts,
        is_start,
        ordered: row.reading() == Reading::Ordered,
        host,
    };
    context.messages.add(place, key, boundary);
}

/// Number of messages after which the spans that they make are passed on.
const MESSAGES_AT_ONCE: usize = 1 << 16;

/// Takes the messages once all boundaries between threads have come. `spans` receives them as
/// rows, where spans are stored.
///
/// # Errors
/// Those of `spans`.
pub(crate) fn settle_messages<E>(
    context: &mut MatchContext,
    mut spans: impl FnMut(RecordBatch) -> Result<(), E>,
) -> Result<(), E> {
    let matched = std::mem::take(&mut context.messages).matched();
    context.pushed_out += matched.pushed_out;
    for &(rule, is_start, n) in &matched.unmatched {
        context.unmatched(rule, is_start, n);
    }
    context.note_depth(0);
    for (i, message) in matched.messages().enumerate() {
        let Message {
            rule,
            end,
            ticks,
            ends,
            hosts: [from, to],
        } = message;
        let start = end.saturating_sub(ticks);
        if let Some(half_width) = context.clocks.doubt((from, start), (to, end)) {
            context.tallies[rule as usize].doubt.add(ticks, half_width);
        }
        let sample = Sample {
            ticks,
            start,
            ends,
            pairs: [0; 2],
            inner: Inner::NONE,
            inner_ordered: 0,
            hit: false,
            unknown: false,
            sampling: Sampling::default(),
            path: Path::ROOT,
        };
        context.take(rule, &sample, end, Parent::Various);
        if i % MESSAGES_AT_ONCE == MESSAGES_AT_ONCE - 1
            && let Some(rows) = context.take_spans()
        {
            spans(rows)?;
        }
    }
    context.take_spans().map_or(Ok(()), spans)
}

fn count(ring: &Ring, context: &mut MatchContext, frequency: u32, row: &Row) {
    let times = match row.kind {
        BEGIN => u64::from(row.edge().sampled.max(1)),
        _ => 1,
    };
    let entry = &mut context.frequencies[frequency as usize];
    entry.seen += times;
    let (place, within) = (entry.row, entry.within);
    if within.is_none_or(|outer| ring.is_open(outer)) {
        context.slices.count_more(place, row.ts, times);
    }
}
