//! The verbs of a script, and the words for their variants.

/// The action of a step. Indices are those of the [`Plan`](super::Plan)'s lists.
#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    /// Nothing: measures the cost of stepping.
    Null,
    /// Counted dependent instructions that take about this long, ns.
    Work {
        /// Nominal time, ns.
        ns: f64,
    },
    /// This many turns of a loop, each of which is one multiplication and one addition that need
    /// the result of the turn before.
    Turns {
        /// Number of turns.
        turns: u64,
    },
    /// Sleeps at least this long, ns.
    Sleep {
        /// Nominal time, ns.
        ns: f64,
    },
    /// Yields the CPU to others.
    Yield,
    /// Runs until the scheduler takes the CPU away and gives it back: the quantum expires.
    RunOut,
    /// A system call that does almost nothing.
    Call(Call),
    /// Reads a clock.
    Read(ClockCall),
    /// Records an event of this kind, as a program would.
    Record(RecordKind),
    /// Takes a lock.
    Lock {
        /// Index of the lock.
        lock: usize,
    },
    /// Releases a lock.
    Unlock {
        /// Index of the lock.
        lock: usize,
    },
    /// Takes a lock and releases it, this many times in one step: the long loop.
    LockUnlock {
        /// Index of the lock.
        lock: usize,
        /// Number of times.
        times: u64,
    },
    /// Wakes a process, or makes its next block return at once.
    Wakeup {
        /// Index of the process.
        process: usize,
    },
    /// Waits to be woken; returns at once after an earlier wakeup.
    Block,
    /// Wakes all processes that wait for an event.
    Notify {
        /// Its number.
        event: u32,
    },
    /// Adds the event to those for which this process waits.
    AddEvent {
        /// Its number.
        event: u32,
    },
    /// Removes the event from those for which this process waits.
    DelEvent {
        /// Its number.
        event: u32,
    },
    /// Waits for one of the added events, and removes them; returns at once if there are none.
    Wait,
    /// Spins until another process is blocked.
    UntilBlocked {
        /// Index of the process.
        process: usize,
    },
    /// Sends a message.
    Send {
        /// Index of the channel.
        channel: usize,
        /// Its length, words of 8 bytes; 0: the minimum that the channel can send.
        words: u64,
    },
    /// Waits for a message and receives it.
    Receive {
        /// Index of the channel.
        channel: usize,
    },
    /// Writes this many words of 8 bytes, as when an argument is prepared.
    Prepare {
        /// Number of words.
        words: u64,
    },
    /// Reads this many words of 8 bytes of the last message, as when an argument is used; reads the
    /// process's own buffer if there was none.
    Access {
        /// Number of words.
        words: u64,
    },
    /// Creates a child process, which exits at once.
    Fork(ForkKind),
    /// Waits for the end of the child.
    Reap,
    /// Allocates a region of memory, untouched.
    Create {
        /// Index of the region.
        region: usize,
    },
    /// Writes one byte in each page of a region (of 4 KiB).
    Touch {
        /// Index of the region.
        region: usize,
    },
    /// Writes all words of a region.
    Fill {
        /// Index of the region.
        region: usize,
    },
    /// Frees a region.
    Free {
        /// Index of the region.
        region: usize,
    },
}

/// The words of a script for the values of a type.
pub trait Words: Copy + PartialEq + Sized + 'static {
    /// Every word and what it stands for.
    const WORDS: &'static [(&'static str, Self)];

    /// The value of a word.
    #[must_use]
    fn from_word(word: &str) -> Option<Self> {
        let found = Self::WORDS.iter().find(|(name, _)| *name == word);
        found.map(|(_, value)| *value)
    }

    /// The word of a value.
    #[must_use]
    fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, value)| *value == self);
        found.map_or("?", |(word, _)| word)
    }
}

macro_rules! kinds {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl Words for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)*];
        }
    };
}

kinds! {
    /// System calls that do almost nothing.
    Call {
        /// `getppid(2)`.
        Getppid = "getppid",
        /// `getpid(2)`, the system call itself.
        Getpid = "getpid",
        /// `gettid(2)`.
        Gettid = "gettid",
        /// `sched_yield(2)`.
        SchedYield = "sched_yield",
        /// `getcpu`, without a system call where the C library can.
        Getcpu = "getcpu",
    }
}

kinds! {
    /// Ways of reading a clock.
    ClockCall {
        /// The counter of the CPU, as it is.
        Counter = "counter",
        /// The counter behind a fence.
        CounterFenced = "counter-fenced",
        /// The counter and the CPU's number (`rdtscp`).
        CounterWithCpu = "counter-with-cpu",
        /// `clock_gettime(CLOCK_MONOTONIC)`, and so on.
        Monotonic = "monotonic",
        /// As its word.
        MonotonicRaw = "monotonic_raw",
        /// As its word.
        MonotonicCoarse = "monotonic_coarse",
        /// As its word.
        Realtime = "realtime",
        /// As its word.
        RealtimeCoarse = "realtime_coarse",
        /// As its word.
        Boottime = "boottime",
        /// As its word.
        Tai = "tai",
        /// CPU time of the thread.
        ThreadCpu = "thread_cputime",
        /// CPU time of the process.
        ProcessCpu = "process_cputime",
        /// `gettimeofday`.
        Gettimeofday = "gettimeofday",
        /// `getrusage(RUSAGE_SELF)`.
        Getrusage = "getrusage",
        /// `times(2)`.
        Times = "times",
    }
}

