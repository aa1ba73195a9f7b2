//! Stacks of running programs: from registers and a copy of the stack to functions by name.
//!
//! **Question.** Which functions was a thread in when it was sampled?
//!
//! **Method.** [`Unwinders`] takes the registers of a sample and the innermost bytes of its stack, and finds the
//! frames by the unwind tables of the files that the process has mapped. Each stack becomes a number: a
//! node of a tree of frames, of which [`Unwinders::new_lines`] describes what is new, as text that is valid
//! when torn. When the recording has ended, [`Tree::read`] reads that text, and [`Tree::name`] gives each
//! frame its function.
//!
//! **Bounds.** At most [`MOST_NODES`] nodes, [`MOST_FRAMES`] frames of a stack, [`MOST_PROCESSES`] processes.
//!
//! **Caveats.** The copy of the stack has a limited size: frames beyond it are missing, and such a stack
//! begins with [`Root::Cut`]. An inlined function is counted in its caller. Samples in the 10 ms around an exec
//! may be unwound by the files of the other program. A process that ended before its
//! first sample was read has no frames.

mod elf;
mod maps;
mod named;
mod process;
mod tree;

pub use named::{Function, Named};
pub use process::{Registers, Unwinders};
pub use tree::{MOST_NODES, Root, Tree};

/// Most frames of a stack; those further out are missing.
pub const MOST_FRAMES: usize = 256;
/// Most processes whose files are known at a time.
pub const MOST_PROCESSES: usize = 1 << 10;
