//! The plan of a script at one point of its sweeps: all values are concrete, and nothing depends on
//! a machine.

use std::time::Duration;

use super::verb::{Backend, ChannelKind, LockKind, Pages, Policy, RegionKind, Verb};

/// One setting of all parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Length of each repetition.
    pub length: Length,
    /// Passes before the first one that counts; they are not recorded.
    pub warm_up: u64,
    /// A repetition that takes longer is ended and reported.
    pub timeout: Duration,
    /// Time after which a process that has begun to block counts as blocked
    /// ([`Verb::UntilBlocked`]): before, it may still be on its way to sleep.
    pub settle: Duration,
    /// Where the clock is read.
    pub stamps: Stamps,
    /// The backend of wakeup, block, notify, addevent, delevent and wait; present if a step uses
    /// them.
    pub control: Option<Backend>,
    /// The scheduling policy of all processes: the first of these that is permitted.
    pub policies: Vec<Policy>,
    /// Locks, by their index in the verbs.
    pub locks: Vec<Lock>,
    /// Channels, by their index in the verbs.
    pub channels: Vec<Channel>,
    /// Memory regions, by their index in the verbs.
    pub regions: Vec<Region>,
    /// Processes, by their index in the verbs.
    pub processes: Vec<Process>,
    /// Intervals from a step of one process to a step of another.
    pub intervals: Vec<Between>,
    /// Straight lines through figures of several settings.
    pub lines: Vec<Line>,
}

/// The length of a repetition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// That many passes.
    Passes(u64),
    /// About this many seconds; the passes of the warm-up determine their number.
    Seconds(f64),
}

/// Where the clock is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamps {
    /// Once between two successive steps: the times of the steps add up to the time of the pass.
    Between,
    /// Before and after each step, serialised: for steps below about 200 ns.
    Around,
}

/// A lock that processes share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its name in the script.
    pub name: String,
    /// Its implementation.
    pub kind: LockKind,
}

/// A channel for messages from one process to another; each has one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Its name in the script.
    pub name: String,
    /// Its implementation.
    pub kind: ChannelKind,
}

/// A memory region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its name in the script.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Where it comes from.
    pub kind: RegionKind,
    /// The pages that are requested for it.
    pub pages: Pages,
    /// Whether it is created and touched before the first pass; otherwise a step creates it.
    pub ready: bool,
}

/// A process or a thread, and its steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Its name in the script.
    pub name: String,
    /// Whether it is a thread of the first process, rather than a process.
    pub is_thread: bool,
    /// Whether it starts inside its last blocking step and waits to be woken.
    pub starts_blocked: bool,
    /// Where it may run.
    pub place: Placement,
    /// Number of copies. Only the first one reads the clock. Each replica shares the locks with all
    /// others, but has its own channels, control and regions: replica n of one process works with
    /// replica n of the others.
    pub replicas: u32,
    /// Whether the first replica reads the clock.
    pub measured: bool,
    /// Period at which passes begin, if they do not begin at the end of the one before (injection).
    pub every: Option<Duration>,
    /// Time before its first pass.
    pub after: Option<Duration>,
    /// Whether it continues until the others have ended; its passes are not counted.
    pub background: bool,
    /// Its steps.
    pub steps: Vec<Step>,
    /// Index of the step that follows the last one; those before it are executed once.
    pub loop_to: usize,
    /// Name for all steps of a pass together; empty: none.
    pub pass: String,
    /// What the time of a pass includes, in words; may be empty.
    pub includes: String,
}

/// Where a process may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Wherever the scheduler puts it.
    Any,
    /// On one of these CPUs.
    Cpus(Vec<usize>),
    /// On a CPU of this cluster: CPUs that share a last-level cache, or the Cms of a Kmap.
    Cluster(usize),
    /// On the CPU of this process; both are fixed.
    SameCpu(usize),
    /// On a CPU that is not that of this process; both are fixed.
    OtherCpu(usize),
    /// On another hardware thread of this process's core.
    SameCore(usize),
    /// On a core that is not that of this process.
    OtherCore(usize),
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its number in the script, or one more than that of the step before (from 1).
    pub number: u32,
    /// Its name: the script's, or the verb in words.
    pub name: String,
    /// Its verb.
    pub verb: Verb,
    /// Whether the clock is read around it.
    pub timed: bool,
    /// The line of its verb in the script, from 1.
    pub line: usize,
    /// What its time includes, in words; may be empty.
    pub includes: String,
}

/// An interval from one step to another, pass by pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Between {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub from: Point,
    /// Where it ends.
    pub to: Point,
    /// What its time includes, in words; may be empty.
    pub includes: String,
}

/// A straight line through a figure of several settings, against a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// The figure.
    pub of: Timed,
    /// The parameter.
    pub against: String,
    /// Its value in this setting; sizes in bytes.
    pub x: f64,
    /// The slope is stated for this many units of the parameter.
    pub per: f64,
    /// What the slope includes, in words; may be empty.
    pub includes: String,
}

/// Something whose time is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timed {
    /// A step.
    Step {
        /// Index of the process.
        process: usize,
        /// Index of the step.
        step: usize,
    },
    /// All steps of a pass of a process, by its index.
    Pass(usize),
    /// An interval of the script, by its index.
    Between(usize),
}

/// A boundary: where a step of a process begins, or where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Index of the process.
    pub process: usize,
    /// Index of the step.
    pub step: usize,
    /// Whether it is the end of the step rather than the begin.
    pub is_end: bool,
}
