//! `manifest.json`: everything about a trace that is not an event.

mod calibration;
mod kernel;
pub mod mapped;
mod merged;
mod read_cost;
mod triggered;

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

pub use merged::{Closure, HostMap, Merged, TraceHost};

pub use calibration::{
    Calibration, FunctionCost, InterruptCost, PairedCost, SampledCost, SpanCost, SparseCost,
};
pub use kernel::{Balance, Comparison, Kernel, KernelSource, OtherThread, StackSampling};
pub use read_cost::{Change, ReadCost};
pub use triggered::{ThreadState, TriggerSettings, Triggered};

/// Version of the trace format; this crate reads no other.
pub const SCHEMA_VERSION: u32 = 1;

/// State of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A collector is (or was, if it died) writing raw segments.
    Recording,
    /// All events are in the files of `parts`.
    Complete,
}

/// The manifest of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// Always [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// State of the trace.
    pub state: State,
    /// Version of Undertick that wrote it.
    pub undertick_version: String,
    /// Unix time of the start, nanoseconds.
    pub started_unix_ns: i64,
    /// Length of the recording, nanoseconds.
    pub duration_ns: Option<i64>,
    /// The machine.
    pub host: Host,
    /// The recorded command and its arguments.
    pub command: Vec<String>,
    /// How the command ended.
    pub exit: Option<Exit>,
    /// The time base of `ts`.
    pub clock: Clock,
    /// What the descheduled flag means here.
    pub descheduled: Descheduled,
    /// The cost of recording, measured on this machine in a recording of known doses.
    pub calibration: Option<Calibration>,
    /// How the recorder was set.
    pub recorder: Recorder,
    /// Names that the program gave to events.
    pub names: Vec<Name>,
    /// Thread names.
    pub threads: Vec<Thread>,
    /// Names of locks (`record --with locks`): those of variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<LockName>,
    /// One entry per ring, in the order of ring numbers.
    pub rings: Vec<Ring>,
    /// How often sampled spans began, by ring and event; absent in older traces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sampled: Vec<Sampled>,
    /// Events kept.
    pub events: u64,
    /// Events lost, all causes.
    pub lost: u64,
    /// Files in reading order: rows of the kernel, if there are any, come first.
    pub parts: Vec<Part>,
    /// Evidence of the kernel; absent in older traces and where none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Kernel>,
    /// Which points were switched off and on to measure their cost; absent where that was not
    /// requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub perturbation: Option<Perturbation>,
    /// The hosts that the `host` column numbers; empty in older traces, which have one host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<TraceHost>,
    /// Comparisons of clocks that were not needed for the maps; absent with fewer than
    /// three hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closures: Vec<Closure>,
    /// The account of a recording that keeps the last seconds (`--overflow overwrite`); absent
    /// otherwise and in older traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flight: Option<Flight>,
    /// Why the recorder made this snapshot by itself, the first reason first; empty otherwise and
    /// in older traces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggered: Vec<Triggered>,
    /// Number of further reasons.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub triggered_more: u64,
    /// Session directory, while there is one.
    #[serde(default)]
    pub session: Option<String>,
    /// What identifies the session directory, while there is one: a path alone proves nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_identity: Option<SessionIdentity>,
    /// What the reader of the trace must know, in plain words.
    pub warnings: Vec<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Manifest {
    /// A recording in progress of which only its place and its clock are known; `overflow` as in
    /// [`Recorder`].
    #[must_use]
    pub fn new(host: Host, clock: Clock, overflow: &str) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            state: State::Recording,
            undertick_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ns: 0,
            duration_ns: None,
            host,
            command: Vec::new(),
            exit: None,
            clock,
            descheduled: Descheduled::Unavailable,
            calibration: None,
            recorder: Recorder {
                overflow: overflow.to_owned(),
                ring_bytes: 0,
                budget_bytes: 0,
                triggers: None,
                with: Vec::new(),
            },
            names: Vec::new(),
            threads: Vec::new(),
            locks: Vec::new(),
            rings: Vec::new(),
            sampled: Vec::new(),
            events: 0,
            lost: 0,
            parts: Vec::new(),
            kernel: None,
            perturbation: None,
            hosts: Vec::new(),
            closures: Vec::new(),
            flight: None,
            triggered: Vec::new(),
            triggered_more: 0,
            session: None,
            session_identity: None,
            warnings: Vec::new(),
        }
    }

    /// Whether the program preloaded that library.
    #[must_use]
    pub fn is_with(&self, library: &str) -> bool {
        self.recorder.with.iter().any(|name| name == library)
    }

    /// Numbers of the rings that preloaded libraries wrote.
    #[must_use]
    pub fn interposed_rings(&self) -> HashSet<i32> {
        (self.rings.iter())
            .filter(|ring| ring.interposed)
            .map(|ring| ring.ring)
            .collect()
    }
}

