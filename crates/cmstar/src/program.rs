//! What processes do.

use crate::engine::Moment;
use crate::machine::{ChannelId, ClockId, FlagId, LockId, ProcessId};
use crate::reading::{Reading, Routine};

/// What a process does: asked for its next act when the last one is over.
///
/// It knows nothing of the machine but what it is told, so the same program runs
/// under both operating systems. What it finds out it keeps; after the run
/// [`Machine::program`](crate::Machine::program) gives it back.
pub trait Program: Send {
    /// The next act. The first one is asked for with [`Outcome::Started`].
    fn next(&mut self, told: Told) -> Act;
}

impl<P: Program + ?Sized> Program for Box<P> {
    fn next(&mut self, told: Told) -> Act {
        (**self).next(told)
    }
}

/// What a program is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The true time: a program that measures must not look at it, one that keeps
    /// the truth may.
    pub now: Moment,
    /// What came of the last act.
    pub outcome: Outcome,
}

/// What came of an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was none: the process begins.
    Started,
    /// It is done.
    Done,
    /// A reading of a clock.
    Read(Reading),
    /// A word of a clock.
    Word {
        /// What it showed.
        value: u64,
        /// When it was sampled.
        sampled: Moment,
    },
    /// A message.
    Received {
        /// Its length, words.
        words: u32,
        /// What the sender put on it.
        tag: u64,
        /// The receiver was blocked until it came.
        was_blocked: bool,
    },
    /// A lock was taken; how often it was found taken before that.
    Locked {
        /// Tries in vain.
        in_vain: u32,
    },
    /// Processes that a notify reached.
    Notified {
        /// How many.
        count: u32,
    },
}

/// An act of a process. Times of the acts are those of the operating system
/// ([`System`](crate::System)); each takes at least a nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing: what stepping itself costs.
    Null,
    /// Local work that takes so long on a Cm of middling speed, ns.
    Work {
        /// Nominal time, ns; 0 counts as 1.
        ns: u64,
    },
    /// So many turns of a loop of one multiplication and one addition.
    Turns {
        /// How many.
        turns: u64,
    },
    /// Reads a clock: [`Outcome::Read`].
    Read {
        /// Which.
        clock: ClockId,
        /// How.
        routine: Routine,
    },
    /// Refers to one word of a clock, nothing around it: [`Outcome::Word`].
    Fetch {
        /// Which clock.
        clock: ClockId,
        /// Which word; 0 is the low one.
        word: usize,
    },
    /// Reads so many words of memory on another Cm of a cluster, one reference each,
    /// in a loop.
    Access {
        /// The cluster, from 1; that of the process's own Cm or another one.
        cluster: usize,
        /// How many.
        words: u32,
    },
    /// Writes so many words of its own memory.
    Prepare {
        /// How many.
        words: u32,
    },
    /// Sleeps so long, ns, after the call for it.
    Sleep {
        /// How long, ns.
        ns: u64,
    },
    /// Sleeps until a moment; not at all if that is past.
    SleepUntil {
        /// The moment.
        until: Moment,
    },
    /// Offers the Cm to others.
    Yield,
    /// Works until the quantum is over and it is this process's turn again.
    RunOut,
    /// Takes a lock: test-and-set by reference, again and again ([`Outcome::Locked`]).
    Lock(LockId),
    /// Gives a lock back.
    Unlock(LockId),
    /// Wakes a process, or spares it its next block.
    Wakeup(ProcessId),
    /// Waits to be woken; returns after an earlier wakeup.
    Block,
    /// From now on this process waits for the event, too.
    AddEvent(u32),
    /// This process no longer waits for the event.
    DelEvent(u32),
    /// Wakes all that wait for an event ([`Outcome::Notified`]).
    Notify(u32),
    /// Waits for one of the events added, and takes them off; returns at once if
    /// there are none, or if one has come already.
    Wait,
    /// Spins until another process is blocked, asleep or at its end.
    UntilBlocked(ProcessId),
    /// Raises a flag, which lies on another Cm: one reference.
    Raise(FlagId),
    /// Spins on a flag in its own memory until it is raised, and takes it down.
    Await(FlagId),
    /// Sends a message.
    Send {
        /// Over which channel.
        channel: ChannelId,
        /// Its length, words. Under StarOS they are passed by reference.
        words: u32,
        /// Anything; the receiver is told it.
        tag: u64,
    },
    /// Waits for a message and takes it: [`Outcome::Received`].
    Receive {
        /// From which channel.
        channel: ChannelId,
    },
    /// The process's end.
    End,
}
