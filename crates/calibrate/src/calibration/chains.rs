//! The work in a span of the workload, priced by chains of the same instructions.
//!
//! The speed of a core changes while the workload runs: its frequency, and a neighbour on the other
//! thread of the core. A dose is therefore priced by the chains that were executed about the same
//! time, not by all of them: with 200 pairs in a dose, a core that is 50 % slower in a third of the
//! time adds over 40 ns to the mean span, which the median of all chains does not show. A core that
//! is slow for less than the window of the chains (about 4 ms) still moves the mean by a part of
//! that.

use undertick_estimate::compensation::Paired;
use undertick_units::{Estimate, Interval};

use super::NotCalibrated;
use super::costs::scaled;
use super::samples::{Samples, too_few};

/// The event of the chains, as in `calibration.c`.
const CHAIN: u32 = 1;
/// Pairs of one multiplication and one addition in a chain.
const PAIRS: f64 = 100.0 * 200.0;
/// The price at a time is the median of this many chains about it, of which three may be interrupted.
const CHAINS_IN_MEDIAN: usize = 7;
/// Share of a dose by which its price may be wrong: the recording of a chain's own span, 30 ns of
/// 27 us, is part of the price.
const PRICE_ERROR: f64 = 0.001;

/// The time that a pair of instructions takes, in the course of the workload.
pub(super) struct Chains {
    /// Duration of a pair, ns: the median of all chains. A step of the clock is 0.05 % of a chain.
    pub(super) pair_ns: Estimate,
    /// Starts of the chains and the ticks of a pair about that time.
    prices: Vec<(i64, f64)>,
}

impl Chains {
    pub(super) fn measure(samples: &Samples) -> Result<Self, NotCalibrated> {
        let pair_ns = scaled(&samples.median(CHAIN)?, 1.0 / PAIRS);
        let chains: Vec<(i64, f64)> = (samples.timed(CHAIN))
            .map(|(start, s)| (start, s.tm / PAIRS))
            .collect();
        // There are enough chains for a window: the median above needs more.
        let prices = (chains.iter().enumerate())
            .map(|(at, &(start, _))| {
                let from = at
                    .saturating_sub(CHAINS_IN_MEDIAN / 2)
                    .min(chains.len() - CHAINS_IN_MEDIAN);
                let mut about: Vec<f64> = chains[from..from + CHAINS_IN_MEDIAN]
                    .iter()
                    .map(|c| c.1)
                    .collect();
                about.sort_unstable_by(f64::total_cmp);
                (start, about[CHAINS_IN_MEDIAN / 2])
            })
            .collect();
        Ok(Self { pair_ns, prices })
    }

    /// Ticks of a pair at a time: those of the chain that began nearest to it.
    fn pair_ticks(&self, time: i64) -> f64 {
        let after = self.prices.partition_point(|&(start, _)| start < time);
        let about = &self.prices[after.saturating_sub(1)..(after + 1).min(self.prices.len())];
        let nearest = about.iter().min_by_key(|&&(start, _)| start.abs_diff(time));
        nearest.map_or(f64::NAN, |&(_, ticks)| ticks)
    }

    /// The mean time that the spans of an event take beyond a dose of `pairs`, ns. `ticks` gives
    /// the duration of a span.
    pub(super) fn mean_beyond(
        &self,
        samples: &Samples,
        event: u32,
        pairs: f64,
        ticks: impl Fn(&Paired) -> f64,
    ) -> Result<Estimate, NotCalibrated> {
        let beyond =
            (samples.timed(event)).map(|(start, s)| ticks(s) - pairs * self.pair_ticks(start));
        let mean = samples.mean_of(beyond).ok_or_else(|| too_few(event))?;
        let half = (mean.interval.half_width().unwrap_or(f64::INFINITY))
            .hypot(PRICE_ERROR * pairs * self.pair_ns.value);
        Ok(Estimate {
            interval: Interval::new(mean.value - half, mean.value + half),
            method: "mean of spans less their doses".to_owned(),
            ..mean
        })
    }
}

#[cfg(test)]
mod tests;
