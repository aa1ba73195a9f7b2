//! Estimates the cost of a span from the pairs that it carries.

use undertick_estimate::compensation::{
    Correction, Method, Paired, Tested, control_variate, zero_test,
};
use undertick_format::manifest::PairedCost;

use super::NotCalibrated;
use super::chains::Chains;
use super::costs::{DOSES, Sections, in_any_surroundings, span_cost, together};
use super::fastest::Fastest;
use super::samples::{LEVEL, Samples};

/// Estimates the cost from the spans whose events are `of` and the numbers after them; `chains`
/// price the doses.
pub(super) fn measure(
    all: &Samples,
    of: Sections,
    chains: &Chains,
    fastest: &Fastest,
) -> Result<PairedCost, NotCalibrated> {
    let fast = fastest.only(all, &of.events());
    let samples = by_dose(all, of);
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
        let each = |first: u32| {
            (DOSES.iter())
                .map(|&(offset, pairs)| {
                    chains.mean_beyond(&fast, first + offset, pairs, |s| correction.apply(s))
                })
                .collect::<Result<Vec<_>, NotCalibrated>>()
        };
        let (regular, mut random) = (
            each(of.regular + of.again())?,
            each(of.random + of.again())?,
        );
        // As in `span_cost`: the shortest dose where code has to be fetched.
        for first in [of.regular, of.random] {
            let (offset, pairs) = DOSES[0];
            random.push(chains.mean_beyond(&fast, first + offset, pairs, |s| correction.apply(s))?);
        }
        let cost = together(&regular, &random);
        Ok::<_, NotCalibrated>(in_any_surroundings(
            cost,
            &chains.pair_ns,
            of.surroundings_cycles,
        ))
    };
    let fitted = control_variate(samples[0]);
    // As among the samples with which the doses were measured.
    let believed = |s: &&Paired| fitted.held(s.t1) == s.t1 && fitted.held(s.t4) == s.t4;
    let doses = &by_dose(&fast, of)[1..];
    let pairs: Vec<Paired> = (doses.iter().copied().flatten())
        .filter(believed)
        .map(|s| Paired {
            tm: (s.t1 + s.t4) / 2.0,
            ..*s
        })
        .collect();
    let pair_ns = mean(&pairs, &Correction::constant(0.0)).ok_or_else(few)?;
    Ok(PairedCost {
        span: span_cost(&fast, of, chains)?,
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
fn by_dose(samples: &Samples, of: Sections) -> Vec<&[Paired]> {
    let first = of.regular + of.again();
    (first..=first + DOSES.len() as u32)
        .map(|event| samples.get(event))
        .collect()
}
