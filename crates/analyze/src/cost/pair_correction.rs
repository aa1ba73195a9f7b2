//! Corrections by the pairs of readings that samples carry or that lie beside them.

use undertick_estimate::Cost;
use undertick_estimate::compensation::Correction;
use undertick_format::manifest::PairedCost;

use super::table::span_cost;
use crate::reading::ENDS;

/// A correction by the pairs beside each sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairCorrection {
    pub(crate) correction: Correction,
    /// Uncertainty of its constant, ns.
    pub(crate) error: Cost,
    /// Name of the method.
    pub(crate) name: &'static str,
    /// What a pair took when the constant was measured, and the span itself.
    reference: Option<Reference>,
    /// Below this much work, ns, the second value is the error: it includes what spans around
    /// nothing additionally cost.
    pub(crate) small: Option<(f64, Cost)>,
    /// Whose pairs these are and what they leave open.
    pub(crate) whose: Whose,
}

/// Which thread read the pairs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose {
    /// The measured thread: the bias was measured with known doses.
    Own,
    /// Another thread, on another CPU and in a loop of its own: nothing has measured what its
    /// readings have to do with the program's. The calibration has the costs of the program's
    /// sections by [`Ends`](crate::reading::Ends), if there is one.
    Another(Option<[Cost; ENDS]>),
}

/// Mean of a pair when the constant was measured, ticks, and the change of a span's cost with it.
#[derive(Clone, Copy, Debug)]
struct Reference {
    pair_ticks: f64,
    slope: f64,
}

/// Uncertainty of a drift, as its share: see [`PairedCost::slope`], powers from 1.0 to 1.3.
pub(crate) const DRIFT_ERROR: f64 = 1.0 / 8.0;
/// Pairs beyond this many times the calibration's mean are interrupted, not slow: a busy second
/// thread of the core made readings up to 1.7 times as long. The calibration's own fence has seen
/// one state of the core only.
const SLOW_PAIR: f64 = 3.0;

impl PairCorrection {
    /// Half of both pairs, as published; `bias` is what is known to remain, and is not
    /// subtracted.
    pub(crate) fn published(bias: Option<&PairedCost>) -> Self {
        Self {
            correction: Correction::pairs(),
            error: bias.map_or_else(Cost::default, |paired| systematic(&paired.pairs_bias_ns)),
            name: "pairs",
            reference: None,
            small: None,
            whose: Whose::Own,
        }
    }

    /// Half of both pairs of another thread, beside the costs of the calibration.
    pub(crate) fn of_sampler(calibrated: Option<[Cost; ENDS]>) -> Self {
        Self {
            name: "sampler",
            whose: Whose::Another(calibrated),
            ..Self::published(None)
        }
    }

    /// What the pairs leave open about the cost of sections, of which `counts` have each kind of
    /// ends, if the pairs' mean is `mean_ns`.
    pub(crate) fn left_open(&self, mean_ns: f64, counts: &[u64; ENDS]) -> Cost {
        let Whose::Another(calibrated) = self.whose else {
            return self.error;
        };
        // Without a calibration: between nothing and twice as much.
        let (least, most) = match calibrated {
            None => (0.0, 2.0 * mean_ns),
            Some(costs) => {
                let n = counts.iter().sum::<u64>().max(1) as f64;
                (costs.iter().zip(counts)).fold((0.0, 0.0), |(least, most), (cost, &count)| {
                    let share = count as f64 / n;
                    (
                        least + share * (cost.value - cost.below),
                        most + share * (cost.value + cost.above),
                    )
                })
            }
        };
        Cost {
            value: 0.0,
            below: (mean_ns - least).max(0.0),
            above: (most - mean_ns).max(0.0),
            systematic: true,
        }
    }