kinds! {
    /// What a program can record.
    RecordKind {
        /// An event with a constant.
        Event = "event",
        /// An event with a number that changes.
        EventVariable = "event-variable",
        /// An event with 64 bits.
        Event64 = "event64",
        /// Two readings of the clock.
        Pair = "pair",
        /// The begin of a span and its end.
        Section = "section",
        /// The same with serialised readings.
        SectionOrdered = "section-ordered",
        /// The same, of which one in 16 is recorded.
        SectionSampled = "section-sampled",
        /// The end of one stage and the begin of the next.
        Next = "next",
    }
}

kinds! {
    /// Implementations of a lock.
    LockKind {
        /// `pthread_mutex_t`, shared between processes.
        Pthread = "pthread",
        /// `pthread_spinlock_t`, shared between processes.
        PthreadSpin = "pthread-spin",
        /// Test and test-and-set, with the CPU's pause.
        Spin = "spin",
        /// Ticket lock: first come, first served, spinning on one word.
        Ticket = "ticket",
        /// Mellor-Crummey and Scott's queue: each waiter spins on its own word.
        Mcs = "mcs",
        /// One word, compare-and-swap, and `futex(2)` to wait.
        Futex = "futex",
    }
}

kinds! {
    /// Implementations of a channel.
    ChannelKind {
        /// `pipe(2)`.
        Pipe = "pipe",
        /// A Unix stream socket.
        Unix = "unix",
        /// TCP over the loopback interface, without delay.
        Tcp = "tcp",
        /// A POSIX message queue.
        Queue = "queue",
        /// Shared memory and an `eventfd(2)` to wait.
        Eventfd = "eventfd",
        /// Shared memory and a `futex(2)` to wait.
        Futex = "futex",
    }
}

kinds! {
    /// Implementations of wakeup, block, notify and wait.
    Backend {
        /// A word on which each process waits, `futex(2)`.
        Futex = "futex",
        /// An `eventfd(2)` for each process and event, `epoll(7)` to add, delete, wait.
        Eventfd = "eventfd",
        /// A pipe for each process and event, `poll(2)` to wait.
        Pipe = "pipe",
        /// A mutex and a condition variable, shared between processes.
        Condvar = "condvar",
        /// A real-time signal for each process: `sigqueue(3)`, `sigtimedwait(2)`. It has no events:
        /// notify, addevent, delevent and wait are not available.
        Signal = "signal",
    }
}

kinds! {
    /// Scheduling policies, `sched(7)`.
    Policy {
        /// The system's default, `SCHED_OTHER`: a process that is woken may preempt its waker.
        Other = "other",
        /// `SCHED_BATCH`: a process that is woken does not preempt another of the same policy. It
        /// needs no right.
        Batch = "batch",
        /// `SCHED_FIFO` at the lowest real-time priority: a process runs until it waits or yields.
        Fifo = "fifo",
        /// `SCHED_RR` at the lowest real-time priority: the same, in time slices.
        Rr = "rr",
    }
}

kinds! {
    /// Ways to create a child.
    ForkKind {
        /// `fork(2)`.
        Fork = "fork",
        /// `vfork(2)`: returns when the child has ended.
        Vfork = "vfork",
        /// `posix_spawn(3)` of a program that exits at once.
        Spawn = "posix_spawn",
        /// `clone(2)` of a process without copying memory, file descriptors or signal handlers,
        /// with its own stack.
        Clone = "clone",
        /// `clone(2)` of a thread.
        Thread = "thread",
    }
}

kinds! {
    /// Sources of a region's memory.
    RegionKind {
        /// Private anonymous memory.
        Private = "private",
        /// Shared anonymous memory.
        Shared = "shared",
        /// `memfd_create(2)`, mapped shared.
        Memfd = "memfd",
        /// `shm_open(3)`, mapped shared.
        Shm = "shm",
        /// `shmget(2)`.
        SysV = "sysv",
        /// Part of the program from its start; creating and freeing it do nothing.
        Static = "static",
    }
}

kinds! {
    /// The pages that are requested for a region.
    Pages {
        /// The machine's default.
        Default = "default",
        /// Small ones only (`MADV_NOHUGEPAGE`).
        Small = "4KiB",
        /// Transparent huge ones (`MADV_HUGEPAGE`).
        Huge = "2MiB",
    }
}
