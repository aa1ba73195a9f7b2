//! Assigns samples to the halves of pairs, where measuring points were switched off and on, and
//! compares the halves.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use undertick_document::Slowed;
use undertick_estimate::{HalfSections, Slowdown, scaled, slowdown};
use undertick_format::manifest;
use undertick_format::schema::{Kind, Switched};
use undertick_units::Estimate;

/// Samples that begin this soon after a switch are in no half: caches and the branch predictor
/// settle.
const SETTLE_NS: f64 = 20_000.0;
/// Spans over this many times the median are long.
const LONG: i64 = 4;
/// Number of spans whose median decides what is long.
const FIRST: usize = 101;
/// Most intervals that are tracked.
const MOST_INTERVALS: usize = 256;

/// Halves in the order of time, and the samples in them. A copy shares the halves.
#[derive(Clone, Debug)]
pub(crate) struct Perturbation {
    kept: Arc<HashSet<u16>>,
    /// The kernel's events were switched, so their evidence differs between the two states.
    pub(crate) of_kernel: bool,
    settle: i64,
    /// Readings before and after each switch, and the new state.
    switches: Vec<(i64, i64, Switched)>,
    halves: Arc<Vec<Half>>,
    /// Times at which points came on again: spans open then may have ended in between.
    renewals: Arc<Vec<i64>>,
    settled: bool,
    sections: SectionsOf,
    /// Half of the last sample: the next one lies there or a little later.
    cursor: usize,
    /// The last switch before that sample.
    last_switch: usize,
}

/// One half of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Half {
    from: i64,
    until: i64,
    is_on: bool,
}

/// Spans by interval.
pub(crate) type SectionsOf = HashMap<u32, Sections>;

/// The spans of one interval.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sections {
    /// Until the limit of long spans is known: start, ticks, readings inside.
    first: Vec<(i64, i64, u64)>,
    limit: Option<i64>,
    halves: Vec<HalfSections>,
    /// Readings inside, with all points on and with some off.
    inside: [u64; 2],
    /// Numbers of all spans, also of those that lie in no half, by whether all points were on or
    /// some off when they began.
    began: [u64; 2],
}

/// The result for one interval.
#[derive(Debug)]
struct SlowdownInPlace {
    /// Slow-down in ticks.
    slowdown: Slowdown,
    /// Number of additional readings inside a span while all points are on.
    points: f64,
}

impl Perturbation {
    pub(crate) fn new(about: &manifest::Perturbation, ns_per_tick: f64) -> Self {
        Self {
            kept: Arc::new(about.kept.iter().copied().collect()),
            of_kernel: about.is_of_kernel(),
            settle: (SETTLE_NS / ns_per_tick).ceil() as i64,
            switches: Vec::new(),
            halves: Arc::default(),
            renewals: Arc::default(),
            settled: false,
            sections: HashMap::new(),
            cursor: 0,
            last_switch: 0,
        }
    }

    /// Whether points of the event were switched.
    pub(crate) fn switches(&self, event: u16) -> bool {
        !self.kept.contains(&event)
    }

    /// Takes a row of the kernel; rows come in order of time, before all samples.
    pub(crate) fn push(&mut self, kind: i8, event: i32, ts: i64, payload: i64) {
        let state = Switched::from_code(event);
        if let (Some(Kind::Epoch), Some(state)) = (Kind::from_code(kind), state) {
            self.switches
                .push((ts, ts.saturating_add(payload.max(0)), state));
        }
    }

    /// Announces that all switches are known.
    pub(crate) fn settle(&mut self) {
        if self.settled {
            return;
        }
        self.settled = true;
        let mut pair: Option<Half> = None;
        let mut is_off = false;
        let (mut halves, mut renewals) = (Vec::new(), Vec::new());
        for (i, &(before, after, state)) in self.switches.iter().enumerate() {
            if is_off && state != Switched::SomeOff {
                renewals.push(before);
            }
            is_off = state == Switched::SomeOff;
            let Some(&(until, ..)) = self.switches.get(i + 1) else {
                break;
            };
            if state == Switched::Between {
                pair = None;
                continue;
            }
            let half = Half {
                from: after.saturating_add(self.settle),
                until,
                is_on: state == Switched::AllOn,
            };
            match pair.take() {
                // The other half comes next.
                None => pair = Some(half),
                Some(first) if first.is_on != half.is_on => halves.extend([first, half]),
                // A switch was lost: this may be the first half of a pair.
                Some(_) => pair = Some(half),
            }
        }
        (self.halves, self.renewals) = (Arc::new(halves), Arc::new(renewals));
    }

