//! Several hosts: whose clock is it, what does it show when another one shows this, and
//! how do their traces become one?
//!
//! [`identity`] tells clocks apart. [`probe`] exchanges stamps over UDP while the hosts
//! record; [`exchanges`] keeps them. [`align`] finds each host's clock on the first one's
//! from messages both ways ([`undertick_estimate::two_clocks`]), and [`merge`] writes one
//! trace of several.
//!
//! Caveats: the maps are bounds under a stated wander of the rates; what they allow for
//! stands in the manifest ([`told`]).

pub mod align;
mod combine;
pub mod compare;
pub mod exchanges;
pub mod identity;
mod kernel_rows;
mod lines;
mod mapped;
pub mod merge;
mod packet;
pub mod probe;
mod rows;
mod scale;
pub mod told;

pub use rows::TS_LOCAL;
pub(crate) use rows::merged_schema;
