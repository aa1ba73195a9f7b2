//! The experiments of Kong, Spector and Siewiorek, ready to run.
//!
//! Each gives raw readings with the truth beside them, and counts, but no statistics. What a
//! paper's figure leaves open (how many load processes, how often) is in the arguments;
//! [`Workload`](crate::Workload) has the values chosen.
//!
//! ```
//! use undertick_cmstar::load::{self, ReadingLoops};
//! use undertick_cmstar::{Os, Parameters, Routine};
//!
//! let eight = ReadingLoops::new(Os::Medusa, Routine::Four, 8);
//! let run = load::reading_loops(&Parameters::published(), &eight)?;
//! let [first, second] = run.passes[0];
//! assert!(second.sampled > first.sampled);
//! // 64 thousand references a second were published.
//! assert!((run.plateau.far_per_s() / 64e3 - 1.0).abs() < 0.15);
//! # Ok::<(), undertick_cmstar::TooFewCms>(())
//! ```

mod pairs;
mod readers;
mod speed;
mod zero;

pub use pairs::{Call, MessagePairs, PairsRun, message_pairs};
pub use readers::{ReadingLoops, ReadingRun, reading_loops};
pub use speed::{Timed, speeds};
pub use zero::{MethodOne, MethodTwo, Repetition, ZeroRun, method_one, method_two};

use crate::program::{Act, Program, StepInput};

/// Any of the processes of these experiments.
enum Player {
    Reader(readers::Reader),
    Client(pairs::Client),
    Server(pairs::Server),
    Sampler(pairs::Sampler),
    Experiment(zero::Experiment),
    ClockProcess(zero::ClockProcess),
}

impl Program for Player {
    fn next(&mut self, input: StepInput) -> Act {
        match self {
            Self::Reader(player) => player.next(input),
            Self::Client(player) => player.next(input),
            Self::Server(player) => player.next(input),
            Self::Sampler(player) => player.next(input),
            Self::Experiment(player) => player.next(input),
            Self::ClockProcess(player) => player.next(input),
        }
    }
}

/// Returns the system time of the workload.
const fn system_clock(parameters: &crate::Parameters) -> crate::ClockId {
    crate::ClockId(parameters.workload.clock)
}
