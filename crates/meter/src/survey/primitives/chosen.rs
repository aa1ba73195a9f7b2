//! The selected settings of the groups, and the names of their figures. Ids are read by programs
//! and compared between versions: add, never rename.

use std::collections::BTreeMap;

/// A group of primitives.
pub(super) struct Chosen {
    /// Its script.
    pub(super) script: &'static str,
    /// The values of its sweep to perform.
    pub(super) sweep: &'static [(&'static str, &'static [&'static str])],
    /// The figures that are metrics.
    pub(super) metrics: &'static [Wanted],
}

/// A figure that is a metric; `{parameter}` stands for the value at a setting.
pub(super) struct Wanted {
    pub(super) id: &'static str,
    pub(super) group: &'static str,
    pub(super) name: &'static str,
    /// The interval's name in the script.
    pub(super) of: &'static str,
    /// The line's name, if it is a slope.
    pub(super) line: Option<&'static str>,
    /// If not empty, only settings with these values.
    pub(super) at: &'static [(&'static str, &'static str)],
}

impl Wanted {
    pub(super) fn is_in(&self, parameters: &BTreeMap<String, String>) -> bool {
        let has = |(name, value): &(&str, &str)| parameters.get(*name).is_some_and(|v| v == value);
        self.at.iter().all(has)
    }
}

const fn figure(
    id: &'static str,
    group: &'static str,
    name: &'static str,
    of: &'static str,
) -> Wanted {
    Wanted {
        id,
        group,
        name,
        of,
        line: None,
        at: &[],
    }
}

const fn slope(
    id: &'static str,
    group: &'static str,
    name: &'static str,
    line: &'static str,
) -> Wanted {
    Wanted {
        id,
        group,
        name,
        of: "",
        line: Some(line),
        at: &[],
    }
}

const PLACES: (&str, &[&str]) = ("place", &["same cpu as client", "other cpu than client"]);

pub(super) const CHOSEN: &[Chosen] = &[
    Chosen {
        script: "clocks",
        sweep: &[("readers", &["1"])],
        metrics: &[
            figure(
                "clock.read.counter",
                "reading",
                "the counter",
                "read counter",
            ),
            figure(
                "clock.read.counter_fenced",
                "reading",
                "the counter behind a fence",
                "read counter-fenced",
            ),
            figure(
                "clock.read.monotonic",
                "reading",
                "CLOCK_MONOTONIC",
                "read monotonic",
            ),
            figure(
                "clock.read.monotonic_raw",
                "reading",
                "CLOCK_MONOTONIC_RAW",
                "read monotonic_raw",
            ),
            figure(
                "clock.read.monotonic_coarse",
                "reading",
                "CLOCK_MONOTONIC_COARSE",
                "read monotonic_coarse",
            ),
            figure(
                "clock.read.realtime",
                "reading",
                "CLOCK_REALTIME",
                "read realtime",
            ),
            figure(
                "clock.read.thread_cputime",
                "reading",
                "CPU time of the thread",
                "read thread_cputime",
            ),
            figure(
                "clock.read.getrusage",
                "reading",
                "getrusage",
                "read getrusage",
            ),
        ],
    },
    Chosen {
        script: "calls",
        sweep: &[],
        metrics: &[
            figure("call.getppid", "calls", "getppid", "call getppid"),
            figure("call.getcpu", "calls", "getcpu", "call getcpu"),
            figure(
                "call.sched_yield",
                "calls",
                "sched_yield, nobody else there",
                "call sched_yield",
            ),
        ],
    },
    Chosen {
        script: "yield",
        sweep: &[],
        metrics: &[figure(
            "switch.yield",
            "calls",
            "two switches by sched_yield",
            "yield to another",
        )],
    },
    Chosen {
        script: "wake",
        sweep: &[("backend", &["futex", "eventfd", "condvar"])],
        metrics: &[
            figure(
                "wake.{backend}.round_trip.{place}",
                "wakeup",
                "{backend}, there and back, {place}",
                "wake-up round trip",
            ),
            figure(
                "wake.{backend}.one_way.{place}",
                "wakeup",
                "{backend}, one way, {place}",
                "wake-up, one way",
            ),
        ],
    },
    Chosen {
        script: "sleep",
        sweep: &[],
        metrics: &[figure(
            "sleep.{length}",
            "wakeup",
            "sleep of {length}",
            "sleep",
        )],
    },
    Chosen {
        script: "locks",
        sweep: &[("kind", &["pthread", "spin", "mcs", "futex"])],
        metrics: &[figure(
            "lock.{kind}.alone",
            "locks",
            "{kind}, lock and unlock, alone",
            "lock and unlock",
        )],
    },
    Chosen {
        script: "rivals",
        sweep: &[("kind", &["pthread", "spin", "mcs"])],
        metrics: &[figure(
            "lock.{kind}.rivals",
            "locks",
            "{kind}, lock with one rival",
            "lock with rivals",
        )],
    },
    Chosen {
        script: "messages",
        sweep: &[("kind", &["pipe", "unix", "tcp", "futex"]), PLACES],
        metrics: &[
            figure(
                "{kind}.round_trip.{place}",
                "messages",
                "{kind}, there and back, {place}",
                "message round trip",
            ),
            figure(
                "{kind}.one_way.{place}",
                "messages",
                "{kind}, one way, {place}",
                "message, one way",
            ),
        ],
    },
    Chosen {
        script: "children",
        sweep: &[("way", &["fork", "posix_spawn", "thread"])],
        metrics: &[figure(
            "child.{way}",
            "fork",
            "{way}, its end, waiting for it",
            "child made and ended",
        )],
    },
    Chosen {
        script: "fork",
        sweep: &[("pages", &["4KiB"]), ("bytes", &["33KB", "16MiB", "64MiB"])],
        metrics: &[
            Wanted {
                at: &[("bytes", "33KB")],
                ..figure("fork.33kb", "fork", "fork with 33 KB", "fork")
            },
            slope("fork.per_mib", "fork", "fork, for each MiB", "fork, a MiB"),
        ],
    },
    Chosen {
        script: "memory",
        sweep: &[
            ("kind", &["private", "memfd"]),
            ("bytes", &["4KiB", "1MiB", "4MiB"]),
        ],
        metrics: &[
            Wanted {
                at: &[("bytes", "4KiB")],
                ..figure(
                    "fault.{kind}.page",
                    "faults",
                    "{kind}, first touch of a page",
                    "first touch",
                )
            },
            slope(
                "fault.{kind}.per_mib",
                "faults",
                "{kind}, first touch of a MiB",
                "first touch, a MiB",
            ),
            Wanted {
                at: &[("bytes", "1MiB")],
                ..figure(
                    "memory.{kind}.create",
                    "faults",
                    "{kind}, made and mapped",
                    "create memory",
                )
            },
        ],
    },
    Chosen {
        script: "recorder",
        sweep: &[],
        metrics: &[
            figure(
                "record.event",
                "recording",
                "an event of Undertick",
                "record event",
            ),
            figure(
                "record.section",
                "recording",
                "a section of Undertick",
                "record section",
            ),
        ],
    },
];
