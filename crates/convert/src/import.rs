//! Imports traces that other tools recorded, so that every reader of traces works on them
//! unchanged. It streams: memory does not grow with the file.
//!
//! Times are kept to the nanosecond. What a trace cannot hold is counted, by kind, and reported
//! in the manifest's warnings. The other tool's cost of recording is unknown, so nothing is
//! compensated.

pub mod card;
mod chrome;
mod ctf;
mod decimal;
mod detect;
mod edges;
mod intake;
mod json;
mod kernel_rows;
mod lines;
mod otlp;
mod perf_script;
mod perfetto;
mod spool;
mod wire;
mod write;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use intake::Intake;
use undertick_format::files::{EVENTS_FILE, KERNEL_FILE};
use undertick_format::manifest::{Anchor, Clock, Host, Kernel, KernelSource, Manifest};
use undertick_format::{TraceError, input};
use undertick_record::finalize::remove_empty;
use undertick_record::finalize::{self};
use undertick_record::trace_dir::TraceDir;
use write::Written;

/// File of the rules for matching messages, beside the events.
pub const MESSAGES_FILE: &str = "messages.toml";

/// What is known of a format; `--from` of `undertick import` and the messages list the formats by it.
struct Format {
    word: &'static str,
    description: &'static str,
    name: &'static str,
    /// Whether a file that begins with these bytes, decompressed, has the format.
    recognises: fn(&[u8]) -> bool,
    read: fn(&Path, &mut dyn BufRead, &mut Intake) -> Result<SourceInfo, TraceError>,
}

/// Makes [`Source`] from the table of formats.
macro_rules! formats {
    ($($source:ident { description: $description:literal, $($field:tt)* })+) => {
        /// The format of another tool's file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Source { $(#[doc = $description] $source),+ }

        impl Source {
            /// All formats, in the order in which they are listed and recognised.
            pub const ALL: &[Self] = &[$(Self::$source),+];

            fn format(self) -> Format {
                match self {
                    $(Self::$source => Format { description: $description, $($field)* }),+
                }
            }
        }
    };
}

formats! {
    Otlp {
        description: "OpenTelemetry's spans: OTLP as JSON lines, or protobuf messages with lengths",
        word: "otlp",
        name: "a file of OpenTelemetry's spans",
        recognises: otlp::is_requests,
        read: |file, text, intake| otlp::read(file, text, intake),
    }
    Chrome {
        description: "Chrome trace events, JSON, also compressed with gzip",
        word: "chrome",
        name: "a Chrome trace",
        recognises: chrome::is_json,
        read: |file, text, intake| chrome::read(file, text, intake),
    }
    Perfetto {
        description: "Perfetto protobuf",
        word: "perfetto",
        name: "a Perfetto trace",
        recognises: perfetto::is_packet,
        read: |file, text, intake| perfetto::read(file, text, intake),
    }
    Ctf {
        description: "Common Trace Format (LTTng), read by babeltrace2",
        word: "ctf",
        name: "a CTF trace",
        // It is a directory.
        recognises: |_| false,
        read: |file, text, intake| ctf::read_text(file, text, intake),
    }
    PerfScript {
        description: "Output of `perf script`",
        word: "perf-script",
        name: "the output of perf script",
        recognises: perf_script::has_sample,
        read: |file, text, intake| perf_script::read(file, text, intake),
    }
    Card {
        description: "The stream of the event card (hw/event_card)",
        word: "card",
        name: "a stream of the event card",
        recognises: card::is_stream,
        read: |_, _, _| unreachable!("has a reader of its own"),
    }
}

impl Source {
    /// Its value of `--from`.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.format().word
    }

    /// What it is, for the help of `--from`.
    #[must_use]
    pub fn description(self) -> &'static str {
        self.format().description
    }
}

/// What a reader found out beside the events.
#[derive(Debug, Default)]
struct SourceInfo {
    /// The clock's name in the report.
    clock: &'static str,
    /// Times are Unix times.
    is_unix: bool,
    process: Option<String>,
    host: Option<String>,
    /// Names of messages: `NAME start` and `NAME end` are their boundaries.
    messages: Vec<String>,
    notes: Vec<String>,
}

