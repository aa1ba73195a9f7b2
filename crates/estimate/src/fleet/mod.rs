//! Which of many machines is not like the others?
//!
//! **Question.** Each machine has a figure for each of some quantities, with a confidence interval.
//! Which machines differ from the rest by more than the usual scatter of this fleet, and how sure
//! is that when there are thousands of figures?
//!
//! **Method.** Machines differ, and not normally. So each quantity has a null distribution found
//! from the fleet: the median, the scatter between machines, and the weight of the tails. The
//! scatter is the median deviation with the machines' own errors subtracted. The weight of the
//! tails (the degrees of a t distribution) follows from how much farther out the outer machines lie
//! than the middle ones. The tails of one quantity are known badly, so they are shrunk towards
//! those of all quantities, and taken to be heavier by a standard error. A machine's own confidence
//! interval widens the scale by which it is judged: a machine whose figure is known badly is not an
//! outlier.
//!
//! Two more quantities are derived from all figures. *Slowness* is the weighted median of a
//! machine's deviations, which identifies a slow machine although none of its figures is far out.
//! *Noise* is the same for the widths of its intervals.
//!
//! Each machine gets one p-value (Simes). False discoveries are controlled over the machines
//! (Benjamini and Hochberg), and within each machine found over its quantities, at the level times
//! the share of machines found (Benjamini and Bogomolov 2014). All of it has a margin for tails
//! that no fleet shows. So a machine that is bad in everything does not make room for false alarms
//! about others.
//!
//! **Caveats.** A trait of more than about one machine in twenty is not an outlier but part of the
//! fleet. With few machines the scatter is known badly, and only machines far out are found; below
//! [`FEWEST`] machines none is found.

mod change;
mod discoveries;
mod outliers;
mod peers;

pub use change::{Change, change};
pub use discoveries::{adjusted, simes};
pub use outliers::{Column, Finding, Outlier, Outliers, Quantity, Wanted, outliers};
pub use peers::{Figure, Peers, peers};

/// Minimum number of machines of a kind: fewer are not compared.
pub const FEWEST: usize = 10;
