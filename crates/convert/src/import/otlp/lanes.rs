//! Places spans where they nest: in their thread, or else in lanes.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

use undertick_format::TraceError;

use super::Process;
use crate::export::otlp::names;
use crate::import::intake::{At, Id, Intake, Track};
use crate::import::spool::{Sorted, Spool, Words};

/// Most lanes of a process.
const MOST_LANES: usize = 4096;
/// Most spans that are open at one time.
const MOST_OPEN: usize = 1 << 22;
/// Most spans of the same times that are put in order, and most events of them.
const MOST_ALIKE: usize = 4096;
const MOST_EVENTS_ALIKE: usize = 1 << 18;
/// Bytes of the name of a service in the names of its lanes.
const LONGEST_SERVICE: usize = 200;
/// Spans that are placed before threads and lanes are looked through again for what has ended.
const SWEEP_EVERY: u64 = 1 << 20;
/// Deepest nesting of such spans.
const DEEPEST_ALIKE: usize = 64;
/// Records of the spool that describe a span; its events follow them.
pub(super) const WORDS: usize = 3;

/// A span as the spool keeps it, beside its times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) process: usize,
    pub(super) thread: Option<usize>,
    pub(super) event: u16,
    /// The payload, if it stands for a point.
    pub(super) payload: Option<i64>,
    /// 0 if it has no valid identifier; so are the others.
    pub(super) trace: u128,
    pub(super) span: u64,
    pub(super) parent: u64,
}

impl Placed {
    pub(super) fn to_words(self) -> [[i64; 3]; WORDS] {
        let half = |shift: u32| ((self.trace >> shift) as u64).cast_signed();
        let thread = self.thread.map_or(-1, |thread| thread as i64);
        let is_point = i64::from(self.payload.is_some());
        [
            [self.process as i64, thread, i64::from(self.event)],
            [half(64), half(0), self.span.cast_signed()],
            [
                self.parent.cast_signed(),
                is_point,
                self.payload.unwrap_or(0),
            ],
        ]
    }

    fn from_words([first, ids, rest]: [[i64; 3]; WORDS]) -> Self {
        let half = |word: i64| u128::from(word.cast_unsigned());
        Self {
            process: first[0] as usize,
            thread: usize::try_from(first[1]).ok(),
            event: first[2] as u16,
            payload: (rest[1] != 0).then_some(rest[2]),
            trace: half(ids[0]) << 64 | half(ids[1]),
            span: ids[2].cast_unsigned(),
            parent: rest[0].cast_unsigned(),
        }
    }
}

/// Counts of what was placed.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) spans: u64,
    pub(super) in_lanes: u64,
}

/// An open span of a lane.
struct Open {
    end: i64,
    trace: u128,
    span: u64,
}

/// One thread, or one lane, with its open spans, the innermost last.
struct Lane {
    track: Track,
    open: Vec<Open>,
}

/// The lanes of a process.
#[derive(Default)]
struct Lanes {
    lanes: Vec<Lane>,
    /// Lanes in which nothing is open.
    free: BTreeSet<usize>,
    /// The ends of outermost spans.
    ends: BinaryHeap<Reverse<(i64, usize)>>,
    /// The lanes of open spans.
    by_span: HashMap<(u128, u64), usize>,
    /// Number of open spans.
    open: usize,
}

/// Names of the events that keep identifiers.
struct Numbers {
    high: u16,
    low: u16,
    span: u16,
    parent: u16,
}

struct Placing<'a> {
    intake: &'a mut Intake,
    processes: &'a [Process],
    threads: &'a [(usize, i64)],
    by_thread: HashMap<usize, Lane>,
    lanes: HashMap<usize, Lanes>,
    numbers: Option<Numbers>,
    open: usize,
    /// Spans so far, and from how many on threads and lanes are swept at the bound.
    placed: u64,
    sweep_at: u64,
    counts: Counts,
}

/// Places all spans, and their events with them. A span lies in its thread if nothing is open there
/// or its parent is the innermost open span; otherwise in a lane where that holds.
pub(super) fn place(
    intake: &mut Intake,
    spool: Spool,
    processes: &[Process],
    threads: &[(usize, i64)],
) -> Result<Counts, TraceError> {
    let mut placing = Placing {
        intake,
        processes,
        threads,
        by_thread: HashMap::new(),
        lanes: HashMap::new(),
        numbers: None,
        open: 0,
        placed: 0,
        sweep_at: 0,
        counts: Counts::default(),
    };
    let mut sorted = spool.sorted()?;
    let mut next = sorted.next()?;
    while let Some(first) = next {
        let (mut alike, mut events) = (Vec::new(), 0);
        while let Some(words) = next.filter(|words| is_alike(words, &first, (alike.len(), events)))
        {
            let described;
            (described, next) = read_span(words, &mut sorted)?;
            events += described.1.len();
            alike.push(described);
        }
        let [start, end, ..] = first;
        for (span, events) in outer_first(alike) {
            match placing.span(start, -end, span)? {
                Some(track) => {
                    for [ns, event, payload] in events {
                        placing.event(track, ns, event, payload)?;
                    }
                }
                None => (events.iter())
                    .for_each(|_| placing.intake.left_out("event of a span that is left out")),
            }
        }
    }
    Ok(placing.counts)
}

