//! The parameters: one file, each value with the figure that it was fitted to.

mod check;
mod figure;

pub use figure::{Figure, Use};

use std::fmt;

use serde::Deserialize;

/// The file that is compiled in.
const PUBLISHED: &str = include_str!("../../parameters.toml");

/// All parameters of the machine. Times are in us, as the paper states them.
///
/// ```
/// use undertick_cmstar::Parameters;
///
/// let mut parameters = Parameters::published();
/// assert_eq!(parameters.clock.tick_us, 2.0);
/// parameters.clock.tick_us = 50.0;
/// parameters.topology.clusters = 20;
/// parameters.check()?;
/// # Ok::<(), undertick_cmstar::BadParameters>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Clusters, Cms, clocks.
    pub topology: Topology,
    /// Properties of the clocks.
    pub clock: Clock,
    /// The way of a reference.
    pub reference: Reference,
    /// The processors.
    pub cm: Cms,
    /// The machine under StarOS.
    pub staros: System,
    /// The machine under Medusa.
    pub medusa: System,
    /// What the paper's experiments leave open.
    pub workload: Workload,
    /// The published figures.
    #[serde(rename = "figure")]
    pub figures: Vec<Figure>,
}

/// Clusters, Cms, clocks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Number of clusters.
    pub clusters: usize,
    /// Cms in each cluster.
    pub cms_per_cluster: usize,
    /// Buses between the clusters; a packet takes the one that is free first.
    pub intercluster_buses: usize,
    /// The Cms that have a clock.
    pub clocks: Vec<ClockPlace>,
}

/// A Cm that has a clock.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockPlace {
    /// Its cluster, from 1.
    pub cluster: usize,
    /// Its number in the cluster, from 1.
    pub cm: usize,
    /// Its name in the paper.
    pub name: String,
}

/// Properties of the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clock {
    /// Length of a tick, us; a whole number of ns.
    pub tick_us: f64,
    /// Number of bits of a word.
    pub word_bits: u32,
    /// Number of words.
    pub words: usize,
}

/// The way of a reference, us. The file says what each part is.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of the hardware's parts")]
pub struct Reference {
    pub issue: f64,
    pub slocal: f64,
    pub map_bus: f64,
    pub own_kmap_out: f64,
    pub intercluster_bus: f64,
    pub far_kmap: f64,
    pub memory: f64,
    pub own_kmap_back: f64,
    pub near_kmap: f64,
    pub local: f64,
    /// How the services of the Kmaps vary: fixed, unless queueing theory is to be checked.
    #[serde(default)]
    pub kmap_law: crate::engine::Law,
}

/// The processors.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cms {
    /// By how much longer the slowest takes than the fastest, relative.
    pub speed_range: f64,
    /// Standard deviation of the time of a piece of work, relative.
    pub work_scatter: f64,
    /// A turn of [`Act::Turns`](crate::Act::Turns), us.
    pub turn: f64,
    /// [`Act::Null`](crate::Act::Null), us.
    pub null: f64,
    /// A word of [`Act::Prepare`](crate::Act::Prepare), us.
    pub prepared_word: f64,
    /// A word of [`Act::Access`](crate::Act::Access) without its reference, us.
    pub accessed_word: f64,
    /// How work varies: only checks against queueing theory use anything but fixed.
    #[serde(default)]
    pub work_law: crate::engine::Law,
}

/// An operating system, us.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Local work from one reading's significant reference to that of the next, less references.
    pub reading: f64,
    /// Local work of the measuring loop, for each of its readings, after the last of them.
    pub store: f64,
    /// Mean of the additional exponential time of each leg of a reference.
    pub leg_scatter: f64,
    /// One poll of a process that spins on its own memory.
    pub poll: f64,
    /// From a signal to the first act of the process that it is for, in the zero test
    /// of Method II.
    pub signal: f64,
    /// What a Kmap does with requests that it cannot serve at once.
    pub contention: Contention,
    /// Line-clock interrupts.
    pub interrupts: Option<Interrupts>,
    /// Messages.
    pub messages: Messages,
    /// Processes.
    pub scheduling: Scheduling,
}

