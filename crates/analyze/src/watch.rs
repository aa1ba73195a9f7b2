//! What was known of single calls of some paths, while they are matched: a sample of the calls.

pub mod detail;
pub mod running;

use std::sync::Arc;

use undertick_document::Report;
use undertick_evidence::SampleCauses;

use crate::innermost::{FoundSpans, Join, Waiting};
use crate::sample::Sample;
use crate::tree::{Names, Path, WithRole};
use detail::{Detail, Inside, Slowest};

/// Most calls of a path that are looked at, and half of them the fewest where there were more.
const MOST: usize = 1 << 13;
/// Spans directly inside a call that are told apart, by their intervals' numbers.
pub const MOST_INSIDE: u32 = 128;
/// Events directly inside a call whose numbers are kept.
const NUMBERS: usize = 3;
/// Most open spans that are watched in a thread; deeper ones are not.
const MOST_OPEN: usize = 1024;

/// What is known of an open span beside its begin.
#[derive(Clone, Debug)]
pub(crate) struct Begun {
    start: i64,
    path: Path,
    /// The record before its begin.
    before: i64,
    /// The interval of the span that ended before it in the one around it.
    after: Option<u32>,
    /// The interval that ended last directly inside it.
    last_inside: Option<u32>,
    /// Bit `i`: a span of interval `i` was directly inside it.
    inside: u128,
    /// The spans directly inside it by interval, where calls are to be explained.
    spans: Vec<Inside>,
    numbers: [Option<(u32, i64)>; NUMBERS],
}

/// The open spans of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchedRing {
    open: Vec<Begun>,
    /// The last record.
    last: i64,
    /// The interval that ended last outside of all spans.
    last_outside: Option<u32>,
    /// Samples of its thread, where these are joined to spans.
    pub(crate) waiting: Waiting,
}

impl WatchedRing {
    /// A span begins.
    pub(crate) fn begin(&mut self, path: Path, ts: i64) {
        if self.open.len() < MOST_OPEN {
            let after = match self.open.last() {
                Some(outer) => outer.last_inside,
                None => self.last_outside,
            };
            self.open.push(Begun {
                start: ts,
                path,
                before: self.last,
                after,
                last_inside: None,
                inside: 0,
                spans: Vec::new(),
                numbers: [None; NUMBERS],
            });
        }
        self.last = ts;
    }

    /// The span of `interval` that began at `start` ends; whatever began inside it and did not end
    /// is forgotten. `ticks`: its time on the CPU, where calls are to be explained.
    pub(crate) fn end(
        &mut self,
        path: Path,
        start: i64,
        interval: u32,
        ts: i64,
        ticks: Option<i64>,
    ) -> Option<Begun> {
        self.last = ts;
        let is_it = |begun: &Begun| begun.start == start && begun.path == path;
        let at = self.open.iter().rposition(is_it)?;
        self.open.truncate(at + 1);
        let begun = self.open.pop();
        match self.open.last_mut() {
            Some(outer) => {
                outer.last_inside = Some(interval);
                if interval < MOST_INSIDE {
                    outer.inside |= 1 << interval;
                }
                if let Some(ticks) = ticks {
                    detail::add(&mut outer.spans, interval, ticks);
                }
            }
            None => self.last_outside = Some(interval),
        }
        begun
    }

    /// An event with its number; `event` is the index of its frequency.
    pub(crate) fn event(&mut self, event: u32, number: i64, ts: i64) {
        self.last = ts;
        let Some(open) = self.open.last_mut() else {
            return;
        };
        let place =
            (open.numbers.iter_mut()).find(|place| place.is_none_or(|(other, _)| other == event));
        if let Some(place) = place {
            *place = Some((event, number));
        }
    }
}

/// A call of a watched path.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which of several traces it is from.
    pub run: usize,
    pub ring: i32,
    pub start: i64,
    /// Its time, compensated and without that of disturbances, ticks.
    pub ticks: i64,
    pub after: Option<u32>,
    pub inside: u128,
    pub numbers: [Option<(u32, i64)>; NUMBERS],
    pub is_faulted: bool,
    pub is_resumed: bool,
    /// What explains it, where calls are to be explained.
    pub detail: Option<Box<Detail>>,
}