/// Reads another tool's file and writes a trace into a new directory. `progress` receives the share
/// done, 0 to 1.
///
/// # Errors
/// The file does not exist, has none of these formats, or is damaged; or the directory exists
/// already, or the disk refuses. In each case nothing is left behind.
pub fn import(
    file: &Path,
    source: Option<Source>,
    out: &Path,
    progress: &mut dyn FnMut(f64),
) -> Result<Manifest, TraceError> {
    let source = match source {
        Some(source) => source,
        None => detect::source(file)?,
    };
    if source == Source::Card {
        return import_card(file, card::Card::default(), out, progress);
    }
    made(out, |intake| {
        let info = match source {
            // A file is what the reader printed elsewhere.
            Source::Ctf if file.is_dir() => ctf::read(file, intake)?,
            _ => (source.format().read)(file, &mut open(file, progress)?, intake)?,
        };
        write_trace(file, source, out, info, intake, progress)
    })
}

/// As [`import`], for text that has been read already; for CTF, what `babeltrace2` prints. `file`
/// is only its name in messages.
///
/// # Errors
/// As [`import`].
pub fn import_text(
    file: &Path,
    source: Source,
    mut text: impl BufRead,
    out: &Path,
) -> Result<Manifest, TraceError> {
    if source == Source::Card {
        return card::record_card(file, text, card::Card::default(), out, &mut |_| {});
    }
    made(out, |intake| {
        let info = (source.format().read)(file, &mut text, intake)?;
        write_trace(file, source, out, info, intake, &mut |_| {})
    })
}

/// As [`import`], for the stream of an event card, with values that the stream lacks.
///
/// # Errors
/// As [`import`].
pub fn import_card(
    file: &Path,
    card: card::Card,
    out: &Path,
    progress: &mut dyn FnMut(f64),
) -> Result<Manifest, TraceError> {
    let failed = || TraceError::io(file, "cannot open");
    let opened = input::open(file)?;
    let bytes = opened.metadata().map_err(failed())?.len().max(1) as f64;
    let stream = BufReader::with_capacity(1 << 18, opened);
    card::record_card(file, stream, card, out, &mut |read| {
        progress(read as f64 / bytes)
    })
}

/// Makes a trace in a new directory, which is removed on failure.
fn made(
    out: &Path,
    make: impl FnOnce(&mut Intake) -> Result<Manifest, TraceError>,
) -> Result<Manifest, TraceError> {
    made_in(out, || make(&mut Intake::new(out)))
}

fn made_in(
    out: &Path,
    make: impl FnOnce() -> Result<Manifest, TraceError>,
) -> Result<Manifest, TraceError> {
    TraceDir::make(out)?;
    let made = make();
    if made.is_err() {
        for name in [KERNEL_FILE, EVENTS_FILE, MESSAGES_FILE] {
            let _ = std::fs::remove_file(out.join(name));
        }
        remove_empty(out);
    }
    made
}

/// Writes the imported events.
fn write_trace(
    file: &Path,
    source: Source,
    out: &Path,
    info: SourceInfo,
    intake: &mut Intake,
    progress: &mut dyn FnMut(f64),
) -> Result<Manifest, TraceError> {
    if intake.spool.len() == 0 {
        let left_out = match left_out_list(&intake.left_out) {
            Some(list) => format!(" (left out: {list})"),
            None => String::new(),
        };
        return Err(TraceError::Usage(format!(
            "{}: holds no event that {} could have{left_out}; is it the right file?",
            file.display(),
            source.format().name
        )));
    }
    let written = write::write(out, intake, &mut |share| progress(0.6 + 0.2 * share))?;
    if !info.messages.is_empty() {
        write_messages(out, &info.messages)?;
    }
    let (mut manifest, kernel) = manifest(file, source, info, intake, written);
    let out = TraceDir::open(out)?;
    finalize::finish_events(&out, &mut manifest, kernel, &mut |share| {
        progress(0.8 + 0.2 * share)
    })?;
    Ok(manifest)
}

/// Opens the file and decompresses it if needed; `progress` receives up to 0.6 for this.
fn open<'a>(
    file: &Path,
    progress: &'a mut dyn FnMut(f64),
) -> Result<Box<dyn BufRead + 'a>, TraceError> {
    let failed = || TraceError::io(file, "cannot open");
    let opened = input::open(file)?;
    let bytes = opened.metadata().map_err(failed())?.len().max(1) as f64;
    let counted = ProgressReader {
        file: opened,
        read: 0,
        progress: move |read| progress(0.6 * (read as f64 / bytes).min(1.0)),
    };
    let mut reader = BufReader::with_capacity(1 << 18, counted);
    let start = reader
        .fill_buf()
        .map_err(TraceError::io(file, "cannot read"))?;
    Ok(if start.starts_with(detect::GZIP) {
        Box::new(BufReader::with_capacity(
            1 << 18,
            MultiGzDecoder::new(reader),
        ))
    } else {
        Box::new(reader)
    })
}

