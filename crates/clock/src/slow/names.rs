//! The names of slow clocks, and the tick lengths in them.

use core::fmt;
use core::str::FromStr;

use crate::{ClockId, adjustable};

/// Shortest and longest tick of a deliberately quantised clock, ns.
pub const QUANTISED_TICK_NS: core::ops::RangeInclusive<u64> = 100..=1_000_000_000;

/// The name of a slow clock, before it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowName {
    /// A page that a thread of the library advances.
    Adjustable {
        /// Tick, ns.
        tick_ns: u64,
    },
    /// A deliberately divided fine clock.
    Quantised {
        /// Tick, ns.
        tick_ns: u64,
        /// The divided clock; `None` for the best one here.
        fine: Option<ClockId>,
    },
    /// `CLOCK_MONOTONIC_COARSE`.
    MonotonicCoarse,
    /// `CLOCK_REALTIME_COARSE`.
    RealtimeCoarse,
    /// `times(2)`.
    Times,
}

impl fmt::Display for SlowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Adjustable { tick_ns } => write!(f, "adjustable:{}", Length(tick_ns)),
            Self::Quantised { tick_ns, fine } => {
                write!(f, "quantised:{}", Length(tick_ns))?;
                fine.map_or(Ok(()), |clock| write!(f, ":{clock}"))
            }
            Self::MonotonicCoarse => f.write_str("monotonic-coarse"),
            Self::RealtimeCoarse => f.write_str("realtime-coarse"),
            Self::Times => f.write_str("times"),
        }
    }
}

/// A name that no slow clock has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadName {
    name: String,
    why: String,
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slow clock {:?}: {}", self.name, self.why)
    }
}

impl core::error::Error for BadName {}

impl FromStr for SlowName {
    type Err = BadName;

    fn from_str(name: &str) -> Result<Self, BadName> {
        let bad = |why: String| BadName {
            name: name.to_owned(),
            why,
        };
        let (kind, rest) = name.split_once(':').unwrap_or((name, ""));
        match kind {
            "adjustable" => {
                let tick_ns = tick_within(rest, &adjustable::TICK_NS).map_err(bad)?;
                Ok(Self::Adjustable { tick_ns })
            }
            "quantised" | "quantized" => {
                let (tick, fine) = rest.split_once(':').unwrap_or((rest, ""));
                let tick_ns = tick_within(tick, &QUANTISED_TICK_NS).map_err(bad)?;
                let fine = (!fine.is_empty())
                    .then(|| fine.parse::<ClockId>().map_err(|e| bad(e.to_string())))
                    .transpose()?;
                Ok(Self::Quantised { tick_ns, fine })
            }
            "monotonic-coarse" | "monotonic_coarse" if rest.is_empty() => Ok(Self::MonotonicCoarse),
            "realtime-coarse" if rest.is_empty() => Ok(Self::RealtimeCoarse),
            "times" | "jiffies" if rest.is_empty() => Ok(Self::Times),
            _ => Err(bad(
                "there are adjustable:TICK, quantised:TICK, monotonic-coarse, realtime-coarse and times (TICK e.g. 1ms or 250us)"
                    .to_owned(),
            )),
        }
    }
}

/// Parses `250us` as nanoseconds within the range.
pub(super) fn tick_within(
    text: &str,
    range: &core::ops::RangeInclusive<u64>,
) -> Result<u64, String> {
    let tick_ns = length_ns(text)
        .ok_or_else(|| format!("{text:?} is no length of a tick; write e.g. 1ms or 250us"))?;
    if range.contains(&tick_ns) {
        return Ok(tick_ns);
    }
    Err(format!(
        "its tick must lie between {} and {}",
        Length(*range.start()),
        Length(*range.end())
    ))
}

pub(super) const UNITS: [(&str, u64); 4] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
];

/// Parses `1ms`, `0.5ms`, `250us`, `1000ns`, `1s` as whole nanoseconds.
pub(super) fn length_ns(text: &str) -> Option<u64> {
    let (number, ns) = UNITS
        .iter()
        .find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, *ns)))?;
    let length_ns = number.trim().parse::<f64>().ok()? * ns as f64;
    ((1.0..=1e15).contains(&length_ns)).then(|| length_ns.round() as u64)
}

/// Nanoseconds, shown in the largest unit that keeps them whole.
pub(crate) struct Length(pub u64);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, ns) = UNITS
            .iter()
            .rev()
            .find(|(_, ns)| self.0.is_multiple_of(*ns))
            .copied()
            .unwrap_or(UNITS[0]);
        write!(f, "{}{unit}", self.0 / ns)
    }
}
