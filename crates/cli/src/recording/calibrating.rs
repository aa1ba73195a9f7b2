//! The cost of recording: loaded from an earlier measurement, measured now, or checked again.

use std::path::Path;

use undertick_calibrate::calibration::kept::Kept;
use undertick_calibrate::calibration::{self, Look};
use undertick_clock::{Choice, facts};
use undertick_format::TraceError;
use undertick_format::manifest::{Calibration, Manifest};
use undertick_record::finish::change_manifest;
use undertick_record::kernel;

use crate::Failure;
use crate::progress::Progress;

/// Checks after the program's end whether the cost of recording has changed; if so, it is measured
/// again. The trace is already complete, so a user who does not wait loses nothing. Without events
/// nothing is subtracted, and nothing is checked.
pub fn calibrate_again(
    trace: &Path,
    manifest: &mut Manifest,
    choice: &Choice,
    facts: &facts::Facts,
) -> Result<(), Failure> {
    let interrupted = manifest.exit.is_some_and(|exit| exit.interrupted);
    let is_used = !interrupted && manifest.events > 0;
    let Some(before) = manifest.calibration.clone().filter(|_| is_used) else {
        return Ok(());
    };
    // What takes the kernel's buffers away takes time of all CPUs.
    kernel::wait_for_removals();
    let known = manifest.warnings.len();
    // The kernel option as given, whatever was available: the stored cost is found by it.
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
    let (calibration, new) = (
        manifest.calibration.clone(),
        manifest.warnings.split_off(known),
    );
    // What `--finish` has changed since stays.
    let changed = change_manifest(trace, |now| {
        now.calibration = calibration;
        now.warnings.extend(new);
    });
    match changed {
        Ok(changed) => *manifest = changed,
        // The trace is complete without it.
        Err(TraceError::Recording(why)) => manifest.warnings.push(format!(
            "what recording cost after the program was not stored: {why}"
        )),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Returns whether the earlier costs hold. If the checks contradict them, everything is measured
/// again, and stored if that contradicts them, too.
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

/// Returns the store of costs, which differ between recordings with kernel events and without.
fn kept(choice: &Choice, kernel: kernel::Wanted) -> Option<Kept> {
    Kept::here(choice.clock, kernel != kernel::Wanted::Off)
}

/// Returns whether the cost of recording is known from an earlier recording, also that of functions if
/// they are wanted.
pub(super) fn is_kept(choice: &Choice, kernel: kernel::Wanted, with_functions: bool) -> bool {
    let calibration = kept(choice, kernel).and_then(|kept| kept.load());
    calibration.is_some_and(|known| !with_functions || known.functions.is_some())
}

/// Returns whether a cost was measured earlier: more than this before the recording.
fn is_of_before(calibration: &Calibration, manifest: &Manifest) -> bool {
    const JUST_NOW_NS: i64 = 60_000_000_000;
    let measured = calibration.measured_unix_ns.unwrap_or(i64::MAX);
    measured < manifest.started_unix_ns.saturating_sub(JUST_NOW_NS)
}

/// As [`calibrate`], for recordings that are not followed by a check: the stored cost is checked
/// now.
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

/// The hidden command that is recorded to measure the cost of recording.
const WORKLOAD: &str = "__calibration-workload";

/// Returns the cost of recording here and, with kernel events, the part of an interrupt's time that
/// they do not show. It is the stored one or, also if `anew`, is measured now. If it cannot be
/// measured, returns the reason.
pub fn calibrate(
    choice: &Choice,
    facts: &facts::Facts,
    kernel: kernel::Wanted,
    anew: bool,
) -> (Option<Calibration>, Option<String>) {
    // A recording that requires kernel events reports itself why it has none.
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

/// Adds the cost of recorded functions, the stored one or one measured now. If it cannot be
/// measured, returns the reason.
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
