//! How does a program hand over 100 million events a second to another
//! process, without a lock, a system call or a copy, and lose none that it
//! finished writing even when it is killed?
//!
//! There is one ring per thread, in memory that both processes map ([`pool`]). The writer fills
//! *segments* from front to back and publishes a byte position after each record. The reader copies
//! the records below the position and publishes how far it came. Only when a segment is full does
//! the writer check the reader's side: it takes back the oldest segment that was drained, or a new
//! one, or follows the overflow policy.
//!
//! The layout is [`layout`]; `docs/format.md` describes it in prose, and shared vectors keep the C
//! header equal to it. The protocol is [`Writer`] and [`Reader`], generic over [`Memory`], so that
//! the code which runs on mapped memory is the code that the model checker explores.
//!
//! Caveats: the reader must treat every byte as hostile (the program may have been overwritten by
//! its own bug), so it checks everything that it takes from the ring. A `Writer` belongs to one
//! thread; a signal handler that interrupts it needs its own ring.

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
