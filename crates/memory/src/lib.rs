//! The shared memory of a session, from the recorder's side.
//!
//! **Question.** Programs write their records into memory that they share with the recorder. How does the
//! recorder make that memory, hand parts of it out, find what is in it, and take it back?
//!
//! **Method.** A session has a directory ([`session_dir`]) with a control page ([`control_page`]), which
//! switches all programs on and off, and with a pool of heads and segments ([`pool`], mapped by
//! [`pool_map`]), of which threads make their rings ([`ring_map`]). A program that was started without a
//! session has attach pages ([`attach_page`]). [`session_lock`] keeps a flight recorder from taking rings away
//! while a snapshot is being made.
//! The layout is that of [`undertick_ring::layout`].
//!
//! **Invariants.** Nothing in shared memory is believed without a check. What a program overwrites, cuts
//! short ([`cut_files`]) or removes can damage records of its session, and nothing outside it.
//!
//! **Caveats.** Linux only.

pub mod attach_page;
pub mod control_page;
pub mod cut_files;
pub mod pool;
pub mod pool_map;
pub mod ring_map;
pub mod session_dir;
pub mod session_lock;
