//! Compares two clocks that exchanged stamps, without traces.

use undertick_format::TraceError;
use undertick_format::identity::ClockIdentity;
use undertick_format::manifest::HostMap;
use undertick_format::messages::Messages;

use super::align::{HostClock, align};
use super::exchanges::{Side, SyncFile};

/// Two clocks that exchanged stamps, compared at the end of the exchanges.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The map from the clock of the host that was asked to the other one's.
    pub map: HostMap,
    /// Reading of the asked host's clock at one instant, ticks.
    pub there_ticks: i64,
    /// Reading of the asking host's clock at that instant, ticks.
    pub here_ticks: i64,
    /// Bound on the error of that pair, ns.
    pub half_width_ns: f64,
    /// The first reading less the second, each in its own nominal nanoseconds; meaningless where
    /// the clocks began at different times. `None` beyond 64 bits.
    pub offset_ns: Option<i64>,
    /// By how much the asked host's clock is faster, ppm of the nominal rates, over the whole
    /// time of the exchanges.
    pub rate_ppm: f64,
    /// Bound on the error of the rate, ppm.
    pub rate_half_width_ppm: f64,
}

/// Compares the clocks of a file of exchanges, even if both are the same clock.
///
/// # Errors
/// As [`align`].
pub fn compare(file: &SyncFile, wander_ppm: Option<f64>) -> Result<Comparison, TraceError> {
    let clock = |side: &Side| HostClock {
        name: side.name.clone(),
        identity: ClockIdentity {
            boot_id: None, // so that a clock is compared even with itself
            ..side.clock.clone()
        },
        ticks_per_second: [
            side.ticks_per_second_numerator,
            side.ticks_per_second_denominator,
        ],
        stamp_error_ticks: 1.0,
        span: None,
    };
    let messages = |from: usize, to: usize, places: [usize; 2]| Messages {
        from,
        to,
        source: file.address.clone(),
        stamps: (file.exchanges.iter())
            .map(|stamps| (stamps[places[0]], stamps[places[1]]))
            .collect(),
    };
    let hosts = [clock(&file.here), clock(&file.there)];
    let both = [messages(0, 1, [0, 1]), messages(1, 0, [2, 3])];
    let alignment = align(&hosts, &both, wander_ppm)?;
    let map = alignment.maps.into_iter().flatten().next();
    let answered = file.exchanges.iter().map(|stamps| stamps[2]).max();
    let told = map.and_then(|map| {
        let there_ticks = answered?;
        let (here_ticks, half_width) = map.at(there_ticks)?;
        Some((map, there_ticks, here_ticks, half_width))
    });
    let Some((map, there_ticks, here_ticks, half_width)) = told else {
        let mend = "no exchanges to compare clocks by";
        return Err(TraceError::Usage(format!("{}: {mend}", file.address)));
    };
    let [here, there] = [hosts[0].ns_per_tick(), hosts[1].ns_per_tick()];
    let (first, last) = (map.knots[0], map.knots[map.knots.len() - 1]);
    let apart = |a: i64, b: i64, ns: f64| (i128::from(b) - i128::from(a)) as f64 * ns;
    let (here_ns, there_ns) = (
        apart(first[1], last[1], here),
        apart(first[0], last[0], there),
    );
    Ok(Comparison {
        there_ticks,
        here_ticks,
        half_width_ns: half_width as f64 * here,
        offset_ns: (nanos(there_ticks, hosts[1].ticks_per_second))
            .zip(nanos(here_ticks, hosts[0].ticks_per_second))
            .and_then(|(there, here)| there.checked_sub(here)),
        rate_ppm: 1e6 * (there_ns / here_ns - 1.0),
        rate_half_width_ppm: 1e6 * apart(0, first[2] + last[2], here) / here_ns,
        map,
    })
}

/// Nominal nanoseconds of a reading.
fn nanos(ticks: i64, [numerator, denominator]: [u64; 2]) -> Option<i64> {
    let per_second = 1_000_000_000_i128.checked_mul(denominator.into())?;
    let ns = i128::from(ticks).checked_mul(per_second)? / i128::from(numerator);
    i64::try_from(ns).ok()
}
