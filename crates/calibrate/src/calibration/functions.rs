//! Measures the cost of functions that are recorded by hooks of the compiler.
//!
//! **Method.** As for points: functions around known doses of work in regular and in random order,
//! and steps of each kind of work that are functions, recorded or not, also at full speed. The least disturbed of some
//! runs counts.

use std::ffi::OsString;

use undertick_clock::{Choice, facts::Facts};
use undertick_format::manifest::{Calibration, Change, FunctionCost};
use undertick_record::functions::{FIRST_FUNCTION, Functions};
use undertick_record::kernel::Wanted;

use super::chains::Chains;
use super::costs::{
    DOSES, FLOOD_STEPS, STEP_KINDS, STEPS_EACH, SURROUNDINGS_CYCLES, Sections, hull, scaled,
    span_cost,
};
use super::samples::Samples;
use super::{NotCalibrated, hold, recorded, runs};

/// The functions of `calibration_functions.h`, in the order of their first calls.
const FUNCTIONS: Sections = Sections {
    regular: FIRST_FUNCTION as u32,
    random: FIRST_FUNCTION as u32 + 1 + DOSES.len() as u32,
    cold: None,
    is_repeated: false,
    surroundings_cycles: SURROUNDINGS_CYCLES,
};
/// Ordered spans around steps that are functions, not recorded and recorded, for each kind of work.
const STEPS: u32 = 150;
/// The same around many steps of one kind, with the spans one after the other.
const FLOODS: u32 = 164;
/// Pattern of the recorded functions' names.
const NAMED: &str = "^undertick_calibrated_";
/// The argument that selects the workload of functions.
const WORD: &str = "--functions";

/// Whether a busy machine has blurred the measurement; it must then not be kept for other
/// recordings.
#[must_use]
pub fn is_blurred(cost: &FunctionCost) -> bool {
    super::half(&cost.span.empty_ns) > super::look::BUSY_NS
}

/// Measures the cost of a recorded function. `workload_command` is that of [`super::measure`], and
/// `beside` is its result; the cost is scaled to the read cost found there.
///
/// # Errors
/// The workload could not be recorded, too little of it was undisturbed, or the result is
/// impossible.
pub fn measure(
    workload_command: &[OsString],
    choice: &Choice,
    facts: &Facts,
    beside: &Calibration,
) -> Result<FunctionCost, NotCalibrated> {
    let command = [workload_command, &[WORD.into()]].concat();
    let run = |_| {
        let functions = Some(Functions::unseen(NAMED)?);
        let (_dir, trace) = match recorded(&command, choice, facts, Wanted::Off, functions) {
            Ok(recorded) => recorded,
            Err(error) => return Ok(Err(error)),
        };
        if trace.manifest.names.is_empty() {
            return Err(NotCalibrated(
                "none of this program's own functions was recorded: it does not export them, or the loader ignores LD_PRELOAD".to_owned(),
            ));
        }
        Ok(Samples::read(&trace).and_then(|samples| {
            let mut cost = of_samples(&samples)?;
            let read_ns = trace.manifest.read_ns();
            if let Some(change) = Change::between(read_ns.as_ref(), beside.read_ns.as_ref()) {
                for (_, cost) in cost.costs_mut() {
                    change.scale(cost);
                }
            }
            Ok(cost)
        }))
    };
    let (mut found, others) = runs(run, width)?;
    for other in &others {
        let mut other = other.clone();
        for ((_, cost), (_, other)) in found.costs_mut().into_iter().zip(other.costs_mut()) {
            hold(cost, other);
        }
    }
    for (what, cost) in [
        ("a recorded function", &found.span.dosed_ns),
        ("a record of a function inside a span", &found.inner_ns),
    ] {
        super::believe(
            what,
            cost.value,
            beside.plain.empty_ns.value,
            super::MOST_PAIRS,
        )?;
    }
    Ok(found)
}

/// Total uncertainty over all figures, ns.
fn width(cost: &FunctionCost) -> f64 {
    let figures = [&cost.span.empty_ns, &cost.span.dosed_ns, &cost.inner_ns];
    figures.into_iter().map(super::half).sum()
}

fn of_samples(samples: &Samples) -> Result<FunctionCost, NotCalibrated> {
    let mut kinds = (0..STEP_KINDS)
        .map(|kind| {
            let steps = |recorded: u32| (STEPS + 2 * kind + recorded, 0);
            let more = samples.median_added(steps(1), steps(0))?;
            Ok(scaled(&more, 0.5 / STEPS_EACH))
        })
        .collect::<Result<Vec<_>, NotCalibrated>>()?;
    let flood = samples.mean_added((FLOODS + 1, 0), (FLOODS, 0))?;
    kinds.push(scaled(&flood, 0.5 / FLOOD_STEPS));
    Ok(FunctionCost {
        span: span_cost(samples, FUNCTIONS, &Chains::measure(samples)?)?,
        inner_ns: hull(&kinds),
    })
}