/// What a Kmap does with requests that it cannot serve at once.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Contention {
    /// They wait, first come, first served.
    Queue,
    /// They are turned away and come again.
    Retry {
        /// Number of requests that it has room for.
        contexts: usize,
        /// Mean time to the next try, us, exponential.
        again: f64,
        /// Time of the Kmap that a refusal takes, us.
        refused: f64,
    },
}

/// Interrupts of the line clock.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interrupts {
    /// Time from one interrupt to the next, us.
    pub period_us: f64,
    /// Mean time of one interrupt, us.
    pub handler: f64,
    /// Standard deviation of that time, us.
    pub handler_scatter: f64,
    /// A Cm's interrupts are late by a fixed time up to this, us.
    pub skew: f64,
}

/// Messages, us.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Messages {
    /// Local work of a send.
    pub send: f64,
    /// Local work of a receive.
    pub receive: f64,
    /// Number of pieces of the Kmap's work for a send, and for a receive.
    pub kmap_pieces: u32,
    /// Time of one of them.
    pub kmap_piece: f64,
    /// Mean time between them, exponential.
    pub kmap_gap: f64,
    /// Local work for each word, in the send and in the receive.
    pub word: f64,
    /// Work of the Kmap for each word, in the send and in the receive: one more piece.
    pub kmap_word: f64,
    /// Maximum number of waiting messages of a channel; beyond it a sender waits for room.
    pub capacity: usize,
}

/// Processes, us.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheduling {
    /// Time after which another process has its turn.
    pub quantum: f64,
    /// Choosing a process and loading it.
    pub dispatch: f64,
    /// Waking one.
    pub wakeup: f64,
    /// Blocking, without the dispatch of another.
    pub block: f64,
    /// Adding, deleting, notifying, waiting.
    pub event: f64,
    /// Additional time for each process that a notify wakes.
    pub notify_each: f64,
    /// Going to sleep.
    pub sleep: f64,
    /// Offering the Cm to others.
    #[serde(rename = "yield")]
    pub give_way: f64,
}

/// What the paper's experiments leave open.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Index of the clock that is the system time.
    pub clock: usize,
    /// Clusters, from 1, over which readers are spread.
    pub reader_clusters: Vec<usize>,
    /// Number of readers of the zero test of Method I.
    pub method_one_readers: usize,
    /// Time in which they start, and time in which they end, ms.
    pub method_one_ramp_ms: f64,
    /// Length of that test, ms.
    pub method_one_ms: f64,
    /// Number of pairs in each cluster in the zero test of Method II.
    pub method_two_pairs: usize,
    /// Number of words of their messages.
    pub method_two_words: u32,
    /// Mean time between repetitions, ms.
    pub method_two_every_ms: f64,
}

/// The operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Os {
    /// With interrupts; requests are turned away under contention.
    StarOs,
    /// Without interrupts; requests queue.
    Medusa,
}

impl fmt::Display for Os {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StarOs => "StarOS",
            Self::Medusa => "Medusa",
        })
    }
}

/// The parameters do not describe a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadParameters(String);

impl fmt::Display for BadParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for BadParameters {}

impl Parameters {
    /// Returns the parameters fitted to the published figures.
    ///
    /// # Panics
    /// Never: a test reads the file.
    #[must_use]
    pub fn published() -> Self {
        Self::parse(PUBLISHED).expect("the file that is compiled in is right")
    }

    /// Returns the text that [`Parameters::published`] reads, as a starting point for changes.
    #[must_use]
    pub const fn published_text() -> &'static str {
        PUBLISHED
    }

    /// Reads parameters from TOML text.
    ///
    /// # Errors
    /// Line and reason where the text is not TOML, or name and reason where a value does not
    /// describe a machine.
    pub fn parse(text: &str) -> Result<Self, BadParameters> {
        let parameters: Self =
            toml::from_str(text).map_err(|e| BadParameters(e.to_string().trim_end().to_owned()))?;
        parameters.check()?;
        Ok(parameters)
    }

    /// Returns the parameters of an operating system.
    #[must_use]
    pub const fn system(&self, os: Os) -> &System {
        match os {
            Os::StarOs => &self.staros,
            Os::Medusa => &self.medusa,
        }
    }

    /// Returns a published figure by its name.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}
