//! Match state of one ring, that is, of one thread.

use std::collections::HashMap;

use crate::cells::UNSEEN;
use crate::match_context::MatchContext;
use crate::reading::{Ends, Inner, Reading};
use crate::sample::{Sample, Sampling};
use crate::strata::Begun;
use crate::tally::Parent;
use crate::tree::Path;
use crate::watch::WatchedRing;

/// Most open starts stored per ring (and per interval of a table). Deeper recursion, or starts
/// that never end, push out the oldest half, which count as unmatched. Searching this many takes
/// about a microsecond.
pub(crate) const MOST_OPEN: usize = 1024;
/// Most open keys stored per ring.
const MOST_KEYS: usize = 1 << 16;

/// Running counts of a ring; their differences give what lies between two rows. They wrap; a span
/// of 2^32 rows is beyond any ring.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Readings that wait for nothing or for what came before.
    pub(crate) plain: Inner,
    pub(crate) ordered: u32,
    /// Rows with the flag descheduled.
    pub(crate) hits: u32,
    /// Rows with an unknown flag.
    pub(crate) unknown: u32,
    /// Sampled executions that begins stand for.
    pub(crate) sampled: u64,
    /// Records of sampled spans that wait; they are not among the others.
    pub(crate) sampled_records: u32,
    /// Changes with each of these but `plain`: one comparison shows whether any did.
    pub(crate) changes: u32,
}

impl Counts {
    /// Counts a reading, for a sampled span or another record.
    #[inline]
    pub(crate) fn note_record(&mut self, at: &Edge) {
        if at.sampled == 0 || at.reading != Reading::Plain {
            return self.note_reading(at.reading);
        }
        self.sampled_records = self.sampled_records.wrapping_add(1);
        self.changes = self.changes.wrapping_add(1);
    }

    /// Counts a reading.
    #[inline]
    pub(crate) fn note_reading(&mut self, reading: Reading) {
        match reading {
            Reading::Plain => self.plain = self.plain.and(Inner::SPAN),
            Reading::Unordered => self.plain = self.plain.and(Inner::EVENT),
            Reading::Ordered => {
                self.ordered = self.ordered.wrapping_add(1);
                self.changes = self.changes.wrapping_add(1);
            }
        }
    }

    /// Counts a row's flag.
    #[inline]
    pub(crate) fn note_flag(&mut self, flag: i8) {
        if flag != 0 {
            self.hits = self.hits.wrapping_add(u32::from(flag == 1));
            self.unknown = self.unknown.wrapping_add(u32::from(flag != 1));
            self.changes = self.changes.wrapping_add(1);
        }
    }
}

/// One end of a sample: a reading, and the pair taken with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) ts: i64,
    pub(crate) reading: Reading,
    /// Ticks between two readings right beside this one; 0: there are none.
    pub(crate) pair: u32,
    /// For a sampled span: the executions that the begin stands for, or the rate at which the end
    /// was recorded; otherwise 0.
    pub(crate) sampled: u32,
}

impl Edge {
    /// A reading alone.
    pub(crate) const fn alone(ts: i64, reading: Reading) -> Self {
        Self {
            ts,
            reading,
            pair: 0,
            sampled: 0,
        }
    }
}

/// A start that waits for its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) at: Edge,
    /// Counts including the start's own row.
    pub(crate) counts: Counts,
    pub(crate) interval: u32,
    /// Where it lies in the tree, if it begins a span.
    pub(crate) path: Path,
}

impl Open {
    /// The sample from here to `end`: `before` are the counts with the flags of
    /// the ending row but without its reading.
    #[inline]
    pub(crate) fn sample(&self, end: Edge, before: Counts) -> Sample {
        let ends = match Ends::from_readings(self.at.reading, end.reading) {
            Ends::Plain if self.at.sampled > 0 && end.sampled > 0 => Ends::Sampled,
            ends => ends,
        };
        Sample {
            ticks: end.ts.saturating_sub(self.at.ts),
            start: self.at.ts,
            ends,
            pairs: [self.at.pair, end.pair],
            inner: before.plain.since(self.counts.plain),
            inner_ordered: before.ordered.wrapping_sub(self.counts.ordered),
            hit: before.hits != self.counts.hits,
            unknown: before.unknown != self.counts.unknown,
            sampling: Sampling {
                one_in: end.sampled,
                stands_for: self.at.sampled,
                inside: before.sampled.wrapping_sub(self.counts.sampled),
                records: (before.sampled_records).wrapping_sub(self.counts.sampled_records),
            },
            path: self.path,
        }
    }
}

