//! A process and the remaining parts of its act.

use std::collections::VecDeque;

use super::address::{ChannelId, ClockId, FlagId, LockId, ProcessId};
use super::trip::Trip;
use crate::engine::{Moment, Stream};
use crate::program::Outcome;
use crate::reading::{Reader, Routine};

/// A part of an act.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// The processor works for this long, ns on a Cm of medium speed.
    Local(f64),
    /// A reference.
    Refer(Target, WordOperation),
    /// Work of a Kmap of that many pieces: cluster from 0.
    Operate(usize, u32),
    /// Something that happens at an instant.
    Continue(Continuation),
}

/// The target of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The processor's own memory.
    Own,
    /// Another Cm, by its cluster from 0.
    Cluster(usize),
}

/// The operation on the word that a reference reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordOperation {
    Nothing,
    ClockWord(ClockId, usize),
    WholeClock(ClockId),
    TakeLock(LockId),
    GiveLock(LockId),
    RaiseFlag(FlagId),
}

/// An effect at an instant, on the processor.
#[derive(Clone, Copy, Debug)]
pub(super) enum Continuation {
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

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The process has not started yet.
    Coming,
    /// The process waits for its Cm.
    Ready,
    /// The process has its Cm.
    Running,
    /// The process waits for a wakeup.
    Blocked,
    /// The process waits for an event.
    Waiting,
    /// The process waits for a message, or for room for one.
    AtChannel,
    /// The process sleeps until a moment.
    Asleep,
    /// The process has ended.
    Ended,
}

pub(super) struct Process<P> {
    pub program: P,
    /// Index of its Cm.
    pub cm: usize,
    pub state: State,
    /// Whether the end of the run depends on it.
    pub foreground: bool,
    /// The remaining parts of its act.
    pub parts: VecDeque<Part>,
    /// Remaining local work, ns, and how much of it is under way.
    pub left_ns: u64,
    pub slice_ns: u64,
    /// Whether it gives up its Cm at the end of the quantum, even to itself.
    pub runs_out: bool,
    pub trip: Trip,
    pub reader: Reader,
    pub called: Moment,
    pub outcome: Outcome,
    /// Whether a wakeup came before its block.
    pub wakeup_saved: bool,
    /// Events added, and whether they were notified.
    pub events: Vec<(u32, bool)>,
    pub stream: Stream,
}

impl<P> Process<P> {
    /// Inserts parts before the remaining ones.
    pub fn first(&mut self, parts: &[Part]) {
        for &part in parts.iter().rev() {
            self.parts.push_front(part);
        }
    }
}
