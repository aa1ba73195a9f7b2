//! Experiment scripts: processes that go through numbered steps, and what is to
//! be found out about them.
//!
//! The language is described for its users in `docs/book/scripts.md`. A script is
//! read in four steps: the TOML with the place of everything (`raw`), the
//! parameters and their settings (`sweep`), for each setting the values as what
//! they must be (`field`, `head`, `process`, `step`, `place`, `interval`), and what
//! only the whole can tell (`check`).

pub(crate) mod amount;
mod check;
pub(crate) mod field;
pub(crate) mod head;
mod interval;
mod line;
pub(crate) mod message;
mod parse;
mod place;
mod plan;
mod process;
mod raw;
mod step;
mod sweep;
mod verb;

pub use message::BadScript;
pub use parse::{Script, Setting};
pub use plan::{
    Between, Channel, Length, Line, Lock, Place, Plan, Point, Process, Region, Stamps, Step, Timed,
};
pub use verb::{
    Backend, Call, ChannelKind, ClockCall, ForkKind, LockKind, Pages, RecordKind, RegionKind, Verb,
    Words,
};
