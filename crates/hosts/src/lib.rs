//! Several hosts: which clock do readings come from, what does it show when another one shows a
//! given reading, and how do their traces become one?
//!
//! [`undertick_format::identity`] distinguishes clocks. [`probe`] exchanges stamps over UDP while
//! the hosts record; [`exchanges`] stores them. [`align`] maps each host's clock to the first one's
//! from messages in both directions ([`undertick_estimate::two_clocks`]), and [`merge`] writes one
//! trace from several.
//!
//! Caveats: the maps are bounds under a stated wander of the rates. The manifest says how much
//! they allow for ([`undertick_format::manifest::HostMap::wander_ppm`]).

pub mod align;
mod combine;
pub mod compare;
pub mod exchanges;
mod extent;
mod kernel_rows;
mod lines;
pub mod merge;
mod merged_file;
mod packet;
pub mod probe;
mod rows;
mod scale;
