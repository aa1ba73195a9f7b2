//! The available clocks, by name.

use core::fmt;
use core::str::FromStr;

use undertick_units::{
    Boottime, Clock, Cntvct, Monotonic, MonotonicCoarse, MonotonicRaw, Realtime, Tsc,
};

/// A clock for recordings or for comparison with another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClockId {
    /// The x86 time-stamp counter.
    Tsc,
    /// The Arm virtual counter.
    Cntvct,
    /// `CLOCK_MONOTONIC`.
    Monotonic,
    /// `CLOCK_MONOTONIC_RAW`.
    MonotonicRaw,
    /// `CLOCK_BOOTTIME`.
    Boottime,
    /// `CLOCK_MONOTONIC_COARSE`.
    MonotonicCoarse,
    /// `CLOCK_REALTIME`, from which anchors are read; it can be set, so it is not used for timing.
    Realtime,
}

impl ClockId {
    /// All clocks, those read by an instruction first.
    pub const ALL: [Self; 7] = [
        Self::Tsc,
        Self::Cntvct,
        Self::Monotonic,
        Self::MonotonicRaw,
        Self::Boottime,
        Self::MonotonicCoarse,
        Self::Realtime,
    ];

    /// Returns the name used in traces and on the command line; it never changes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tsc => Tsc::NAME,
            Self::Cntvct => Cntvct::NAME,
            Self::Monotonic => Monotonic::NAME,
            Self::MonotonicRaw => MonotonicRaw::NAME,
            Self::Boottime => Boottime::NAME,
            Self::MonotonicCoarse => MonotonicCoarse::NAME,
            Self::Realtime => Realtime::NAME,
        }
    }

    /// Returns whether an instruction reads it, not the kernel.
    #[must_use]
    pub const fn is_counter(self) -> bool {
        matches!(self, Self::Tsc | Self::Cntvct)
    }

    /// Returns the kernel's number for the clock; `None` for a counter that an instruction reads.
    pub(crate) const fn kernel_id(self) -> Option<libc::clockid_t> {
        Some(match self {
            Self::Tsc | Self::Cntvct => return None,
            Self::Monotonic => libc::CLOCK_MONOTONIC,
            Self::MonotonicRaw => libc::CLOCK_MONOTONIC_RAW,
            Self::Boottime => libc::CLOCK_BOOTTIME,
            Self::MonotonicCoarse => libc::CLOCK_MONOTONIC_COARSE,
            Self::Realtime => libc::CLOCK_REALTIME,
        })
    }
}

impl fmt::Display for ClockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no clock has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownClock {
    /// The requested name.
    pub name: String,
}

impl fmt::Display for UnknownClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no clock is called {:?}; there are", self.name)?;
        for (i, clock) in ClockId::ALL.iter().enumerate() {
            write!(f, "{} {clock}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownClock {}

impl FromStr for ClockId {
    type Err = UnknownClock;

    fn from_str(name: &str) -> Result<Self, UnknownClock> {
        Self::ALL
            .into_iter()
            .find(|clock| clock.name() == name)
            .ok_or_else(|| UnknownClock {
                name: name.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests;
