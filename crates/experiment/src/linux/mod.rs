//! Implements the steps of scripts on this machine, under Linux.
//!
//! One process creates everything that is shared (memory, locks, controls, channels with their file
//! descriptors) and forks the others, or starts threads. Each then turns its steps into acts and
//! runs them in a loop.

mod access;
mod channel;
mod clock_call;
mod control;
mod counter;
mod driver;
mod fail;
mod fork;
mod lock;
mod machine;
mod memory;
mod placement;
mod policy;
mod recording;
mod repetition_state;
mod runner;
mod shared_memory;
mod shared_state;
mod stream;
mod wait;
mod work;
mod worker;

#[cfg(test)]
#[path = "tests/harness.rs"]
mod test_harness;

pub use driver::run_repetitions;
pub use machine::{LocalMachine, cpus};
pub use policy::set as set_policy;

/// A step that is ready to run. It makes no allocation, takes no lock of this program, and formats
/// no text.
pub(crate) type Act = Box<dyn FnMut()>;
