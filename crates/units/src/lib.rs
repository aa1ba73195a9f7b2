//! Typed readings, durations, rates and estimates: the vocabulary of Undertick.
//!
//! **Question.** How many nanoseconds lie between two readings of a clock, and
//! were they two readings of the *same* clock?
//!
//! ```
//! use undertick_units::{Nanos, Reading, TickRate, Ticks, Tsc};
//!
//! let begin = Reading::<Tsc>::from_raw(1_000_026);
//! let end = Reading::<Tsc>::from_raw(1_000_078);
//! let span: Ticks<Tsc> = end - begin;
//! assert_eq!(span.raw(), 52);
//!
//! // 2.6 GHz: one tick is 5/13 ns, so 52 ticks are exactly 20 ns.
//! let rate = TickRate::new(2_600_000_000, 1).unwrap();
//! assert_eq!(rate.nanos_from_ticks(span), Some(Nanos(20)));
//!
//! // A clock that steps back is a finding. It is not turned into zero.
//! assert_eq!((begin - end).raw(), -52);
//! ```
//!
//! Readings of two different clocks do not subtract. This does not compile:
//!
//! ```compile_fail,E0308
//! use undertick_units::{MonotonicRaw, Reading, Tsc};
//!
//! let tsc = Reading::<Tsc>::from_raw(2_600_000_000);
//! let monotonic_raw = Reading::<MonotonicRaw>::from_raw(1_000_000_000);
//! let nonsense = tsc - monotonic_raw;
//! ```
//!
//! **Method.** A [`Reading`] and a difference of readings ([`Ticks`]) carry
//! their clock as a type parameter and nothing else: they cost what a `u64`
//! costs. A [`TickRate`] is an exact fraction, and converts with integers only,
//! over the whole 64-bit range; every conversion documents how it rounds.
//!
//! **Caveats.** Differences are taken modulo 2^64 and read as signed, so they
//! are right up to 2^63 ticks apart (29 years at 10 GHz), also across the wrap
//! of the counter. A rate is exact as a number; the code that determines a rate
//! is responsible for a bound on how well it describes the hardware.

mod clocks;
mod estimate;
mod rate;
mod reading;

pub use clocks::{
    Boottime, Clock, Cntvct, Monotonic, MonotonicCoarse, MonotonicRaw, Realtime, Tsc,
};
pub use estimate::{Estimate, Interval};
pub use rate::{BadRate, TickRate};
pub use reading::{Nanos, Reading, Ticks};
