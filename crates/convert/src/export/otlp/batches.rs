//! Collects spans into requests of a bounded size.

use std::io;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message as _;
use undertick_format::manifest::Manifest;

use super::keys;
use super::spans::{ClosedSpan, Output, Point};

/// Most spans of a request.
const MOST_SPANS: usize = 2048;
/// Encoded bytes from which on a request is complete. Collectors accept 20 MiB by HTTP and 4 MiB by
/// gRPC; a request exceeds this bound by one span.
const MOST_BYTES: usize = 1 << 20;

/// The receiver of requests.
pub(super) trait Transport {
    /// What failed, for messages.
    const ACTION: &'static str;

    fn send(&mut self, request: &ExportTraceServiceRequest, spans: u64) -> io::Result<()>;

    /// Called after the last request.
    fn finish(&mut self) -> io::Result<()>;
}

/// Collects spans, by process, and passes complete requests on.
pub(super) struct Batches<'a, T> {
    to: &'a mut T,
    service: String,
    host: String,
    by_process: Vec<(i32, Vec<Span>)>,
    spans: usize,
    bytes: usize,
}

impl<'a, T: Transport> Batches<'a, T> {
    pub(super) fn new(to: &'a mut T, manifest: &Manifest) -> Self {
        let program = manifest.command.first().map_or("", String::as_str);
        let name = program.rsplit('/').next().unwrap_or_default();
        Self {
            to,
            // The name that the specification has for a service that is not known.
            service: if name.is_empty() {
                "unknown_service".to_owned()
            } else {
                name.to_owned()
            },
            host: manifest.host.name.clone(),
            by_process: Vec::new(),
            spans: 0,
            bytes: 0,
        }
    }

    fn add(&mut self, pid: i32, span: Span) -> io::Result<()> {
        self.spans += 1;
        self.bytes += span.encoded_len();
        match self.by_process.iter_mut().find(|(known, _)| *known == pid) {
            Some((_, spans)) => spans.push(span),
            None => self.by_process.push((pid, vec![span])),
        }
        if self.spans >= MOST_SPANS || self.bytes >= MOST_BYTES {
            self.send()?;
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        let by_process = std::mem::take(&mut self.by_process);
        let resource_spans = (by_process.into_iter())
            .map(|(pid, spans)| self.of_process(pid, spans))
            .collect();
        let spans = std::mem::take(&mut self.spans) as u64;
        self.bytes = 0;
        (self.to).send(&ExportTraceServiceRequest { resource_spans }, spans)
    }

    fn of_process(&self, pid: i32, spans: Vec<Span>) -> ResourceSpans {
        let attributes = vec![
            text("service.name", &self.service),
            text("host.name", &self.host),
            integer("process.pid", i64::from(pid)),
        ];
        ResourceSpans {
            resource: Some(Resource {
                attributes,
                ..Resource::default()
            }),
            scope_spans: vec![ScopeSpans {
                scope: Some(InstrumentationScope {
                    name: "undertick".to_owned(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    ..InstrumentationScope::default()
                }),
                spans,
                schema_url: String::new(),
            }],
            schema_url: String::new(),
        }
    }
}

impl<T: Transport> Output for Batches<'_, T> {
    const HAS_POINTS: bool = true;
    const ACTION: &'static str = T::ACTION;

    fn span(&mut self, span: ClosedSpan<'_>) -> io::Result<()> {
        self.add(span.pid, message(span))
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.spans > 0 {
            self.send()?;
        }
        self.to.finish()
    }
}

fn message(span: ClosedSpan<'_>) -> Span {
    let mut attributes = vec![integer("thread.id", i64::from(span.tid))];
    attributes.extend(span.thread.map(|name| text("thread.name", name)));
    if !span.is_finished {
        attributes.push(attribute(keys::UNFINISHED, Value::BoolValue(true)));
    }
    if let Some(payload) = span.instant {
        attributes.push(attribute(keys::INSTANT, Value::BoolValue(true)));
        attributes.push(integer(keys::PAYLOAD, payload));
    }
    Span {
        trace_id: span.ids.trace.to_be_bytes().to_vec(),
        span_id: span.ids.span.to_be_bytes().to_vec(),
        parent_span_id: match span.ids.parent {
            0 => Vec::new(),
            parent => parent.to_be_bytes().to_vec(),
        },
        name: span.name.to_owned(),
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: unsigned(span.start_ns),
        end_time_unix_nano: unsigned(span.end_ns),
        attributes,
        events: span.points.into_iter().map(event).collect(),
        dropped_events_count: span.points_dropped,
        status: Some(Status::default()),
        ..Span::default()
    }
}

fn event(point: Point) -> Event {
    Event {
        time_unix_nano: unsigned(point.ns),
        name: point.name,
        attributes: match point.payload {
            0 => Vec::new(),
            payload => vec![integer(keys::PAYLOAD, payload)],
        },
        dropped_attributes_count: 0,
    }
}

/// A time as OTLP has it, which knows none before 1970.
fn unsigned(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0)
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn integer(key: &str, value: i64) -> KeyValue {
    attribute(key, Value::IntValue(value))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}
