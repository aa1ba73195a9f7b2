//! What was known of single calls of some paths, while they are matched: a sample of the calls.

pub(crate) mod running;

use std::sync::Arc;

use crate::evidence::SampleCauses;
use crate::sample::Sample;
use crate::tree::Path;

/// Most calls of a path that are looked at, and half of them the fewest where there were more.
const MOST: usize = 1 << 13;
/// Spans directly inside a call that are told apart, by their intervals' numbers.
pub(crate) const MOST_INSIDE: u32 = 128;
/// Events directly inside a call whose numbers are kept.
const NUMBERS: usize = 3;
/// Most open spans that are watched in a thread; deeper ones are not.
const MOST_OPEN: usize = 1024;

/// A path by the names of its spans, from the outermost on.
pub(crate) type Names = Vec<String>;

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
                numbers: [None; NUMBERS],
            });
        }
        self.last = ts;
    }

    /// The span of `interval` that began at `start` ends; whatever began inside it and did not end
    /// is forgotten.
    pub(crate) fn end(&mut self, path: Path, start: i64, interval: u32, ts: i64) -> Option<Begun> {
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) ring: i32,
    pub(crate) start: i64,
    /// Its time, compensated and without that of disturbances, ticks.
    pub(crate) ticks: i64,
    pub(crate) after: Option<u32>,
    pub(crate) inside: u128,
    pub(crate) numbers: [Option<(u32, i64)>; NUMBERS],
    pub(crate) is_faulted: bool,
    pub(crate) is_resumed: bool,
}

/// Calls of one path: those whose number, made of when they began, is divisible by a power of two.
/// So the choice is the same in whatever order and by how many workers they are found, and keeps no
/// step with anything that repeats.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
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

    /// When the first of them began.
    pub(crate) fn first(&self) -> Option<i64> {
        self.calls.iter().map(|call| call.start).min()
    }

    /// The calls in the order in which they began.
    pub(crate) fn in_order(mut self) -> Vec<Call> {
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

/// Collects calls of some paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    wanted: Arc<[Names]>,
    /// Which of them each node of the tree is, once it is known.
    place_of: Vec<Place>,
    calls: Vec<Calls>,
    /// The ring of the next calls, and the span that ends.
    pub(crate) ring: i32,
    pub(crate) ending: Option<Begun>,
}

/// The calls that a worker has found.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// The names of intervals and of events, by the numbers that the calls have.
    pub(crate) intervals: Vec<String>,
    pub(crate) events: Vec<String>,
    calls: Vec<Calls>,
}

impl Watch {
    pub(crate) fn new(wanted: Arc<[Names]>) -> Self {
        Self {
            calls: vec![Calls::default(); wanted.len()],
            wanted,
            ..Self::default()
        }
    }

    /// Whether the call that began at `start` is looked at; `names` gives the names of its path.
    pub(crate) fn wants(
        &mut self,
        path: Path,
        start: i64,
        names: impl FnOnce() -> Names,
    ) -> Option<usize> {
        let node = path.node() as usize;
        if self.place_of.len() <= node {
            self.place_of.resize(node + 1, Place::Unknown);
        }
        if let Place::Unknown = self.place_of[node] {
            let names = names();
            let place = self.wanted.iter().position(|path| *path == names);
            self.place_of[node] = place.map_or(Place::Unwanted, Place::Wanted);
        }
        match self.place_of[node] {
            Place::Wanted(place) => self.calls[place].takes(self.ring, start).then_some(place),
            _ => None,
        }
    }

    /// Takes the call that ends.
    pub(crate) fn take(
        &mut self,
        place: usize,
        sample: &Sample,
        ticks: i64,
        fell: &SampleCauses,
        was_off_since: impl FnOnce(i64) -> bool,
    ) {
        let Some(begun) = self
            .ending
            .take()
            .filter(|begun| begun.start == sample.start)
        else {
            return;
        };
        self.calls[place].push(Call {
            ring: self.ring,
            start: sample.start,
            ticks,
            after: begun.after,
            inside: begun.inside,
            numbers: begun.numbers,
            is_faulted: fell.has_fault(),
            is_resumed: was_off_since(begun.before),
        });
    }

    pub(crate) fn finish(self, intervals: Vec<String>, events: Vec<String>) -> Watched {
        Watched {
            intervals,
            events,
            calls: self.calls,
        }
    }
}

impl Watched {
    /// Adds those of another worker.
    pub(crate) fn append(&mut self, other: Self) {
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
        for (ours, mut theirs) in self.calls.iter_mut().zip(other.calls) {
            for call in &mut theirs.calls {
                let of = |interval: u32| intervals.get(interval as usize).copied();
                call.after = call.after.and_then(of);
                let inside = (0..MOST_INSIDE).filter(|bit| call.inside >> bit & 1 == 1);
                call.inside = inside
                    .filter_map(of)
                    .filter(|&interval| interval < MOST_INSIDE)
                    .fold(0, |all, interval| all | 1 << interval);
                for number in &mut call.numbers {
                    *number = number.and_then(|(event, number)| {
                        Some((events.get(event as usize).copied()?, number))
                    });
                }
            }
            ours.append(theirs);
        }
    }

    /// The calls of each wanted path.
    pub(crate) fn calls(self) -> (Vec<String>, Vec<String>, Vec<Calls>) {
        (self.intervals, self.events, self.calls)
    }
}
