//! What recording costs: as it was found before, measured now, or looked at again.

use std::path::Path;

use undertick_clock::{Choice, facts};
use undertick_lab::calibration::kept::Kept;
use undertick_lab::calibration::{self, Look};
use undertick_trace::finalize::rewrite_manifest;
use undertick_trace::kernel;
use undertick_trace::manifest::{Calibration, Manifest};

use crate::Failure;
use crate::progress::Progress;

/// Whether recording costs still what it did, now that the program has ended: else it is
/// measured anew. The trace is complete without it, so whoever does not wait loses nothing.
///
/// # Errors
/// The manifest could not be written.
pub fn calibrate_again(
    trace: &Path,
    manifest: &mut Manifest,
    choice: &Choice,
    facts: &facts::Facts,
) -> Result<(), Failure> {
    let interrupted = manifest.exit.is_some_and(|exit| exit.interrupted);
    let Some(before) = manifest.calibration.clone().filter(|_| !interrupted) else {
        return Ok(());
    };
    // As it was asked for, whatever came of it: the cost is kept under that.
    let kernel = match manifest.kernel {
        Some(_) => kernel::Wanted::Auto,
        None => kernel::Wanted::Off,
    };
    match look_again(&before, choice, facts, kernel) {
        Look::Holds(both) => manifest.calibration = Some(*both),
        Look::Unknown => manifest.warnings.push(
            "whether recording still cost after the program what it did before could not be told: the machine was busy"
                .to_owned(),
        ),
        Look::Changed(mut after) if is_of_before(&before, manifest) => {
            manifest.warnings.push(
                "the cost of recording that was measured before holds no more; it was measured after the program alone"
                    .to_owned(),
            );
            if before.functions.is_some() {
                let warning = calibrate_functions(&mut after, choice, facts, kernel);
                manifest.warnings.extend(warning);
            }
            manifest.calibration = Some(*after);
        }
        Look::Changed(after) => {
            manifest.calibration = Some(calibration::before_and_after(&before, &after));
        }
    }
    Ok(rewrite_manifest(trace, manifest)?)
}

/// Whether the costs of before hold. Where looks contradict all is measured anew, and kept if that
/// contradicts, too.
fn look_again(
    before: &Calibration,
    choice: &Choice,
    facts: &facts::Facts,
    kernel: kernel::Wanted,
) -> Look {
    let command = crate::own_command(WORKLOAD);
    let look = calibration::look_again(before, &command, choice, facts);
    let Look::Changed(_) = look else {
        return look;
    };
    let Ok(after) = calibration::measure(&command, choice, facts, kernel) else {
        return Look::Unknown;
    };
    let said = calibration::compared(before, &after);
    if let (Look::Changed(after), Some(kept)) = (&said, kept(choice, kernel)) {
        kept.keep(after);
    }
    said
}

/// Where the costs are kept of recordings with the kernel's events or without.
fn kept(choice: &Choice, kernel: kernel::Wanted) -> Option<Kept> {
    Kept::here(choice.clock, kernel != kernel::Wanted::Off)
}

/// Whether a cost was kept from earlier: more than this before the recording.
fn is_of_before(calibration: &Calibration, manifest: &Manifest) -> bool {
    const JUST_NOW_NS: i64 = 60_000_000_000;
    let measured = calibration.measured_unix_ns.unwrap_or(i64::MAX);
    measured < manifest.started_unix_ns.saturating_sub(JUST_NOW_NS)
}

/// As [`calibrate`], for recordings after which nobody looks again: whether what was kept
/// holds is looked at now.
pub fn calibrate_now(
    choice: &Choice,
    facts: &facts::Facts,
    kernel: kernel::Wanted,
) -> (Option<Calibration>, Option<String>) {
    let kept = match calibrate(choice, facts, kernel, false) {
        (Some(kept), _) => kept,
        unknown => return unknown,
    };
    match look_again(&kept, choice, facts, kernel) {
        Look::Holds(now) | Look::Changed(now) => (Some(*now), None),
        Look::Unknown => (Some(kept), None),
    }
}

/// The hidden command that is recorded to find what recording costs.
const WORKLOAD: &str = "__calibration-workload";

/// What recording costs here, and with the kernel's events what an interrupt takes beside what
/// they tell, as it was found before or, also if `anew`, is measured now; if it cannot be, why.
pub fn calibrate(
    choice: &Choice,
    facts: &facts::Facts,
    kernel: kernel::Wanted,
    anew: bool,
) -> (Option<Calibration>, Option<String>) {
    // A recording that insists on the kernel's events says itself why it has none.
    let kernel = match kernel {
        kernel::Wanted::Off => kernel::Wanted::Off,
        kernel::Wanted::Auto | kernel::Wanted::On => kernel::Wanted::Auto,
    };
    let kept = kept(choice, kernel);
    if let Some(calibration) = kept.as_ref().filter(|_| !anew).and_then(Kept::load) {
        return (Some(calibration), None);
    }
    let mut progress = Progress::new();
    progress.count("measuring what recording costs here".to_owned());
    let measured = calibration::measure(&crate::own_command(WORKLOAD), choice, facts, kernel);
    progress.done();
    match measured {
        Ok(calibration) => {
            kept.inspect(|kept| kept.keep(&calibration));
            (Some(calibration), None)
        }
        Err(error) => (None, Some(format!("{error}; it will not be subtracted"))),
    }
}

/// Adds what recorded functions cost, as it was found before with the rest or is measured now;
/// if it cannot be, why.
pub(super) fn calibrate_functions(
    calibration: &mut Calibration,
    choice: &Choice,
    facts: &facts::Facts,
    kernel: kernel::Wanted,
) -> Option<String> {
    if calibration.functions.is_some() {
        return None;
    }
    let command = crate::own_command(WORKLOAD);
    match calibration::functions::measure(&command, choice, facts, calibration) {
        Ok(cost) => {
            let is_sure = !calibration::functions::is_blurred(&cost);
            calibration.functions = Some(cost);
            kept(choice, kernel)
                .filter(|_| is_sure)
                .inspect(|kept| kept.keep(calibration));
            None
        }
        Err(error) => Some(format!(
            "{error}; for each recorded function what a span costs will be subtracted, without the calls of the hooks"
        )),
    }
}
