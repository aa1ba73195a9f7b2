//! Computes figures from readings.

use undertick_estimate::compensation::{
    Correction, Method as Published, Paired, Tested, ZeroTest, improvement, zero_test,
};
use undertick_estimate::spread_of_mean;
use undertick_units::{Estimate, Interval};

use super::measure::{CHAIN_PAIRS, DOSES, Measured, Sample};
use super::sampler::Pair;
use super::{AtDose, Failure, Method, Outcome, Request};

/// A span this many times longer than the median of its kind was disturbed, without evidence of the
/// cause.
const RATIO: f64 = 4.0;

/// One sample with its own and the sampler's pairs, ticks.
#[derive(Clone, Copy, Debug)]
struct Point {
    block: usize,
    dose: usize,
    own: Paired,
    sampled: Option<Paired>,
    /// Distance to the farther of the two sampled pairs, ticks.
    distance: f64,
}

pub(super) fn outcome(
    request: &Request,
    measured: &Measured,
    step: f64,
) -> Result<Outcome, Failure> {
    let ns = measured.ns_per_tick;
    let points = points(measured);
    let descheduled = (measured.blocks.iter().flat_map(|b| &b.samples))
        .filter(|s| s.descheduled && s.dose == 0)
        .count() as u64;
    let (kept, uncut) = cut(&points);
    let zeros =
        |set: &[Point]| -> Vec<Point> { set.iter().filter(|p| p.dose == 0).copied().collect() };
    let (zero, zero_uncut) = (zeros(&kept), zeros(&uncut));
    let own: Vec<Paired> = zero.iter().map(|p| p.own).collect();
    // With fewer values that differ from 0, neither mean nor spread is meaningful.
    let moved = own.iter().filter(|s| s.tm != 0.0).count();
    if moved * 1000 < own.len() {
        return Err(Failure::TooCoarse { step_ns: step * ns });
    }
    let test =
        zero_test(&own, None, request.level, step).ok_or(Failure::TooFew { kept: own.len() })?;
    // The sampler's pairs exist in every second block only. Its figures come from those blocks, and
    // so do those of its rivals where they are compared.
    let with_sampler: Vec<Point> = zero
        .iter()
        .filter(|p| p.sampled.is_some())
        .copied()
        .collect();
    let own_beside: Vec<Paired> = with_sampler.iter().map(|p| p.own).collect();
    let sampled: Vec<Paired> = with_sampler.iter().filter_map(|p| p.sampled).collect();
    let beside = zero_test(&own_beside, Some(&sampled), request.level, step);

    let pair_ns = price_of_a_pair(measured, ns, request.level)?;
    let context = Context {
        request,
        ns,
        kept: &kept,
        blocks: measured.blocks.len(),
        price: &pair_ns,
    };
    let dosed = context.dosed_cost();
    let empty = context.bias_at(0, &Correction::constant(0.0), false);
    let mut methods: Vec<Method> = (test.methods.iter())
        .map(|tested| context.method(tested, &zero_uncut))
        .collect();
    if let Some(beside) = &beside
        && let Some(sampler) = (beside.methods.iter()).find(|t| t.method == Published::Sampler)
    {
        methods.insert(2, context.method(sampler, &zero_uncut));
    }
    let known_dose = Correction::constant(dosed.value / ns);
    methods.push(Method {
        name: "known-dose",
        doses: context.doses(&known_dose, false),
        k: methods[0].k.clone(),
        k_uncut: methods[0].k_uncut.clone(),
        correlations: methods[0].correlations,
        corrected_ns: own.iter().map(|s| known_dose.apply(s) * ns).collect(),
    });
    let (chosen, why) = choose(&test, beside.as_ref(), &methods);
    let mut distances: Vec<f64> = with_sampler.iter().map(|p| p.distance * ns).collect();
    distances.sort_unstable_by(f64::total_cmp);
    Ok(Outcome {
        chosen,
        why,
        uncorrected_ns: own.iter().map(|s| s.tm * ns).collect(),
        cost_empty: Estimate {
            method: "mean of nothing".into(),
            ..empty
        },
        cost_dosed: dosed,
        sampler_perturbation: (!sampled.is_empty()).then(|| context.perturbation(&zero)),
        sampler_slowdown: (!sampled.is_empty()).then(|| slowdown(measured, request.level)),
        sampler_distance_ns: distances.get(distances.len() / 2).copied(),
        granularity_ns: step * ns,
        ns_per_tick: ns,
        n: zero.len() as u64,
        descheduled,
        unexplained: (zero_uncut.len() - zero.len()) as u64,
        has_mark: measured.has_mark,
        methods,
    })
}

