//! Estimates the cost of a span from the pairs that it carries.

use undertick_estimate::compensation::{
    Correction, Method, Paired, Tested, control_variate, zero_test,
};
use undertick_trace::manifest::{PairedCost, SpanCost};
use undertick_units::Estimate;

use super::NotCalibrated;
use super::costs::{DOSES, Sections, in_any_surroundings, less_work, together};
use super::samples::{LEVEL, Samples};

/// Estimates the cost from the spans whose events are `of` and the numbers after them; a dose is in
/// pairs of instructions, each of which takes `pair`.
pub(super) fn measure(
    all: &Samples,
    of: Sections,
    pair: &Estimate,
    span: &SpanCost,
) -> Result<PairedCost, NotCalibrated> {
    let samples = by_dose(all, of.regular);
    let in_random_order = by_dose(all, of.random);
    let mean = |samples: &[Paired], correction: &Correction| {
        all.mean_of(samples.iter().map(|s| correction.apply(s)))
    };
    let few = || NotCalibrated("too few undisturbed sections with pairs".to_owned());
    let zero = zero_test(samples[0], None, LEVEL, all.granularity_ticks).ok_or_else(few)?;
    let k = |method: Method| {
        let found: Option<&Tested> = zero.methods.iter().find(|t| t.method == method);
        found.and_then(|t| t.k.clone())
    };
    let left_by = |correction: &Correction| {
        let each = |samples: &[&[Paired]]| -> Option<Vec<Estimate>> {
            (DOSES.iter().zip(&samples[1..]))
                .map(|(&(_, pairs), of_dose)| {
                    Some(less_work(&mean(of_dose, correction)?, pair, pairs))
                })
                .collect()
        };
        let regular = each(&samples).ok_or_else(few)?;
        let random = each(&in_random_order).ok_or_else(few)?;
        let cost = together(&regular, &random);
        Ok::<_, NotCalibrated>(in_any_surroundings(cost, pair))
    };
    let fitted = control_variate(samples[0]);
    // As among the samples with which the doses were measured.
    let believed = |s: &&Paired| fitted.held(s.t1) == s.t1 && fitted.held(s.t4) == s.t4;
    let pairs: Vec<Paired> = (samples[1..].iter().copied().flatten())
        .filter(believed)
        .map(|s| Paired {
            tm: (s.t1 + s.t4) / 2.0,
            ..*s
        })
        .collect();
    let pair_ns = mean(&pairs, &Correction::constant(0.0)).ok_or_else(few)?;
    Ok(PairedCost {
        span: span.clone(),
        pairs_bias_ns: left_by(&Correction::pairs())?,
        shares: [fitted.b1, fitted.b4],
        fence_ticks: [fitted.fence.0, fitted.fence.1].map(|t| t.clamp(-1e15, 1e15)),
        constant_ns: left_by(&Correction {
            constant: 0.0,
            ..fitted
        })?,
        pair_ns,
        pairs_k: k(Method::Pairs),
        control_variate_k: k(Method::ControlVariate),
        chosen: zero.chosen.name().into(),
        why: zero.why,
    })
}

/// Spans around nothing and around each dose.
fn by_dose(samples: &Samples, first: u32) -> Vec<&[Paired]> {
    (first..=first + DOSES.len() as u32)
        .map(|event| samples.get(event))
        .collect()
}
