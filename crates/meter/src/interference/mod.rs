//! How much do other users of the memory and of the CPU slow this program, how often, and which
//! processes are they?
//!
//! **Method.** *Measurements of Memory Interference* (MPL-55, 1971): a probe with a known mix of
//! instructions and memory accesses runs in bursts of timed samples. The rates form a histogram
//! whose peaks are states of the machine. Here a sample is a block of the mix followed by a block
//! of registers, both timed through the recorder. The registers show the speed of the core, which
//! other users of the memory do not change. Bursts begin at a random moment of each period, so that
//! they do not keep step with a disturber. A burst lasts two time slices of the scheduler, so that
//! a process on the probe's CPU shows.
//!
//! **What is separated.** Samples that are slowed as a whole form peaks, found by a test. Single
//! samples are hit by interrupts, by a process that had the CPU (shown by the recorder's mark), or
//! by the host. Suspects are the processes whose CPU use goes with the slowness.
//!
//! **Caveats.** The probe is also a disturber, for 30 % of the time of one CPU (0.5 % in the
//! watching mode). A process that is always active belongs to the baseline. Names are based on
//! association.

mod active;
mod analysis;
mod bursts;
mod compare;
mod continuous;
mod correlation;
mod cpu_time;
mod disturbance;
mod disturbers;
mod hits;
mod meter;
mod mix;
mod occupancy;
mod probe;
mod states;
mod stretches;
mod suspects;
#[cfg(test)]
mod tests;

pub use compare::against;
pub use continuous::watch;
pub use disturbance::Disturbance;
pub use meter::{Request, measure, probe_from};
pub use mix::Mix;
pub use probe::Schedule;

use undertick_report::interference::Interference;

/// Adds the loss that each slowed peak would cause if its cause were active for that share of the
/// time, 0 to 1.
pub fn predict(found: &mut Interference, activity: f64) {
    found.predictions = states::predictions(&found.peaks, activity);
}