/// A file that reports how far it has been read.
struct ProgressReader<F> {
    file: File,
    read: u64,
    progress: F,
}

impl<F: FnMut(u64)> Read for ProgressReader<F> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.file.read(buffer)?;
        self.read += bytes as u64;
        (self.progress)(self.read);
        Ok(bytes)
    }
}

/// Writes the rules by which `undertick report --table` finds the messages.
fn write_messages(out: &Path, names: &[String]) -> Result<(), TraceError> {
    let path = out.join(MESSAGES_FILE);
    let mut text = String::new();
    for name in names {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        text += &format!(
            "[[interval]]\nname = {}\nstart = {}\nend = {}\nmatch = \"message\"\n\n",
            quoted(if name.is_empty() { "message" } else { name }),
            quoted(&format!("{name} start")),
            quoted(&format!("{name} end"))
        );
    }
    std::fs::write(&path, text).map_err(TraceError::io(&path, "cannot write"))
}

fn manifest(
    file: &Path,
    source: Source,
    info: SourceInfo,
    intake: &Intake,
    written: Written,
) -> (Manifest, Option<undertick_format::manifest::Part>) {
    let (first, last) = intake.span_ns.unwrap_or((0, 0));
    let anchor = Anchor {
        ticks: first,
        unix_ns: first,
        error_ns: 0,
    };
    let mut threads = intake.threads();
    threads.extend(written.lanes.iter().cloned());
    let warnings = warnings(file, source, &info, intake, &written);
    let manifest = Manifest {
        started_unix_ns: if info.is_unix { first } else { 0 },
        duration_ns: Some(last.saturating_sub(first)),
        command: info.process.into_iter().collect(),
        names: intake.names.clone(),
        threads,
        rings: written.rings,
        lost: intake.lost,
        kernel: (intake.kernel_rows > 0).then(|| kernel(info.clock, intake)),
        warnings,
        ..Manifest::new(
            Host {
                name: info.host.unwrap_or_else(|| "not known".to_owned()),
                kernel: String::new(),
                arch: String::new(),
                cpus: 0,
                cpu_model: String::new(),
            },
            Clock {
                name: info.clock.to_owned(),
                ticks_per_second_numerator: 1_000_000_000,
                ticks_per_second_denominator: 1,
                rate_source: "imported".to_owned(),
                rate_error_ppb: 0.0,
                granularity_ticks: intake.step.ns() as f64,
                read_cost_ns_median: 0.0,
                anchors: info.is_unix.then_some(anchor).into_iter().collect(),
                across_cpus: None,
            },
            "imported",
        )
    };
    (manifest, written.kernel)
}

fn kernel(clock: &str, intake: &Intake) -> Kernel {
    Kernel {
        sources: vec![KernelSource {
            name: "imported".to_owned(),
            used: true,
            why: String::new(),
            tells: Vec::new(),
            records: intake.kernel_records,
            lost: 0,
            clock: clock.to_owned(),
            error_ns: 0.0,
        }],
        rows: intake.kernel_rows,
        ..Kernel::default()
    }
}

fn warnings(
    file: &Path,
    source: Source,
    info: &SourceInfo,
    intake: &Intake,
    written: &Written,
) -> Vec<String> {
    let mut all = vec![format!(
        "imported from {} ({}): what its recording cost is not known and is in every figure; {}",
        file.file_name().unwrap_or_default().to_string_lossy(),
        source.format().name,
        if info.is_unix {
            "times are the source's"
        } else {
            "when it was recorded is not known"
        }
    )];
    all.extend(info.notes.iter().cloned());
    let mut left_out = intake.left_out.clone();
    for &(kind, count) in &written.left_out {
        *left_out.entry(kind.to_owned()).or_default() += count;
    }
    all.extend(left_out_list(&left_out).map(|list| format!("not in the trace: {list}")));
    if !info.messages.is_empty() {
        all.push(format!(
            "messages are instants; {MESSAGES_FILE} in the trace has their rules: report --table"
        ));
    }
    all
}

/// What was left out, with how many of each; `None` if nothing was.
fn left_out_list(left_out: &BTreeMap<String, u64>) -> Option<String> {
    let list: Vec<String> = (left_out.iter())
        .map(|(kind, count)| format!("{count} x {kind}"))
        .collect();
    (!list.is_empty()).then(|| list.join(", "))
}
