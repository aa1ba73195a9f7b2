//! Subtraction of the cost of the clock from a measured interval, and the
//! zero-elapsed-time test of whether that helped (Kong, Spector and Siewiorek
//! 1986, *Measuring Time in Cm\**, section on compensation).
//!
//! **Question.** An interval `tm` lies between two clock readings; a pair of
//! readings right before it took `t1`, a pair right after it `t4`. How much of
//! `tm` is the reading's own, and does what the pairs say make the result
//! better or worse than subtracting a constant?
//!
//! **Method.** A [`Correction`] is `constant + b1 t1 + b4 t4`:
//! * long-term averaging: the mean cost of nothing, b = 0; spread unchanged;
//! * pairs (eq. 1): b = 1/2 each, by the measured process (Method I) or by a
//!   sampler beside it (Method II);
//! * control variates: b fitted robustly, so that the variance falls to
//!   1 - R^2 of what it was and never rises.
//!
//! [`zero_test`] applies each to intervals around nothing, out of sample, and
//! gives bias, improvement factor k = variance uncorrected / variance
//! corrected, and the choice. k comes from the same samples for every method.
//!
//! **Quantised clocks.** Neighbouring differences share a reading, and with it
//! the reading's error e, uniform over a step d: t1 = r1 - r0 holds +e1,
//! tm = r2 - r1 holds -e1. So each such covariance has a term -d^2/12, and the
//! pairs' result 1.5 (r2 - r1) + 0.5 (r0 - r3) carries 5 d^2/12 of variance
//! against 2 d^2/12 without them: k falls to 0.4, below the 0.5 that holds for
//! correlations that are not negative. The best b is then -1/2: k = 2.
//!
//! **Caveats.** k says how well one reading's cost is known, not how well a
//! mean is: over many repetitions the mean's interval has its own rules. The
//! bias of an interval around work may differ from that around nothing where
//! readings overlap with work; known doses show it.

mod correction;
mod improvement;
mod variance;
mod zero_test;

pub use correction::{Correction, Paired, control_variate};
pub use improvement::improvement;
pub use variance::{Correlations, Spread, variance_of_pairs, variance_of_pairs_short};
pub use zero_test::{Method, Tested, ZeroTest, zero_test};