/// What identifies a session directory as that of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionIdentity {
    /// Random, 128 bits in hexadecimal: the session directory holds the same.
    pub secret: String,
    /// Device of the session directory.
    pub device: u64,
    /// Its inode number.
    pub inode: u64,
}

/// The machine a trace was taken on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Node name.
    pub name: String,
    /// Kernel release.
    pub kernel: String,
    /// Architecture, as `uname -m`.
    pub arch: String,
    /// CPUs online.
    pub cpus: u32,
    /// Model name of the CPU, where known.
    pub cpu_model: String,
}

/// How the recorded program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exit {
    /// Exit status, if it exited.
    pub status: Option<i32>,
    /// Signal, if one killed it.
    pub signal: Option<i32>,
    /// The recording was stopped from outside (Ctrl-C) before the program ended.
    pub interrupted: bool,
}

/// The clock of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// `tsc`, `cntvct`, `monotonic_raw`, ...
    pub name: String,
    /// Exact rate as a fraction: ticks per second = numerator / denominator.
    pub ticks_per_second_numerator: u64,
    /// See `ticks_per_second_numerator`.
    pub ticks_per_second_denominator: u64,
    /// Where the rate came from.
    pub rate_source: String,
    /// Bound on the error of the rate, parts per billion.
    pub rate_error_ppb: f64,
    /// Smallest step the clock takes, ticks (not its resolution); need not be whole.
    #[serde(deserialize_with = "step", serialize_with = "whole_if_it_is")]
    pub granularity_ticks: f64,
    /// Median cost of one reading, nanoseconds.
    pub read_cost_ns_median: f64,
    /// Points that tie the clock to Unix time; linear in between.
    pub anchors: Vec<Anchor>,
    /// Whether the CPUs agreed on the clock when the recording began; absent in older traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub across_cpus: Option<AcrossCpus>,
}

/// Reads a step of the clock and rejects impossible ones; 0 where none is known.
fn step<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let step = f64::deserialize(from)?;
    if step == 0.0 || (1.0..=u64::MAX as f64).contains(&step) {
        return Ok(step);
    }
    Err(serde::de::Error::custom(
        "a step of the clock below 1 or above 2^64 ticks",
    ))
}

/// Writes a whole step as an integer, because readers of version 0.1 accept nothing else.
fn whole_if_it_is<S: serde::Serializer>(step: &f64, to: S) -> Result<S::Ok, S::Error> {
    if step.fract() == 0.0 && (0.0..1e15).contains(step) {
        to.serialize_u64(*step as u64)
    } else {
        to.serialize_f64(*step)
    }
}

/// The clock seen from several CPUs, in the 50 ms before the program began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcrossCpus {
    /// CPUs that were compared; with one there is nothing to compare.
    pub cpus: u32,
    /// CPUs that the recorder may use.
    pub cpus_allowed: u32,
    /// The smallest lower bound, ticks, of the intervals that hold each CPU's offset to the first
    /// one; `None` if no CPU answered in time.
    pub offset_lo_ticks: Option<i64>,
    /// The largest upper bound, ticks.
    pub offset_hi_ticks: Option<i64>,
    /// CPUs that answered in time, beside the first one.
    pub offsets: u32,
    /// CPUs whose interval excludes 0, or is empty because the offset moved.
    pub cpus_apart: u32,
    /// Readings compared with the largest one published by any CPU.
    pub readings: u64,
    /// Readings below that one.
    pub backward: u64,
    /// The largest such difference, ticks.
    pub worst_backward_ticks: u64,
    /// Time that the check took, ns.
    pub took_ns: u64,
}

impl Manifest {
    /// Mean cost of a reading of the clock in the recorded threads, ns; `None` where too few
    /// samples were taken, or where several hosts' clocks are in the trace.
    #[must_use]
    pub fn read_ns(&self) -> Option<Estimate> {
        if self.hosts.len() > 1 {
            return None;
        }
        let of_rings = self.rings.iter();
        let all =
            ReadCost::of_all(of_rings.filter_map(|ring| Some((ring.received, ring.read_cost?))))?;
        all.mean_ns(self.clock.ns_per_tick())
    }
}

impl Clock {
    /// Nanoseconds per tick.
    #[must_use]
    pub fn ns_per_tick(&self) -> f64 {
        1e9 * self.ticks_per_second_denominator as f64 / self.ticks_per_second_numerator as f64
    }
}