/// Differences of the samples for which the thread was on its CPU throughout.
fn points(measured: &Measured) -> Vec<Point> {
    let mut points = Vec::new();
    for (number, block) in measured.blocks.iter().enumerate() {
        for sample in block.samples.iter().filter(|s| !s.descheduled) {
            points.push(point(number, sample, block.with_sampler, &measured.pairs));
        }
    }
    points
}

fn point(block: usize, sample: &Sample, with_sampler: bool, pairs: &[Pair]) -> Point {
    let r = sample.readings;
    let difference = |a: u64, b: u64| a.wrapping_sub(b).cast_signed() as f64;
    let own = Paired {
        t1: difference(r[1], r[0]),
        tm: difference(r[2], r[1]),
        t4: difference(r[3], r[2]),
    };
    let nearest = with_sampler.then(|| (nearest(pairs, r[1]), nearest(pairs, r[2])));
    let (sampled, distance) = match nearest {
        Some((Some(first), Some(last))) => (
            Some(Paired {
                t1: first.ticks as f64,
                t4: last.ticks as f64,
                ..own
            }),
            difference(first.at, r[1])
                .abs()
                .max(difference(last.at, r[2]).abs()),
        ),
        _ => (None, 0.0),
    };
    Point {
        block,
        dose: usize::from(sample.dose),
        own,
        sampled,
        distance,
    }
}

fn nearest(pairs: &[Pair], at: u64) -> Option<Pair> {
    let after = pairs.partition_point(|p| p.at < at);
    let before = after.checked_sub(1).map(|i| pairs[i]);
    match (before, pairs.get(after).copied()) {
        (Some(b), Some(a)) => Some(if at - b.at < a.at - at { b } else { a }),
        (one, other) => one.or(other),
    }
}

/// Samples without those of which any part is four times the usual, and all samples.
fn cut(points: &[Point]) -> (Vec<Point>, Vec<Point>) {
    let limits: Vec<Paired> = (0..DOSES.len())
        .map(|dose| {
            let median = |part: fn(&Point) -> f64| {
                let mut all: Vec<f64> =
                    points.iter().filter(|p| p.dose == dose).map(part).collect();
                all.sort_unstable_by(f64::total_cmp);
                all.get(all.len() / 2).map_or(f64::INFINITY, |m| m * RATIO)
            };
            Paired {
                t1: median(|p| p.own.t1),
                tm: median(|p| p.own.tm),
                t4: median(|p| p.own.t4),
            }
        })
        .collect();
    let kept = (points.iter())
        .filter(|p| {
            let limit = limits[p.dose];
            p.own.t1 <= limit.t1 && p.own.tm <= limit.tm && p.own.t4 <= limit.t4
        })
        .copied()
        .collect();
    (kept, points.to_vec())
}

/// Duration of one pair of instructions of a dose, ns, from the chain's median in each block. At 7
/// us a chain is sometimes disturbed by what the ratio rule removes from the intervals and not from
/// the chain (0.7 % of its mean here). A step of the clock is 0.1 % of the median.
fn price_of_a_pair(measured: &Measured, ns: f64, level: f64) -> Result<Estimate, Failure> {
    let medians: Vec<f64> = (measured.blocks.iter())
        .filter_map(|block| {
            let mut chains = block.chains.clone();
            chains.sort_unstable();
            chains.get(chains.len() / 2).copied()
        })
        .map(|ticks| ticks as f64 * ns / f64::from(CHAIN_PAIRS))
        .collect();
    mean_of_blocks(&medians, level, "dependent chain, block medians")
        .ok_or(Failure::TooFew { kept: 0 })
}

