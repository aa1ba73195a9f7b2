//! The tests of this crate in one program: linked once, they build in a fraction of the time.

mod against_naive;
mod compensating;
mod culling_and_cost;
mod evidence;
mod fuzz;
mod hostile;
mod hosts;
mod in_step;
mod known_truth;
mod matching;
mod modes;
mod parallel;
mod paths;
mod perturbation;
mod raw_blocks;
mod recent;
mod sampled;
mod support;
mod timeline;