/// An open start of a table's interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuledOpen {
    pub(crate) open: Open,
    /// Unique in the ring.
    pub(crate) serial: u64,
    /// Serial of the enclosing interval's start, if one was open.
    pub(crate) outer: Option<u64>,
}

/// The last instant of one event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Last {
    pub(crate) open: Open,
    /// Gaps of the ring before it.
    pub(crate) gaps: u32,
}

/// Match state of one ring.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring {
    pub(crate) id: i32,
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    pub(crate) host: i16,
    /// The place of its outermost spans in the tree.
    pub(crate) root: Path,
    /// Whether its spans were read without waiting, whatever their records say.
    pub(crate) never_waits: bool,
    /// The set of names that its process uses.
    pub(crate) set: usize,
    pub(crate) counts: Counts,
    pub(crate) gaps: u32,
    pub(crate) stack: Vec<Open>,
    /// Indexed by the event's place among the instants of its name set.
    pub(crate) last: Vec<Option<Last>>,
    /// Indexed by interval of the table.
    pub(crate) stacks: Vec<Vec<RuledOpen>>,
    pub(crate) keyed: HashMap<(u32, i64), RuledOpen>,
    pub(crate) serials: u64,
    /// Executions that begins of sampled spans stood for.
    pub(crate) begun: Begun,
    /// Its open spans, where calls are looked at one by one.
    pub(crate) watched: WatchedRing,
    /// Number of renewals of points that this ring has passed.
    pub(crate) renewals: usize,
}

impl Ring {
    /// Notes the begin of a sampled span that stands for this many executions.
    #[inline(never)]
    pub(crate) fn note_sampled(&mut self, event: u16, stands_for: u32) {
        self.counts.sampled = self.counts.sampled.wrapping_add(u64::from(stands_for));
        self.counts.changes = self.counts.changes.wrapping_add(1);
        self.begun.add(event, stands_for);
    }

    /// Opens a start; without a table one stack serves all.
    #[inline]
    pub(crate) fn open(&mut self, context: &mut MatchContext, at: Edge, interval: u32) {
        if self.stack.len() == MOST_OPEN {
            self.make_room(context);
        }
        let around = self.stack.last().map_or(self.root, |open| open.path);
        let path = context.tree.child(around, interval);
        if context.watch.is_some() {
            self.watched.begin(path, at.ts);
        }
        self.stack.push(Open {
            at,
            counts: self.counts,
            interval,
            path,
        });
    }

    #[cold]
    fn make_room(&mut self, context: &mut MatchContext) {
        for open in self.stack.drain(..MOST_OPEN / 2) {
            context.tallies[open.interval as usize].unmatched_starts += 1;
            context.pushed_out += 1;
        }
    }

    /// Closes the innermost open start of that interval; starts opened after it and not closed
    /// stay unmatched.
    #[inline]
    pub(crate) fn close(&mut self, context: &mut MatchContext, end: Edge, interval: u32) {
        let top = self.stack.len().wrapping_sub(1);
        let at = match self.stack.last() {
            Some(open) if open.interval == interval => Some(top),
            _ => self.stack.iter().rposition(|o| o.interval == interval),
        };
        let Some(at) = at else {
            context.tallies[interval as usize].unmatched_ends += 1;
            return;
        };
        for open in &self.stack[at + 1..] {
            context.tallies[open.interval as usize].unmatched_starts += 1;
        }
        let sample = self.stack[at].sample(end, self.counts);
        self.stack.truncate(at);
        if context.watch.is_some() {
            let ticks = context.explained_ticks(&sample, end.ts);
            let begun = (self.watched).end(sample.path, sample.start, interval, end.ts, ticks);
            context.watch_end(self.id, begun);
            context.join_end(
                &mut self.watched.waiting,
                self.tid,
                sample.path,
                (sample.start, end.ts),
            );
        }
        context.note_depth(at);
        let parent = self
            .stack
            .last()
            .map_or(Parent::Various, |o| Parent::One(o.interval));
        context.take(interval, &sample, end.ts, parent);
    }

    /// Spans that are still open take the samples since their begin.
    pub(crate) fn join_open(&mut self, context: &mut MatchContext) {
        for open in self.stack.iter().rev() {
            let within = (open.at.ts, i64::MAX);
            context.join_end(&mut self.watched.waiting, self.tid, open.path, within);
        }
    }

