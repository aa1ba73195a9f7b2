//! Programs of processes, and their acts.

use crate::engine::Moment;
use crate::machine::{ChannelId, ClockId, FlagId, LockId, ProcessId};
use crate::reading::{Reading, Routine};

/// The program of a process: it is asked for its next act when the last one is over.
///
/// It knows nothing of the machine except what it is given, so the same program runs under both
/// operating systems. It keeps its results; after the run
/// [`Machine::program`](crate::Machine::program) returns it.
pub trait Program: Send {
    /// Returns the next act. The first one is requested with [`Outcome::Started`].
    fn next(&mut self, input: StepInput) -> Act;
}

impl<P: Program + ?Sized> Program for Box<P> {
    fn next(&mut self, input: StepInput) -> Act {
        (**self).next(input)
    }
}

/// The input of a program at each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepInput {
    /// The true time: a program that measures must not use it, one that records the truth may.
    pub now: Moment,
    /// The outcome of the last act.
    pub outcome: Outcome,
}

/// The outcome of an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was none: the process begins.
    Started,
    /// The act is done.
    Done,
    /// A reading of a clock.
    Read(Reading),
    /// A word of a clock.
    Word {
        /// Its value.
        value: u64,
        /// The moment at which it was sampled.
        sampled: Moment,
    },
    /// A message.
    Received {
        /// Its length, words.
        words: u32,
        /// The tag that the sender gave.
        tag: u64,
        /// The receiver was blocked until it came.
        was_blocked: bool,
    },
    /// A lock was taken; with the number of failed tries before that.
    Locked {
        /// Number of failed tries.
        in_vain: u32,
    },
    /// A notify was delivered to processes.
    Notified {
        /// Number of these processes.
        count: u32,
    },
}

/// An act of a process. Times of the acts are those of the operating system
/// ([`System`](crate::System)); each takes at least a nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Does nothing: the cost of stepping itself.
    Null,
    /// Local work that takes that long on a Cm of medium speed, ns.
    Work {
        /// Nominal time, ns; 0 counts as 1.
        ns: u64,
    },
    /// That many turns of a loop of one multiplication and one addition.
    Turns {
        /// Number of turns.
        turns: u64,
    },
    /// Reads a clock: [`Outcome::Read`].
    Read {
        /// The clock.
        clock: ClockId,
        /// The routine.
        routine: Routine,
    },
    /// Refers to one word of a clock, without any work around it: [`Outcome::Word`].
    Fetch {
        /// The clock.
        clock: ClockId,
        /// Index of the word; 0 is the low one.
        word: usize,
    },
    /// Reads that many words of memory on another Cm of a cluster, one reference each, in a loop.
    Access {
        /// The cluster, from 1; that of the process's own Cm or another one.
        cluster: usize,
        /// Number of words.
        words: u32,
    },
    /// Writes that many words of its own memory.
    Prepare {
        /// Number of words.
        words: u32,
    },
    /// Sleeps that long, ns, after the call for it.
    Sleep {
        /// Duration, ns.
        ns: u64,
    },
    /// Sleeps until a moment; returns at once if that is past.
    SleepUntil {
        /// The moment.
        until: Moment,
    },
    /// Offers the Cm to others.
    Yield,
    /// Works until the quantum is over and it is this process's turn again.
    RunOut,
    /// Takes a lock: test-and-set by reference, repeatedly ([`Outcome::Locked`]).
    Lock(LockId),
    /// Gives a lock back.
    Unlock(LockId),
    /// Wakes a process, or cancels its next block.
    Wakeup(ProcessId),
    /// Waits to be woken; returns after an earlier wakeup.
    Block,
    /// From now on this process also waits for the event.
    AddEvent(u32),
    /// This process no longer waits for the event.
    DelEvent(u32),
    /// Wakes all processes that wait for an event ([`Outcome::Notified`]).
    Notify(u32),
    /// Waits for one of the events added, and removes them; returns at once if there are none, or
    /// if one has come already.
    Wait,
    /// Spins until another process is blocked, asleep or ended.
    UntilBlocked(ProcessId),
    /// Raises a flag, which lies on another Cm: one reference.
    Raise(FlagId),
    /// Spins on a flag in its own memory until it is raised, and lowers it.
    Await(FlagId),
    /// Sends a message.
    Send {
        /// The channel.
        channel: ChannelId,
        /// Its length, words. Under StarOS they are passed by reference.
        words: u32,
        /// An arbitrary value, which the receiver gets.
        tag: u64,
    },
    /// Waits for a message and takes it: [`Outcome::Received`].
    Receive {
        /// The channel.
        channel: ChannelId,
    },
    /// Ends the process.
    End,
}
