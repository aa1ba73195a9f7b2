//! Readings of the trace clock and of the sources' clock together.

use std::time::{Duration, Instant};

use undertick_clock::facts::Facts;
use undertick_clock::{ClockId, Source, bracket, granularity};

use super::raw::{Record, RecordKind, Writer};

/// First pause between two anchors of the clocks; it doubles.
const FIRST_ANCHOR: Duration = Duration::from_millis(100);
/// Longest pause between two anchors.
const ANCHOR_EVERY: Duration = Duration::from_secs(1);

/// Ties the sources' clock to the trace clock.
#[derive(Debug)]
pub(super) struct Anchors {
    trace: Source,
    pub(super) other: Source,
    other_step_ns: u64,
    /// Uncertainty beside the bracket, ns: each clock shows its last step.
    steps_ns: u64,
    next: Instant,
    gap: Duration,
}

impl Anchors {
    pub(super) fn new(facts: &Facts) -> Option<Self> {
        let other = Source::open(ClockId::MonotonicRaw).ok()?;
        let other_step_ns =
            granularity::measure(other).map_or(1, |found| found.step_ticks.ceil() as u64);
        let step_ticks = facts.granularity.map_or(1.0, |found| found.step_ticks);
        let step_ns = step_ticks * facts.rate.claim.rate.ns_per_tick();
        Some(Self {
            trace: Source::open(facts.clock).ok()?,
            other,
            other_step_ns,
            steps_ns: step_ns.ceil() as u64 + other_step_ns,
            next: Instant::now(),
            gap: FIRST_ANCHOR,
        })
    }

    pub(super) fn take(&mut self, at: Instant, now: bool, writer: &mut Writer) {
        if !now && at < self.next {
            return;
        }
        self.next = at + self.gap;
        self.gap = (self.gap * 2).min(ANCHOR_EVERY);
        if let Some(pair) = bracket::pair(self.trace, self.other, self.other_step_ns) {
            writer.push(&Record {
                payload: pair.reference_ns as i64,
                a: i32::try_from(pair.error_ns + self.steps_ns).unwrap_or(i32::MAX),
                ..Record::new(RecordKind::Anchor, pair.ticks)
            });
        }
    }
}
