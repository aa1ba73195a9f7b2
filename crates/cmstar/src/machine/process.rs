//! A process and what is left of its act.

use std::collections::VecDeque;

use super::place::{ChannelId, ClockId, FlagId, LockId, ProcessId};
use super::trip::Trip;
use crate::engine::{Moment, Stream};
use crate::program::Outcome;
use crate::reading::{Reader, Routine};

/// A part of an act.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// The processor works so long, ns on a Cm of middling speed.
    Local(f64),
    /// A reference.
    Refer(Target, What),
    /// A Kmap's own work of so many pieces: cluster from 0.
    Operate(usize, u32),
    /// Something that happens at an instant.
    Then(Then),
}

/// Where a reference goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Memory of the processor's own.
    Own,
    /// Another Cm, by its cluster from 0.
    Cluster(usize),
}

/// What is done to the word that a reference reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Nothing,
    ClockWord(ClockId, usize),
    WholeClock(ClockId),
    TakeLock(LockId),
    GiveLock(LockId),
    RaiseFlag(FlagId),
}

/// What happens at an instant, on the processor.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    BeginReading(ClockId, Routine),
    GoOnReading(ClockId),
    EndReading(Option<u64>, Moment),
    TellWord,
    AccessNext(usize, u32),
    SleepFor(u64),
    SleepUntil(Moment),
    GiveWay,
    RunOut,
    SeeLock(LockId, u32),
    Wake(ProcessId),
    Block,
    AddEvent(u32),
    DelEvent(u32),
    Notify(u32),
    Wait,
    SeeBlocked(ProcessId),
    SeeFlag(FlagId),
    Deliver(ChannelId, u32, u64),
    Take(ChannelId),
    End,
}

/// What a process is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not started yet.
    Coming,
    /// Waits for its Cm.
    Ready,
    /// Has its Cm.
    Running,
    /// Waits for a wakeup.
    Blocked,
    /// Waits for an event.
    Waiting,
    /// Waits for a message, or for room for one.
    AtChannel,
    /// Until a moment.
    Asleep,
    /// At its end.
    Ended,
}

pub(super) struct Process<P> {
    pub program: P,
    /// Index of its Cm.
    pub cm: usize,
    pub state: State,
    /// It counts for the end of the run.
    pub foreground: bool,
    /// What its act still consists of.
    pub parts: VecDeque<Part>,
    /// Local work that is left, ns, and how much of it is under way.
    pub left_ns: u64,
    pub slice_ns: u64,
    /// It gives its Cm away at the end of the quantum, even to itself.
    pub runs_out: bool,
    pub trip: Trip,
    pub reader: Reader,
    pub called: Moment,
    pub outcome: Outcome,
    /// A wakeup came before its block.
    pub wakeup_saved: bool,
    /// Events added, and whether they were notified.
    pub events: Vec<(u32, bool)>,
    pub stream: Stream,
}

impl<P> Process<P> {
    /// Puts parts before what is left.
    pub fn first(&mut self, parts: &[Part]) {
        for &part in parts.iter().rev() {
            self.parts.push_front(part);
        }
    }
}
