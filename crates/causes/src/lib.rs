//! Why spans took as long as they did: a trace is read a second time, and the report gets the causes.
//!
//! **Question.** What explains that calls of one path differ ([`add_states`]), what made a single call
//! slow ([`explain`]), which functions ran inside spans ([`add_stacks`]), which locks they waited for
//! and what they allocated ([`add_interposed`])? What did the tasks of an asynchronous program do ([`add_tasks`])?
//!
//! **Method.** [`undertick_analyze::analyze`] makes the report; here the same matching runs again and
//! hands over calls, or the innermost span of each sample. The report's own figures stay as they are.
//!
//! **Caveats.** What explains a difference is associated with it; that is no proof.

pub mod explain;
mod interposed;
mod ring_rows;
mod stack_samples;
mod stacks;
mod states;
#[cfg(test)]
#[path = "../../analyze/tests/support/mod.rs"]
mod support;
mod tasks;

pub use interposed::add_interposed;
pub use stacks::add_stacks;
pub use states::{add_states, add_states_of_runs};
pub use tasks::add_tasks;
