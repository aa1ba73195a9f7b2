//! Choice of the clock for recording.

use core::fmt;

use crate::availability::{TscUnavailable, Unavailable, usable};
use crate::{ClockId, UnknownClock};

/// The environment variable that names the clock to record with, e.g.
/// `UNDERTICK_CLOCK=monotonic_raw`.
pub const CLOCK_VARIABLE: &str = "UNDERTICK_CLOCK";

/// The chosen clock, and the reason for the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The clock to record with.
    pub clock: ClockId,
    /// The reason for the choice.
    pub why: Why,
}

/// Why a clock was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It was requested by name.
    Asked,
    /// The CPU's own counter is usable: it has the cheapest reading.
    Counter,
    /// The CPU's own counter is not usable.
    Fallback(Unavailable),
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.why {
            Why::Asked => write!(f, "{}: asked for by name", self.clock),
            Why::Counter => write!(f, "{}: the CPU's own counter, usable here", self.clock),
            Why::Fallback(reason) => write!(f, "{}, because {reason}", self.clock),
        }
    }
}

/// Why the requested clock could not be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChoiceError {
    /// The name belongs to no clock.
    Unknown(UnknownClock),
    /// The clock exists, but is not available here.
    Unavailable(ClockId, Unavailable),
    /// `CLOCK_REALTIME` can be set during a recording.
    CanBeSet,
    /// Recorded programs cannot read it.
    NotRecorded(ClockId),
}

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(unknown) => unknown.fmt(f),
            Self::Unavailable(clock, why) => write!(f, "clock {clock} cannot be used: {why}"),
            Self::CanBeSet => f.write_str(
                "clock realtime can be set while one records; monotonic runs at the same rate",
            ),
            Self::NotRecorded(clock) => write!(
                f,
                "programs that are recorded cannot read {clock}: {CLOCK_VARIABLE} may name tsc, \
                 cntvct, monotonic or monotonic_raw"
            ),
        }
    }
}

impl core::error::Error for ChoiceError {}

/// Returns the recording clock of this machine: the CPU's counter where it is usable, otherwise
/// `CLOCK_MONOTONIC_RAW`, which Linux has everywhere.
#[must_use]
pub fn best() -> Choice {
    best_given(counter(), usable)
}

/// Returns the clock with this name if one is given, otherwise [`best`].
///
/// # Errors
/// The name is unknown, or the clock cannot be used here or not be recorded with.
pub fn choose(name: Option<&str>) -> Result<Choice, ChoiceError> {
    let Some(name) = name else {
        return Ok(best());
    };
    let clock = name.parse().map_err(ChoiceError::Unknown)?;
    match clock {
        ClockId::Realtime => return Err(ChoiceError::CanBeSet),
        ClockId::Boottime | ClockId::MonotonicCoarse => {
            return Err(ChoiceError::NotRecorded(clock));
        }
        ClockId::Tsc | ClockId::Cntvct | ClockId::Monotonic | ClockId::MonotonicRaw => {}
    }
    usable(clock).map_err(|why| ChoiceError::Unavailable(clock, why))?;
    Ok(Choice {
        clock,
        why: Why::Asked,
    })
}

/// Calls [`choose`] with the name in [`CLOCK_VARIABLE`]; an empty one counts as none.
///
/// # Errors
/// As [`choose`].
pub fn choose_from_environment() -> Result<Choice, ChoiceError> {
    let name = std::env::var_os(CLOCK_VARIABLE).filter(|name| !name.is_empty());
    choose(
        name.map(|name| name.to_string_lossy().into_owned())
            .as_deref(),
    )
}

/// Returns the counter that an instruction reads on this architecture.
const fn counter() -> ClockId {
    if cfg!(target_arch = "aarch64") {
        ClockId::Cntvct
    } else {
        ClockId::Tsc
    }
}

fn best_given(counter: ClockId, usable: impl Fn(ClockId) -> Result<(), Unavailable>) -> Choice {
    match usable(counter) {
        Ok(()) => Choice {
            clock: counter,
            why: Why::Counter,
        },
        Err(why) => Choice {
            clock: ClockId::MonotonicRaw,
            why: Why::Fallback(why),
        },
    }
}

/// Access to the reason in [`Why::Fallback`], if it concerns the TSC.
impl Why {
    /// Returns why the TSC was not taken, where that decided the choice.
    #[must_use]
    pub const fn tsc_unavailable(self) -> Option<TscUnavailable> {
        match self {
            Self::Fallback(Unavailable::Tsc(why)) => Some(why),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
