//! Counts of a machine's activity.

use crate::engine::{Moment, StationCounts};

/// Counts from the start to [`at`](Self::at); differences of two give a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The moment of the counts.
    pub at: Moment,
    /// References to a Cm's own memory.
    pub own: u64,
    /// References within a cluster.
    pub near: u64,
    /// References to another cluster.
    pub far: u64,
    /// Operations of Kmaps.
    pub operations: u64,
    /// Acts of processes.
    pub acts: u64,
    /// Number of times that a Cm was given to a process.
    pub dispatches: u64,
    /// Line-clock interrupts that were handled.
    pub interrupts: u64,
    /// Events entered.
    pub events: u64,
    /// The Kmaps, by cluster.
    pub kmaps: Vec<StationCounts>,
    /// The Map Buses, by cluster.
    pub map_buses: Vec<StationCounts>,
    /// The intercluster buses.
    pub buses: Vec<StationCounts>,
}

impl Counts {
    /// Returns the difference from earlier counts of the same machine.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Window {
        let stations = |now: &[StationCounts], then: &[StationCounts]| {
            now.iter().zip(then).map(|(n, t)| n.since(*t)).collect()
        };
        Window {
            from: earlier.at,
            to: self.at,
            near: self.near - earlier.near,
            far: self.far - earlier.far,
            events: self.events - earlier.events,
            kmaps: stations(&self.kmaps, &earlier.kmaps),
        }
    }
}

/// A machine's activity between two counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Begin of the window.
    pub from: Moment,
    /// End of the window.
    pub to: Moment,
    /// References within a cluster.
    pub near: u64,
    /// References to another cluster.
    pub far: u64,
    /// Number of events.
    pub events: u64,
    /// The Kmaps, by cluster.
    pub kmaps: Vec<StationCounts>,
}

impl Window {
    /// Returns its length, s.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.to.ns_since(self.from) as f64 / 1e9
    }

    /// Returns the number of references to other clusters per second.
    #[must_use]
    pub fn far_per_s(&self) -> f64 {
        self.far as f64 / self.seconds()
    }

    /// Returns the share of the time that a Kmap (cluster from 1) was busy.
    ///
    /// # Panics
    /// If there is no such cluster.
    #[must_use]
    pub fn kmap_busy(&self, cluster: usize) -> f64 {
        self.kmaps[cluster - 1].busy_ns as f64 / 1e9 / self.seconds()
    }

    /// Returns the mean number of requests at a Kmap (cluster from 1), waiting and served.
    ///
    /// # Panics
    /// If there is no such cluster.
    #[must_use]
    pub fn kmap_present(&self, cluster: usize) -> f64 {
        self.kmaps[cluster - 1].present_ns as f64 / 1e9 / self.seconds()
    }
}
