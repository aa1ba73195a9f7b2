//! Whether what was measured before still holds.

use std::ffi::OsString;

use undertick_clock::Choice;
use undertick_clock::facts::Facts;
use undertick_trace::kernel::Wanted;
use undertick_trace::manifest::Calibration;
use undertick_units::{Estimate, Interval};

use super::{NotCalibrated, as_beside, both_figures, half, hold_both, measure_once};

/// Of a look whether costs that were measured before still hold: a tenth of that.
const PASSES_OF_A_LOOK: u32 = 640;

/// What a look at the costs of before says of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Look {
    /// They hold: with intervals that hold what the look found.
    Holds(Box<Calibration>),
    /// They do not; what was found in their place.
    Changed(Box<Calibration>),
    /// It cannot be told: the machine is too busy.
    Unknown,
}

/// Looks whether recording still costs what it did: by a run a tenth as long, without the
/// kernel's events, and by another one where that contradicts: for some milliseconds a
/// neighbour makes readings a nanosecond dearer (2 of 40 looks here).
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

/// As [`look_again`], by what looks find.
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
            // What was found once for a moment may have been so during the recording.
            let (first, _) = as_beside(&both, &first);
            hold_values(&mut both, first);
            Look::Holds(both)
        }
        said => said,
    }
}

/// Means of spans around nothing that are known no better than this, ns, half-width: the
/// machine is too busy.
pub(super) const BUSY_NS: f64 = 1.5;
/// How many of its half-widths a look must be away to tell that a cost has changed: of
/// thirteen figures one is by chance in some hundred looks.
const FAR: f64 = 2.0;
/// Share by which costs move within seconds, on a machine that is loaded for a while (18.5 to
/// 19.9 ns here): that widens intervals, and no more.
const MOVES: f64 = 0.1;
/// A look that knows a figure this many times worse than it is known says nothing of it.
const VAGUE: f64 = 2.0;

/// Whether a busy machine has blurred all of it.
pub(super) fn is_blurred(calibration: &Calibration) -> bool {
    let empty = [&calibration.plain.empty_ns, &calibration.ordered.empty_ns];
    empty.iter().any(|mean| half(mean) > BUSY_NS)
}

/// What another measurement says of the costs of before: a look, or a whole one, which is
/// asked where looks contradict.
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

/// Figures of which the look says something.
fn known<'a>(
    of: &'a mut Calibration,
    look: &'a mut Calibration,
) -> impl Iterator<Item = (&'a mut Estimate, &'a Estimate)> {
    let says = |(figure, look): &(&mut Estimate, &Estimate)| {
        half(look) <= BUSY_NS.max(VAGUE * half(figure))
    };
    both_figures(of, look).into_iter().filter(says)
}

/// Makes intervals hold the values that the look found.
fn hold_values(of: &mut Calibration, mut look: Calibration) {
    for (figure, look) in known(of, &mut look) {
        let Interval { lo, hi } = figure.interval;
        figure.interval = Interval {
            lo: lo.map(|lo| lo.min(look.value)),
            hi: hi.map(|hi| hi.max(look.value)),
        };
    }
}

/// The cost before a program ran and after it, in one: where they differ the intervals hold
/// both.
#[must_use]
pub fn before_and_after(before: &Calibration, after: &Calibration) -> Calibration {
    let mut both = before.clone();
    hold_both(&mut both, after);
    both
}
