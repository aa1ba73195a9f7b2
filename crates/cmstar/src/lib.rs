//! Cm*, simulated: fifty processors in five clusters, one clock, and the truth
//! beside every reading of it.
//!
//! **Question.** A reading of a clock that is shared by many processors is late by an unknown time.
//! Do the methods that correct for it work? On a real machine the truth is unknown; here it is
//! known.
//!
//! ```
//! use undertick_cmstar::{Act, ClockId, Machine, Moment, Os, Outcome, Parameters};
//! use undertick_cmstar::{CmAddress, Program, Reading, Routine, StepInput};
//!
//! /// Reads the clock ten times.
//! struct Ten(Vec<Reading>);
//! impl Program for Ten {
//!     fn next(&mut self, input: StepInput) -> Act {
//!         if let Outcome::Read(reading) = input.outcome {
//!             self.0.push(reading);
//!         }
//!         match self.0.len() {
//!             10 => Act::End,
//!             _ => Act::Read { clock: ClockId(0), routine: Routine::Four },
//!         }
//!     }
//! }
//!
//! let mut machine = Machine::new(&Parameters::published(), Os::Medusa, 1);
//! let ten = machine.start(CmAddress::new(2, 1), Moment::START, Ten(Vec::new()));
//! machine.run(Moment::from_s(1));
//! for reading in &machine.program(ten).0 {
//!     assert!(reading.called < reading.sampled && reading.sampled < reading.returned);
//!     // The tick is 2 us, and this is what was true when the word was sampled.
//!     assert_eq!(reading.ticks, Some(reading.sampled.ns() / 2_000));
//! }
//! ```
//!
//! **Method.** A discrete-event simulation in whole nanoseconds. Programs are resumable: each is
//! asked for its next [`Act`] when the last one is over. A reading of the clock runs the very
//! readers of [`undertick_clock::wide`], a reference at a time ([`Words` by replay](reading)). The
//! machine determines the cost of an act: [`Parameters`] has the figures, and what each was fitted
//! to. [`load`] has the experiments of Kong, Spector and Siewiorek.
//!
//! **Caveats.** The paper reports effects, not causes; the causes here are assumptions
//! (docs/book/cmstar.md lists them). Only times are simulated: memory has no contents except
//! clocks, locks, flags and messages. No estimator is part of this crate or of its dependencies,
//! and a test checks this.

#![forbid(unsafe_code)]

pub mod engine;
pub mod load;
mod machine;
mod parameters;
mod program;
pub mod reading;

pub use engine::Moment;
pub use machine::{
    ChannelId, ClockId, CmAddress, Counts, FlagId, LockId, Machine, ProcessId, Stopped, TooFewCms,
    Window, spread,
};
pub use parameters::{
    BadParameters, Clock, ClockPlace, Cms, Contention, Figure, Interrupts, Messages, Os,
    Parameters, Reference, Scheduling, System, Topology, Use, Workload,
};
pub use program::{Act, Outcome, Program, StepInput};
pub use reading::{Reading, Routine};
