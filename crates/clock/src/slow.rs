//! Slow clocks: clocks whose tick is longer than what is measured with them.
//!
//! **Question.** Which slow clocks are available, and how long is the tick of each?
//!
//! ```
//! use undertick_clock::slow::{SlowClock, TickClock};
//!
//! let clock = SlowClock::open("quantised:1ms".parse()?)?;
//! let (before, fine_before) = clock.read_with_truth();
//! let (after, fine_after) = clock.read_with_truth();
//! assert!(after - before <= 1 + (fine_after.unwrap() - fine_before.unwrap()) / 1_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | name | tick | what it is |
//! |---|---|---|
//! | `adjustable:1ms` | as named, 50 us to 100 ms | a page that a thread of ours advances ([`crate::adjustable`]) |
//! | `quantised:1ms` | as named, 100 ns to 1 s | the best clock here, divided on purpose; `quantised:1ms:NAME` divides another |
//! | `monotonic-coarse` | the kernel's, 1 to 10 ms | `CLOCK_MONOTONIC_COARSE` |
//! | `realtime-coarse` | the same | `CLOCK_REALTIME_COARSE`; it can be set, so mistrust it |
//! | `times` (`jiffies`) | 10 ms | `times(2)`: the kernel's jiffies in units of 1/100 s |
//!
//! **Method.** A reading is a count of ticks. The truth beside it is a reading of a fine clock: the
//! very value that was divided for `quantised`, a reading taken just after for the others. (For
//! those it costs more, and is later by that read.)
//!
//! **Caveats.** The kernel's coarse clocks move by the kernel's notion of a tick,
//! which follows the corrections of Unix time, up to 500 parts per million. A
//! tick that the kernel handles late shows as one reading too low, not as a
//! wrong count later.

mod names;

use core::fmt;

use undertick_units::TickRate;

use crate::adjustable::AdjustableClock;
use crate::rate::{self, NoRate};
use crate::{ClockId, Source, Unavailable, kernel};

pub use names::{BadName, QUANTISED_TICK_NS, SlowName};

/// A clock that is read as a count of ticks.
pub trait TickClock {
    /// Length of a tick, ns.
    fn tick_ns(&self) -> f64;

    /// Returns the ticks so far; the count starts at an arbitrary value.
    fn read_ticks(&self) -> u64;

    /// Returns the ticks so far, and the fine clock beside it (its ticks, at
    /// [`fine_rate`](Self::fine_rate)); `None` where there is no fine clock.
    fn read_with_truth(&self) -> (u64, Option<u64>);

    /// Returns the ticks per second of the fine clock; `None` where there is none.
    fn fine_rate(&self) -> Option<TickRate>;
}

/// Why a slow clock could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The clock behind it cannot be read here.
    Unavailable(Unavailable),
    /// The rate of the fine clock is not known.
    NoRate(NoRate),
    /// The kernel does not answer `times(2)` or has no such clock.
    KernelLacks,
    /// The adjustable clock could not be started.
    NotStarted(std::io::Error),
    /// The tick is shorter than one step of the clock that is divided.
    TickTooShort,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(why) => why.fmt(f),
            Self::NoRate(why) => why.fmt(f),
            Self::KernelLacks => f.write_str("this kernel has no such clock"),
            Self::NotStarted(why) => write!(f, "the adjustable clock could not be started: {why}"),
            Self::TickTooShort => {
                f.write_str("the tick is shorter than one tick of the clock that is divided")
            }
        }
    }
}

impl core::error::Error for OpenError {}

impl From<Unavailable> for OpenError {
    fn from(why: Unavailable) -> Self {
        Self::Unavailable(why)
    }
}

impl From<NoRate> for OpenError {
    fn from(why: NoRate) -> Self {
        Self::NoRate(why)
    }
}

/// An open slow clock.
#[derive(Debug)]
pub enum SlowClock {
    /// A page that a thread of the library advances.
    Adjustable(Adjustable),
    /// A deliberately divided fine clock.
    Quantised(Quantised),
    /// A coarse clock of the kernel.
    Coarse(Coarse),
    /// `times(2)`.
    Times(Times),
}