/// Mean over blocks, ns, with an interval from their scatter over time.
fn mean_of_blocks(means: &[f64], level: f64, method: &str) -> Option<Estimate> {
    let spread = spread_of_mean(means)?;
    let value = means.iter().sum::<f64>() / means.len() as f64;
    let half = spread.half_width(level);
    Some(Estimate {
        value,
        interval: Interval::new(value - half, value + half),
        level,
        unit: "ns".into(),
        method: method.into(),
        n: means.len() as u64,
        n_effective: spread.batches as f64,
        notes: Vec::new(),
    })
}

struct Context<'a> {
    request: &'a Request,
    ns: f64,
    kept: &'a [Point],
    blocks: usize,
    price: &'a Estimate,
}

impl Context<'_> {
    fn dose_ns(&self, dose: usize) -> f64 {
        f64::from(DOSES[dose]) * self.price.value
    }

    /// Mean of a dose's samples after correction, less the dose; the interval comes from block
    /// means, and the uncertainty of the price is added in squares.
    fn bias_at(&self, dose: usize, correction: &Correction, sampler: bool) -> Estimate {
        let mut sums = vec![(0.0, 0.0); self.blocks];
        let mut n = 0;
        for point in self.kept.iter().filter(|p| p.dose == dose) {
            let paired = if sampler {
                point.sampled
            } else {
                Some(point.own)
            };
            if let Some(paired) = paired {
                sums[point.block].0 += correction.apply(&paired) * self.ns;
                sums[point.block].1 += 1.0;
                n += 1;
            }
        }
        let means: Vec<f64> = (sums.iter())
            .filter(|(_, n)| *n > 0.0)
            .map(|(sum, n)| sum / n)
            .collect();
        let dose_ns = self.dose_ns(dose);
        let method = "corrected mean less the dose, block means";
        let mut estimate =
            mean_of_blocks(&means, self.request.level, method).unwrap_or_else(|| Estimate {
                value: f64::NAN,
                interval: Interval { lo: None, hi: None },
                level: self.request.level,
                unit: "ns".into(),
                method: method.into(),
                n: 0,
                n_effective: 0.0,
                notes: vec!["too few blocks".into()],
            });
        let own = estimate.interval.half_width();
        let price = self.price.interval.half_width().unwrap_or(0.0) * f64::from(DOSES[dose]);
        estimate.value -= dose_ns;
        estimate.n = n;
        if let Some(own) = own {
            let half = own.hypot(price);
            estimate.interval = Interval::new(estimate.value - half, estimate.value + half);
        }
        estimate
    }

    fn doses(&self, correction: &Correction, sampler: bool) -> Vec<AtDose> {
        (0..DOSES.len())
            .map(|dose| AtDose {
                dose_ns: self.dose_ns(dose),
                bias: self.bias_at(dose, correction, sampler),
            })
            .collect()
    }

    /// The mean of what the doses other than nothing show beyond their work; the interval contains
    /// each dose's figure.
    fn dosed_cost(&self) -> Estimate {
        let at: Vec<Estimate> = (1..DOSES.len())
            .map(|dose| self.bias_at(dose, &Correction::constant(0.0), false))
            .collect();
        let value = at.iter().map(|e| e.value).sum::<f64>() / at.len() as f64;
        let squares: f64 = (at.iter())
            .filter_map(|e| e.interval.half_width())
            .map(|h| h * h)
            .sum();
        let half = squares.sqrt() / at.len() as f64;
        let lo = at.iter().map(|e| e.value).fold(value - half, f64::min);
        let hi = at.iter().map(|e| e.value).fold(value + half, f64::max);
        Estimate {
            value,
            interval: Interval::new(lo, hi),
            method: "beyond known doses of work".into(),
            n: at.iter().map(|e| e.n).sum(),
            notes: Vec::new(),
            ..at[0].clone()
        }
    }

    fn method(&self, tested: &Tested, zero_uncut: &[Point]) -> Method {
        let sampler = tested.method == Published::Sampler;
        let uncut: Vec<Paired> = (zero_uncut.iter())
            .filter_map(|p| if sampler { p.sampled } else { Some(p.own) })
            .collect();
        let before: Vec<f64> = uncut.iter().map(|s| s.tm).collect();
        let after: Vec<f64> = uncut.iter().map(|s| tested.correction.apply(s)).collect();
        Method {
            name: tested.method.name(),
            doses: self.doses(&tested.correction, sampler),
            k: tested.k.clone(),
            k_uncut: improvement(&before, &after, self.request.level),
            correlations: tested.correlations,
            corrected_ns: tested.corrected.iter().map(|t| t * self.ns).collect(),
        }
    }

    /// The duration of nothing with the sampler running, less that without, in pairs of blocks.
    fn perturbation(&self, zero: &[Point]) -> Estimate {
        let mut sums = vec![(0.0, 0.0); self.blocks];
        for p in zero {
            sums[p.block].0 += p.own.tm * self.ns;
            sums[p.block].1 += 1.0;
        }
        let mean = |block: usize| sums[block].0 / f64::max(sums[block].1, 1.0);
        let differences: Vec<f64> = (0..self.blocks / 2)
            .map(|pair| {
                let (a, b) = (mean(2 * pair), mean(2 * pair + 1));
                if pair % 2 == 0 { a - b } else { b - a }
            })
            .collect();
        mean_of_blocks(
            &differences,
            self.request.level,
            "blocks with the sampler less blocks without, in pairs",
        )
        .unwrap_or_else(|| self.bias_at(0, &Correction::constant(0.0), false))
    }
}