    /// Takes the spans so far, to be merged with those of others.
    pub(crate) fn take_sections(&mut self) -> SectionsOf {
        let mut sections = std::mem::take(&mut self.sections);
        for sections in sections.values_mut().filter(|s| s.limit.is_none()) {
            sections.begin(&self.halves, &mut self.cursor);
        }
        sections
    }

    /// Merges spans from another worker; `here` maps its interval indices to those here.
    pub(crate) fn merge(&mut self, sections: SectionsOf, here: impl Fn(u32) -> Option<u32>) {
        let mut sections: Vec<(u32, Sections)> = sections.into_iter().collect();
        sections.sort_by_key(|(interval, _)| *interval);
        for (interval, theirs) in sections {
            let Some(interval) = here(interval) else {
                continue;
            };
            let ours = self.sections.entry(interval).or_default();
            if ours.limit.is_none() && ours.first.is_empty() {
                *ours = theirs;
                continue;
            }
            for (ours, theirs) in ours.halves.iter_mut().zip(&theirs.halves) {
                ours.n += theirs.n;
                ours.sum += theirs.sum;
                ours.long += theirs.long;
                ours.long_sum += theirs.long_sum;
            }
            for (ours, theirs) in ours.inside.iter_mut().zip(theirs.inside) {
                *ours += theirs;
            }
            for (ours, theirs) in ours.began.iter_mut().zip(theirs.began) {
                *ours += theirs;
            }
        }
    }

    /// Returns the renewals, in order.
    pub(crate) fn renewals(&self) -> &[i64] {
        &self.renewals
    }

    /// Takes a whole sample, without a known cause in it, of an interval whose points stay on.
    pub(crate) fn take(&mut self, interval: u32, start: i64, ticks: i64, inside: u64) {
        if self.halves.is_empty()
            || (self.sections.len() >= MOST_INTERVALS && !self.sections.contains_key(&interval))
        {
            return;
        }
        let is_off = is_off_at(&self.switches, &mut self.last_switch, start);
        let (halves, cursor) = (&self.halves, &mut self.cursor);
        let sections = self.sections.entry(interval).or_default();
        sections.began[usize::from(is_off)] += 1;
        match sections.limit {
            Some(limit) => sections.add(halves, cursor, limit, (start, ticks, inside)),
            None => {
                sections.first.push((start, ticks, inside));
                if sections.first.len() == FIRST {
                    sections.begin(halves, cursor);
                }
            }
        }
    }

    /// The result for the spans of an interval, durations in ticks.
    fn slowdown_in_place(&mut self, interval: u32, level: f64) -> Option<SlowdownInPlace> {
        let sections = self.sections.get_mut(&interval)?;
        if sections.limit.is_none() {
            sections.begin(&self.halves, &mut self.cursor);
        }
        let pairs: Vec<[HalfSections; 2]> = (sections.halves.chunks_exact(2))
            .zip(self.halves.chunks_exact(2))
            .map(|(of, half)| {
                if half[0].is_on {
                    [of[0], of[1]]
                } else {
                    [of[1], of[0]]
                }
            })
            .collect();
        let all = |state: usize| -> u64 { pairs.iter().map(|p| p[state].n + p[state].long).sum() };
        let mean = |state: usize| sections.inside[state] as f64 / all(state).max(1) as f64;
        Some(SlowdownInPlace {
            points: mean(0) - mean(1),
            slowdown: slowdown(&pairs, level)?,
        })
    }

