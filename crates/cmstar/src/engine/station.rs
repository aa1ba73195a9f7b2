//! A server with a queue: a Kmap, a bus.

use std::collections::VecDeque;

use super::Moment;

/// A single server, first come, first served, that may turn requests away.
///
/// The end of a request is known when it arrives, so the beginning of its service needs no separate
/// event. Requests must arrive in order of time.
#[derive(Clone, Debug, Default)]
pub struct Station {
    free_at: u64,
    /// Maximum number of requests at the station; `None`: no limit.
    room: Option<usize>,
    /// Times at which the present requests leave; kept only if there is a limit.
    leaving: VecDeque<u64>,
    counts: StationCounts,
}

/// Statistics of a station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationCounts {
    /// Number of requests that were served or will be.
    pub served: u64,
    /// Number of requests that were turned away.
    pub refused: u64,
    /// Total time of promised service, ns.
    pub busy_ns: u64,
    /// Time that requests were present, waiting and served, ns, summed over requests: divided by a
    /// time, this is the mean number of requests present.
    pub present_ns: u64,
}

impl StationCounts {
    /// Returns the difference from earlier counts.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            served: self.served - earlier.served,
            refused: self.refused - earlier.refused,
            busy_ns: self.busy_ns - earlier.busy_ns,
            present_ns: self.present_ns - earlier.present_ns,
        }
    }

    /// Returns the mean wait before service, ns; NaN if none were served.
    #[must_use]
    pub fn mean_wait_ns(self) -> f64 {
        (self.present_ns - self.busy_ns) as f64 / self.served as f64
    }
}

/// The station has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

impl Station {
    /// Creates a station that never turns requests away.
    #[must_use]
    pub fn queue() -> Self {
        Self::default()
    }

    /// Creates a station with room for `room` requests, including the one in service; it turns
    /// others away.
    #[must_use]
    pub fn with_room(room: usize) -> Self {
        Self {
            room: Some(room),
            ..Self::default()
        }
    }

    /// Takes a request that may not be turned away; returns when its service ends.
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

    /// Offers a request; returns when its service ends.
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

    /// Takes the server's time for turning a request away.
    #[inline]
    pub fn lose(&mut self, now: Moment, ns: u64) {
        self.free_at = self.free_at.max(now.ns()) + ns;
        self.counts.busy_ns += ns;
        self.counts.present_ns += ns;
    }

    /// Returns when it is free, if no other request arrives.
    #[must_use]
    pub const fn free_at(&self) -> Moment {
        Moment::from_ns(self.free_at)
    }

    /// Returns the number of requests present; known only where there is a limit.
    fn present(&mut self, now: Moment) -> usize {
        while self.leaving.front().is_some_and(|&end| end <= now.ns()) {
            self.leaving.pop_front();
        }
        self.leaving.len()
    }

    /// Returns its counts.
    #[must_use]
    pub const fn counts(&self) -> StationCounts {
        self.counts
    }
}
