//! The verbs of a script, and the words for their kinds.

/// What a step does. Indices are those of the [`Plan`](super::Plan)'s lists.
#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    /// Nothing: what stepping itself costs.
    Null,
    /// Counted dependent instructions that take about so long, ns.
    Work {
        /// Nominal time, ns.
        ns: f64,
    },
    /// So many turns of a loop, each of which is one multiplication and one addition
    /// that need the result of those before.
    Turns {
        /// How many.
        turns: u64,
    },
    /// Sleeps at least so long, ns.
    Sleep {
        /// Nominal time, ns.
        ns: f64,
    },
    /// Offers the CPU to others.
    Yield,
    /// Runs until the scheduler takes the CPU away and gives it back: the quantum
    /// runs out.
    RunOut,
    /// A system call that does next to nothing.
    Call(Call),
    /// Reads a clock.
    Read(ClockCall),
    /// Records something of its own, as a program would.
    Record(RecordKind),
    /// Takes a lock.
    Lock {
        /// Which.
        lock: usize,
    },
    /// Gives a lock back.
    Unlock {
        /// Which.
        lock: usize,
    },
    /// Takes a lock and gives it back, so many times in one step: the long loop.
    LockUnlock {
        /// Which.
        lock: usize,
        /// How often.
        times: u64,
    },
    /// Wakes a process, or spares it its next block.
    Wakeup {
        /// Which.
        process: usize,
    },
    /// Waits to be woken; returns at once after an earlier wakeup.
    Block,
    /// Wakes all that wait for an event.
    Notify {
        /// Its number.
        event: u32,
    },
    /// From now on this process waits for the event, too.
    AddEvent {
        /// Its number.
        event: u32,
    },
    /// This process no longer waits for the event.
    DelEvent {
        /// Its number.
        event: u32,
    },
    /// Waits for one of the events added, and takes them off; returns at once if
    /// there are none.
    Wait,
    /// Spins until another process is blocked.
    UntilBlocked {
        /// Which.
        process: usize,
    },
    /// Sends a message.
    Send {
        /// Over which channel.
        channel: usize,
        /// Its length, words of 8 bytes; 0: the least that the channel can send.
        words: u64,
    },
    /// Waits for a message and takes it.
    Receive {
        /// From which channel.
        channel: usize,
    },
    /// Writes that many words of 8 bytes, as an argument is prepared.
    Prepare {
        /// How many.
        words: u64,
    },
    /// Reads that many words of 8 bytes of the last message, as an argument is
    /// used; of the process's own buffer if there was none.
    Access {
        /// How many.
        words: u64,
    },
    /// Makes a child process, which ends at once.
    Fork(ForkKind),
    /// Waits for the child's end.
    Reap,
    /// Makes a region of memory, untouched.
    Create {
        /// Which.
        region: usize,
    },
    /// Writes one byte in each page of a region (of 4 KiB).
    Touch {
        /// Which.
        region: usize,
    },
    /// Writes all words of a region.
    Fill {
        /// Which.
        region: usize,
    },
    /// Gives a region back.
    Free {
        /// Which.
        region: usize,
    },
}

/// Words of a script for the values of a kind.
pub trait Words: Copy + PartialEq + Sized + 'static {
    /// Every word and what it stands for.
    const WORDS: &'static [(&'static str, Self)];

    /// The value of a word.
    #[must_use]
    fn of(word: &str) -> Option<Self> {
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
    /// System calls that do next to nothing.
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
        /// The begin of a section and its end.
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
    /// What a lock is made of.
    LockKind {
        /// `pthread_mutex_t`, shared between processes.
        Pthread = "pthread",
        /// `pthread_spinlock_t`, shared between processes.
        PthreadSpin = "pthread-spin",
        /// Test and test-and-set, with the CPU's pause.
        Spin = "spin",
        /// First come, first served, spinning on one word.
        Ticket = "ticket",
        /// Mellor-Crummey and Scott's queue: each waiter spins on its own word.
        Mcs = "mcs",
        /// One word, compare-and-swap, and `futex(2)` to wait.
        Futex = "futex",
    }
}

kinds! {
    /// What a channel is made of.
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
    /// What wakeup, block, notify and wait are made of.
    Backend {
        /// A word each process waits on, `futex(2)`.
        Futex = "futex",
        /// An `eventfd(2)` each process and event, `epoll(7)` to add, delete, wait.
        Eventfd = "eventfd",
        /// A pipe each process and event, `poll(2)` to wait.
        Pipe = "pipe",
        /// A mutex and a condition variable, shared between processes.
        Condvar = "condvar",
        /// A real-time signal each process: `sigqueue(3)`, `sigtimedwait(2)`. It has
        /// no events: notify, addevent, delevent and wait are not to be had.
        Signal = "signal",
    }
}

kinds! {
    /// Ways of making a child.
    ForkKind {
        /// `fork(2)`.
        Fork = "fork",
        /// `vfork(2)`: returns when the child has ended.
        Vfork = "vfork",
        /// `posix_spawn(3)` of a program that ends at once.
        Spawn = "posix_spawn",
        /// `clone(2)` of a process without copying memory, file descriptors or
        /// signal handlers, with a stack of its own.
        Clone = "clone",
        /// `clone(2)` of a thread.
        Thread = "thread",
    }
}

kinds! {
    /// Where a region comes from.
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
        /// In the program from its start; making it and giving it back do nothing.
        Static = "static",
    }
}

kinds! {
    /// The pages a region is asked to consist of.
    Pages {
        /// What the machine gives.
        Default = "default",
        /// Small ones only (`MADV_NOHUGEPAGE`).
        Small = "4KiB",
        /// Transparent huge ones (`MADV_HUGEPAGE`).
        Huge = "2MiB",
    }
}
