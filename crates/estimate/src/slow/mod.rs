//! Intervals shorter than the step of the clock (Beilner 1988, *Measuring with
//! Slow Clocks*, ICSI TR-88-003; equation numbers are that report's).
//!
//! **Question.** A loop is read at several points by a clock that only counts
//! ticks of length `d`. How long are its activities, which may be much shorter
//! than a tick, and how wrong may these figures be?
//!
//! ```
//! use undertick_estimate::slow::LoopCounts;
//!
//! // A loop of two activities, 0.3 and 2.318 ticks: 7854 cycles.
//! let mut counts = LoopCounts::new(2);
//! let mut now = 0.0_f64;
//! for _ in 0..7854 {
//!     let readings = [now, now + 0.3, now + 2.618].map(|t| t.floor() as i64);
//!     counts.push(&readings, true);
//!     now += 2.618;
//! }
//! let results = counts.results(1e6, 0.9);
//! let first = &results.activities[0];
//! assert!(first.refused.is_none());
//! assert!((first.estimate.value - 0.3e6).abs() < 0.01e6);
//! ```
//!
//! **Method.** The mean count is unbiased while loop and clock are asynchronous (eq. 6). Its
//! uncertainty comes from how the phase of the loop is seen to move against the tick
//! ([`PhaseWalk`], [`Spectrum`]: the covariance term of eq. 11). It does not come from eq. 10a,
//! which is a safe bound in neither direction. A loop locked to the tick is refused ([`Lock`]).
//!
//! **Caveats.** Readings are whole ticks of a clock that ticks evenly. The cost of a reading is
//! part of the activity that it ends.

mod begins;
mod counts;
mod edges;
mod ends;
mod independence;
mod joint;
mod lock;
mod plan;
mod repeated;
mod results;
mod stepped;
mod variance;
mod walk;

pub use begins::Begins;
pub use counts::{ActivityCounts, LoopCounts};
pub use edges::{EdgeSamples, EdgeShot};
pub use ends::two_ends;
pub use independence::Independence;
pub use joint::Joint;
pub use lock::Lock;
pub use plan::{Plan, Question, cycles_needed};
pub use repeated::{mean_of_repetitions, spread_of_repetitions};
pub use results::{ActivityResult, Refused, Results, count_sd};
pub use stepped::{GOLDEN, Move, Stepped, Stepper};
pub use variance::Spectrum;
pub use walk::{PhaseWalk, WalkFacts};
