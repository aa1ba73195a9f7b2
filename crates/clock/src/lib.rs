//! Clock sources of Undertick: reading them, and finding their rate, their step
//! and their price. It reads; it does not judge.
//!
//! **Question.** Which clock is the cheapest that may be trusted here, how long
//! is one of its ticks, in what steps does it move, and what does a reading cost?
//!
//! ```
//! use undertick_clock::{Source, best, facts, rate};
//!
//! let choice = best();
//! let clock = Source::open(choice.clock)?;
//! let facts = facts::gather(clock, rate::SHORTEST_SPAN)?;
//! println!("{choice}");
//! println!("{} (from {}, within {:.0} ppb)",
//!     facts.rate.claim.rate, facts.rate.claim.source, facts.rate.claim.error_ppb);
//! if let Some(granularity) = facts.granularity {
//!     println!("moves {} ticks at a time", granularity.step_ticks);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Method.**
//! * Which clocks there are: [`ClockId`]; whether each may be used: [`usable`];
//!   which to record with: [`best`], or [`choose`] by name.
//! * Reading: [`Source`] for a clock chosen at run time, [`ReadClock`] for one
//!   known when building; the instructions themselves and what each orders in
//!   [`tsc`] and `cntvct`.
//! * Ticks per second, from whom, and how wrong it may be: [`rate`].
//! * The step that the clock really takes: [`granularity`].
//! * What a read costs: [`read_cost`].
//! * Two clocks at one instant: [`bracket`].
//!
//! **Caveats.** What is found holds for the CPU that the calling thread ran on.
//! Offsets between CPUs, steps back over hours and behaviour in suspend are
//! questions for an audit, not for a reading. Linux on x86-64 and 64-bit Arm;
//! elsewhere only the kernel's clocks.

pub mod across;
pub mod adjustable;
mod availability;
pub mod bracket;
mod choice;
#[cfg(target_arch = "aarch64")]
pub mod cntvct;
pub mod cpus;
pub mod facts;
pub mod finer;
pub mod granularity;
mod id;
mod kernel;
#[cfg(target_arch = "x86_64")]
mod perf_page;
pub mod rate;
pub mod read_cost;
pub mod slow;
mod source;
#[cfg(target_arch = "x86_64")]
pub mod tsc;
pub mod wide;

pub use availability::{
    MASK_INVARIANT_TSC_VARIABLE, TscFacts, TscUnavailable, Unavailable, usable,
};
pub use choice::{CLOCK_VARIABLE, Choice, ChoiceError, Why, best, choose, choose_from_environment};
pub use id::{ClockId, UnknownClock};
pub use kernel::resolution_ns;
pub use source::{ReadClock, Source};
