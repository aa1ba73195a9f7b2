//! Experiment scripts: processes that go through numbered steps, and the figures that are wanted of
//! them.
//!
//! The language is described for its users in `docs/book/scripts.md`. A script is read in four
//! steps: the TOML with the place of everything (`raw`); the parameters and their settings
//! (`sweep`); for each setting the typed values (`field`, `head`, `process`, `step`, `place`,
//! `interval`); and checks of the whole (`check`).

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

pub use amount::nanos;
pub use field::{in_range, seconds_in_range};
pub use head::MOST_PASSES;
pub use message::{BadScript, none_of};
pub use parse::{Script, Setting};
pub use plan::{
    Between, Channel, Length, Line, Lock, Placement, Plan, Point, Process, Region, Stamps, Step,
    Timed,
};
pub use verb::{
    Backend, Call, ChannelKind, ClockCall, ForkKind, LockKind, Pages, Policy, RecordKind,
    RegionKind, Verb, Words,
};
