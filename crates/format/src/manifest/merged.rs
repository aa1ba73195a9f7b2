//! The descriptions of hosts and of their clocks in a manifest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_estimate::two_clocks::Knot;

use crate::identity::ClockIdentity;
use crate::manifest::{Calibration, Exit};

/// A host of a trace: `ts` is a reading of the clock of `hosts[0]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceHost {
    /// Node name.
    pub name: String,
    /// Its clock, of which `ts_local` are readings.
    pub clock: ClockIdentity,
    /// Exact rate of that clock as a fraction: ticks per second = numerator / denominator.
    pub ticks_per_second_numerator: u64,
    /// See `ticks_per_second_numerator`.
    pub ticks_per_second_denominator: u64,
    /// What was recorded there; absent in a trace of one host, as are all fields that follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<Merged>,
    /// The map from its clock to the first host's; absent for the first host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<HostMap>,
}

/// A trace that became part of another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Merged {
    /// Its directory.
    pub trace: String,
    /// The command that was run.
    pub command: Vec<String>,
    /// How it ended.
    pub exit: Option<Exit>,
    /// Its start by the host's own Unix time, nanoseconds.
    pub started_unix_ns: i64,
    /// Added to its ring numbers.
    pub ring_shift: i32,
    /// Added to its process and thread numbers that are above 0.
    pub pid_shift: i32,
    /// Its first and last reading, ticks of its own clock; absent if it has no rows.
    pub span_ticks: Option<[i64; 2]>,
    /// Events in it.
    pub events: u64,
    /// Events lost in it.
    pub lost: u64,
    /// The cost of recording there.
    pub calibration: Option<Calibration>,
}

/// The map from a host's clock to the first host's clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostMap {
    /// Whether it is the first host's clock itself, so that no map is needed.
    pub is_same_clock: bool,
    /// The host that this clock was compared with.
    pub compared_with: u16,
    /// Messages to that host, and from it.
    pub messages: [u64; 2],
    /// Where the messages are from.
    pub sources: Vec<String>,
    /// The wander that the bounds allow for: by how much the difference of the rates may change
    /// between any two moments, parts per million.
    pub wander_ppm: f64,
    /// Whether the messages show that the rate wandered more than was stated, so that more is
    /// allowed for.
    pub is_wander_raised: bool,
    /// Median half-width over the host's trace, ns of the first host.
    pub half_width_ns_median: f64,
    /// The largest half-width, ns.
    pub half_width_ns_max: f64,
    /// Knots of the map, ascending: reading of the host's own clock, the first host's reading at
    /// that instant, and the bound on its error, in ticks of the first host. Between knots all
    /// are linear.
    pub knots: Vec<[i64; 3]>,
}

impl HostMap {
    /// Returns the reading of the first host's clock and the half-width, ticks of the first host,
    /// when this host's clock shows `local`; `None` outside of the map.
    #[must_use]
    pub fn at(&self, local: i64) -> Option<(i64, i64)> {
        if self.is_same_clock {
            return Some((local, 0));
        }
        super::mapped::at(&self.knots, local)
    }

    /// The half-width when the first host's clock shows `ts` by this map, ticks; the largest one
    /// outside of it.
    #[must_use]
    pub fn half_width_at(&self, ts: i64) -> i64 {
        if self.is_same_clock {
            return 0;
        }
        let knot = |k: &[i64; 3]| Knot {
            at: k[1],
            ahead: 0,
            half_width: k[2],
        };
        let after = self.knots.partition_point(|k| k[1] < ts);
        let inside = (after.checked_sub(1)).and_then(|before| {
            let pair = [self.knots.get(before)?, self.knots.get(after)?].map(knot);
            undertick_estimate::two_clocks::between(&pair, ts)
        });
        let at_first = self.knots.first().filter(|k| k[1] == ts).map(|k| k[2]);
        (inside.map(|k| k.half_width).or(at_first))
            .unwrap_or_else(|| self.knots.iter().map(|k| k[2]).max().unwrap_or(0))
    }
}

/// Three clocks compared in a ring: the difference between the ways around.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Closure {
    /// The hosts between which messages were not needed for the maps.
    pub hosts: [u16; 2],
    /// The largest distance of their direct comparison from the maps, ns of the first host.
    pub error_ns: f64,
    /// What the half-widths allow there, ns.
    pub allowed_ns: f64,
    /// Whether the distance stays within the allowed one everywhere.
    pub holds: bool,
}
