//! `undertick export`.

mod blocks;
mod google_benchmark;
mod hdr_log;
mod otlp;
mod pyperf;
mod spans;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use undertick_analyze::arrows::Arrows;
use undertick_convert::export::{Format, export};
use undertick_format::read::Trace;

use crate::Failure;
use crate::options;
use crate::progress::Progress;
use spans::Spans;

pub fn run(arguments: &options::Export) -> Result<u8, Failure> {
    if arguments.to == options::Format::Otlp {
        return otlp::run(arguments);
    }
    if arguments.only.is_some() {
        return Err(Failure::usage("--only is for spans: --to otlp"));
    }
    let mut progress = Progress::new();
    let result = exported(arguments, &mut progress);
    progress.done();
    say!("undertick: {} in {}", result?, arguments.file.display());
    Ok(0)
}

/// Writes the file; returns a description of its content.
fn exported(arguments: &options::Export, progress: &mut Progress) -> Result<String, Failure> {
    let trace = Trace::open(&arguments.trace)?;
    let write: fn(&Spans, &mut dyn Write) -> Result<String, Failure> = match arguments.to {
        options::Format::Perfetto => return rows(&trace, Format::Perfetto, arguments, progress),
        options::Format::Chrome => return rows(&trace, Format::Chrome, arguments, progress),
        options::Format::Csv => return rows(&trace, Format::Csv, arguments, progress),
        options::Format::Parquet => return rows(&trace, Format::Parquet, arguments, progress),
        options::Format::GoogleBenchmark => google_benchmark::write,
        options::Format::Pyperf => pyperf::write,
        options::Format::Hdrhistogram => hdr_log::write,
        options::Format::Otlp => unreachable!("has a writer of its own"),
    };
    let table = arguments
        .table
        .as_deref()
        .map(crate::reporting::read_table)
        .transpose()?;
    let options = undertick_analyze::Options {
        table,
        ..undertick_analyze::Options::default()
    };
    // The file is created before the work, because an existing one is never overwritten.
    let file = create(&arguments.file)?;
    let spans = Spans::find(trace, options, &mut |share| {
        progress.share("matching", share)
    });
    let mut out = BufWriter::new(file);
    let written = spans.and_then(|spans| {
        let said = write(&spans, &mut out)?;
        out.flush().map_err(|e| failed(&arguments.file, &e))?;
        Ok(said)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&arguments.file);
    }
    written
}

fn rows(
    trace: &Trace,
    format: Format,
    arguments: &options::Export,
    progress: &mut Progress,
) -> Result<String, Failure> {
    let mut arrows = Arrows::default();
    if let Some(table) = &arguments.table {
        if format != Format::Perfetto {
            return Err(Failure::usage(
                "--table is for perfetto (arrows of messages) and for formats of intervals: \
                 google-benchmark, pyperf, hdrhistogram",
            ));
        }
        arrows = undertick_analyze::arrows::arrows(trace, &crate::reporting::read_table(table)?)?;
    }
    let rows = export(trace, format, &arguments.file, &arrows.ends, &mut |share| {
        progress.share("exporting", share);
    })?;
    let mut said = format!("{rows} rows");
    if arguments.table.is_some() {
        let Arrows {
            ends,
            alone,
            left_out,
        } = arrows;
        said += &format!(", {} arrows", ends.len() / 2);
        for (n, what) in [
            (alone, "without another side"),
            (left_out, "left out, too many"),
        ] {
            if n > 0 {
                said += &format!(" ({n} ends {what})");
            }
        }
    }
    Ok(said)
}

fn create(path: &Path) -> Result<File, Failure> {
    File::create_new(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::usage(format!(
            "{}: exists already; remove it or give another name",
            path.display()
        )),
        _ => failed(path, &error),
    })
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::machine(format!("{}: cannot write: {error}", path.display()))
}
