//! Virtual time, future events, random numbers, queues.

mod agenda;
mod digest;
mod moment;
mod random;
mod station;

pub use agenda::Agenda;
pub use digest::Digest;
pub use moment::Moment;
pub use random::{Delay, Entity, Law, Stream};
pub use station::{Refused, Station, StationCounts};
