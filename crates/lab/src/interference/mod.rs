//! What do other users of the memory and of the CPU cost, how often, and who are
//! they?
//!
//! **Method.** *Measurements of Memory Interference* (MPL-55, 1971): a probe with a
//! known mix of instructions and memory accesses runs in bursts, each sample of which
//! is timed; the rates make a histogram whose peaks are states of the machine. A
//! sample here is a block of the mix and a block of registers after it, both stamped
//! through the recorder; the registers say how fast the core was, which other users
//! of the memory do not change. Bursts begin at a random moment of each period, so
//! that they do not beat with a disturber, and are as long as two time slices of the
//! scheduler, so that a process on the probe's CPU shows.
//!
//! **What is told apart.** Samples that are slowed as a whole (peaks, by a test);
//! single samples that were hit, by interrupts, by a process that had the CPU (the
//! recorder's mark says so), or by the host; and whose use of a CPU goes with it.
//!
//! **Caveats.** The probe is a disturber, too, for 30 % of the time of one CPU (0.5 %
//! in the watching mode). Who is always there is part of the clean state. Names rest
//! on association.

mod active;
mod analysis;
mod bursts;
mod compare;
mod continuous;
mod cpu_time;
mod disturbance;
mod disturbers;
mod hits;
mod meter;
mod mix;
mod presence;
mod probe;
mod states;
mod stretches;
#[cfg(test)]
mod tests;
mod together;
mod who;

pub use compare::against;
pub use continuous::watch;
pub use disturbance::Disturbance;
pub use meter::{Request, measure, probe_from};
pub use mix::Mix;
pub use probe::Schedule;

use undertick_report::interference::Interference;

/// Adds what each slowed peak would cost if its cause were active for that share of
/// the time, 0 to 1.
pub fn predict(found: &mut Interference, activity: f64) {
    found.predictions = states::predictions(&found.peaks, activity);
}
