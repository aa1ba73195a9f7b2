//! Live measurement with slow clocks: a script of steps runs in a loop, a clock of whole ticks is
//! read at every point, and the estimators of [`undertick_estimate::slow`] determine the duration
//! of the steps.
//!
//! The loop runs on one thread. Cycles in which the scheduler took that thread off its CPU are
//! dropped and counted (the mark of [`undertick_ring::mark`]), unless the script itself gives the
//! CPU away. Where the slow clock is paired with a fine one, the true means of the same cycles are
//! reported beside the estimates.
//!
//! Caveats: a point costs one reading of the clock, which belongs to the activity that it ends.
//! Delays are counted instructions, calibrated once.

mod counted;
mod document;
mod edges;
mod estimator;
mod pace;
pub mod published;
mod run;
mod script;
mod step;
mod stepped;

pub use document::{ActivityRow, Document};
pub use estimator::Estimator;
pub use run::{Failed, Request, run};
pub use script::{Length, Script, duration_ns};
pub use step::Worker;
pub use undertick_experiment::script::BadScript;