/// A span, and its events: time, number, payload.
type Described = (Placed, Vec<[i64; 3]>);

/// Whether a record begins a span that begins and ends with the first one; there are bounds to how
/// many of them are ordered.
fn is_alike(words: &Words, first: &Words, (spans, events): (usize, usize)) -> bool {
    words[..2] == first[..2] && spans < MOST_ALIKE && events < MOST_EVENTS_ALIKE
}

/// Reads a span that begins with these words. Returns the first words of the next one, too.
fn read_span(words: Words, sorted: &mut Sorted) -> Result<(Described, Option<Words>), TraceError> {
    let content = |[.., a, b, c]: Words| [a, b, c];
    let mut description = [content(words); WORDS];
    for part in &mut description[1..] {
        *part = content(sorted.next()?.unwrap_or_default());
    }
    let mut events = Vec::new();
    let mut next = sorted.next()?;
    while let Some(words) = next.filter(|words| words[3] != 0) {
        events.push(content(words));
        next = sorted.next()?;
    }
    Ok(((Placed::from_words(description), events), next))
}

/// Puts spans of the same times in such an order that parents come before their children.
fn outer_first(mut spans: Vec<Described>) -> Vec<Described> {
    if spans.len() < 2 {
        return spans;
    }
    let key = |span: &Placed| (span.trace, span.span);
    let parents: HashMap<(u128, u64), u64> = (spans.iter())
        .map(|(span, _)| (key(span), span.parent))
        .collect();
    // Bounded: the spans of a hostile file may be each other's parents.
    let depth = |span: &Placed| {
        let mut parent = span.parent;
        (0..DEEPEST_ALIKE).find(|_| match parents.get(&(span.trace, parent)) {
            Some(&next) => {
                parent = next;
                false
            }
            None => true,
        })
    };
    spans.sort_by_cached_key(|(span, _)| depth(span).unwrap_or(DEEPEST_ALIKE));
    spans
}

