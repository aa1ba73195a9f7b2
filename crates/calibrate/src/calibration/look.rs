//! Checks whether an earlier calibration still holds.

use std::ffi::OsString;

use undertick_clock::Choice;
use undertick_clock::facts::Facts;
use undertick_format::manifest::Calibration;
use undertick_record::kernel::Wanted;
use undertick_units::{Estimate, Interval};

use super::{NotCalibrated, as_beside, both_figures, half, hold_both, measure_once};

/// Passes of a check whether earlier costs still hold: about a tenth of a full measurement.
const PASSES_OF_A_LOOK: u32 = 640;

/// The result of checking earlier costs.
#[derive(Clone, Debug, PartialEq)]
pub enum Look {
    /// They hold; the intervals are widened to contain what the check found.
    Holds(Box<Calibration>),
    /// They do not hold; these are the newly measured costs.
    Changed(Box<Calibration>),
    /// Undecided: the machine is too busy.
    Unknown,
}

/// Checks whether recording still costs what it did. The check is a run a tenth as long, without
/// kernel events, and a second run if the first contradicts: a neighbour can make readings a
/// nanosecond more expensive for some milliseconds (2 of 40 checks here).
#[must_use]
pub fn look_again(
    before: &Calibration,
    workload_command: &[OsString],
    choice: &Choice,
    facts: &Facts,
) -> Look {
    let mut command = workload_command.to_vec();
    command.push(PASSES_OF_A_LOOK.to_string().into());
    let look = || measure_once(&command, choice, facts, Wanted::Off);
    of_looks(before, look)
}

/// As [`look_again`], from the results of the runs.
pub(super) fn of_looks(
    before: &Calibration,
    look: impl Fn() -> Result<Calibration, NotCalibrated>,
) -> Look {
    let Ok(first) = look() else {
        return Look::Unknown;
    };
    let said = compared(before, &first);
    let Look::Changed(first) = said else {
        return said;
    };
    let Ok(second) = look() else {
        return Look::Unknown;
    };
    match compared(before, &second) {
        Look::Holds(mut both) => {
            // What the first run found for a moment may have been so during the recording.
            let (first, _) = as_beside(&both, &first);
            hold_values(&mut both, first);
            Look::Holds(both)
        }
        said => said,
    }
}

/// If the means of spans around nothing have a half-width above this, ns, the machine is too busy.
pub(super) const BUSY_NS: f64 = 1.5;
/// A cost has changed if a check differs by this many half-widths. By chance one of seventeen
/// figures does so in one of some hundred checks.
const FAR: f64 = 2.0;
/// Share by which costs change within seconds on a machine that is loaded for a while (18.5 to 19.9
/// ns here). Such a change only widens intervals.
const MOVES: f64 = 0.1;
/// A figure that a check knows this many times worse than the earlier calibration is ignored.
const VAGUE: f64 = 2.0;

/// A cost to be kept extends below 0 by no more than this share of a span around nothing.
const SHARE_BELOW_0: f64 = 0.25;

/// Whether a busy machine has blurred the whole calibration.
pub(super) fn is_blurred(calibration: &Calibration) -> bool {
    let empty = [&calibration.plain.empty_ns, &calibration.ordered.empty_ns];
    empty.iter().any(|mean| half(mean) > BUSY_NS)
}

/// Whether the interval of a span's cost extends well below 0, which no cost does: another process
/// took part of the time of a dose. The interval holds, but later recordings should not have it.
pub(super) fn is_too_wide_to_keep(calibration: &Calibration) -> bool {
    let spans = [&calibration.plain, &calibration.ordered];
    spans.iter().any(|span| {
        let lowest = -SHARE_BELOW_0 * span.empty_ns.value.abs();
        span.dosed_ns.interval.lo.is_none_or(|lo| lo < lowest)
    })
}

/// Compares earlier costs with another measurement: a check, or a full measurement, which follows
/// where checks contradict.
#[must_use]
pub fn compared(before: &Calibration, look: &Calibration) -> Look {
    if is_blurred(look) {
        return Look::Unknown;
    }
    let mut both = before.clone();
    let (here, unsure) = as_beside(before, look);
    let contradicts = |(figure, look): &(&mut Estimate, &Estimate)| {
        let far = FAR * half(look) + (MOVES + unsure) * figure.value.abs();
        let Interval { lo, hi } = figure.interval;
        lo.is_some_and(|lo| look.value < lo - far) || hi.is_some_and(|hi| look.value > hi + far)
    };
    if known(&mut both, &mut here.clone()).any(|pair| contradicts(&pair)) {
        return Look::Changed(Box::new(look.clone()));
    }
    hold_values(&mut both, here);
    Look::Holds(Box::new(both))
}

/// The figures that the check knows well enough.
fn known<'a>(
    of: &'a mut Calibration,
    look: &'a mut Calibration,
) -> impl Iterator<Item = (&'a mut Estimate, &'a Estimate)> {
    let says = |(figure, look): &(&mut Estimate, &Estimate)| {
        half(look) <= BUSY_NS.max(VAGUE * half(figure))
    };
    both_figures(of, look).into_iter().filter(says)
}

/// Widens intervals to contain the values that the check found.
fn hold_values(of: &mut Calibration, mut look: Calibration) {
    for (figure, look) in known(of, &mut look) {
        let Interval { lo, hi } = figure.interval;
        figure.interval = Interval {
            lo: lo.map(|lo| lo.min(look.value)),
            hi: hi.map(|hi| hi.max(look.value)),
        };
    }
}

/// Combines the costs before and after a run of a program; where they differ, the intervals contain
/// both.
#[must_use]
pub fn before_and_after(before: &Calibration, after: &Calibration) -> Calibration {
    let mut both = before.clone();
    hold_both(&mut both, after);
    both
}