impl SlowClock {
    /// Opens the clock. This takes 50 ms where a fine clock's rate must be found.
    ///
    /// # Errors
    /// The reason why the clock is not available here.
    pub fn open(name: SlowName) -> Result<Self, OpenError> {
        match name {
            // A program that stays on another CPU loses nothing to the clock.
            SlowName::Adjustable { tick_ns } => {
                AdjustableClock::start(tick_ns, crate::cpus::allowed().first().copied())
                    .map(|clock| {
                        let truth = Fine::best();
                        Self::Adjustable(Adjustable { clock, truth })
                    })
                    .map_err(OpenError::NotStarted)
            }
            SlowName::Quantised { tick_ns, fine } => {
                let fine = fine.unwrap_or_else(|| crate::best().clock);
                Quantised::open(Fine::open(fine)?, tick_ns).map(Self::Quantised)
            }
            SlowName::MonotonicCoarse => {
                Coarse::open(libc::CLOCK_MONOTONIC_COARSE).map(Self::Coarse)
            }
            SlowName::RealtimeCoarse => Coarse::open(libc::CLOCK_REALTIME_COARSE).map(Self::Coarse),
            SlowName::Times => Times::open().map(Self::Times),
        }
    }
}

impl TickClock for SlowClock {
    fn tick_ns(&self) -> f64 {
        match self {
            Self::Adjustable(clock) => clock.tick_ns(),
            Self::Quantised(clock) => clock.tick_ns(),
            Self::Coarse(clock) => clock.tick_ns(),
            Self::Times(clock) => clock.tick_ns(),
        }
    }

    #[inline]
    fn read_ticks(&self) -> u64 {
        match self {
            Self::Adjustable(clock) => clock.read_ticks(),
            Self::Quantised(clock) => clock.read_ticks(),
            Self::Coarse(clock) => clock.read_ticks(),
            Self::Times(clock) => clock.read_ticks(),
        }
    }

    #[inline]
    fn read_with_truth(&self) -> (u64, Option<u64>) {
        match self {
            Self::Adjustable(clock) => clock.read_with_truth(),
            Self::Quantised(clock) => clock.read_with_truth(),
            Self::Coarse(clock) => clock.read_with_truth(),
            Self::Times(clock) => clock.read_with_truth(),
        }
    }

    fn fine_rate(&self) -> Option<TickRate> {
        match self {
            Self::Adjustable(clock) => clock.fine_rate(),
            Self::Quantised(clock) => clock.fine_rate(),
            Self::Coarse(clock) => clock.fine_rate(),
            Self::Times(clock) => clock.fine_rate(),
        }
    }
}

/// A fine clock and its rate.
#[derive(Clone, Copy, Debug)]
pub struct Fine {
    source: Source,
    rate: TickRate,
}

impl Fine {
    /// Opens the clock and finds its rate; 50 ms where that must be measured.
    ///
    /// # Errors
    /// The clock is not available here, or its rate cannot be found.
    pub fn open(clock: ClockId) -> Result<Self, OpenError> {
        let source = Source::open(clock)?;
        let rate = rate::find(source, rate::SHORTEST_SPAN)?.claim.rate;
        Ok(Self { source, rate })
    }

    /// Opens the best clock here; `None` if there is none.
    #[must_use]
    pub fn best() -> Option<Self> {
        Self::open(crate::best().clock).ok()
    }

    /// Returns a reading that lies between what comes before and what comes after.
    #[inline]
    #[must_use]
    pub fn read_ticks(&self) -> u64 {
        self.source.read_ticks_ordered()
    }

    /// Returns its rate.
    #[must_use]
    pub const fn rate(&self) -> TickRate {
        self.rate
    }
}

/// The adjustable clock, with a fine one beside it.
#[derive(Debug)]
pub struct Adjustable {
    /// The clock itself, for its cost and its page.
    pub clock: AdjustableClock,
    truth: Option<Fine>,
}

impl TickClock for Adjustable {
    fn tick_ns(&self) -> f64 {
        self.clock.tick_ns() as f64
    }

    #[inline]
    fn read_ticks(&self) -> u64 {
        self.clock.read_ticks()
    }

    #[inline]
    fn read_with_truth(&self) -> (u64, Option<u64>) {
        let ticks = self.read_ticks();
        (ticks, self.truth.map(|fine| fine.read_ticks()))
    }

    fn fine_rate(&self) -> Option<TickRate> {
        self.truth.map(|fine| fine.rate)
    }
}

/// A deliberately divided fine clock: the truth is known to its step.
#[derive(Clone, Copy, Debug)]
pub struct Quantised {
    fine: Fine,
    fine_per_tick: u64,
    origin: u64,
}

