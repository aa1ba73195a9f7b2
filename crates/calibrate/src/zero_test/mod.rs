//! The zero-elapsed-time test on a live clock: what does a reading cost here, under this load, and
//! which method of subtracting the cost is right?
//!
//! One process measures nothing and known doses of work in random order, in a loop with about 2 us
//! of other work per turn. Each measurement has a pair of readings on either side:
//! `r0 r1 | work | r2 r3`. From time to time, a chain of the same instructions determines the
//! duration of a dose. A sampler beside the process takes its own pairs. It runs in every second
//! block only, which shows its effect on the measured program. Blocks are spread over seconds, so
//! that the intervals include drift. The estimators are those of
//! [`undertick_estimate::compensation`].

mod document;
mod figures;
mod load;
mod measure;
mod sampler;

use std::time::Duration;

use undertick_clock::{Source, granularity};
use undertick_estimate::compensation::Correlations;
use undertick_units::Estimate;

pub use load::{Load, LoadError};

/// Options of the test.
#[derive(Clone, Debug)]
pub struct Request {
    /// The clock under test.
    pub clock: Source,
    /// The load that runs beside it.
    pub load: Load,
    /// Level of all intervals.
    pub level: f64,
    /// Blocks of measurement; half of them without the sampler.
    pub blocks: u32,
    /// Pause between blocks.
    pub pause: Duration,
}

impl Request {
    /// Options for a test of about three seconds.
    #[must_use]
    pub fn new(clock: Source, load: Load) -> Self {
        Self {
            clock,
            load,
            level: 0.95,
            blocks: 32,
            pause: Duration::from_millis(60),
        }
    }
}

/// The result of one method for one dose of work.
#[derive(Clone, Debug)]
pub struct AtDose {
    /// Duration of the work, ns, by the interleaved chain.
    pub dose_ns: f64,
    /// Corrected mean less the dose, ns.
    pub bias: Estimate,
}

/// The results of one method.
#[derive(Clone, Debug)]
pub struct Method {
    /// `long-term`, `pairs`, `sampler`, `control-variate`, `known-dose`.
    pub name: &'static str,
    /// At doses of about 0, 5, 20 and 50 ns; the first is the zero test.
    pub doses: Vec<AtDose>,
    /// Improvement factor for nothing.
    pub k: Option<Estimate>,
    /// Improvement factor with samples that only the ratio rule dropped.
    pub k_uncut: Option<Estimate>,
    /// Correlations of the pairs that the method uses.
    pub correlations: Correlations,
    /// Corrected intervals around nothing, ns.
    pub corrected_ns: Vec<f64>,
}

/// The result of the test.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In the order of [`Method::name`].
    pub methods: Vec<Method>,
    /// Name of the method to use.
    pub chosen: &'static str,
    /// The reason for the choice.
    pub why: String,
    /// Uncorrected intervals around nothing, ns.
    pub uncorrected_ns: Vec<f64>,
    /// Mean cost around nothing, ns.
    pub cost_empty: Estimate,
    /// Mean cost beside known doses, ns.
    pub cost_dosed: Estimate,
    /// Time that the sampler adds to an interval around nothing, ns.
    pub sampler_perturbation: Option<Estimate>,
    /// Factor by which the sampler lengthens one turn of the loop.
    pub sampler_slowdown: Option<Estimate>,
    /// Median distance from an interval to the sampler's nearest pair, ns.
    pub sampler_distance_ns: Option<f64>,
    /// The clock's step, ns.
    pub granularity_ns: f64,
    /// Length of a tick, by the monotonic clock during the test, ns.
    pub ns_per_tick: f64,
    /// Number of measured intervals around nothing.
    pub n: u64,
    /// Number dropped because the thread had been descheduled.
    pub descheduled: u64,
    /// Number dropped because they took four times longer than usual, with unknown cause.
    pub unexplained: u64,
    /// Whether the scheduler's mark was available as evidence.
    pub has_mark: bool,
}

/// Why the test has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The load could not be started.
    #[error("{0}")]
    Load(LoadError),
    /// Too few undisturbed measurements.
    #[error(
        "only {kept} intervals around nothing were undisturbed; measure for longer, or on a quieter machine"
    )]
    TooFew {
        /// Number of undisturbed intervals around nothing.
        kept: usize,
    },
    /// The clock hardly moves while nothing is measured.
    #[error(
        "this clock moves {:.3} ms at a time: intervals around nothing show no step of it, \
         and no cost. Count its ticks over many cycles instead: undertick slow plan, undertick slow run",
        step_ns / 1e6
    )]
    TooCoarse {
        /// The clock's step, ns.
        step_ns: f64,
    },
    /// The test was stopped by Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

/// Runs the test. Calls `progress` with the share done, 0..=1; the test ends early, without an
/// outcome, when it returns false.
///
/// # Errors
/// The load cannot be started, the machine is too busy, or `progress` returned false.
pub fn run(request: &Request, progress: impl FnMut(f64) -> bool) -> Result<Outcome, Failure> {
    let step = granularity::measure(request.clock).map_or(0.0, |g| g.step_ticks);
    let measured = measure::all(request, progress)?;
    figures::outcome(request, &measured, step)
}
