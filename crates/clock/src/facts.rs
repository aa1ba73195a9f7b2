//! Everything that a trace's manifest says about its clock, in one call.

use std::time::Duration;

use crate::granularity::{self, Granularity};
use crate::rate::{self, ClockRate, NoRate};
use crate::read_cost::{self, ReadCost, ReadKind};
use crate::{ClockId, Source};

/// A clock's rate, step and read cost, as found on this machine just now.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The clock.
    pub clock: ClockId,
    /// Its rate, the source of the rate, and the bound.
    pub rate: ClockRate,
    /// Its step; `None` if it hardly moved while it was watched.
    pub granularity: Option<Granularity>,
    /// Cost of a plain read.
    pub read_cost: Option<ReadCost>,
    /// Cost of an ordered read.
    pub read_cost_ordered: Option<ReadCost>,
}

/// Gathers the facts of a clock on the calling thread: about 60 ms, most of it asleep. `rate_span`
/// as in [`rate::find`].
///
/// # Errors
/// The clock's rate could not be found.
pub fn gather(source: Source, rate_span: Duration) -> Result<Facts, NoRate> {
    let rate = rate::find(source, rate_span)?;
    let timer = read_cost::timer().ok_or(NoRate)?;
    let timer_rate = if timer.clock() == source.clock() {
        rate.claim.rate
    } else {
        rate::find(timer, rate_span)?.claim.rate
    };
    Ok(Facts {
        clock: source.clock(),
        granularity: granularity::measure(source),
        read_cost: read_cost::measure(source, ReadKind::Plain, timer_rate),
        read_cost_ordered: read_cost::measure(source, ReadKind::Ordered, timer_rate),
        rate,
    })
}

#[cfg(test)]
mod tests;
