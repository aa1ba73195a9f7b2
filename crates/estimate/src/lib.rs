//! Estimators of Undertick: pure functions of numbers. They use no input or
//! output, no clock and no threads, so they work alike on recorded, live and
//! simulated readings.
//!
//! **Question.** Given clock differences in ticks, in the order in which they
//! were taken, what are their mean and quantiles, and how wrong may these be?
//!
//! ```
//! use undertick_estimate::Series;
//!
//! let mut series = Series::new();
//! for i in 0..10_000_i64 {
//!     series.push(100 + (i * 7919) % 41);
//! }
//! let sample = series.sample();
//! let mean = sample.mean(0.95, 0.0).unwrap();
//! assert!((mean.value - 120.0).abs() < 0.1);
//! assert!(mean.interval.lo.unwrap() <= mean.value);
//! ```
//!
//! **Method.** One pass in bounded memory ([`Series`]) computes exact integer
//! sums ([`Moments`]), a histogram that keeps the sign ([`SignedHistogram`]), and
//! sums of consecutive batches that double in size when their store is full
//! ([`Batches`]). The mean's confidence interval is Student's t over 16..=63 batch
//! means, coarsened and widened while these are correlated. Quantiles get
//! confidence intervals from order statistics, with their ranks widened by the
//! autocorrelation of the indicator `x <= q`.
//!
//! **Caveats.** Values are differences of one clock, in ticks, and signed:
//! negative ones are counted like any other. Confidence intervals describe the
//! scatter that the series itself shows; they do not include a drift slower than
//! the whole series. The batches follow the order of arrival, so order matters:
//! two [`Series`] merge like the samples of two threads, each with its own scatter.

mod batches;
mod beta;
mod bootstrap;
mod change_points;
mod compare;
mod compare_estimates;
pub mod compensation;
mod cost;
pub mod fleet;
mod histogram;
mod inflation;
mod intermittent_mean;
mod line;
mod long_run;
mod looks;
mod marks;
mod mean;
mod modes;
mod moments;
mod numbers;
mod over_time;
pub mod peaks;
mod proportion;
mod quantile;
mod rank_tails;
mod rate;
mod repeated_line;
mod runs;
mod sample;
mod series;
mod shift;
mod skewed;
pub mod slow;
mod slowdown;
pub mod states;
mod strata;
mod stretches;
pub mod two_clocks;

pub use batches::Batches;
pub use bootstrap::{block_bootstrap, block_length};
pub use change_points::{ChangeOptions, ChangePoint, Grouped, Newest, change_points, newest};
pub use compare::{
    difference, difference_of_quantiles, paired_difference, paired_ratio, ratio, ratio_of_quantiles,
};
pub use compare_estimates::{Versus, standard_error, standard_error_of_ln, versus};
pub use cost::{Cost, scaled, shifted};
pub use histogram::{Bin, Distribution, Drawn, SignedHistogram};
pub use intermittent_mean::intermittent_mean;
pub use line::{Line, line};
pub use long_run::{SpreadOfMean, normal_quantile, spread_of_mean, student_beyond};
pub use looks::Looks;
pub use marks::QUANTILES;
pub use modes::{Axis, Divide, Mode, ModeOptions, Modes, modes, modes_of_bins};
pub use moments::Moments;
pub use numbers::Numbers;
pub use over_time::spread_over_time;
pub use proportion::{proportion, proportion_exact};
pub use quantile::{Ranks, binomial_ranks};
pub use rate::{rate, ratio_of_sums};
pub use repeated_line::{LackOfFit, RepeatedLine, repeated_line};
pub use runs::{MOST_RUNS, fewest_runs, median_of_runs, paired_runs_versus, runs_versus};
pub use sample::Sample;
pub use series::Series;
pub use shift::{Shift, shift};
pub use slowdown::{HalfSections, Slowdown, slowdown};
