//! OpenTelemetry's protocol: the spans of a trace as `ExportTraceServiceRequest`s, in a file or sent
//! to a collector.
//!
//! A span is passed on when it ends, so memory grows with the spans that are open and not with the
//! trace.

mod batches;
mod file;
mod http;
mod ids;
mod only;
mod spans;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use undertick_format::TraceError;
use undertick_format::read::Trace;

use super::{buffered, create, drive};
use batches::{Batches, Transport};
pub use file::FileForm;
use file::Requests;
use http::Http;
pub use http::{Endpoint, Sent};
pub use only::Only;
use only::Slow;
use spans::Spans;

/// Names of the events by which a recorder keeps the identifiers that a program has for a span. They
/// follow the begin of the span, or its `NAME new`, in the same ring; their payload has 64 bits.
pub mod names {
    /// First 8 bytes of the trace's identifier, as a big-endian number.
    pub const TRACE_HIGH: &str = "otel.trace_id.high";
    /// Last 8 bytes of the trace's identifier.
    pub const TRACE_LOW: &str = "otel.trace_id.low";
    /// The span's identifier.
    pub const SPAN: &str = "otel.span_id";
    /// The identifier of the span's parent; 0 if it has none.
    pub const PARENT: &str = "otel.parent_span_id";
    /// The innermost open span ended in another thread, which recorded `NAME closed`; the end that
    /// follows only closes it here. The payload is the span's identifier.
    pub const ELSEWHERE: &str = "otel.ended_elsewhere";
    /// End of the name of the event that begins a span which ends anywhere; the payload is the span's
    /// identifier.
    pub const NEW: &str = " new";
    /// End of the name of the event that ends such a span.
    pub const CLOSED: &str = " closed";
}

/// Keys of attributes that an export adds, and an import reads back.
pub(crate) mod keys {
    /// Payload of a point.
    pub(crate) const PAYLOAD: &str = "undertick.payload";
    /// The span stands for a point that lies in no span.
    pub(crate) const INSTANT: &str = "undertick.instant";
    /// The span's end is not known.
    pub(crate) const UNFINISHED: &str = "undertick.unfinished";
}

/// Where spans go.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// A new file.
    File(&'a Path, FileForm),
    /// A collector.
    Collector(&'a Endpoint),
}

/// Exact counts of what was exported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Spans, those that stand for points excepted.
    pub spans: u64,
    /// Those of them whose end is not in the trace: the recording ended, records were lost, or an
    /// outer span ended before them.
    pub unfinished: u64,
    /// Points that are events of a span.
    pub points: u64,
    /// Points in no span, which became spans of no length.
    pub points_alone: u64,
    /// Points that a span has beyond the bound, counted in its `dropped_events_count`.
    pub points_dropped: u64,
    /// Begins that are nested too deeply to be spans.
    pub too_deep: u64,
    /// Ends of spans whose begin is not in the trace.
    pub without_begin: u64,
    /// Rows of the kernel, which OTLP has no place for.
    pub kernel_rows: u64,
}

/// What [`Only`] chose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chosen {
    /// Spans longer than this were chosen, ns.
    pub limit_ns: u64,
    /// Number of finished spans of that name.
    pub of_name: u64,
    /// Number of those that were chosen.
    pub slow: u64,
    /// Spans that were left out, of any name.
    pub left_out: u64,
}

/// The result of an export.
#[derive(Clone, Debug, Default)]
pub struct Exported {
    /// Counts of what was exported, or of what had been read when it was interrupted.
    pub counts: Counts,
    /// What [`Only`] chose, if it was given.
    pub chosen: Option<Chosen>,
    /// What the collector received; `None` for a file.
    pub sent: Option<Sent>,
    /// It was interrupted while it sent.
    pub interrupted: bool,
}

/// Writes or sends the spans of the trace. `only` restricts them to slow ones of a name, with the
/// spans and points inside them. `stop` interrupts sending. `progress` receives the share done, 0 to
/// 1.
///
/// # Errors
/// The file exists or cannot be written, and then no file is left; the collector cannot be reached
/// or refuses what was sent; or the trace is damaged.
pub fn export_spans(
    trace: &Trace,
    target: Target<'_>,
    only: Option<&Only>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<Exported, TraceError> {
    match target {
        Target::File(path, form) => {
            let file = create(path)?;
            let written = to_file(trace, path, file, form, only, progress);
            if written.is_err() {
                let _ = std::fs::remove_file(path);
            }
            written
        }
        Target::Collector(endpoint) => {
            let mut http = Http::new(endpoint, stop);
            let path = Path::new(endpoint.url());
            let mut exported = Exported::default();
            let sent = pass_on(trace, path, &mut http, only, &mut exported, progress);
            let kind = match &sent {
                Err(TraceError::Io { source, .. }) => Some(source.kind()),
                _ => None,
            };
            exported.interrupted = http.is_stopped() && kind == Some(io::ErrorKind::Interrupted);
            if !exported.interrupted {
                sent.map_err(|error| after(error, &http.sent))?;
            }
            exported.sent = Some(http.sent);
            Ok(exported)
        }
    }
}

/// Adds to an error what had been sent before it.
fn after(error: TraceError, sent: &Sent) -> TraceError {
    match error {
        TraceError::Io {
            path,
            action,
            source,
        } if sent.requests > 0 => {
            let source = io::Error::other(format!(
                "{source}; {} spans had been received before",
                sent.spans
            ));
            TraceError::Io {
                path,
                action,
                source,
            }
        }
        error => error,
    }
}

fn to_file(
    trace: &Trace,
    path: &Path,
    file: File,
    form: FileForm,
    only: Option<&Only>,
    progress: &mut dyn FnMut(f64),
) -> Result<Exported, TraceError> {
    let mut exported = Exported::default();
    let mut requests = Requests::new(buffered(file), form);
    pass_on(trace, path, &mut requests, only, &mut exported, progress)?;
    Ok(exported)
}

/// Passes spans to a transport; `path` is its name in messages.
fn pass_on(
    trace: &Trace,
    path: &Path,
    to: &mut impl Transport,
    only: Option<&Only>,
    exported: &mut Exported,
    progress: &mut dyn FnMut(f64),
) -> Result<(), TraceError> {
    let slow = match only {
        Some(only) => Some(Slow::find(trace, only)?),
        None => None,
    };
    exported.chosen = slow.as_ref().map(|slow| slow.chosen);
    let batches = Batches::new(to, &trace.manifest);
    let spans = Spans::new(
        trace,
        batches,
        slow.map(|slow| slow.rows),
        &mut exported.counts,
    );
    drive(trace, path, &[], progress, spans)?;
    if let Some(chosen) = &mut exported.chosen {
        chosen.left_out = chosen.left_out.saturating_sub(exported.counts.spans);
    }
    Ok(())
}
