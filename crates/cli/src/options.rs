//! Options that several commands share, and those of `record`, `report`, `export`, `header` and
//! `demo`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use undertick_convert::export::otlp::Only;

use crate::{Failure, output, sizes};

/// How a command gives its results.
#[derive(Args)]
pub struct Results {
    /// Level of the confidence intervals
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    pub confidence: f64,
    /// Write a self-contained page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// All tables and notes, not what fits on one screen
    #[arg(long, conflicts_with = "json")]
    pub full: bool,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    pub json: bool,
}

impl Results {
    /// Returns the level if it lies between 0 and 1.
    pub fn level(&self) -> Result<f64, Failure> {
        output::level(self.confidence)
    }

    /// Writes the page if it was requested.
    pub fn page(&self, text: impl FnOnce() -> String) -> Result<(), Failure> {
        output::page(self.html.as_deref(), text)
    }

    /// Prints the document as JSON if that was requested, otherwise the text.
    pub fn document<T: Serialize>(
        &self,
        document: &T,
        text: impl FnOnce() -> String,
    ) -> Result<u8, Failure> {
        output::document(self.json, document, text)
    }
}

/// Record a real workload shipped with Undertick; print a table and write a page
#[derive(Args)]
#[command(after_help = "Example:\n  undertick demo && xdg-open undertick-report.html")]
pub struct Demo {
    /// Trace directory to make [default: undertick-demo.ut, with a number if that exists]
    #[arg(short, long, value_name = "NAME.ut")]
    pub output: Option<PathBuf>,
    /// Page to write
    #[arg(long, value_name = "FILE", default_value = "undertick-report.html")]
    pub html: PathBuf,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    pub json: bool,
}

/// Intervals, frequencies, estimates and histograms of a trace
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick report run.ut\n  undertick report run.ut --html page.html --confidence 0.99\n  \
    undertick report run.ut --table tables/request.toml --cull none --json | jq .intervals\n  \
    undertick record --runs 5 -o five -- ./program && undertick report five"
)]
pub struct Report {
    /// Trace directory, as made by `undertick record`; or a directory of several runs, as
    /// made by `undertick record --runs`
    #[arg(value_name = "NAME.ut")]
    pub trace: PathBuf,
    /// Table of intervals and frequencies; without one, every pair that the events form is reported
    #[arg(long, value_name = "TABLE.toml")]
    pub table: Option<PathBuf>,
    /// Level of the confidence intervals
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    pub confidence: f64,
    /// Which samples to drop: auto, kernel, ratio:R (e.g. ratio:4), none
    #[arg(long, value_name = "RULE", default_value = "auto")]
    pub cull: String,
    /// Which cost to subtract: auto, none, long-term, pairs, sampler, control-variate
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub compensate: String,
    /// Write a self-contained page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Time after the first event at which the page's timeline begins, which shows one second, e.g.
    /// 12.5s [default: the second in which samples took longest]
    #[arg(long, value_name = "TIME", requires = "html", value_parser = sizes::parse_moment)]
    pub second: Option<Duration>,
    /// Also store the intervals, as Parquet in NAME.ut/spans, one row each
    #[arg(long)]
    pub spans: bool,
    /// List spans by name, not by path
    #[arg(long)]
    pub flat: bool,
    /// Everything that is known: intervals of the figures, evidence, distributions, notes, warnings
    #[arg(long, conflicts_with = "flat")]
    pub full: bool,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    pub json: bool,
}