impl Call {
    /// Replaces the numbers of intervals and events by others.
    fn renumber(&mut self, intervals: &[u32], events: &[u32]) {
        let of = |interval: u32| intervals.get(interval as usize).copied();
        self.after = self.after.and_then(of);
        let inside = (0..MOST_INSIDE).filter(|bit| self.inside >> bit & 1 == 1);
        self.inside = inside
            .filter_map(of)
            .filter(|&interval| interval < MOST_INSIDE)
            .fold(0, |all, interval| all | 1 << interval);
        for number in &mut self.numbers {
            *number = number
                .and_then(|(event, number)| Some((events.get(event as usize).copied()?, number)));
        }
        for inside in self.detail.iter_mut().flat_map(|detail| &mut detail.inside) {
            inside.interval = of(inside.interval).unwrap_or(inside.interval);
        }
    }
}

/// Calls of one path: those whose number, made of when they began, is divisible by a power of two.
/// So the choice is the same in whatever order and by how many workers they are found, and keeps no
/// step with anything that repeats.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    shift: u32,
    calls: Vec<Call>,
}

impl Calls {
    fn takes(&self, ring: i32, start: i64) -> bool {
        number(ring, start).trailing_zeros() >= self.shift
    }

    fn push(&mut self, call: Call) {
        if self.takes(call.ring, call.start) {
            self.calls.push(call);
            while self.calls.len() >= MOST {
                self.thin(self.shift + 1);
            }
        }
    }

    fn thin(&mut self, shift: u32) {
        self.shift = shift;
        self.calls
            .retain(|call| number(call.ring, call.start).trailing_zeros() >= shift);
    }

    fn append(&mut self, mut other: Self) {
        self.thin(self.shift.max(other.shift));
        other.thin(self.shift);
        self.calls.append(&mut other.calls);
        while self.calls.len() >= MOST {
            self.thin(self.shift + 1);
        }
    }

    /// The calls in the order in which they began.
    pub fn in_order(mut self) -> Vec<Call> {
        self.calls.sort_by_key(|call| (call.start, call.ring));
        self.calls
    }
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
fn number(ring: i32, start: i64) -> u64 {
    let mut z = (start as u64) ^ ((ring as u64) << 40);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Which of the wanted paths a node of the tree is.
#[derive(Clone, Copy, Debug)]
enum Place {
    Unknown,
    Unwanted,
    Wanted(usize),
}

/// Which calls are wanted.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The paths; with roles where the report has these.
    pub paths: Arc<[Names]>,
    pub(crate) have_roles: bool,
    /// How many of the slowest of each are wanted beside a sample of all; with one or more, calls
    /// have details, and calls that are in no figure are wanted, too.
    pub slowest: usize,
}

impl Wanted {
    /// These paths of a report.
    pub fn in_report(report: &Report, paths: &[usize], slowest: usize) -> Self {
        let names = |&path: &usize| report.path_names(path).map(str::to_owned).collect();
        Self {
            paths: paths.iter().map(names).collect(),
            have_roles: report.has_roles(),
            slowest,
        }
    }
}

/// Collects calls of some paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    wanted: Wanted,
    /// Which of them each node of the tree is, once it is known.
    place_of: Vec<Place>,
    calls: Vec<Calls>,
    slowest: Vec<Slowest>,
    /// The ring of the next calls, and the span that ends.
    pub ring: i32,
    pub(crate) ending: Option<Begun>,
    /// Joins samples of the threads to spans.
    pub(crate) join: Option<Join>,
}

/// The calls that a worker has found.
#[derive(Debug, Default)]
pub struct Watched {
    /// The names of intervals and of events, by the numbers that the calls have.
    pub intervals: Vec<String>,
    pub events: Vec<String>,
    calls: Vec<Calls>,
    slowest: Vec<Slowest>,
    pub(crate) joined: FoundSpans,
}

/// A call that ends, as the matcher found it.
pub(crate) struct Ended<'a> {
    pub(crate) sample: &'a Sample,
    /// Its time, compensated and without that of disturbances, ticks.
    pub ticks: i64,
    /// From its begin to its end, compensated, ticks.
    pub elapsed: i64,
    pub end: i64,
    pub(crate) fell: &'a SampleCauses,
    pub is_kept: bool,
}

impl Watch {
    pub(crate) fn new(wanted: Wanted) -> Self {
        Self {
            calls: vec![Calls::default(); wanted.paths.len()],
            slowest: vec![Slowest::new(wanted.slowest); wanted.paths.len()],
            wanted,
            ..Self::default()
        }
    }

    /// Looks at no call, and joins samples.
    pub(crate) fn joining(join: Join) -> Self {
        Self {
            join: Some(join),
            ..Self::default()
        }
    }

