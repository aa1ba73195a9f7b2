//! Rules that decide when a flight recorder keeps what it holds.
//!
//! **Question.** Did something happen just now that somebody should look at?
//!
//! **Method.** [`Rule`] is a line of text such as `request > 5ms`. [`Watch`] takes the records of
//! each thread as they are read from its ring, matches the begins and ends of the spans that rules
//! name, and returns a [`Hit`] for each rule that was met. Records of other events cost it a look
//! into a table.
//!
//! **Caveats.** A watch sees what it is given. Where records were overwritten before they were read
//! ([`Watch::gap`]), spans that were open then are forgotten. Durations are as read: the cost of the
//! readings, some 10 to 20 ns, is in them.

mod rule;
mod watch;

pub use rule::{Condition, Limit, Rule, RuleError};
pub use watch::{Hit, Measured, Name, Ring, Watch};
