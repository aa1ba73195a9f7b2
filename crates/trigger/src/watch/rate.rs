//! How often an event comes.

/// The shortest time over which a rate is taken, s, and the number of events that the limit allows
/// in it at least.
const SECONDS: f64 = 1.0;
const EVENTS: f64 = 3.0;

/// The events of a rule about a rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    is_below: bool,
    per_second: f64,
    /// When the stretch began, ticks; `None` until something has come, because the program may be
    /// starting.
    from: Option<u64>,
    events: u64,
    /// Events were overwritten unseen: the stretch begins again.
    has_gap: bool,
    /// The rule was met in the last stretch: it is met again only after one in which it was not.
    was_met: bool,
}

impl Rate {
    pub(super) const fn new(is_below: bool, per_second: f64) -> Self {
        Self {
            is_below,
            per_second,
            from: None,
            events: 0,
            has_gap: false,
            was_met: false,
        }
    }

    pub(super) const fn count(&mut self) {
        self.events += 1;
    }

    pub(super) const fn gap(&mut self) {
        self.has_gap = true;
    }

    /// If the rule is met: since when, ticks, and how often the event came, per second. A rate that is
    /// too high is found as soon as more has come than the whole stretch allows.
    pub(super) fn look(&mut self, now: u64, ns_per_tick: f64) -> Option<(u64, f64)> {
        let stretch = SECONDS.max(EVENTS / self.per_second);
        let events = self.events as f64;
        // Also with a gap: more have come than were seen.
        let is_early = !self.is_below && !self.was_met && events > self.per_second * stretch;
        let Some(from) = self.from.filter(|_| is_early || !self.has_gap) else {
            let has_begun = self.from.is_some() || self.events > 0;
            (self.from, self.events) = (has_begun.then_some(now), 0);
            self.has_gap = false;
            return None;
        };
        self.has_gap = false;
        let seconds = now.saturating_sub(from) as f64 * ns_per_tick / 1e9;
        if seconds < stretch && !is_early {
            return None;
        }
        let found = events / seconds.max(f64::MIN_POSITIVE);
        let is_met = match self.is_below {
            true => found < self.per_second,
            false => is_early || found > self.per_second,
        };
        let is_new = is_met && !self.was_met;
        (self.from, self.events, self.was_met) = (Some(now), 0, is_met);
        is_new.then_some((from, found))
    }
}