/// Duration of a turn with the sampler over that without, in pairs of blocks.
fn slowdown(measured: &Measured, level: f64) -> Estimate {
    let ratios: Vec<f64> = (measured.blocks.chunks_exact(2))
        .map(|pair| {
            let [with, without] = match pair {
                [a, b] if a.with_sampler => [a, b],
                [a, b] => [b, a],
                _ => unreachable!("chunks of two"),
            };
            (with.ticks as f64 / without.ticks.max(1) as f64).ln()
        })
        .collect();
    let mut ln = mean_of_blocks(&ratios, level, "turns with the sampler over turns without")
        .expect("there are blocks");
    ln.value = ln.value.exp();
    ln.unit = "1".into();
    ln.interval = Interval {
        lo: ln.interval.lo.map(f64::exp),
        hi: ln.interval.hi.map(f64::exp),
    };
    ln
}

/// Chooses a method. The doses decide first: a method with an error beside work is not used for its
/// spread. Then the spread decides.
fn choose(
    test: &ZeroTest,
    beside: Option<&ZeroTest>,
    methods: &[Method],
) -> (&'static str, String) {
    let find = |name: &str| methods.iter().find(|m| m.name == name);
    if let Some(at) = find("long-term").and_then(contradicted) {
        return (
            "known-dose",
            format!(
                "what an interval around nothing costs is wrong beside work (by {:.1} ns beside {:.0} ns \
                 of it): what intervals around known doses cost is subtracted",
                at.bias.value, at.dose_ns
            ),
        );
    }
    let k = |name: &str| {
        find(name)
            .and_then(|m| m.k.as_ref())
            .map_or(1.0, |k| k.value)
    };
    // The sampler was on in half of the blocks; it must beat the best of the other methods there
    // and everywhere.
    if let Some(beside) = beside.filter(|b| b.chosen == Published::Sampler)
        && k("sampler") > k(test.chosen.name())
    {
        return (Published::Sampler.name(), beside.why.clone());
    }
    (test.chosen.name(), test.why.clone())
}

/// The dose with the largest error of a method, if this exceeds its interval by more than half a
/// nanosecond.
fn contradicted(method: &Method) -> Option<&AtDose> {
    let beyond = |at: &&AtDose| {
        let Interval { lo, hi } = at.bias.interval;
        lo.is_some_and(|lo| lo > 0.5) || hi.is_some_and(|hi| hi < -0.5)
    };
    (method.doses[1..].iter())
        .filter(beyond)
        .max_by(|a, b| a.bias.value.abs().total_cmp(&b.bias.value.abs()))
}
