//! Clock sources of Undertick: this crate reads clocks and measures their rate,
//! their step and the cost of a reading. It reads; it does not judge.
//!
//! **Question.** Which clock is the cheapest that can be trusted on this machine,
//! how long is one of its ticks, in what steps does it move, and what does a reading
//! cost?
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
//! * [`ClockId`] lists the clocks, [`usable`] says whether each may be used, and
//!   [`best`], or [`choose`] by name, selects the one to record with.
//! * [`Source`] reads a clock chosen at run time, and [`ReadClock`] one known at
//!   compile time; [`tsc`] and `cntvct` have the instructions themselves and what
//!   each of them orders.
//! * [`rate`]: ticks per second, the source of that rate, and its error.
//! * [`granularity`]: the step that the clock really takes.
//! * [`read_cost`]: the cost of a read.
//! * [`bracket`]: two clocks at one instant.
//!
//! **Caveats.** The results are valid for the CPU on which the calling thread ran.
//! Offsets between CPUs, steps back over hours and behaviour in suspend are
//! questions for an audit, not for a reading. The crate supports Linux on x86-64 and
//! 64-bit Arm; elsewhere it has only the kernel's clocks.

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
pub mod narrow;
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