impl Placing<'_> {
    /// Returns the track of the span; `None` if it was left out.
    fn span(&mut self, start: i64, end: i64, placed: Placed) -> Result<Option<Track>, TraceError> {
        self.placed += 1;
        if self.open >= MOST_OPEN && self.placed >= self.sweep_at {
            self.sweep(start);
        }
        if self.open >= MOST_OPEN {
            self.intake.left_out("span beyond 2^22 open at once");
            return Ok(None);
        }
        if let Some(payload) = placed.payload {
            let track = self.thread_lane(&placed).map(|lane| lane.track);
            let track = track.or_else(|| self.any_lane(&placed, start, end).map(|found| found.0));
            if let Some(track) = track {
                self.event(track, start, i64::from(placed.event), payload)?;
            }
            return Ok(track);
        }
        let (track, is_in_parent) = match self.in_thread(&placed, start, end) {
            Some(found) => found,
            None => match self.any_lane(&placed, start, end) {
                Some(found) => {
                    self.counts.in_lanes += 1;
                    found
                }
                None => {
                    self.intake.left_out("span beyond 4096 lanes of a process");
                    return Ok(None);
                }
            },
        };
        self.counts.spans += 1;
        let points = self.identifiers(&placed, is_in_parent);
        let at = At {
            track,
            ns: start,
            cpu: None,
        };
        (self.intake).complete_with(at, end - start, placed.event, &points)?;
        Ok(Some(track))
    }

    /// Ends all that has ended: threads and lanes that nothing comes for any more may hold a lot of it.
    fn sweep(&mut self, ns: i64) {
        self.sweep_at = self.placed + SWEEP_EVERY;
        self.open = 0;
        for lane in self.by_thread.values_mut() {
            lane.end_until(ns, |_| {});
            self.open += lane.open.len();
        }
        for lanes in self.lanes.values_mut() {
            lanes.end_until(ns);
            (0..lanes.lanes.len()).for_each(|lane| lanes.end_lane(lane, ns));
            self.open += lanes.open;
        }
    }

    fn event(&mut self, track: Track, ns: i64, event: i64, payload: i64) -> Result<(), TraceError> {
        let at = At {
            track,
            ns,
            cpu: None,
        };
        self.intake.instant(at, event as u16, payload)
    }

    /// The points that keep the identifiers of a span; what follows from the span around it is left
    /// out.
    fn identifiers(&mut self, placed: &Placed, is_in_parent: bool) -> Vec<(u16, i64)> {
        if placed.span == 0 || placed.trace == 0 {
            return Vec::new();
        }
        let intake = &mut *self.intake;
        let numbers = self.numbers.get_or_insert_with(|| Numbers {
            high: intake.event(names::TRACE_HIGH),
            low: intake.event(names::TRACE_LOW),
            span: intake.event(names::SPAN),
            parent: intake.event(names::PARENT),
        });
        let mut points = Vec::new();
        if !is_in_parent {
            let half = |shift: u32| ((placed.trace >> shift) as u64).cast_signed();
            points.push((numbers.high, half(64)));
            points.push((numbers.low, half(0)));
            points.push((numbers.parent, placed.parent.cast_signed()));
        }
        points.push((numbers.span, placed.span.cast_signed()));
        points
    }

    /// Returns the lane of the thread that the span names.
    fn thread_lane(&mut self, placed: &Placed) -> Option<&mut Lane> {
        let thread = placed.thread?;
        if !self.by_thread.contains_key(&thread) {
            let (process, tid) = self.threads[thread];
            let pid = &self.processes[process].id;
            let track = self.intake.thread(pid, &Id::Number(tid))?;
            self.by_thread.insert(thread, Lane::new(track));
        }
        self.by_thread.get_mut(&thread)
    }

    /// Opens the span in its thread, if it fits there. Returns the track, and whether the span around
    /// it is its parent.
    fn in_thread(&mut self, placed: &Placed, start: i64, end: i64) -> Option<(Track, bool)> {
        let lane = self.thread_lane(placed)?;
        let before = lane.open.len();
        lane.end_until(start, |_| {});
        let is_in_parent = lane.fits(placed, end);
        let track = lane.track;
        let after = lane.open.len() + usize::from(is_in_parent.is_some());
        if is_in_parent.is_some() {
            lane.open.push(Open::new(placed, end));
        }
        self.open = self.open + after - before;
        Some((track, is_in_parent?))
    }

    /// Opens the span in the lane of its parent, or in one where nothing is open.
    fn any_lane(&mut self, placed: &Placed, start: i64, end: i64) -> Option<(Track, bool)> {
        let process = &self.processes[placed.process];
        let lanes = self.lanes.entry(placed.process).or_default();
        let before = lanes.open;
        lanes.end_until(start);
        let of_parent = lanes.by_span.get(&(placed.trace, placed.parent)).copied();
        if let Some(lane) = of_parent {
            lanes.end_lane(lane, start);
        }
        let of_parent = of_parent.filter(|&lane| lanes.lanes[lane].fits(placed, end) == Some(true));
        let (lane, is_in_parent) = match of_parent.or_else(|| lanes.free.pop_first()) {
            Some(lane) => (lane, of_parent.is_some()),
            None if lanes.lanes.len() >= MOST_LANES => return None,
            None => {
                let number = lanes.lanes.len() + 1;
                let name = match process.service.as_str() {
                    "" => format!("async {number}"),
                    service => {
                        let begin = &service[..service.floor_char_boundary(LONGEST_SERVICE)];
                        format!("{begin} async {number}")
                    }
                };
                let track = self.intake.thread(&process.id, &Id::Text(name))?;
                lanes.lanes.push(Lane::new(track));
                (number - 1, false)
            }
        };
        lanes.by_span.insert((placed.trace, placed.span), lane);
        let found = &mut lanes.lanes[lane];
        if found.open.is_empty() {
            lanes.ends.push(Reverse((end, lane)));
        }
        found.open.push(Open::new(placed, end));
        let track = found.track;
        lanes.open += 1;
        self.open = (self.open + lanes.open).saturating_sub(before);
        Some((track, is_in_parent))
    }
}

impl Open {
    fn new(placed: &Placed, end: i64) -> Self {
        Self {
            end,
            trace: placed.trace,
            span: placed.span,
        }
    }
}

impl Lane {
    fn new(track: Track) -> Self {
        Self {
            track,
            open: Vec::new(),
        }
    }

    /// Ends what has ended at a time.
    fn end_until(&mut self, ns: i64, mut ended: impl FnMut(&Open)) {
        while let Some(open) = self.open.pop_if(|open| open.end <= ns) {
            ended(&open);
        }
    }

    /// Whether a span fits here: `Some(true)` inside its parent, `Some(false)` where nothing is open.
    fn fits(&self, placed: &Placed, end: i64) -> Option<bool> {
        match self.open.last() {
            None => Some(false),
            Some(open) => {
                let is_parent = placed.parent != 0
                    && (open.trace, open.span) == (placed.trace, placed.parent)
                    && open.end >= end;
                is_parent.then_some(true)
            }
        }
    }
}

impl Lanes {
    /// Ends what has ended at a time, and notes the lanes in which nothing is open any more. Inner
    /// spans of a lane whose outermost one is open may be ended later.
    fn end_until(&mut self, ns: i64) {
        while let Some(&Reverse((end, lane))) = self.ends.peek() {
            if end > ns {
                break;
            }
            self.ends.pop();
            self.end_lane(lane, ns);
            self.free.insert(lane);
        }
    }

    fn end_lane(&mut self, lane: usize, ns: i64) {
        let (by_span, open) = (&mut self.by_span, &mut self.open);
        self.lanes[lane].end_until(ns, |ended| {
            by_span.remove(&(ended.trace, ended.span));
            *open -= 1;
        });
    }
}