    /// Share of an interval's samples that began while all points were on, including those
    /// between pairs of halves and those while caches settled. 0 if none is known.
    pub(crate) fn share_on(&self, interval: u32) -> f64 {
        let [on, off] = (self.sections.get(&interval)).map_or([0; 2], |sections| sections.began);
        on as f64 / (on + off).max(1) as f64
    }

    /// The slow-down of an interval by the points inside it.
    pub(crate) fn slowed(&mut self, interval: u32, level: f64, ns_per_tick: f64) -> Option<Slowed> {
        let found = self.slowdown_in_place(interval, level)?;
        let slowdown = found.slowdown;
        let in_ns = |estimate: &Estimate| scaled(estimate.clone(), ns_per_tick, "ns");
        let mut by = in_ns(&slowdown.difference);
        if slowdown.long != [0, 0] {
            by.notes.push(format!(
                "of samples over 4 times the median {} came with it on and {} with it off: {}",
                slowdown.long[0],
                slowdown.long[1],
                if slowdown.with_long {
                    "not by chance, they are in the figure"
                } else {
                    "as by chance, they are left out"
                }
            ));
        }
        let per_point = (found.points > 0.0 && !self.of_kernel).then(|| Estimate {
            notes: Vec::new(),
            ..scaled(by.clone(), 1.0 / found.points, "ns")
        });
        Some(Slowed {
            what: if self.of_kernel {
                "kernel events".to_owned()
            } else {
                "points".to_owned()
            },
            by,
            share: slowdown.share,
            per_point,
            points: found.points,
            samples: slowdown.sections,
            long: slowdown.long,
        })
    }
}

impl Sections {
    /// Decides which spans are long.
    fn begin(&mut self, halves: &[Half], cursor: &mut usize) {
        let first = std::mem::take(&mut self.first);
        let mut ticks: Vec<i64> = first.iter().map(|&(_, ticks, _)| ticks).collect();
        ticks.sort_unstable();
        let median = ticks.get(ticks.len() / 2).copied().unwrap_or(0);
        let limit = median.saturating_mul(LONG);
        self.limit = Some(limit);
        self.halves = vec![HalfSections::default(); halves.len()];
        for section in first {
            self.add(halves, cursor, limit, section);
        }
    }

    /// Assigns a span by its start alone. The start must be early enough that a span of ordinary
    /// length would have ended in the same half; otherwise short spans would be favoured.
    fn add(
        &mut self,
        halves: &[Half],
        cursor: &mut usize,
        limit: i64,
        (start, ticks, inside): (i64, i64, u64),
    ) {
        let Some(place) = half_at(halves, cursor, start) else {
            return;
        };
        let half = halves[place];
        if start.saturating_add(limit) >= half.until {
            return;
        }
        let sections = &mut self.halves[place];
        if ticks > limit {
            sections.long += 1;
            sections.long_sum += ticks as f64;
        } else {
            sections.n += 1;
            sections.sum += ticks as f64;
        }
        self.inside[usize::from(!half.is_on)] += inside;
    }
}

/// Whether some points were off at a time; `last` is the switch before an earlier query.
fn is_off_at(switches: &[(i64, i64, Switched)], last: &mut usize, time: i64) -> bool {
    let begins = |place: usize| switches.get(place).map_or(i64::MAX, |&(before, ..)| before);
    if !(begins(*last) <= time && time < begins(last.saturating_add(1))) {
        let after = switches.partition_point(|&(before, ..)| before <= time);
        let Some(place) = after.checked_sub(1) else {
            return false; // points are on until the first switch
        };
        *last = place;
    }
    (switches.get(*last)).is_some_and(|&(.., state)| state == Switched::SomeOff)
}

/// The half that holds a time.
fn half_at(halves: &[Half], cursor: &mut usize, time: i64) -> Option<usize> {
    let holds = |place: usize| {
        (halves.get(place)).is_some_and(|half| half.from <= time && time < half.until)
    };
    if !holds(*cursor) {
        *cursor = halves.partition_point(|half| half.until <= time);
    }
    holds(*cursor).then_some(*cursor)
}

#[cfg(test)]
mod tests;
