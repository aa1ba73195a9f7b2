//! Experiment scripts: processes that go through numbered steps, and what is to
//! be found out about them.

mod plan;
mod verb;

pub use plan::{Between, Channel, Length, Lock, Place, Plan, Point, Process, Region, Stamps, Step};
pub use verb::{
    Backend, Call, ChannelKind, ClockCall, ForkKind, LockKind, Pages, RegionKind, Verb, Words,
};
