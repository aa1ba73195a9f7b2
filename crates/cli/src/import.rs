//! `undertick import`.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;
use undertick_convert::import::card::Card;
use undertick_convert::import::{Source, import, import_card};
use undertick_format::manifest::{Clock, Manifest};

use crate::Failure;
use crate::output;
use crate::progress::Progress;

/// Convert a trace of another tool for report, compare and export
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick import trace.json -o trace.ut && undertick report trace.ut\n  \
    perf script --ns -F comm,pid,tid,cpu,time,event,trace > perf.txt && undertick import perf.txt -o perf.ut\n  \
    undertick import spans.jsonl -o spans.ut                 (OpenTelemetry)\n  \
    undertick import lttng-traces/session -o session.ut      (needs babeltrace2)\n  \
    undertick import --from card --events EVENTS.toml stream.bin -o soc.ut\n\n\
    Times are kept to the nanosecond. Events whose names are a pair (work_begin and work_end, _entry\n\
    and _exit, sys_enter_ and sys_exit_) become spans; switches of the kernel are evidence. What a\n\
    trace cannot hold is counted and reported. The other tool's cost of recording is not known, so\n\
    nothing is subtracted."
)]
pub struct Import {
    /// File, or directory of a CTF trace
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Trace directory to make
    #[arg(short, long, value_name = "NAME.ut")]
    pub output: PathBuf,
    /// Format of the file; auto detects it from the content
    #[arg(long, value_enum, default_value_t = From(None))]
    pub from: From,
    /// For an event card: TOML file with event names, a table `names` of NUMBER = "name"
    #[arg(long, value_name = "EVENTS.toml")]
    pub events: Option<PathBuf>,
    /// For an event card that does not know its rate: ticks per second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub ticks_per_second: Option<u64>,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    pub json: bool,
}

/// A value of `--from`; `None` is `auto`.
#[derive(Clone, Copy)]
pub struct From(Option<Source>);

impl ValueEnum for From {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<From>> = LazyLock::new(|| {
            let sources = Source::ALL.iter().copied().map(Some);
            std::iter::once(None).chain(sources).map(From).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(self.0.map_or_else(
            || PossibleValue::new("auto"),
            |source| PossibleValue::new(source.word()).help(source.description()),
        ))
    }
}

/// The document of an import.
#[derive(Serialize, JsonSchema)]
pub struct Imported<'a> {
    schema_version: u32,
    /// The trace that was made.
    trace: String,
    /// Number of its events.
    events: u64,
    /// Number of events that the other tool said it lost.
    lost: u64,
    /// Number of rings: threads with events, and lanes made for spans of no thread.
    threads: usize,
    /// Records of the kernel in the other trace.
    kernel_records: u64,
    /// Rows of kernel evidence made from them.
    kernel_rows: u64,
    /// The clock of the events.
    clock: &'a Clock,
    /// What the reader must know.
    warnings: &'a [String],
}

pub fn run(arguments: &Import) -> Result<u8, Failure> {
    let source = arguments.from.0;
    let mut progress = Progress::new();
    let mut on_progress = |share| progress.share("importing", share);
    let imported = match card(arguments)? {
        Some(card) if matches!(source, None | Some(Source::Card)) => {
            import_card(&arguments.file, card, &arguments.output, &mut on_progress)
        }
        Some(_) => {
            return Err(Failure::usage(
                "--events and --ticks-per-second are for the stream of an event card: --from card",
            ));
        }
        None => import(&arguments.file, source, &arguments.output, &mut on_progress),
    };
    progress.done();
    let manifest = imported?;
    for warning in &manifest.warnings {
        alert!("undertick: warning: {warning}");
    }
    let kernel = manifest.kernel.as_ref();
    let document = Imported {
        schema_version: 1,
        trace: arguments.output.display().to_string(),
        events: manifest.events,
        lost: manifest.lost,
        threads: manifest.rings.len(),
        kernel_records: kernel.map_or(0, |kernel| kernel.sources[0].records),
        kernel_rows: kernel.map_or(0, |kernel| kernel.rows),
        clock: &manifest.clock,
        warnings: &manifest.warnings,
    };
    output::document(arguments.json, &document, || text(arguments, &manifest))
}

/// Returns what the options add to the card's stream, if they were given.
fn card(arguments: &Import) -> Result<Option<Card>, Failure> {
    let names = (arguments.events.as_deref())
        .map(crate::recording::read_names)
        .transpose()?;
    let is_given = names.is_some() || arguments.ticks_per_second.is_some();
    Ok(is_given.then(|| Card {
        ticks_per_second: arguments.ticks_per_second,
        names: names.unwrap_or_default(),
    }))
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
