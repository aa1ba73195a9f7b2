//! How does a program hand over 100 million events a second to another
//! process, without a lock, a system call or a copy, and lose none that it
//! finished writing even when it is killed?
//!
//! One ring per thread, in memory that both processes map ([`pool`]). The writer fills
//! *segments* from front to back and publishes a byte position after each
//! record; the reader copies what lies below the position and publishes how
//! far it came. Only when a segment is full does the writer look at the
//! reader's side: it takes back the oldest segment that was drained, or a new
//! one, or does what the overflow policy says.
//!
//! The layout is [`layout`]; `docs/format.md` says the same in prose, and the
//! C header is held to it by shared vectors. The protocol is [`Writer`] and
//! [`Reader`], generic over [`Memory`], so that the code which runs on mapped
//! memory is the code that the model checker explores.
//!
//! Caveats: the reader must treat every byte as hostile (the program may have
//! been overwritten by its own bug), so all it takes from the ring is checked.
//! A `Writer` belongs to one thread; a signal handler that interrupts it needs
//! a ring of its own.

pub mod layout;
pub mod mark;
mod memory;
pub mod pool;
mod reader;
mod record;
mod writer;

pub use memory::{Mapped, Memory};
pub use reader::{Chunk, Corrupt, Reader};
pub use record::{DeschedFlag, Kind, Record};
pub use writer::{Full, Left, Overflow, Source, Writer, state};
