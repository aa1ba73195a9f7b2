//! Measures the cost of sampled spans.
//!
//! **Method.** As for other spans, recorded sampled spans enclose known doses of work in regular
//! and in random order. There are also steps of each kind of work with a sampled span in each, of
//! which one in as many as there are steps is recorded. Where none is recorded, the difference from
//! the same steps without sampled spans is the cost of counting. Where one is recorded, the
//! difference from none is the cost of recording, with the mispredicted branch.

use undertick_format::manifest::SampledCost;
use undertick_units::Estimate;

use super::NotCalibrated;
use super::chains::Chains;
use super::costs::{
    STEP_KINDS, STEPS, STEPS_EACH, SURROUNDINGS_CYCLES, Sections, VARIANTS, hull, scaled, span_cost,
};
use super::samples::Samples;

/// As in `calibration.c`.
const SAMPLED: Sections = Sections {
    regular: 170,
    random: 180,
    cold: None,
    is_repeated: false,
    surroundings_cycles: SURROUNDINGS_CYCLES,
};
/// Ordered spans around steps of each kind, with a sampled span in each step.
const SAMPLED_STEPS: u32 = 190;

/// The costs that must be plausible, with names for errors.
pub(super) fn costs(cost: &SampledCost) -> [(&'static str, &Estimate); 3] {
    [
        ("a sampled span", &cost.span.dosed_ns),
        ("counting a sampled span inside a span", &cost.counted_ns),
        ("a record of a sampled span inside a span", &cost.record_ns),
    ]
}

/// Computes the costs from spans of the workload.
pub(super) fn measure(samples: &Samples, chains: &Chains) -> Result<SampledCost, NotCalibrated> {
    let (mut counted, mut record) = (Vec::new(), Vec::new());
    for kind in 0..STEP_KINDS {
        let without = (STEPS + kind * VARIANTS, 0);
        let [none, one] = [0, 1].map(|recorded| (SAMPLED_STEPS + kind, recorded));
        let more = samples.median_added(none, without)?;
        counted.push(scaled(&more, 1.0 / STEPS_EACH));
        // The begin and the end of the span.
        record.push(scaled(&samples.median_added(one, none)?, 0.5));
    }
    Ok(SampledCost {
        span: span_cost(samples, SAMPLED, chains)?,
        counted_ns: hull(&counted),
        record_ns: hull(&record),
    })
}
