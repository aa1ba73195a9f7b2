//! State that all rings share while the events pass: interval tallies, slices of time, and which
//! event feeds which.

mod tallying;
mod watching;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use undertick_document::IntervalKind;
use undertick_evidence::{Evidence, SampleCauses};

use crate::cells::{Cell, Family, MOST_NAMES, NEW_CELL, TOO_MANY, UNSEEN};
use crate::clocks::Clocks;
use crate::cost::CostTable;
use crate::messages::Messages;
use crate::names::Names;
use crate::pairs::Pairs;
use crate::perturbation::Perturbation;
use crate::roles::Roles;
use crate::rules::{Action, Rule, actions};
use crate::sample::Sample;
use crate::slices::Slices;
use crate::span_rows::{Dropped, SpanRow, SpanRows};
use crate::table::Table;
use crate::tally::{Dropping, Parent, Tally};
use crate::tree::{Call, Path, Tree};
use crate::waiting::Waiting;
use crate::watch::Watch;

/// Most last instants stored over all rings, 40 bytes each.
pub(crate) const MOST_LASTS: usize = 1 << 22;

/// Most cells in tables, over all name sets, 24 bytes each. Further ones are found by hashing.
/// Programs choose event numbers, and a few high ones in each of many processes must not cost a
/// table each.
const MOST_CELLS_IN_TABLES: usize = 1 << 22;

/// The source of pairs of readings for samples that carry none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Nearest {
    /// Nowhere.
    #[default]
    None,
    /// The `ut_pair`s of their own ring.
    Own,
    /// The `ut_pair`s of other rings, whatever they carry.
    Sampler,
}

/// A counted event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Frequency {
    pub(crate) name: String,
    pub(crate) row: u32,
    /// Rows of the event, inside the enclosing interval or not.
    pub(crate) seen: u64,
    /// Occurrences for which no row gives a time.
    pub(crate) untold: u64,
    pub(crate) within: Option<u32>,
}

/// State that all rings share. A copy made before there are samples shares what is known of the
/// trace, and gathers separate samples.
#[derive(Clone, Debug, Default)]
pub(crate) struct MatchContext {
    pub(crate) names: Arc<Names>,
    /// Intervals of the table, with the same indices as `tallies`; empty without a table.
    pub(crate) rules: Arc<[Rule]>,
    pub(crate) tallies: Vec<Tally>,
    pub(crate) frequencies: Vec<Frequency>,
    pub(crate) slices: Slices,
    pub(crate) tree: Tree,
    pub(crate) roles: Arc<Roles>,
    /// The spans as rows, if they are stored.
    pub(crate) spans: Option<Box<SpanRows>>,
    /// Collects calls of some paths, in the pass that looks at them.
    pub(crate) watch: Option<Box<Watch>>,
    pub(crate) costs: CostTable,
    pub(crate) pairs: Pairs,
    pub(crate) evidence: Evidence,
    /// Times at which measuring points were switched off and on.
    pub(crate) perturbation: Option<Perturbation>,
    /// The source of pairs for samples that carry none.
    pub(crate) nearest: Nearest,
    pub(crate) messages: Messages,
    /// Samples that are not in their tallies yet.
    pub(crate) waiting: Waiting,
    /// Rings whose spans were read without waiting, whatever their records say.
    pub(crate) never_wait: Arc<HashSet<i32>>,
    /// Rings of preloaded libraries, which have no spans ([`crate::interposed`]).
    pub(crate) interposed: Arc<HashSet<i32>>,
    /// Clocks of the hosts, where there are several.
    pub(crate) clocks: Arc<Clocks>,
    pub(crate) dropping: Option<Dropping>,
    /// First of two passes: only the smallest samples are wanted.
    pub(crate) scanning: bool,
    pub(crate) actions: Vec<Box<[Action]>>,
    /// Tables by event, one for each name set; they do not hold every event
    /// ([`MatchContext::cell`]).
    pub(crate) cells: Vec<Vec<Cell>>,
    /// Number of cells in all these tables.
    cells_in_tables: usize,
    /// Cells for which the tables have no room, by name set and event.
    cells_beyond: HashMap<(usize, usize), Cell>,
    instants: Vec<u32>,
    intervals: HashMap<(String, Family), u32>,
    counted: HashMap<String, u32>,
    pub(crate) lasts: usize,
    /// Starts that were pushed out of full stores.
    pub(crate) pushed_out: u64,
    /// Events for whose name or state there was no room.
    pub(crate) crowded: u64,
}

