//! `undertick import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use undertick_trace::import::{Source, import};
use undertick_trace::manifest::Manifest;

use crate::Failure;
use crate::output;
use crate::progress::Progress;

/// A trace that another tool recorded, as one that report, compare and export read
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick import trace.json -o trace.ut && undertick report trace.ut\n  \
    perf script --ns -F comm,pid,tid,cpu,time,event,trace > perf.txt && undertick import perf.txt -o perf.ut\n  \
    undertick import lttng-traces/session -o session.ut      (needs babeltrace2)\n\n\
    Times are kept to the nanosecond. Events whose names are a pair (work_begin and work_end, _entry\n\
    and _exit, sys_enter_ and sys_exit_) become spans; switches of the kernel are evidence. What has\n\
    no place in a trace is counted and said. What the other tool's recording cost is not known, so\n\
    nothing is taken off."
)]
pub struct Import {
    /// File, or directory of a CTF trace
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Trace directory to make
    #[arg(short, long, value_name = "NAME.ut")]
    pub output: PathBuf,
    /// Who wrote it; auto looks at what is in it
    #[arg(long, value_enum, default_value_t = From::Auto)]
    pub from: From,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum From {
    Auto,
    /// Chrome trace events, JSON, also compressed with gzip
    Chrome,
    /// Perfetto protobuf
    Perfetto,
    /// Common Trace Format (LTTng), read by babeltrace2
    Ctf,
    /// What `perf script` prints
    PerfScript,
}

pub fn run(arguments: &Import) -> Result<u8, Failure> {
    let source = match arguments.from {
        From::Auto => None,
        From::Chrome => Some(Source::Chrome),
        From::Perfetto => Some(Source::Perfetto),
        From::Ctf => Some(Source::Ctf),
        From::PerfScript => Some(Source::PerfScript),
    };
    let mut progress = Progress::new();
    let imported = import(&arguments.file, source, &arguments.output, |share| {
        progress.share("importing", share);
    });
    progress.done();
    let manifest = imported?;
    for warning in &manifest.warnings {
        say!("undertick: warning: {warning}");
    }
    let kernel = manifest.kernel.as_ref();
    let told = serde_json::json!({
        "schema_version": 1,
        "trace": arguments.output.display().to_string(),
        "events": manifest.events,
        "lost": manifest.lost,
        "threads": manifest.rings.len(),
        "kernel_records": kernel.map_or(0, |kernel| kernel.sources[0].records),
        "kernel_rows": kernel.map_or(0, |kernel| kernel.rows),
        "clock": manifest.clock,
        "warnings": manifest.warnings,
    });
    output::document(arguments.json, &told, || text(arguments, &manifest))
}

fn text(arguments: &Import, manifest: &Manifest) -> String {
    let kernel = manifest.kernel.as_ref().map_or_else(String::new, |kernel| {
        format!(", {} rows of the kernel", kernel.rows)
    });
    format!(
        "{}: {} events of {} threads{kernel}, {} lost\n",
        arguments.output.display(),
        manifest.events,
        manifest.rings.len(),
        manifest.lost
    )
}
