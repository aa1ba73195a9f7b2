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
mod tests {
    use rand::RngExt;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::calibration::samples::tests::samples;

    /// Spans of 30 ns beyond a dose of 200 pairs, on a core that executes a pair in 1.3 or in
    /// 1.95 ns for 4 to 20 ms each. One chain in fifty is interrupted for 20 us.
    #[test]
    fn a_core_that_changes_its_speed_moves_no_cost() {
        const SPAN: u32 = 64;
        let mut held = 0;
        for seed in 0..200 {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let (mut spans, mut now, mut until, mut slow) = (Vec::new(), 0.0, 0.0, false);
            for pass in 0..6000 {
                if now >= until {
                    (until, slow) = (now + random.random_range(4e6..20e6), !slow);
                }
                let pair = if slow { 1.95 } else { 1.3 };
                let is_interrupted = random.random_range(0..50) == 0;
                let mut record = |event: u32, takes: f64| {
                    let clock = |at: f64| (at / 10.0).floor() * 10.0;
                    spans.push(((event, 0), now as i64, clock(now + takes) - clock(now)));
                    now += takes + 30_000.0 * random.random_range(0.9..1.1);
                };
                record(SPAN, 200.0 * pair + 30.0);
                if pass % 16 == 0 {
                    let interrupted = if is_interrupted { 20_000.0 } else { 0.0 };
                    record(CHAIN, PAIRS * pair + interrupted);
                }
            }
            let samples = samples(spans, 10.0);
            let chains = Chains::measure(&samples).unwrap();
            let found = chains.mean_beyond(&samples, SPAN, 200.0, |s| s.tm).unwrap();
            assert!((found.value - 30.0).abs() < 5.0, "{seed}: {found:?}");
            let (lo, hi) = (found.interval.lo.unwrap(), found.interval.hi.unwrap());
            held += u32::from(lo <= 30.0 && 30.0 <= hi);
            // A thousandth of a dose of 260 ns on either side at least.
            assert!((0.52..16.0).contains(&(hi - lo)), "{seed}: {found:?}");
        }
        // 95 %: 175 or more of 200, except for one in a hundred thousand.
        assert!(held >= 175, "{held} of 200");
    }
}
