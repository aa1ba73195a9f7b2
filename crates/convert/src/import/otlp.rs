//! OpenTelemetry's protocol: requests with spans, in OTLP's file format (JSON lines), or as protobuf
//! messages with their lengths.

mod forms;
mod lanes;

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use undertick_format::TraceError;

use super::SourceInfo;
use super::intake::{Id, Intake, cut};
use super::spool::Spool;
use crate::export::otlp::keys;
pub(super) use forms::is_requests;

/// Most processes and services that are distinguished.
const MOST_PROCESSES: usize = 4096;
/// Most threads that are distinguished.
const MOST_THREADS: usize = 1 << 20;

pub(super) fn read(
    file: &Path,
    reader: &mut dyn BufRead,
    intake: &mut Intake,
) -> Result<SourceInfo, TraceError> {
    let spool = Spool::new(intake.spool.dir());
    let mut spans = Spans {
        intake,
        spool,
        processes: Vec::new(),
        by_key: HashMap::new(),
        threads: Vec::new(),
        by_thread: HashMap::new(),
        host: None,
        service: None,
        kept: Kept::default(),
        sequence: 0,
    };
    let is_cut = forms::each(file, reader, &mut spans)?;
    let Spans {
        spool,
        processes,
        threads,
        host,
        service,
        kept,
        ..
    } = spans;
    let lanes = lanes::place(intake, spool, &processes, &threads)?;
    let mut notes = vec![format!(
        "kept: {} spans, {} events; {} of the spans in lanes, because they overlap others or name no \
         thread",
        lanes.spans, kept.events, lanes.in_lanes
    )];
    if kept.unfinished > 0 {
        notes.push(format!(
            "{} of the spans had no end when they were exported, and end where the export closed them",
            kept.unfinished
        ));
    }
    if is_cut {
        notes.push("the file was cut short: its last message is not whole".to_owned());
    }
    Ok(SourceInfo {
        clock: "opentelemetry",
        is_unix: true,
        process: service,
        host,
        notes,
        ..SourceInfo::default()
    })
}

#[derive(Default)]
struct Kept {
    events: u64,
    unfinished: u64,
}

/// What distinguishes processes: host, service and number. In containers most have number 1.
type ProcessKey = (Option<String>, String, Option<i64>);

/// A process, or a service of which no process is known.
struct Process {
    id: Id,
    service: String,
}

/// Collects spans, which are sorted by their begins before they are placed.
struct Spans<'a> {
    intake: &'a mut Intake,
    spool: Spool,
    processes: Vec<Process>,
    by_key: HashMap<ProcessKey, usize>,
    /// Process and thread.
    threads: Vec<(usize, i64)>,
    by_thread: HashMap<(usize, i64), usize>,
    host: Option<String>,
    service: Option<String>,
    kept: Kept,
    sequence: i64,
}

