//! `undertick merge`.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use undertick_format::manifest::{Closure, Manifest, TraceHost};
use undertick_format::read::Trace;
use undertick_hosts::merge::{Merge as Asked, merge};

use crate::Failure;
use crate::output;
use crate::progress::Progress;

/// Merge the traces of several hosts into one, on the first one's clock, with bounds
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick merge client.ut server.ut -o both.ut\n  \
    undertick merge client.ut server.ut --sync exchanges.json -o both.ut\n  \
    undertick merge client.ut server.ut --table rpc.toml -o both.ut && undertick report both.ut --table rpc.toml\n\n\
    Clocks are compared by the exchanges of `undertick sync` (in the traces' sync directories, or named\n\
    with --sync), and by messages that two traces hold: intervals with match = \"message\" of --table,\n\
    whose start is in one and whose end is in the other. Both directions are needed."
)]
pub struct Merge {
    /// Traces; all times will be on the first one's clock
    #[arg(value_name = "NAME.ut", required = true, num_args = 2..)]
    pub traces: Vec<PathBuf>,
    /// Trace directory to make
    #[arg(short, long, value_name = "NAME.ut")]
    pub output: PathBuf,
    /// Exchanges of `undertick sync`, in addition to those in the traces
    #[arg(long, value_name = "FILE")]
    pub sync: Vec<PathBuf>,
    /// Table whose intervals between threads are messages between hosts, too
    #[arg(long, value_name = "TABLE.toml")]
    pub table: Option<PathBuf>,
    /// By how much the difference of two clocks' rates may change, parts per million
    /// [default: 2, or 500 where a clock is steered]
    #[arg(long, value_name = "PPM", allow_negative_numbers = true)]
    pub wander: Option<f64>,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    pub json: bool,
}

/// The document of a merge.
#[derive(Serialize, JsonSchema)]
pub struct Merged<'a> {
    schema_version: u32,
    /// The trace that was made.
    trace: String,
    /// Number of its events.
    events: u64,
    /// Number of events lost while the traces were recorded.
    lost: u64,
    /// The hosts, with the map of each one's clock.
    hosts: &'a [TraceHost],
    /// Comparisons of three clocks in a ring.
    closures: &'a [Closure],
    /// What the reader must know.
    warnings: &'a [String],
}

pub fn run(arguments: &Merge) -> Result<u8, Failure> {
    let mut progress = Progress::new();
    let merged = merged(arguments, &mut progress);
    progress.done();
    let manifest = merged?;
    for warning in &manifest.warnings {
        alert!("undertick: warning: {warning}");
    }
    let document = Merged {
        schema_version: 1,
        trace: arguments.output.display().to_string(),
        events: manifest.events,
        lost: manifest.lost,
        hosts: &manifest.hosts,
        closures: &manifest.closures,
        warnings: &manifest.warnings,
    };
    output::document(arguments.json, &document, || text(arguments, &manifest))
}

fn merged(arguments: &Merge, progress: &mut Progress) -> Result<Manifest, Failure> {
    let mut traces = Vec::new();
    for path in &arguments.traces {
        traces.push(Trace::open(path)?);
    }
    let messages = match &arguments.table {
        Some(path) => {
            let table = crate::reporting::read_table(path)?;
            let source = path.display().to_string();
            undertick_analyze::hosts::messages(&traces, &table, &source)?
        }
        None => Vec::new(),
    };
    let asked = Asked {
        traces: &traces,
        sync: &arguments.sync,
        messages,
        wander_ppm: arguments.wander,
    };
    Ok(merge(&asked, &arguments.output, &mut |share| {
        progress.share("merging", share);
    })?)
}

fn text(arguments: &Merge, manifest: &Manifest) -> String {
    let mut out = format!(
        "{}: {} hosts, {} events, {} lost\n",
        arguments.output.display(),
        manifest.hosts.len(),
        manifest.events,
        manifest.lost
    );
    for (place, host) in manifest.hosts.iter().enumerate() {
        let name = &host.name;
        out += &match &host.map {
            None => format!(
                "{place} {name}: all times are on its clock ({})\n",
                host.clock.clock
            ),
            Some(map) if map.is_same_clock => format!("{place} {name}: the same clock\n"),
            Some(map) => format!(
                "{place} {name}: within {:.1} us at the median, {:.1} us at most, by {} + {} messages \
                 with host {}\n",
                map.half_width_ns_median / 1e3,
                map.half_width_ns_max / 1e3,
                map.messages[0],
                map.messages[1],
                map.compared_with
            ),
        };
    }
    for closure in &manifest.closures {
        let [a, b] = closure.hosts;
        out += &format!(
            "check: hosts {a} and {b}, compared with each other, are {:.1} us off the maps; {:.1} us \
             are allowed\n",
            closure.error_ns / 1e3,
            closure.allowed_ns / 1e3
        );
    }
    out
}
