//! Typed readings, durations, rates and estimates: the vocabulary of Undertick.

mod estimate;

pub use estimate::{Estimate, Interval};