    /// Opens a start of a table's interval; `within` is the enclosing one.
    pub(crate) fn open_ruled(
        &mut self,
        context: &mut MatchContext,
        at: Edge,
        rule: u32,
        within: Option<u32>,
        key: Option<i64>,
    ) {
        let outer = within.and_then(|w| self.stacks.get(w as usize)?.last().map(|o| o.serial));
        self.serials += 1;
        let start = RuledOpen {
            open: Open {
                at,
                counts: self.counts,
                interval: rule,
                path: Path::ROOT,
            },
            serial: self.serials,
            outer,
        };
        let Some(key) = key else {
            let stack = self.stack_of(rule);
            if stack.len() == MOST_OPEN {
                stack.drain(..MOST_OPEN / 2);
                context.tallies[rule as usize].unmatched_starts += MOST_OPEN as u64 / 2;
                context.pushed_out += MOST_OPEN as u64 / 2;
            }
            self.stack_of(rule).push(start);
            return;
        };
        if self.keyed.len() >= MOST_KEYS && !self.keyed.contains_key(&(rule, key)) {
            context.tallies[rule as usize].unmatched_starts += 1;
            context.pushed_out += 1;
        } else if self.keyed.insert((rule, key), start).is_some() {
            // The earlier start of the same key was never ended.
            context.tallies[rule as usize].unmatched_starts += 1;
        }
    }

    fn stack_of(&mut self, rule: u32) -> &mut Vec<RuledOpen> {
        let rule = rule as usize;
        if self.stacks.len() <= rule {
            self.stacks.resize_with(rule + 1, Vec::new);
        }
        &mut self.stacks[rule]
    }

    /// Closes a start of a table's interval. `is_period`: start and end are the
    /// same instant, so the first has nothing to close.
    pub(crate) fn close_ruled(
        &mut self,
        context: &mut MatchContext,
        end: Edge,
        rule: u32,
        within: Option<u32>,
        key: Option<i64>,
        is_period: bool,
    ) {
        let start = match key {
            Some(key) => self.keyed.remove(&(rule, key)),
            None => self.stack_of(rule).pop(),
        };
        let Some(start) = start else {
            context.tallies[rule as usize].unmatched_ends += u64::from(!is_period);
            return;
        };
        let parent = match within {
            None => Parent::Various,
            Some(outer) => {
                let still_open = start.outer.is_some_and(|serial| {
                    (self.stacks.get(outer as usize))
                        .is_some_and(|stack| stack.iter().rev().any(|o| o.serial == serial))
                });
                if !still_open {
                    context.tallies[rule as usize].outside += 1;
                    return;
                }
                Parent::One(outer)
            }
        };
        let sample = start.open.sample(end, self.counts);
        context.note_depth(context.rules[rule as usize].depth);
        context.take(rule, &sample, end.ts, parent);
    }

    /// Whether a start of that interval is open.
    pub(crate) fn is_open(&self, rule: u32) -> bool {
        self.stacks
            .get(rule as usize)
            .is_some_and(|s| !s.is_empty())
    }

    /// Handles that points which were off are on again: their open spans may have ended in
    /// between.
    pub(crate) fn renew(&mut self, context: &mut MatchContext) {
        self.renewals += 1;
        let tallies = &mut context.tallies;
        let mut stays = |interval: u32| {
            let tally = &mut tallies[interval as usize];
            tally.unmatched_starts += u64::from(tally.is_switched);
            !tally.is_switched
        };
        self.stack.retain(|open| stays(open.interval));
        for stack in &mut self.stacks {
            stack.retain(|ruled| stays(ruled.open.interval));
        }
        self.keyed.retain(|_, ruled| stays(ruled.open.interval));
        for last in &mut self.last {
            let place = last.map_or(UNSEEN, |last| last.open.interval);
            if (context.tallies.get(place as usize)).is_some_and(|tally| tally.is_switched) {
                *last = None;
            }
        }
    }

    /// Closes all open starts as unmatched, because what happened to them is unknown: events were
    /// lost here (`by_loss`), or the ring ended.
    pub(crate) fn abandon(&mut self, context: &mut MatchContext, by_loss: bool) {
        self.gaps = self.gaps.wrapping_add(1);
        let keyed = self.keyed.drain().map(|(_, o)| o.open.interval);
        let stacked = self
            .stacks
            .iter_mut()
            .flat_map(|s| s.drain(..))
            .map(|o| o.open.interval);
        let nested = self.stack.drain(..).map(|o| o.interval);
        for interval in nested.chain(stacked).chain(keyed) {
            let rule = context.rules.get(interval as usize);
            if !by_loss && rule.is_some_and(|r| r.period) {
                continue;
            }
            let tally = &mut context.tallies[interval as usize];
            tally.unmatched_starts += 1;
            tally.unmatched_by_loss += u64::from(by_loss);
        }
    }
}