impl Quantised {
    /// Divides `fine` into ticks of `tick_ns`, rounded to whole ticks of the fine clock;
    /// [`tick_ns`](TickClock::tick_ns) returns the result. A tick begins at the call.
    ///
    /// # Errors
    /// The tick is shorter than one of the fine clock.
    pub fn open(fine: Fine, tick_ns: u64) -> Result<Self, OpenError> {
        let per_tick = (tick_ns as f64 / fine.rate.ns_per_tick()).round() as u64;
        if per_tick < 2 {
            return Err(OpenError::TickTooShort);
        }
        Ok(Self {
            fine,
            fine_per_tick: per_tick,
            origin: fine.read_ticks(),
        })
    }

    /// Returns what the slow clock shows at a reading of the fine one. A fine clock that steps back
    /// to before the opening gives the first tick.
    #[inline]
    const fn divide(&self, fine_ticks: u64) -> u64 {
        fine_ticks.saturating_sub(self.origin) / self.fine_per_tick
    }
}

impl TickClock for Quantised {
    fn tick_ns(&self) -> f64 {
        self.fine_per_tick as f64 * self.fine.rate.ns_per_tick()
    }

    #[inline]
    fn read_ticks(&self) -> u64 {
        self.divide(self.fine.read_ticks())
    }

    #[inline]
    fn read_with_truth(&self) -> (u64, Option<u64>) {
        let fine = self.fine.read_ticks();
        (self.divide(fine), Some(fine))
    }

    fn fine_rate(&self) -> Option<TickRate> {
        Some(self.fine.rate)
    }
}

/// A coarse clock of the kernel, as a count of its ticks.
#[derive(Clone, Copy, Debug)]
pub struct Coarse {
    id: libc::clockid_t,
    tick_ns: u64,
    origin_ns: u64,
    truth: Option<Fine>,
}

impl Coarse {
    fn open(id: libc::clockid_t) -> Result<Self, OpenError> {
        let tick_ns = kernel::resolution_of(id).ok_or(OpenError::KernelLacks)?;
        let origin_ns = kernel::read_ns(id).ok_or(OpenError::KernelLacks)?;
        Ok(Self {
            id,
            tick_ns: tick_ns.max(1),
            origin_ns,
            truth: Fine::best(),
        })
    }
}

/// Converts nanoseconds since the opening to a count of ticks, rounded: the kernel's ticks are
/// whole except for corrections of Unix time, which take minutes at least to add up to half a tick.
const fn whole_ticks(ns: u64, tick_ns: u64) -> u64 {
    (ns + tick_ns / 2) / tick_ns
}

impl TickClock for Coarse {
    fn tick_ns(&self) -> f64 {
        self.tick_ns as f64
    }

    #[inline]
    fn read_ticks(&self) -> u64 {
        let now_ns = kernel::read_ns(self.id).unwrap_or(self.origin_ns);
        whole_ticks(now_ns.saturating_sub(self.origin_ns), self.tick_ns)
    }

    #[inline]
    fn read_with_truth(&self) -> (u64, Option<u64>) {
        let ticks = self.read_ticks();
        (ticks, self.truth.map(|fine| fine.read_ticks()))
    }

    fn fine_rate(&self) -> Option<TickRate> {
        self.truth.map(|fine| fine.rate)
    }
}

/// `times(2)`: the kernel's jiffies, in units of 1/100 s on every Linux.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    tick_ns: f64,
    truth: Option<Fine>,
}

impl Times {
    fn open() -> Result<Self, OpenError> {
        // SAFETY: no pointers involved.
        let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        if per_second <= 0 {
            return Err(OpenError::KernelLacks);
        }
        Ok(Self {
            tick_ns: 1e9 / per_second as f64,
            truth: Fine::best(),
        })
    }
}

impl TickClock for Times {
    fn tick_ns(&self) -> f64 {
        self.tick_ns
    }

    #[inline]
    fn read_ticks(&self) -> u64 {
        // SAFETY: Linux takes a null pointer and then only returns the count.
        // The count is unsigned whatever its type says: it may pass any sign bit.
        unsafe { libc::times(core::ptr::null_mut()) }.cast_unsigned() as u64
    }

    #[inline]
    fn read_with_truth(&self) -> (u64, Option<u64>) {
        let ticks = self.read_ticks();
        (ticks, self.truth.map(|fine| fine.read_ticks()))
    }

    fn fine_rate(&self) -> Option<TickRate> {
        self.truth.map(|fine| fine.rate)
    }
}

#[cfg(test)]
#[path = "slow_tests.rs"]
mod tests;