/// One bracketed reading of two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Anchor {
    /// Trace clock, ticks.
    pub ticks: i64,
    /// Unix time, nanoseconds.
    pub unix_ns: i64,
    /// Half the bracket: the pair is right within this, nanoseconds.
    pub error_ns: i64,
}

/// When the kernel clears a thread's `rseq_cs`, found by a self-test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Descheduled {
    /// On every deschedule, blocking included (kernels before 6.19).
    AnyDeschedule,
    /// Only when interrupted in user mode and switched out (6.19 and later).
    PreemptionOnly,
    /// Not available: flags are unknown.
    Unavailable,
}

/// Settings of the recorder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recorder {
    /// `grow`, `drop`, `overwrite` or `block`.
    pub overflow: String,
    /// First size of a ring, bytes.
    pub ring_bytes: u64,
    /// The most memory that all rings together may take, bytes.
    pub budget_bytes: u64,
    /// The rules that make snapshots (`record --trigger`); absent without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggers: Option<TriggerSettings>,
    /// Libraries that the program preloaded (`record --with`): `locks`, `malloc`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
}

/// Name of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Name {
    /// Process that gave the name; absent for one that holds for all.
    pub pid: Option<i32>,
    /// Event number.
    pub event: u16,
    /// The name.
    pub name: String,
}

/// Measuring points switched off and on at random (`record --perturbation`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Perturbation {
    /// The option's value, as given.
    pub asked: String,
    /// Events that stayed on, ascending; all others were switched.
    pub kept: Vec<u16>,
    /// Pairs of halves that were completed.
    pub pairs: u64,
    /// Length of a half in the last plan, ns; 0: there was no plan.
    pub half_ns: u64,
}

impl Perturbation {
    /// [`Self::asked`] where the kernel's events are to be switched.
    pub const KERNEL: &str = "kernel";

    /// Whether the kernel's events were switched, and no points.
    #[must_use]
    pub fn is_of_kernel(&self) -> bool {
        self.asked == Self::KERNEL
    }
}

/// Name of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// The name.
    pub name: String,
}

/// Name of a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LockName {
    /// Process.
    pub pid: i32,
    /// Its address in the process.
    pub address: u64,
    /// The name of the variable at that address, or of the one that contains it, with an offset.
    pub name: String,
}

/// One ring's account: written = received + lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ring {
    /// Ring number, as in the events' `ring` column.
    pub ring: i32,
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Events the program wrote or tried to write.
    pub written: u64,
    /// Events kept in the trace.
    pub received: u64,
    /// Events dropped because the ring was full.
    pub dropped: u64,
    /// Events overwritten before they were read (`overwrite`).
    pub overwritten: u64,
    /// Whether the readings of its spans waited until all earlier instructions had been executed;
    /// records of single readings that did not wait say so. Absent where that is not known
    /// (imports, cards, older traces).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans_wait: Option<bool>,
    /// Whether a preloaded library wrote it (`record --with`): its events are waits and allocations of
    /// its thread ([`crate::interposed`]), and it has no spans.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interposed: bool,
    /// Cost of a reading of the clock while the ring was written; absent where that was not
    /// sampled (imports, cards, older traces).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_cost: Option<ReadCost>,
}

/// The account of a flight recorder, beside its rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flight {
    /// When the snapshot was taken, Unix time in nanoseconds; `None`: this is the
    /// recording itself.
    pub snapshot_unix_ns: Option<i64>,
    /// Rings of ended threads whose last events were given up, the oldest first.
    pub given_up_rings: u64,
    /// The events that were written to those rings; they are in `lost`.
    pub given_up_events: u64,
}

/// How often the sampled spans of an event began in a ring: exact, however many
/// of them are recorded or lost. Events for which a ring had no cell are absent:
/// all their spans are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sampled {
    /// Ring number.
    pub ring: i32,
    /// Event number.
    pub event: u16,
    /// Calls of `ut_begin_sampled` since the ring was made.
    pub executions: u64,
}

/// One file of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// File name inside the trace directory. The file is Parquet, or consists of raw blocks if its
    /// name ends in `.utb`.
    pub file: String,
    /// Rows in it.
    pub rows: u64,
    /// Its size, bytes.
    pub bytes: u64,
    /// CRC-32 (IEEE) of the whole file.
    pub crc32: u32,
    /// Whether its rows come ring by ring, in ascending order of ring numbers. A row group that
    /// does not begin with the ring of the one before begins with a new one. Absent in older
    /// traces, whose rings are interleaved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_ring: bool,
}

impl Part {
    /// Whether the file consists of raw blocks ([`crate::block`]).
    #[must_use]
    pub fn has_raw_blocks(&self) -> bool {
        self.file.ends_with(".utb")
    }
}
