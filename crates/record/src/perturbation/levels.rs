//! Learns the depth of events from the records as they arrive.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use undertick_ring::{Kind, Record};

use super::{Plan, Wanted};

/// Target number of spans in a half, if that makes it neither too short nor too long.
const SECTIONS_A_HALF: f64 = 20.0;
/// Shorter halves lose too much to the switching itself.
const SHORTEST_HALF_NS: f64 = 0.5e6;
/// During longer halves the machine changes.
const LONGEST_HALF_NS: f64 = 2e9;
/// Time of observation before anything is switched.
const LEARNING: Duration = Duration::from_millis(100);
/// Least spans of known length before their mean is used.
const FEW: u64 = 20;
/// Most open spans tracked per ring.
const MOST_OPEN: usize = 1024;

/// Learns which events stay on, and how long a half should be.
#[derive(Debug)]
pub(crate) struct Levels {
    wanted: Wanted,
    plan: Arc<Plan>,
    ns_per_tick: f64,
    events: HashMap<u16, Seen>,
    rings: HashMap<u32, Ring>,
    first: Option<Instant>,
}

/// What was learned of one event.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Number of times it occurred in fewer open spans than the level, and in more.
    shallow: u64,
    deep: u64,
    is_kept: bool,
    /// Switched points inside its spans.
    inner: u64,
    /// Number of whole spans, and their total time.
    whole: u64,
    ticks: f64,
}

#[derive(Debug, Default)]
struct Ring {
    open: Vec<(u16, u64)>,
    /// Last instant of each event that stays on.
    instants: HashMap<u16, u64>,
    /// The latest of these events.
    after: Option<u16>,
}

impl Levels {
    pub(crate) fn new(wanted: Wanted, ns_per_tick: f64) -> Self {
        let mut events = HashMap::new();
        if let Wanted::Kept(kept) = &wanted {
            let seen = Seen {
                is_kept: true,
                ..Seen::default()
            };
            events.extend(kept.iter().map(|&event| (event, seen)));
        }
        Self {
            wanted,
            plan: Arc::default(),
            ns_per_tick,
            events,
            rings: HashMap::new(),
            first: None,
        }
    }

    /// The plan that the switching thread follows.
    pub(crate) fn plan(&self) -> Arc<Plan> {
        self.plan.clone()
    }

    /// Length of a half as planned now, ns; 0: not known yet.
    pub(crate) fn half_ns(&self) -> u64 {
        self.plan.half_ns.load(Ordering::Relaxed)
    }

    /// Calls `keep` for every event with whether it stays on at first.
    pub(crate) fn start(&self, mut keep: impl FnMut(u16, bool)) {
        for event in 0..=u16::MAX {
            let is_kept = self.wanted == Wanted::Kernel || self.events.contains_key(&event);
            keep(event, is_kept);
        }
    }

    /// Events that stay on, ascending.
    pub(crate) fn kept(&self) -> Vec<u16> {
        let kept = self.events.iter().filter(|(_, seen)| seen.is_kept);
        let mut kept: Vec<u16> = kept.map(|(&event, _)| event).collect();
        kept.sort_unstable();
        kept
    }

    /// Takes records of one ring, in order. `keep` is called for events that are to stay on from
    /// now on, or no longer.
    pub(crate) fn observe(
        &mut self,
        ring: u32,
        records: &[[u64; 2]],
        mut keep: impl FnMut(u16, bool),
    ) {
        self.first.get_or_insert_with(Instant::now);
        let mut state = std::mem::take(self.rings.entry(ring).or_default());
        for &words in records {
            let record = Record::from_words(words);
            if record.is_gap() {
                state = Ring::default();
            } else {
                self.record(&mut state, &record, &mut keep);
            }
        }
        self.rings.insert(ring, state);
    }

    fn record(&mut self, ring: &mut Ring, record: &Record, keep: &mut impl FnMut(u16, bool)) {
        match record.kind {
            Kind::Begin | Kind::BeginOrdered => {
                self.point(ring, record.event, keep);
                ring.open(record.event, record.ts);
            }
            Kind::End | Kind::EndOrdered => self.end(ring, record),
            Kind::Next => {
                self.end(ring, record);
                let entered = record.payload as u16;
                self.point(ring, entered, keep);
                ring.open(entered, record.ts);
            }
            Kind::Instant | Kind::Pair => {
                self.point(ring, record.event, keep);
                self.instant(ring, record);
            }
            Kind::Continuation => {}
        }
    }

    /// Records the depth of a point inside what is open.
    fn point(&mut self, ring: &Ring, event: u16, keep: &mut impl FnMut(u16, bool)) {
        let seen = self.events.entry(event).or_default();
        seen.is_kept |= self.wanted == Wanted::Kernel;
        if let Wanted::Level(level) = self.wanted {
            if ring.open.len() < level as usize {
                seen.shallow += 1;
            } else {
                seen.deep += 1;
            }
            // Near a switch a point may seem to lie less deep than it does.
            let is_kept = seen.shallow > seen.deep;
            if is_kept != seen.is_kept {
                seen.is_kept = is_kept;
                keep(event, is_kept);
            }
        }
        if seen.is_kept {
            return;
        }
        let around = (ring.open.iter().rev())
            .map(|&(event, _)| event)
            .find(|event| self.events.get(event).is_some_and(|seen| seen.is_kept))
            .or(ring.after);
        if let Some(seen) = around.and_then(|event| self.events.get_mut(&event)) {
            seen.inner += 1;
        }
    }

    fn end(&mut self, ring: &mut Ring, record: &Record) {
        let Some(at) = ring.open.iter().rposition(|&(e, _)| e == record.event) else {
            return;
        };
        let (event, start) = ring.open[at];
        ring.open.truncate(at);
        self.section(event, start, record.ts);
    }

    fn instant(&mut self, ring: &mut Ring, record: &Record) {
        if self.events.get(&record.event).is_some_and(|s| s.is_kept) {
            ring.after = Some(record.event);
            if let Some(start) = ring.instants.insert(record.event, record.ts) {
                self.section(record.event, start, record.ts);
            }
        }
    }

    fn section(&mut self, event: u16, start: u64, end: u64) {
        if let Some(seen) = self.events.get_mut(&event) {
            seen.whole += 1;
            seen.ticks += end.saturating_sub(start) as f64;
        }
    }

    /// Plans the halves from what is known now.
    pub(crate) fn settle(&self) {
        if self.first.is_none_or(|first| first.elapsed() < LEARNING) {
            return;
        }
        let of_kernel = self.wanted == Wanted::Kernel;
        let around = (self.events.values())
            .filter(|seen| seen.is_kept && seen.whole >= FEW)
            .filter(|seen| of_kernel || seen.inner > 0)
            .max_by_key(|seen| if of_kernel { seen.whole } else { seen.inner });
        if let Some(seen) = around {
            let mean_ns = seen.ticks / seen.whole as f64 * self.ns_per_tick;
            let half_ns = (SECTIONS_A_HALF * mean_ns).clamp(SHORTEST_HALF_NS, LONGEST_HALF_NS);
            self.plan.half_ns.store(half_ns as u64, Ordering::Relaxed);
        }
    }
}

impl Ring {
    fn open(&mut self, event: u16, ts: u64) {
        if self.open.len() == MOST_OPEN {
            self.open.drain(..MOST_OPEN / 2);
        }
        self.open.push((event, ts));
    }
}

#[cfg(test)]
mod tests;