/// Write a trace in the format of another tool
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick export run.ut --to perfetto run.pftrace   (open it at ui.perfetto.dev)\n  \
    undertick export run.ut --to google-benchmark run.json && compare.py benchmarks before.json run.json\n  \
    undertick export run.ut --to pyperf run.json && pyperf compare_to before.json run.json\n  \
    undertick export run.ut --to hdrhistogram run.hlog\n  \
    undertick export run.ut --to otlp http://localhost:4318   (an OpenTelemetry Collector)\n  \
    undertick export run.ut --to otlp --only 'request > p99' slow.jsonl"
)]
pub struct Export {
    /// Trace directory, as made by `undertick record`
    #[arg(value_name = "NAME.ut")]
    pub trace: PathBuf,
    /// Format
    #[arg(long, value_enum)]
    pub to: Format,
    /// Table of the intervals to write, for formats of intervals; without it, those that the events
    /// form. With perfetto, its messages become arrows
    #[arg(long, value_name = "TABLE.toml")]
    pub table: Option<PathBuf>,
    /// With otlp, only the spans of a name that took longer, with the spans and points inside them:
    /// 'request > 5ms', 'request > p99', 'request > 4 x median'
    #[arg(long, value_name = "NAME > LIMIT")]
    pub only: Option<Only>,
    /// File to make; it must not exist. With otlp, a name that ends in .json or .jsonl (JSON lines) or in .pb,
    /// .binpb or .otlp (protobuf messages, each after its length), or a collector, http://HOST:PORT
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Format {
    /// Perfetto protobuf: slices and instants per thread
    Perfetto,
    /// Chrome trace events, JSON
    Chrome,
    /// One line per event, with names
    Csv,
    /// One Parquet file with nanoseconds and names
    Parquet,
    /// Google Benchmark's JSON: an interval is a benchmark, a block of time a repetition
    GoogleBenchmark,
    /// pyperf's JSON: an interval is a benchmark, a block of time a run
    Pyperf,
    /// HdrHistogram log, version 2: a histogram of nanoseconds for each interval
    Hdrhistogram,
    /// OpenTelemetry's protocol: the spans, in a file or sent to a collector by HTTP
    Otlp,
}

/// Write undertick.h, for users who installed only this program
#[derive(Args)]
#[command(
    after_help = "Example:\n  undertick header --dir include && cc -Iinclude program.c\n  \
    undertick header --functions --dir lib && cc -finstrument-functions program.c -Llib -lundertick_functions"
)]
pub struct Header {
    /// Directory to write it to
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Also write libundertick_functions.so and its source, for linking with a program that is
    /// compiled with -finstrument-functions
    #[arg(long)]
    pub functions: bool,
    /// Also write undertick_coroutine.hpp, which records coroutines of C++20 as tasks
    #[arg(long)]
    pub coroutines: bool,
}

/// Run an instrumented program, or attach to a running one, and record its events
#[derive(Args)]
#[command(
    override_usage = "undertick record [OPTIONS] [--] <PROGRAM>...\n       undertick record [OPTIONS] --pid <PID>\n       undertick record [OPTIONS] --card <DEVICE>\n       undertick record --resume <NAME.ut>\n       undertick record --finish <NAME.ut>",
    after_help = "Examples:\n  undertick record -o run.ut -- ./server --port 8080\n  undertick report run.ut\n  \
    undertick record --pid $(pgrep server) --for 10s -o now.ut\n  \
    undertick record --functions '^(parse|send)_' -- ./built-with-finstrument-functions\n  \
    undertick record --stacks 1ms -o stacks.ut -- ./program   (then: undertick stacks stacks.ut)\n  \
    undertick record --perturbation 1 -o slowed.ut -- ./program\n  \
    undertick record --runs 5 -o five -- ./program   (then: undertick report five)\n  \
    undertick record --card /dev/event-card --events EVENTS.toml -o soc.ut\n  \
    undertick record --overflow overwrite -o flight.ut -- ./server   (then: undertick snapshot flight.ut -o now.ut)\n  \
    undertick record --overflow overwrite --trigger 'request > 5ms' -- ./server\n  \
    undertick record --resume run.ut   (its recorder was killed, the program runs on)\n  \
    undertick record --finish run.ut   (its recorder was killed, or the disk was full: stores what there is)\n  \
    undertick record --finish large.ut   (turns the raw blocks of a large recording into Parquet)\n\n\
    With --pid the program runs on as before when the recording ends: after --for, at Ctrl-C, or with the\n\
    program; the exit status is 0. Children that it forks are recorded too.\n\n\
    Without --pid, the exit status is the program's. Ctrl-C ends the program and leaves a readable trace; a second\n\
    Ctrl-C stops waiting for it."
)]
pub struct Record {
    #[command(flatten)]
    pub recording: Recording,
    /// Go on with a recording whose recorder was killed, in the same trace. No event that the
    /// program had published is lost, and events that it could not write since then are counted.
    /// Ctrl-C ends the recording, not the program
    #[arg(long, value_name = "NAME.ut", exclusive = true)]
    pub resume: Option<PathBuf>,
    /// Finish a trace whose recorder was killed or had no room on the disk. Events still in its
    /// rings are stored if the rings belong to the trace, and a program that still runs is no
    /// longer recorded. Commands that read a trace never do this by themselves. In a finished
    /// trace whose events are raw blocks, turn these into Parquet, as --parquet does
    #[arg(long, value_name = "NAME.ut", exclusive = true)]
    pub finish: Option<PathBuf>,
    /// Run the program N times, each time in a fresh process, into a directory of traces. The
    /// confidence intervals of their report come from the differences between runs, which one run
    /// cannot show. The directory is -o [default: PROGRAM.runs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2000))]
    pub runs: Option<u64>,
    /// With --runs: begin each run at least TIME after the previous one. Otherwise a disturbance of
    /// some seconds would affect several runs alike, and the confidence intervals would be too
    /// narrow
    #[arg(long, value_name = "TIME", default_value = "15s", requires = "runs", value_parser = sizes::parse_moment)]
    pub apart: Duration,
    /// Write events, losses, snapshots and the recorder's CPU time to a file each second, in the
    /// text form of Prometheus (for the textfile collector of its node exporter)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "card"])]
    pub metrics: Option<PathBuf>,
}