    /// Whether calls are to be explained.
    pub(crate) fn explains(&self) -> bool {
        self.wanted.slowest > 0
    }

    /// The place of the path among those that are watched; `names` gives its names.
    pub(crate) fn place(&mut self, path: Path, names: impl FnOnce() -> WithRole) -> Option<usize> {
        let node = path.node() as usize;
        if self.place_of.len() <= node {
            self.place_of.resize(node + 1, Place::Unknown);
        }
        if let Place::Unknown = self.place_of[node] {
            let (role, mut names) = names();
            if self.wanted.have_roles {
                names.splice(0..0, role);
            }
            let place = self.wanted.paths.iter().position(|path| *path == names);
            self.place_of[node] = place.map_or(Place::Unwanted, Place::Wanted);
        }
        match self.place_of[node] {
            Place::Wanted(place) => Some(place),
            _ => None,
        }
    }

    /// Whether the call that began at `start` and took `elapsed` is looked at.
    pub(crate) fn wants(&self, place: usize, start: i64, elapsed: i64) -> bool {
        self.calls[place].takes(self.ring, start) || self.slowest[place].takes(elapsed)
    }

    /// Takes the call that ends.
    pub(crate) fn take(
        &mut self,
        place: usize,
        ended: &Ended<'_>,
        was_off_since: impl FnOnce(i64) -> bool,
    ) {
        let (sample, fell) = (ended.sample, ended.fell);
        let begun = (self.ending.take()).filter(|begun| begun.start == sample.start);
        let Some(begun) = begun else {
            return;
        };
        let detail = self.explains().then(|| {
            Box::new(Detail {
                elapsed: ended.elapsed,
                end: ended.end,
                inside: begun.spans,
                is_unseen: sample.hit && !fell.was_off(),
                is_kept: ended.is_kept,
            })
        });
        let call = Call {
            run: 0,
            ring: self.ring,
            start: sample.start,
            ticks: ended.ticks,
            after: begun.after,
            inside: begun.inside,
            numbers: begun.numbers,
            is_faulted: fell.has_fault(),
            is_resumed: was_off_since(begun.before),
            detail,
        };
        if self.explains() {
            self.slowest[place].push(call.clone());
        }
        self.calls[place].push(call);
    }

    /// `names` gives the names of a path.
    pub(crate) fn finish(
        self,
        intervals: Vec<String>,
        events: Vec<String>,
        names: impl Fn(Path) -> WithRole,
    ) -> Watched {
        Watched {
            joined: self.join.map(|join| join.finish(names)).unwrap_or_default(),
            intervals,
            events,
            calls: self.calls,
            slowest: self.slowest,
        }
    }
}

impl Watched {
    /// All of them are from that trace.
    pub fn in_run(mut self, run: usize) -> Self {
        let calls = self.calls.iter_mut().flat_map(|calls| &mut calls.calls);
        calls.for_each(|call| call.run = run);
        self
    }

    /// Adds those of another worker.
    pub fn append(&mut self, other: Self) {
        self.joined.append(other.joined);
        let here = |names: &mut Vec<String>, theirs: Vec<String>| -> Vec<u32> {
            (theirs.into_iter())
                .map(|name| {
                    let at = names.iter().position(|known| *known == name);
                    at.unwrap_or_else(|| {
                        names.push(name);
                        names.len() - 1
                    }) as u32
                })
                .collect()
        };
        let intervals = here(&mut self.intervals, other.intervals);
        let events = here(&mut self.events, other.events);
        self.calls.resize_with(other.calls.len(), Calls::default);
        self.slowest
            .resize_with(other.slowest.len(), Slowest::default);
        for (ours, mut theirs) in self.calls.iter_mut().zip(other.calls) {
            let calls = theirs.calls.iter_mut();
            calls.for_each(|call| call.renumber(&intervals, &events));
            ours.append(theirs);
        }
        for (ours, mut theirs) in self.slowest.iter_mut().zip(other.slowest) {
            theirs
                .each()
                .for_each(|call| call.renumber(&intervals, &events));
            ours.append(theirs);
        }
    }

    /// The slowest calls of each wanted path, once.
    pub fn take_slowest(&mut self) -> Vec<Vec<Call>> {
        let slowest = std::mem::take(&mut self.slowest);
        slowest.into_iter().map(Slowest::calls).collect()
    }

    /// The calls of each wanted path.
    pub fn calls(self) -> (Vec<String>, Vec<String>, Vec<Calls>) {
        (self.intervals, self.events, self.calls)
    }
}