    /// The constant cost of spans with pairs, independent of what their pairs show.
    pub(crate) fn constant(paired: &PairedCost, ns_per_tick: f64) -> Self {
        let cost = Cost::from_estimate(&paired.span.dosed_ns);
        Self {
            // The fence applies to what the pairs show of drift.
            correction: Correction {
                fence: fence(paired, ns_per_tick),
                ..Correction::constant(cost.value / ns_per_tick)
            },
            name: "calibrated",
            ..Self::of_calibration(paired, cost, ns_per_tick)
        }
    }

    /// The errors and the reference of a constant that was measured with known doses.
    fn of_calibration(paired: &PairedCost, constant: Cost, ns_per_tick: f64) -> Self {
        let error = Cost {
            value: 0.0,
            ..constant
        };
        let (hull, disputed) = span_cost(&paired.span, true);
        let dosed = Cost::from_estimate(&paired.span.dosed_ns);
        let small = Cost {
            below: error.below + (hull.below - dosed.below).max(0.0),
            above: error.above + (hull.above - dosed.above).max(0.0),
            systematic: hull.systematic,
            value: 0.0,
        };
        Self {
            correction: Correction::constant(0.0),
            error,
            name: "",
            reference: (paired.pair_ns.value > 0.0).then(|| Reference {
                pair_ticks: paired.pair_ns.value / ns_per_tick,
                slope: paired.slope(),
            }),
            whose: Whose::Own,
            small: (paired.span.least_dose_ns.filter(|_| disputed)).map(|least| (least, small)),
        }
    }

    /// The method's name in the report.
    pub(crate) fn how(&self) -> &'static str {
        match self.name {
            "pairs" => "half of both pairs beside each sample",
            "sampler" => match self.whose {
                Whose::Another(Some(_)) => {
                    "half of the sampler's nearest pairs; the interval holds the calibration's cost, \
                     as another thread's readings are not the program's"
                }
                _ => {
                    "half of the sampler's nearest pairs; nothing here says what the program's own \
                     readings cost: the interval is 0 to twice as much"
                }
            },
            "calibrated" => "calibration by known doses of work",
            _ => "fitted shares of both pairs, the constant by known doses of work",
        }
    }

    /// Fitted shares, and the constant that known doses require.
    pub(crate) fn fitted(paired: &PairedCost, ns_per_tick: f64) -> Self {
        let constant = Cost::from_estimate(&paired.constant_ns);
        Self {
            correction: Correction {
                constant: constant.value / ns_per_tick,
                b1: paired.shares[0],
                b4: paired.shares[1],
                fence: fence(paired, ns_per_tick),
            },
            name: "control-variate",
            ..Self::of_calibration(paired, constant, ns_per_tick)
        }
    }

    /// By how much spans cost more than when the constant was measured, ticks: less what the shares
    /// have subtracted, and in all. This is what the means of their first and of their last pairs
    /// show. A reading that became slower shows in both. A change that only one of them shows comes
    /// from the code beside it, so the smaller change counts.
    pub(crate) fn drift(&self, means: [f64; 2]) -> (f64, f64) {
        let Some(Reference { pair_ticks, slope }) = self.reference else {
            return (0.0, 0.0);
        };
        let [first, last] = means.map(|mean| mean - pair_ticks);
        let change = if first * last <= 0.0 {
            0.0
        } else if first.abs() < last.abs() {
            first
        } else {
            last
        };
        let shares = self.correction.b1 + self.correction.b4;
        ((slope - shares) * change, slope * change)
    }
}

/// The range of pairs that are believed, ticks.
fn fence(paired: &PairedCost, ns_per_tick: f64) -> (f64, f64) {
    let [lo, hi] = paired.fence_ticks;
    let pair = paired.pair_ns.value / ns_per_tick;
    (lo.min(pair / SLOW_PAIR), hi.max(pair * SLOW_PAIR))
}

/// The remainder where none should be, as an error in its direction.
fn systematic(left: &undertick_units::Estimate) -> Cost {
    let bound = |b: Option<f64>| b.unwrap_or(left.value);
    Cost {
        value: 0.0,
        below: (-bound(left.interval.lo)).max(0.0),
        above: bound(left.interval.hi).max(0.0),
        systematic: true,
    }
}