impl Spans<'_> {
    /// Returns the number of the process that a resource describes.
    fn process(&mut self, resource: &Resource) -> Option<usize> {
        let text = |key| match find(&resource.attributes, key) {
            Some(Value::StringValue(text)) => Some(cut(text).to_owned()),
            _ => None,
        };
        let pid = match find(&resource.attributes, "process.pid") {
            Some(Value::IntValue(pid)) => Some(*pid),
            _ => None,
        };
        let (service, host) = (text("service.name"), text("host.name"));
        let used =
            u64::from(service.is_some()) + u64::from(host.is_some()) + u64::from(pid.is_some());
        self.left_out(
            "attribute of a resource",
            resource.attributes.len() as u64 - used,
        );
        if self.host.is_none() {
            self.host.clone_from(&host);
        }
        if self.service.is_none() {
            self.service.clone_from(&service);
        }
        let service = service.unwrap_or_default();
        let key = (host, service.clone(), pid);
        if let Some(&known) = self.by_key.get(&key) {
            return Some(known);
        }
        if self.processes.len() >= MOST_PROCESSES {
            return None;
        }
        let number = self.processes.len();
        let is_free = |pid: &i64| self.by_key.keys().all(|(.., taken)| *taken != Some(*pid));
        let id = match pid.filter(is_free) {
            Some(pid) => Id::Number(pid),
            None => Id::Text(described(&key)),
        };
        self.processes.push(Process { id, service });
        self.by_key.insert(key, number);
        Some(number)
    }

    fn left_out(&mut self, kind: &str, times: u64) {
        for _ in 0..times {
            self.intake.left_out(kind);
        }
    }

    /// Returns the number of a thread of a process, if the span names one.
    fn thread(&mut self, process: usize, span: &Span) -> Option<usize> {
        let Some(Value::IntValue(tid)) = find(&span.attributes, "thread.id") else {
            return None;
        };
        if let Some(&known) = self.by_thread.get(&(process, *tid)) {
            return Some(known);
        }
        if self.threads.len() >= MOST_THREADS {
            return None;
        }
        if let Some(Value::StringValue(name)) = find(&span.attributes, "thread.name") {
            let pid = &self.processes[process].id;
            self.intake.name_thread(pid, &Id::Number(*tid), name);
        }
        let number = self.threads.len();
        self.threads.push((process, *tid));
        self.by_thread.insert((process, *tid), number);
        Some(number)
    }

    fn span(&mut self, process: Option<usize>, span: &Span) -> Result<(), TraceError> {
        let Some(process) = process else {
            self.intake.left_out("span of a process beyond 4096");
            return Ok(());
        };
        let times = [span.start_time_unix_nano, span.end_time_unix_nano].map(i64::try_from);
        let [Ok(start), Ok(end)] = times else {
            self.intake.left_out("span after the year 2262");
            return Ok(());
        };
        if start == 0 || end < start {
            self.intake.left_out(match (start, end) {
                (0, _) => "span without a begin",
                (_, 0) => "span without an end",
                _ => "span that ends before it begins",
            });
            return Ok(());
        }
        self.count_left_out(span);
        let thread = self.thread(process, span);
        let instant = find(&span.attributes, keys::INSTANT).is_some();
        let placed = lanes::Placed {
            process,
            thread,
            event: self.intake.event(&span.name),
            payload: instant.then(|| payload(&span.attributes)),
            trace: number(&span.trace_id).unwrap_or(0),
            span: number(&span.span_id).unwrap_or(0),
            parent: number(&span.parent_span_id).unwrap_or(0),
        };
        self.sequence += 1;
        // The outer one of two spans that begin at one time comes first.
        let order = [start, -end, self.sequence];
        for (sub, words) in placed.to_words().into_iter().enumerate() {
            self.push(order, sub, words)?;
        }
        let mut sub = lanes::WORDS;
        for event in &span.events {
            let Ok(ns) = i64::try_from(event.time_unix_nano) else {
                self.intake.left_out("event after the year 2262");
                continue;
            };
            let number = self.intake.event(&event.name);
            self.push(
                order,
                sub,
                [ns, i64::from(number), payload(&event.attributes)],
            )?;
            self.kept.events += 1;
            sub += 1;
        }
        Ok(())
    }

    fn push(&mut self, order: [i64; 3], sub: usize, words: [i64; 3]) -> Result<(), TraceError> {
        let ([a, b, c], [x, y, z]) = (order, words);
        self.spool.push([a, b, c, sub as i64, x, y, z])
    }

    /// Counts what a trace does not hold of a span.
    fn count_left_out(&mut self, span: &Span) {
        let kept = |attribute: &KeyValue| {
            matches!(
                attribute.key.as_str(),
                "thread.id" | "thread.name" | keys::INSTANT | keys::PAYLOAD | keys::UNFINISHED
            )
        };
        let attributes = span.attributes.iter().filter(|&a| !kept(a)).count() as u64;
        self.left_out("attribute of a span", attributes);
        for event in &span.events {
            let integers = event
                .attributes
                .iter()
                .filter(|a| integer(a).is_some())
                .count();
            let kept = usize::from(integers == 1);
            self.left_out(
                "attribute of an event",
                (event.attributes.len() - kept) as u64,
            );
        }
        self.left_out("link of a span", span.links.len() as u64);
        let is_set = span.status.as_ref().is_some_and(|status| status.code != 0);
        self.left_out("status of a span", u64::from(is_set));
        self.left_out(
            "kind of a span that is not internal",
            u64::from(span.kind > 1),
        );
        self.left_out("trace state", u64::from(!span.trace_state.is_empty()));
        let is_valid = |id: &[u8], length| id.is_empty() || id.len() == length;
        if !is_valid(&span.trace_id, 16)
            || !is_valid(&span.span_id, 8)
            || !is_valid(&span.parent_span_id, 8)
        {
            self.intake.left_out("identifier of the wrong length");
        }
        self.intake.lost = (self.intake.lost).saturating_add(span.dropped_events_count.into());
        self.kept.unfinished += u64::from(find(&span.attributes, keys::UNFINISHED).is_some());
    }
}

/// A process whose number another one has, or that has none.
fn described((host, service, pid): &ProcessKey) -> String {
    let pid = pid.map_or_else(String::new, |pid| format!(" {pid}"));
    let host = host
        .as_deref()
        .map_or_else(String::new, |host| format!(" on {host}"));
    format!("{service}{pid}{host}")
}

/// Returns an identifier of 8 or 16 bytes as a number; `None` if it has another length.
fn number<N: FromBytes>(bytes: &[u8]) -> Option<N> {
    N::from_bytes(bytes)
}

trait FromBytes: Sized {
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
}

impl FromBytes for u64 {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_be_bytes)
    }
}

impl FromBytes for u128 {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_be_bytes)
    }
}

fn find<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Value> {
    let of_key = attributes.iter().find(|attribute| attribute.key == key)?;
    of_key.value.as_ref()?.value.as_ref()
}

fn integer(attribute: &KeyValue) -> Option<i64> {
    match attribute.value.as_ref()?.value {
        Some(Value::IntValue(integer)) => Some(integer),
        _ => None,
    }
}

/// The payload that an export wrote, or the integer among the attributes if there is exactly one.
fn payload(attributes: &[KeyValue]) -> i64 {
    if let Some(Value::IntValue(payload)) = find(attributes, keys::PAYLOAD) {
        return *payload;
    }
    let mut integers = attributes.iter().filter_map(integer);
    let first = integers.next();
    first.filter(|_| integers.next().is_none()).unwrap_or(0)
}
