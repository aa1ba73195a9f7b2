//! Addresses of Cms, and identifiers of the objects of the machine.

use std::fmt;

use crate::parameters::Topology;

/// The address of a Cm, as the paper numbers them: cluster and number within it, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CmAddress {
    /// The cluster, from 1.
    pub cluster: usize,
    /// The Cm, from 1.
    pub cm: usize,
}

impl CmAddress {
    /// The address of Cm number `cm` of a cluster; both from 1.
    #[must_use]
    pub const fn new(cluster: usize, cm: usize) -> Self {
        Self { cluster, cm }
    }
}

impl fmt::Display for CmAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cm {} of cluster {}", self.cm, self.cluster)
    }
}

macro_rules! names {
    ($($(#[$about:meta])* $name:ident($inner:ty);)*) => {
        $($(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);)*
    };
}

names! {
    /// A clock, by its index in [`Topology::clocks`](crate::Topology::clocks).
    ClockId(usize);
    /// A process, numbered from 0 in the order of starting.
    ProcessId(u32);
    /// A lock.
    LockId(u32);
    /// A flag.
    FlagId(u32);
    /// A channel for messages.
    ChannelId(u32);
}

/// Clusters that have fewer Cms than requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFewCms {
    /// Number of Cms requested.
    pub asked: usize,
    /// Number of available Cms, without those with a clock.
    pub there: usize,
}

impl fmt::Display for TooFewCms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, there } = self;
        write!(
            f,
            "{asked} Cms were asked for; those clusters have {there} without a clock"
        )
    }
}

impl core::error::Error for TooFewCms {}

/// Returns the requested number of Cms of these clusters (from 1), evenly: one of each cluster in
/// turn. Cms that have a clock are omitted, as the paper omits those with devices.
///
/// # Errors
/// There are too few Cms.
pub fn spread(
    topology: &Topology,
    clusters: &[usize],
    number: usize,
) -> Result<Vec<CmAddress>, TooFewCms> {
    let has_clock = |address: CmAddress| {
        (topology.clocks.iter()).any(|c| (c.cluster, c.cm) == (address.cluster, address.cm))
    };
    // In turn over the clusters: the n-th free Cm of each.
    let free: Vec<Vec<CmAddress>> = (clusters.iter())
        .map(|&cluster| {
            (1..=topology.cms_per_cluster)
                .map(|cm| CmAddress::new(cluster, cm))
                .filter(|&address| !has_clock(address))
                .collect()
        })
        .collect();
    let turns = free.iter().map(Vec::len).max().unwrap_or(0);
    let addresses: Vec<CmAddress> = (0..turns)
        .flat_map(|turn| free.iter().filter_map(move |cms| cms.get(turn).copied()))
        .collect();
    if addresses.len() < number {
        return Err(TooFewCms {
            asked: number,
            there: addresses.len(),
        });
    }
    Ok(addresses[..number].to_vec())
}
