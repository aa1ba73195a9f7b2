//! What sampled spans cost.
//!
//! **Method.** As for other spans: those that are recorded around known doses of work in a
//! regular and in a random order; and steps of each kind of work with a sampled span in each, of
//! which one in as many as there are steps is recorded. Where none is, beside the same steps
//! without any, is what counting costs; where one is, beside none, is what recording costs, with
//! the branch that could not be predicted.

use undertick_trace::manifest::SampledCost;
use undertick_units::Estimate;

use super::NotCalibrated;
use super::costs::{
    STEP_KINDS, STEPS, STEPS_EACH, Sections, VARIANTS, difference, hull, scaled, span_cost,
};
use super::samples::Samples;

/// As in `calibration.c`.
const SAMPLED: Sections = Sections {
    regular: 170,
    random: 180,
};
/// Ordered spans around steps of each kind with a sampled span in each.
const SAMPLED_STEPS: u32 = 190;

/// The costs that must be possible, with names for errors.
pub(super) fn costs(cost: &SampledCost) -> [(&'static str, &Estimate); 3] {
    [
        ("a sampled span", &cost.span.dosed_ns),
        ("counting a sampled span inside a span", &cost.counted_ns),
        ("a record of a sampled span inside a span", &cost.record_ns),
    ]
}

/// From spans of the workload; `pair_ns` is what one pair of a dose takes.
pub(super) fn measure(samples: &Samples, pair_ns: &Estimate) -> Result<SampledCost, NotCalibrated> {
    let (mut counted, mut record) = (Vec::new(), Vec::new());
    for kind in 0..STEP_KINDS {
        let without = samples.median(STEPS + kind * VARIANTS)?;
        let recorded = |n: u32| samples.median_holding(SAMPLED_STEPS + kind, n);
        let (none, one) = (recorded(0)?, recorded(1)?);
        counted.push(scaled(&difference(&none, &without), 1.0 / STEPS_EACH));
        // Its begin and its end.
        record.push(scaled(&difference(&one, &none), 0.5));
    }
    Ok(SampledCost {
        span: span_cost(samples, SAMPLED, pair_ns)?,
        counted_ns: hull(&counted),
        record_ns: hull(&record),
    })
}