// A doc comment here would appear in the help of the commands that have these options.
#[derive(Args, Clone)]
pub struct Recording {
    /// Trace directory to make [default: PROGRAM.ut, with a number if that exists]
    #[arg(short, long, value_name = "NAME.ut")]
    pub output: Option<PathBuf>,
    /// TOML file with event names: a table `names` of NUMBER = "name"
    #[arg(long, value_name = "EVENTS.toml")]
    pub events: Option<PathBuf>,
    /// What to do when a ring is full
    #[arg(long, value_enum, default_value = "grow")]
    pub overflow: Overflow,
    /// First size of each thread's ring
    #[arg(long, value_name = "SIZE", default_value = "8MiB", value_parser = sizes::parse)]
    pub ring: u64,
    /// Maximum memory for all rings together [default: 1 GiB, or half of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    pub budget: Option<u64>,
    /// Make a snapshot when the program meets a rule (needs --overflow overwrite): 'NAME > 5ms',
    /// 'NAME > p99.9', 'NAME > 4 x median', 'NAME open for 1s', 'event NAME', 'rate of NAME < 100/s'
    /// or 'lost > 0'. May be given several times
    #[arg(long, value_name = "RULE", value_parser = rule, conflicts_with = "card")]
    pub trigger: Vec<undertick_trigger::Rule>,
    /// With --trigger: the time before the span or the event that a snapshot includes, and the delay
    /// after the rule was met until the snapshot is made
    #[arg(long, value_name = "TIME..TIME", requires = "trigger", default_value = "2s..0.5s", value_parser = sizes::parse_before_and_after)]
    pub keep: (Duration, Duration),
    /// With --trigger: the largest number of snapshots per time; beyond it, how often rules are met
    /// is only counted
    #[arg(long, value_name = "N/TIME", requires = "trigger", default_value = "10/min", value_parser = sizes::parse_at_most)]
    pub at_most: (u32, Duration),
    /// With --trigger: the largest size of this recording's snapshots together; beyond it the oldest
    /// are removed
    #[arg(long, value_name = "SIZE", requires = "trigger", default_value = "4GiB", value_parser = sizes::parse)]
    pub keep_total: u64,
    /// Record one in N sampled spans, of one event (its number, or its name in --events) or of all
    #[arg(long, value_name = "[EVENT=]N")]
    pub sample: Vec<String>,
    /// Do not measure the cost of recording here: figures are as read
    #[arg(long)]
    pub no_calibration: bool,
    /// Measure the cost of recording again, even if it is known (takes about 1 s)
    #[arg(long, conflicts_with = "no_calibration")]
    pub calibrate: bool,
    /// Which kernel events to add: switches, interrupts, faults, steal
    #[arg(long, value_enum, default_value = "auto")]
    pub kernel: Kernel,
    /// Sample the stack of each thread after every EVERY on a CPU (at least 100us, usually 1ms), and
    /// when it begins to wait: `undertick stacks` then shows which functions the time of each span
    /// went to. Needs perf. Without CAP_PERFMON or perf_event_paranoid at 1 or lower, system calls and
    /// waits are not sampled
    #[arg(long, value_name = "EVERY", conflicts_with = "card", value_parser = sizes::parse_time)]
    pub stacks: Option<Duration>,
    /// Store the events as Parquet, whatever their number. Otherwise a recording of 16 MiB of raw
    /// blocks or more (about 3 to 6 million events) stays as raw blocks, and its trace is complete
    /// sooner. All commands read these; Spark, pandas and other tools do not (see --finish, and
    /// export --to parquet)
    #[arg(long)]
    pub parquet: bool,
    /// Switch measuring points off and on at random while the program runs, so that the report can
    /// state by how much they slow the spans around them. LEVEL 1 keeps the outermost spans (and
    /// instants outside of all spans) on and switches the points inside them, LEVEL 2 keeps one
    /// level more; keep=EVENT[,EVENT...] keeps these events, by number or by a name of --events;
    /// kernel switches the kernel's trace instead of points. Half of the switched events are not
    /// recorded
    #[arg(long, value_name = "LEVEL")]
    pub perturbation: Option<String>,
    /// Record the functions whose names match, of a program compiled with
    /// -finstrument-functions
    #[arg(long, value_name = "REGEX", conflicts_with = "pid")]
    pub functions: Option<String>,
    /// Preload libraries that record waits and allocations. locks: waits for mutexes, read-write locks,
    /// conditions and semaphores of the C library, with the holder. malloc: how much each span
    /// allocates. See `undertick locks` and `undertick allocations`
    #[arg(long, value_name = "LIST", conflicts_with_all = ["pid", "card", "perturbation"], value_enum, value_delimiter = ',')]
    pub with: Vec<Interposed>,
    /// Record a running program that was built with undertick.h or the undertick crate
    #[arg(long, value_name = "PID", conflicts_with = "command", value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: Option<i32>,
    /// With --pid: end the recording after TIME, e.g. 500ms, 10s, 2m
    #[arg(long = "for", value_name = "TIME", requires = "pid", value_parser = sizes::parse_time)]
    pub length: Option<Duration>,
    /// Record the stream of an event card (hw/event_card) from a device, pipe or file until it
    /// ends or Ctrl-C; no program is started
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["pid", "command"])]
    pub card: Option<PathBuf>,
    /// With --card: ticks per second, if the card does not know its rate
    #[arg(long, value_name = "N", requires = "card", value_parser = clap::value_parser!(u64).range(1..))]
    pub ticks_per_second: Option<u64>,
    /// Program and arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required_unless_present_any = ["pid", "card"],
        value_name = "PROGRAM"
    )]
    pub command: Vec<OsString>,
}

