//! Measures the cost of sampled spans.
//!
//! **Method.** As for other spans, recorded sampled spans enclose known doses of work in regular
//! and in random order. There are also steps of each kind of work with a sampled span in each, of
//! which one in as many as there are steps is recorded. Where none is recorded, the difference from
//! the same steps without sampled spans is the cost of counting. Where one is recorded, the
//! difference from none is the cost of recording, with the mispredicted branch.

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

/// Computes the costs from spans of the workload; `pair_ns` is the time of one pair of a dose.
pub(super) fn measure(samples: &Samples, pair_ns: &Estimate) -> Result<SampledCost, NotCalibrated> {
    let (mut counted, mut record) = (Vec::new(), Vec::new());
    for kind in 0..STEP_KINDS {
        let without = samples.median(STEPS + kind * VARIANTS)?;
        let recorded = |n: u32| samples.median_holding(SAMPLED_STEPS + kind, n);
        let (none, one) = (recorded(0)?, recorded(1)?);
        counted.push(scaled(&difference(&none, &without), 1.0 / STEPS_EACH));
        // The begin and the end of the span.
        record.push(scaled(&difference(&one, &none), 0.5));
    }
    Ok(SampledCost {
        span: span_cost(samples, SAMPLED, pair_ns)?,
        counted_ns: hull(&counted),
        record_ns: hull(&record),
    })
}
