//! Steps of scripts as this machine does them, under Linux.
//!
//! One process makes everything that is shared (memory of an [`arena::Arena`],
//! locks, controls, channels with their file descriptors) and forks the others,
//! or starts threads. Each then turns its steps into [`Act`]s and runs them in a
//! loop.

pub(crate) mod access;
pub(crate) mod arena;
pub(crate) mod channel;
pub(crate) mod clock_call;
pub(crate) mod control;
mod counter;
pub(crate) mod fail;
pub(crate) mod fork;
pub(crate) mod lock;
pub(crate) mod memory;
mod stream;
pub(crate) mod wait;
pub(crate) mod work;

#[cfg(test)]
mod trial;

/// One step, ready to run. No allocation, no lock of ours, no formatted text
/// inside.
pub(crate) type Act = Box<dyn FnMut()>;