impl MatchContext {
    pub(crate) fn set_names(&mut self, names: Names) {
        self.cells = vec![Vec::new(); names.sets()];
        self.cells_in_tables = 0;
        self.cells_beyond.clear();
        self.instants = vec![0; names.sets()];
        self.names = Arc::new(names);
    }

    /// The destinations of an event's rows; made at its first occurrence.
    #[inline]
    pub(crate) fn cell(&mut self, set: usize, event: u16) -> &mut Cell {
        let event = usize::from(event);
        if self.cells[set].len() <= event && !self.more_cells(set, event) {
            return self.cells_beyond.entry((set, event)).or_insert(NEW_CELL);
        }
        &mut self.cells[set][event]
    }

    /// Makes the table long enough for the event, if the limit for all tables allows it.
    ///
    /// An event that was refused once stays refused: tables only grow, so the same length asks
    /// for at least as much later on.
    #[cold]
    #[inline(never)]
    fn more_cells(&mut self, set: usize, event: usize) -> bool {
        let table = &mut self.cells[set];
        let more = event + 1 - table.len();
        if self.cells_in_tables + more > MOST_CELLS_IN_TABLES {
            return false;
        }
        self.cells_in_tables += more;
        table.resize(event + 1, NEW_CELL);
        true
    }

    /// Counts an occurrence of an event, and finds the interval of its spans and stages: the path
    /// of every start.
    #[inline]
    pub(crate) fn count_and_span(&mut self, set: usize, event: u16, ts: i64) -> Option<u32> {
        let Cell { span, counted, .. } = *self.cell(set, event);
        if counted < TOO_MANY && span < TOO_MANY {
            self.slices.count(counted, ts);
            return Some(span);
        }
        self.count(set, event, ts);
        self.span(set, event)
    }

    /// The interval of spans and stages of an event.
    #[inline]
    pub(crate) fn span(&mut self, set: usize, event: u16) -> Option<u32> {
        let place = self.cell(set, event).span;
        if place < TOO_MANY {
            return Some(place);
        }
        self.find(set, event, Family::Span, |cell| &mut cell.span)
    }

    /// The interval of pairs of an event.
    #[inline]
    pub(crate) fn pair(&mut self, set: usize, event: u16) -> Option<u32> {
        let place = self.cell(set, event).pair;
        if place < TOO_MANY {
            return Some(place);
        }
        self.find(set, event, Family::Pair, |cell| &mut cell.pair)
    }

    /// The interval from one instant of an event to the next.
    pub(crate) fn period(&mut self, set: usize, event: u16) -> Option<u32> {
        let place = self.cell(set, event).period;
        if place < TOO_MANY {
            return Some(place);
        }
        self.find(set, event, Family::Period, |cell| &mut cell.period)
    }

    #[cold]
    #[inline(never)]
    fn find(
        &mut self,
        set: usize,
        event: u16,
        family: Family,
        slot: fn(&mut Cell) -> &mut u32,
    ) -> Option<u32> {
        if *slot(self.cell(set, event)) == TOO_MANY {
            self.crowded += 1;
            return None;
        }
        let name = format!("{}{}", self.names.shown(set, event), family.suffix());
        let is_switched = self.switches(event);
        let place = self.place_of(&name, family);
        let place = place.unwrap_or(TOO_MANY);
        *slot(self.cell(set, event)) = place;
        if place == TOO_MANY {
            self.crowded += 1;
            return None;
        }
        self.tallies[place as usize].is_switched |= is_switched;
        Some(place)
    }

    /// The interval of that name, made at first use; `None` beyond [`MOST_NAMES`].
    pub(crate) fn place_of(&mut self, name: &str, family: Family) -> Option<u32> {
        let key = (name.to_owned(), family);
        if let Some(&place) = self.intervals.get(&key) {
            return Some(place);
        }
        if self.tallies.len() >= MOST_NAMES {
            return None;
        }
        let row = self.slices.duration_row();
        let place = self.tallies.len() as u32;
        let tally = Tally::new(key.0.clone(), Some(family), family.kind(), row);
        self.tallies.push(tally);
        self.intervals.insert(key, place);
        Some(place)
    }

