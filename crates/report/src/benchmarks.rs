//! The `benchmarks` document: measurements of a benchmark program in one round; and `benchmark-runs`, those
//! of many.

mod terminal;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_document::{Must, Warning};
use undertick_units::{Estimate, Interval};

use crate::compare::{SequentialEnd, Side, Source};
use crate::survey::{Host, Metric};

/// Version of the document this crate describes.
pub const SCHEMA_VERSION: u32 = 1;

/// Value of `kind` in such a document.
pub const KIND: &str = "benchmarks";

/// Value of `kind` in the document of many processes.
pub const KIND_OF_RUNS: &str = "benchmark-runs";

pub use terminal::render;

/// The tool that a benchmark program was written for. Each has options for what to run and for how long,
/// and a form of its measurements for other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Harness {
    /// Google Benchmark.
    Google,
    /// Criterion.rs.
    Criterion,
    /// Tests of Go, as `go test -c` builds them.
    Go,
    /// pytest-benchmark.
    Pytest,
    /// `#[bench]` of Rust.
    Libtest,
    /// None: the program is timed from its start to its end.
    Command,
}

impl Harness {
    /// Its name as people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Google => "Google Benchmark",
            Self::Criterion => "Criterion.rs",
            Self::Go => "Go's testing",
            Self::Pytest => "pytest-benchmark",
            Self::Libtest => "Rust's #[bench]",
            Self::Command => "the whole program",
        }
    }
}

/// Measurements of a benchmark program in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Benchmarks {
    /// Version of the document.
    pub schema_version: u32,
    /// Always `benchmarks`.
    pub kind: String,
    /// The tool that the program was written for.
    pub harness: Harness,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The machine.
    pub host: Host,
    /// Unix time of its start, s.
    pub begun_unix_s: f64,
    /// Duration of the round, s: of one process, or of one for each benchmark.
    pub took_s: f64,
    /// The benchmarks, in the order of the program.
    pub benchmarks: Vec<Benchmark>,
}

/// One benchmark in one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Benchmark {
    /// Its name, as the tool has it.
    pub name: String,
    /// Time of an iteration, ns: the median of the tool's measurements in this process.
    pub time_ns: f64,
    /// Number of iterations behind it.
    pub iterations: u64,
}

/// The benchmarks of a program over many processes, of which each gave one number of each benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchmarkRuns {
    /// Version of the document.
    pub schema_version: u32,
    /// Always `benchmark-runs`.
    pub kind: String,
    /// The tool that the program was written for.
    pub harness: Harness,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The machine.
    pub host: Host,
    /// Unix time of the first process' start, s.
    pub begun_unix_s: f64,
    /// Duration of all, s.
    pub took_s: f64,
    /// Number of rounds: a process, or, where each benchmark is run by itself, one for each of them.
    pub runs: u64,
    /// Why it ended; `decided`: each mean is known well enough.
    pub end: SequentialEnd,
    /// A mean is known well enough when half of its interval is at most this share of it.
    pub within: f64,
    /// The benchmarks, in the order of the program.
    pub benchmarks: Vec<BenchmarkRun>,
    /// What the reader must know.
    pub warnings: Vec<Warning>,
}

/// One benchmark over many processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchmarkRun {
    /// Its name, as the tool has it.
    pub name: String,
    /// Mean time of an iteration, ns, with its confidence interval from the scatter between processes.
    pub mean: Estimate,
    /// The smallest time of a process, ns.
    pub min_ns: f64,
    /// The largest time of a process, ns.
    pub max_ns: f64,
}

impl Benchmarks {
    /// As one side of a comparison; `file` is where it was read from.
    #[must_use]
    pub fn side(self, file: &str) -> Side {
        Side {
            about: Source {
                file: file.to_owned(),
                kind: KIND.to_owned(),
                host: self.host,
                begun_unix_s: self.begun_unix_s,
                runs: None,
            },
            metrics: self.benchmarks.iter().filter_map(metric).collect(),
            paths: Vec::new(),
            interrupted: false,
            is_one_run: true,
        }
    }
}

/// A benchmark as a figure; `None` where it cannot be true.
fn metric(of: &Benchmark) -> Option<Metric> {
    let mut time = Estimate {
        value: of.time_ns,
        interval: Interval { lo: None, hi: None },
        level: 0.95,
        unit: "ns".to_owned(),
        method: "of one process".to_owned(),
        n: of.iterations,
        n_effective: 1.0,
        notes: Vec::new(),
    };
    let is_possible = Must::NotNegative.judge(&mut time).is_none();
    is_possible.then(|| Metric::new(&of.name, KIND, &of.name, time, "one iteration"))
}
