//! The cost that recording adds to a span, from the manifest's calibration.

mod pair_correction;
mod subtracted;
mod table;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use pair_correction::PairCorrection;
pub(crate) use subtracted::{Costs, InPlace};
pub(crate) use table::{CostTable, FastPathCosts, Taken};

/// Fixed point of costs: 2^-16 tick, far below any clock's step.
const POINT: u32 = 16;