    /// The frequency of that name, made at first use; `None` beyond [`MOST_NAMES`].
    pub(crate) fn frequency_of(&mut self, name: &str) -> Option<u32> {
        if let Some(&row) = self.counted.get(name) {
            return Some(row);
        }
        if self.frequencies.len() >= MOST_NAMES {
            return None;
        }
        let row = self.add_frequency(name.to_owned(), None);
        self.counted.insert(name.to_owned(), row);
        Some(row)
    }

    /// Announces that the next samples are from another thread.
    pub(crate) fn next_thread(&mut self) {
        self.tallies.iter_mut().for_each(Tally::next_thread);
    }

    /// Whether points of the event were switched off and on.
    fn switches(&self, event: u16) -> bool {
        (self.perturbation.as_ref()).is_some_and(|found| found.switches(event))
    }

    /// The index of an event among the instants of its name set.
    pub(crate) fn instant(&mut self, set: usize, event: u16) -> usize {
        let place = self.cell(set, event).instant;
        if place != UNSEEN {
            return place as usize;
        }
        let place = self.instants[set];
        self.instants[set] += 1;
        self.cell(set, event).instant = place;
        place as usize
    }

    /// Counts an occurrence of an event.
    #[inline]
    pub(crate) fn count(&mut self, set: usize, event: u16, ts: i64) {
        let place = self.cell(set, event).counted;
        let place = if place < TOO_MANY {
            place
        } else {
            match self.count_place(set, event) {
                Some(place) => place,
                None => return,
            }
        };
        self.slices.count(place, ts);
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn count_place(&mut self, set: usize, event: u16) -> Option<u32> {
        if self.cell(set, event).counted == TOO_MANY {
            self.crowded += 1;
            return None;
        }
        let name = self.names.shown(set, event);
        let place = self.frequency_of(&name).unwrap_or(TOO_MANY);
        self.cell(set, event).counted = place;
        (place < TOO_MANY).then_some(place)
    }

    /// Adds a frequency; returns its row, which is also its index.
    pub(crate) fn add_frequency(&mut self, name: String, within: Option<u32>) -> u32 {
        let row = self.slices.count_row();
        self.frequencies.push(Frequency {
            name,
            row,
            seen: 0,
            untold: 0,
            within,
        });
        row
    }

    /// Takes a matched sample that ended at `ts`.
    #[inline]
    pub(crate) fn take(&mut self, interval: u32, sample: &Sample, ts: i64, parent: Parent) {
        if self.waiting.has(interval) {
            self.tally_waiting(interval); // they come before this one
        }
        if self.watch.is_some() {
            return self.watch_call(interval, sample, ts);
        }
        self.catch_up();
        let tally = &mut self.tallies[interval as usize];
        if self.scanning {
            tally.scan(sample);
            return;
        }
        let dropping = self.dropping.unwrap_or(Dropping::Nothing);
        let found = match self.nearest {
            Nearest::None => None,
            Nearest::Own if sample.pairs != [0; 2] => None,
            Nearest::Own => self.pairs.own(ts.saturating_sub(sample.ticks), ts),
            // The ring's own pairs are not the sampler's.
            Nearest::Sampler => {
                let start = ts.saturating_sub(sample.ticks);
                Some(self.pairs.of_sampler(start, ts).unwrap_or([0; 2]))
            }
        };
        let paired = found.map(|pairs| Sample { pairs, ..*sample });
        let fell = (self.evidence.is_there() && tally.kind != IntervalKind::Message)
            .then(|| self.evidence.causes_in(ts.saturating_sub(sample.ticks), ts));
        let fell = fell.as_ref().unwrap_or(&SampleCauses::NOTHING);
        if let Some(perturbation) = &mut self.perturbation
            && tally.can_be_slowed()
            && (perturbation.of_kernel
                || (fell.dropped_for().is_none() && (!sample.hit || fell.was_off())))
        {
            let off = match perturbation.of_kernel {
                true => 0,
                false => fell.by_others(),
            };
            let inside = sample.inner.records()
                + u64::from(sample.inner_ordered)
                + u64::from(sample.sampling.records);
            let start = ts.saturating_sub(sample.ticks);
            perturbation.take(interval, start, sample.ticks.saturating_sub(off), inside);
        }
        let sample = paired.as_ref().unwrap_or(sample);
        let (value, kept) = tally.add(sample, fell, &self.costs, dropping);
        if sample.path != Path::ROOT {
            let call = Call {
                ticks: value,
                off_cpu: fell.off_cpu(),
                is_kept: kept,
                calls: u64::from(sample.sampling.one_in.max(1)),
            };
            self.tree.add(sample.path, interval, call);
        }
        if tally.parent != parent {
            tally.parent = match tally.parent {
                Parent::Unseen => parent,
                _ => Parent::Various,
            };
        }
        let row = tally.row;
        if let Some(spans) = &mut self.spans {
            let dropped = match (dropping, fell.dropped_for()) {
                _ if kept => None,
                (Dropping::OverLimit, _) => Some(Dropped::Ratio),
                (Dropping::Evidence, Some(cause)) => Some(Dropped::By(cause)),
                _ => Some(Dropped::Descheduled),
            };
            spans.push(&SpanRow {
                interval,
                start: ts.saturating_sub(sample.ticks),
                ticks: sample.ticks,
                value,
                parent: match parent {
                    Parent::One(outer) => Some(outer),
                    _ => None,
                },
                dropped,
            });
        }
        let mut others = 0;
        if kept {
            self.slices.keep(row, ts, value);
        } else {
            others = value;
        }
        if sample.sampling.one_in > 1 {
            // A recorded execution stands for those that were not recorded.
            let more = i64::from(sample.sampling.one_in - 1);
            others = value.saturating_mul(more).saturating_add(others);
        }
        if others != 0 {
            self.slices.add_other(row, ts, others);
        }
    }

    /// Notes how many spans are open around the next sample.
    #[inline]
    pub(crate) fn note_depth(&mut self, depth: usize) {
        if let Some(spans) = &mut self.spans {
            spans.depth = i32::try_from(depth).unwrap_or(i32::MAX);
        }
    }

    /// Marks the interval of an event as a stage.
    #[inline]
    pub(crate) fn mark_stage(&mut self, interval: u32) {
        self.tallies[interval as usize].kind = IntervalKind::Stage;
    }

    /// Counts boundaries that found no other side.
    pub(crate) fn unmatched(&mut self, interval: u32, is_start: bool, n: u64) {
        let tally = &mut self.tallies[interval as usize];
        if is_start {
            tally.unmatched_starts += n;
        } else {
            tally.unmatched_ends += n;
        }
    }

    /// The actions that a table defines for an event: index in `actions`, made at first use.
    pub(crate) fn actions_of(&mut self, table: &Table, set: usize, event: u16) -> usize {
        let place = self.cell(set, event).actions;
        if place != UNSEEN {
            return place as usize;
        }
        let list = actions(&self.rules, table, &self.names, set, event);
        if self.switches(event) {
            for action in &list {
                if let Action::Start(rule) | Action::End(rule) = action {
                    self.tallies[*rule as usize].is_switched = true;
                }
            }
        }
        // Most events have no actions: those share one list.
        let place = if list.is_empty() && !self.actions.is_empty() {
            0
        } else {
            if self.actions.is_empty() {
                self.actions.push(Box::default());
            }
            self.actions.push(list);
            self.actions.len() - 1
        };
        self.cell(set, event).actions = place as u32;
        place
    }

    /// Prepares the second pass: everything but names and limits is reset.
    pub(crate) fn restart(&mut self, limit: impl Fn(&Tally) -> i64) {
        for tally in &mut self.tallies {
            let limit = limit(tally);
            tally.restart(limit);
        }
        for frequency in &mut self.frequencies {
            frequency.seen = 0;
        }
        self.slices.clear();
        self.tree.restart();
        self.messages = Messages::default();
        self.waiting = Waiting::default();
        self.scanning = false;
        self.lasts = 0;
        self.pushed_out = 0;
        self.crowded = 0;
    }
}

#[cfg(test)]
mod tests;
