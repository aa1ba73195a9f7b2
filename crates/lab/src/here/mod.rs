//! Steps of scripts as this machine does them, under Linux.
//!
//! One process makes everything that is shared (memory of an arena,
//! locks, controls, channels with their file descriptors) and forks the others,
//! or starts threads. Each then turns its steps into acts and runs them in a
//! loop.

mod access;
mod actor;
mod arena;
mod board;
mod cast;
mod channel;
mod clock_call;
mod conductor;
mod control;
mod counter;
mod fail;
mod fork;
mod lock;
mod machine;
mod memory;
mod place;
mod recording;
mod runner;
mod stream;
mod wait;
mod work;

#[cfg(test)]
mod trial;

pub use conductor::conduct;
pub use machine::{Here, cpus};

/// One step, ready to run. No allocation, no lock of ours, no formatted text
/// inside.
pub(crate) type Act = Box<dyn FnMut()>;
