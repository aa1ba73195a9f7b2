//! What does recording cost on this machine, now, and which of its clocks is fit for what?
//!
//! [`calibration::measure`] records a program that spends known doses of work in its spans, through
//! the same recorder and collector as any program, and takes the dose off again. It reads the spans
//! from the trace itself, because the analysis would subtract the cost that is to be found.
//!
//! Caveats: the cost holds for code like the calibration's. Where spans around nothing and around
//! work disagree, both figures are kept and the interval of the cost to subtract contains both.

pub mod audit;
pub mod calibration;
pub mod core_speed;
pub mod zero_test;
