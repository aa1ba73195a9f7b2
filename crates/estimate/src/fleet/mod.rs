//! Which of many machines is not like the others?
//!
//! **Question.** Each machine has a figure for each of some quantities, with an
//! interval. Which machines differ from the rest by more than machines of this fleet
//! differ anyway, and how sure is that when there are thousands of figures?
//!
//! **Method.** Machines differ, and not normally. So each quantity has a null of its
//! own, found from the fleet: the median, the scatter between machines by the median
//! deviation with the machines' own errors taken off, and the weight of the tails
//! (the degrees of a t distribution) by how much farther out the outer machines lie
//! than the middle ones. Tails of one quantity are known badly, so they are drawn
//! towards those of all quantities, and taken for heavier by a standard error. A
//! machine's own interval widens what it is judged by: one whose figure is known
//! badly is no outlier.
//!
//! Two more quantities are made of all: *slowness*, the weighted median of a
//! machine's deviations, which tells a slow machine although none of its figures is
//! far out; and *noise*, the same of the widths of its intervals.
//!
//! Each machine gets one p-value (Simes), these are controlled for false discoveries
//! over the machines (Benjamini and Hochberg), and within each machine found over
//! its quantities, at the level times the share of machines found (Benjamini and
//! Bogomolov 2014), all of it with a margin for tails that no fleet shows. So a machine that is bad in everything does not make room for
//! false alarms about others.
//!
//! **Caveats.** What more than about one machine in twenty does is no outlier but
//! part of the fleet. With few machines the scatter is known badly, and only what
//! lies far out is found; below [`FEWEST`] nothing is.

mod change;
mod discoveries;
mod outliers;
mod peers;

pub use change::{Change, change};
pub use discoveries::{adjusted, simes};
pub use outliers::{Column, Finding, Of, Outlier, Outliers, Wanted, outliers};
pub use peers::{Figure, Peers, peers};

/// Fewer machines of a kind are not compared.
pub const FEWEST: usize = 10;
