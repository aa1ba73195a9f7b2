//! Virtual time.

use std::fmt;

/// An instant of virtual time: whole nanoseconds since the machine was started.
///
/// 64 bits last for 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The start of the machine.
    pub const START: Self = Self(0);

    /// Returns the moment `ns` nanoseconds after the start.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Returns the moment `us` microseconds after the start.
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// Returns the moment `ms` milliseconds after the start.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// Returns the moment `s` seconds after the start.
    #[must_use]
    pub const fn from_s(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// Returns the nanoseconds since the start.
    #[must_use]
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// Returns the microseconds since the start.
    #[must_use]
    pub const fn us(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Returns the moment `ns` nanoseconds later.
    #[must_use]
    pub const fn plus_ns(self, ns: u64) -> Self {
        Self(self.0 + ns)
    }

    /// Returns the nanoseconds from another moment to this one; negative if this is the earlier
    /// one.
    #[must_use]
    pub const fn ns_since(self, other: Self) -> i64 {
        self.0 as i64 - other.0 as i64
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} us", self.us())
    }
}