/// What preloaded libraries record.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Interposed {
    /// Waits for locks, conditions and semaphores
    Locks,
    /// Allocations and frees
    Malloc,
}

/// Parses a rule. The mark below the text goes to a line of its own.
fn rule(text: &str) -> Result<undertick_trigger::Rule, String> {
    text.parse()
        .map_err(|error: undertick_trigger::RuleError| format!("\n{error}"))
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Overflow {
    /// Take more memory, up to the budget; then drop
    Grow,
    /// Drop the new event
    Drop,
    /// Overwrite the oldest events (keeps the last seconds)
    Overwrite,
    /// Wait for the recorder (slows the program)
    Block,
}

impl From<Overflow> for undertick_record::Overflow {
    fn from(overflow: Overflow) -> Self {
        match overflow {
            Overflow::Grow => Self::Grow,
            Overflow::Drop => Self::Drop,
            Overflow::Overwrite => Self::Overwrite,
            Overflow::Block => Self::Block,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kernel {
    /// Those that are allowed here
    Auto,
    /// As auto, but refuse to record if context switches are not available
    On,
    /// None
    Off,
}

impl From<Kernel> for undertick_record::kernel::Wanted {
    fn from(kernel: Kernel) -> Self {
        match kernel {
            Kernel::Auto => Self::Auto,
            Kernel::On => Self::On,
            Kernel::Off => Self::Off,
        }
    }
}
