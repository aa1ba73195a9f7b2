//! Measurements of machines and programs: what others on the machine cost ([`interference`]), what
//! the machine can do ([`survey`]), how many machines differ ([`fleet`]), how two programs differ
//! ([`compare`]), what benchmark programs of other tools measure ([`benchmarks`]), durations below the step of a slow clock ([`slow`]), records in loops ([`loops`]),
//! and the published table of process coordination ([`traffic`]).

pub mod benchmarks;
pub mod compare;
pub mod fleet;
pub mod interference;
pub mod loops;
pub mod only;
pub mod slow;
pub mod survey;
pub mod traffic;
