//! A server with a queue: a Kmap, a bus.

use std::collections::VecDeque;

use super::Moment;

/// One server, first come, first served, that may turn requests away.
///
/// A request's end is known when it comes, so it needs no event of its own for
/// the beginning of its service. Requests must come in order of time.
#[derive(Clone, Debug, Default)]
pub struct Station {
    free_at: u64,
    /// Most requests that may be here; none: as many as come.
    room: Option<usize>,
    /// When those that are here leave; kept only if there is a limit.
    leaving: VecDeque<u64>,
    counts: StationCounts,
}

/// What a station did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationCounts {
    /// Requests that were served or are to be.
    pub served: u64,
    /// Requests that were turned away.
    pub refused: u64,
    /// Time of service, ns, all that was promised.
    pub busy_ns: u64,
    /// Time that requests were here, waiting and served, ns, summed over requests:
    /// over a time, this is the mean number of requests here.
    pub present_ns: u64,
}

impl StationCounts {
    /// What was done since an earlier look.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            served: self.served - earlier.served,
            refused: self.refused - earlier.refused,
            busy_ns: self.busy_ns - earlier.busy_ns,
            present_ns: self.present_ns - earlier.present_ns,
        }
    }

    /// Mean wait before service, ns; none served: NaN.
    #[must_use]
    pub fn mean_wait_ns(self) -> f64 {
        (self.present_ns - self.busy_ns) as f64 / self.served as f64
    }
}

/// The station has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

impl Station {
    /// A station that keeps everybody waiting.
    #[must_use]
    pub fn queue() -> Self {
        Self::default()
    }

    /// A station with room for so many, the one in service included; it turns others away.
    #[must_use]
    pub fn with_room(room: usize) -> Self {
        Self {
            room: Some(room),
            ..Self::default()
        }
    }

    /// Takes a request that may not be turned away; when its service ends.
    #[inline]
    pub fn serve(&mut self, now: Moment, service_ns: u64) -> Moment {
        let now = now.ns();
        let end = self.free_at.max(now) + service_ns;
        self.free_at = end;
        self.counts.served += 1;
        self.counts.busy_ns += service_ns;
        self.counts.present_ns += end - now;
        if self.room.is_some() {
            self.leaving.push_back(end);
        }
        Moment::from_ns(end)
    }

    /// Offers a request; when its service ends.
    ///
    /// # Errors
    /// There is no room.
    #[inline]
    pub fn offer(&mut self, now: Moment, service_ns: u64) -> Result<Moment, Refused> {
        if self.room.is_some_and(|room| self.present(now) >= room) {
            self.counts.refused += 1;
            return Err(Refused);
        }
        Ok(self.serve(now, service_ns))
    }

    /// Takes the server's time for turning somebody away.
    #[inline]
    pub fn lose(&mut self, now: Moment, ns: u64) {
        self.free_at = self.free_at.max(now.ns()) + ns;
        self.counts.busy_ns += ns;
        self.counts.present_ns += ns;
    }

    /// When it is free, if nobody else comes.
    #[must_use]
    pub const fn free_at(&self) -> Moment {
        Moment::from_ns(self.free_at)
    }

    /// Requests here; known only where there is a limit.
    fn present(&mut self, now: Moment) -> usize {
        while self.leaving.front().is_some_and(|&end| end <= now.ns()) {
            self.leaving.pop_front();
        }
        self.leaving.len()
    }

    /// What it did.
    #[must_use]
    pub const fn counts(&self) -> StationCounts {
        self.counts
    }
}
