//! How do the records that a program wrote into its rings become a lasting trace, with every loss
//! counted?
//!
//! [`record::record`] starts the program in a [`session`], drains its rings
//! ([`collector`]) into raw blocks ([`undertick_format::block`]), which become Parquet or
//! are checked and stay ([`finalize`]) when the program has ended. [`undertick_format::read::Trace`] opens the result.
//!
//! Invariants: nothing in shared memory is believed without a check; only files that are certainly
//! the recorder's own are removed.
//!
//! Caveats: Linux only. A trace holds readings of one clock of one machine.

mod accounts;
pub mod attach;
mod clock_check;
pub mod collector;
mod damaged_session;
mod descheduled;
mod description;
mod disk;
mod exited_threads;
pub mod finalize;
pub mod finish;
mod follow;
pub mod functions;
pub mod interposed;
pub mod kernel;
mod lock_names;
pub mod names;
pub mod output;
pub mod perturbation;
mod preload;
pub mod record;
mod recording_loop;
mod recover;
mod request;
pub mod resume;
mod ring_drain;
pub mod sampled;
pub mod session;
mod session_identity;
pub mod snapshot;
pub mod synthetic;
mod thread_state;
pub mod trace_dir;
pub mod triggers;

pub use descheduled::self_test as descheduled_self_test;
pub use undertick_ring::Overflow;
