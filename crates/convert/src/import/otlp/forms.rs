//! The forms of files: JSON documents, and protobuf messages after their lengths.

use std::io::{BufRead, Read};
use std::path::Path;

use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use undertick_format::TraceError;

use super::Spans;
use crate::import::json::{Bad, Objects};
use crate::import::wire::{Fields, varint};

/// Longest protobuf message, bytes.
const LONGEST: u64 = 1 << 26;
/// Longest span, bytes: decoded, one of many small events needs some thirty times its bytes.
const LONGEST_SPAN: usize = 1 << 22;
/// What a longer one is counted as.
const TOO_LONG: &str = "span of more than 4 MiB";
/// The key of a document's spans.
const KEY: &str = "resourceSpans";

/// Whether these bytes begin as requests with spans do.
pub(in crate::import) fn is_requests(start: &[u8]) -> bool {
    let text = start.trim_ascii_start();
    if let Some(object) = text.strip_prefix(b"{") {
        let key = object.trim_ascii_start().strip_prefix(b"\"");
        return key.is_some_and(|key| key.starts_with(KEY.as_bytes()));
    }
    let mut rest = start;
    let Some(length) = length(&mut rest) else {
        return false;
    };
    begins_request(rest, length)
}

/// Takes the length of the first message: a varint, or, where that would be 0, four bytes as
/// written by the file exporter of the collector.
fn length(start: &mut &[u8]) -> Option<u64> {
    if start.first() == Some(&0) {
        let (four, rest) = start.split_first_chunk::<4>()?;
        *start = rest;
        return Some(u32::from_be_bytes(*four).into());
    }
    varint(start)
}

/// Whether the bytes begin with a request of that length: its first field, `resource_spans`, lies in
/// it and begins with a field that `ResourceSpans` has.
fn begins_request(bytes: &[u8], length: u64) -> bool {
    let Some((&0x0a, mut rest)) = bytes.split_first() else {
        return false;
    };
    let Some(inner) = varint(&mut rest) else {
        return false;
    };
    let head = (bytes.len() - rest.len()) as u64;
    inner > 0
        && head.checked_add(inner).is_some_and(|all| all <= length)
        && length <= LONGEST
        && matches!(rest.first(), Some(0x0a | 0x12 | 0x1a))
}

/// Passes all spans of a file on; returns whether the file was cut short.
pub(super) fn each(
    file: &Path,
    reader: &mut dyn BufRead,
    spans: &mut Spans<'_>,
) -> Result<bool, TraceError> {
    let start = reader
        .fill_buf()
        .map_err(TraceError::io(file, "cannot read"))?;
    match start.trim_ascii_start().first() {
        Some(b'{' | b'[') if !begins_delimited(start) => json(file, reader, spans),
        _ => delimited(file, reader, spans),
    }
}

/// Whether a protobuf message begins here although its length looks like text.
fn begins_delimited(start: &[u8]) -> bool {
    let mut rest = start;
    length(&mut rest).is_some_and(|length| begins_request(rest, length))
}

/// A `ResourceSpans` whose spans are not parsed yet, so that a small text cannot become a large
/// structure.
#[derive(Deserialize)]
struct RawResourceSpans<'a> {
    #[serde(borrow)]
    resource: Option<&'a RawValue>,
    /// The alias is the key of OTLP before version 0.16.
    #[serde(
        borrow,
        default,
        rename = "scopeSpans",
        alias = "instrumentationLibrarySpans"
    )]
    scopes: Option<Vec<RawScope<'a>>>,
}

#[derive(Deserialize)]
struct RawScope<'a> {
    #[serde(borrow, default)]
    spans: Option<Vec<&'a RawValue>>,
}

fn json(file: &Path, reader: &mut dyn BufRead, spans: &mut Spans<'_>) -> Result<bool, TraceError> {
    let mut objects = Objects::new(reader, KEY);
    loop {
        let at = objects.at();
        let wrong = |why: &dyn std::fmt::Display| {
            let why = format!("after byte {at}: no spans of OTLP: {why} (is it OTLP? see --from)");
            TraceError::damaged(file, why)
        };
        match objects.next() {
            Ok(Some(object)) => {
                let raw: RawResourceSpans<'_> =
                    serde_json::from_slice(object).map_err(|e| wrong(&e))?;
                let resource: Resource = match raw.resource {
                    Some(resource) => {
                        serde_json::from_str(resource.get()).map_err(|e| wrong(&e))?
                    }
                    None => Resource::default(),
                };
                let process = spans.process(&resource);
                let scopes = raw.scopes.iter().flatten();
                for raw in scopes.flat_map(|scope| scope.spans.iter().flatten()) {
                    if raw.get().len() > LONGEST_SPAN {
                        spans.intake.left_out(TOO_LONG);
                        continue;
                    }
                    let span: Span = serde_json::from_str(raw.get()).map_err(|e| wrong(&e))?;
                    spans.span(process, &span)?;
                }
                continue;
            }
            Ok(None) => {}
            Err(Bad::Io(error)) => return Err(TraceError::io(file, "cannot read")(error)),
            Err(Bad::Syntax(at, what)) => {
                return Err(TraceError::damaged(
                    file,
                    format!("byte {at}: {what} (is it OTLP? see --from)"),
                ));
            }
        }
        if objects.is_cut {
            return Ok(true);
        }
        let more = objects.next_document();
        if !more.map_err(TraceError::io(file, "cannot read"))? {
            return Ok(false);
        }
    }
}

fn delimited(
    file: &Path,
    reader: &mut dyn BufRead,
    spans: &mut Spans<'_>,
) -> Result<bool, TraceError> {
    let failed = || TraceError::io(file, "cannot read");
    let is_fixed = reader.fill_buf().map_err(failed())?.first() == Some(&0);
    let (mut at, mut message) = (0u64, Vec::new());
    loop {
        let wrong = |why: &str| {
            TraceError::damaged(file, format!("byte {at}: {why} (is it OTLP? see --from)"))
        };
        if reader.fill_buf().map_err(failed())?.is_empty() {
            return Ok(false);
        }
        let mut head = Vec::new();
        while head.len() < if is_fixed { 4 } else { 10 } {
            let mut byte = [0];
            if reader.read(&mut byte).map_err(failed())? == 0 {
                return Ok(true);
            }
            head.push(byte[0]);
            if !is_fixed && byte[0] & 0x80 == 0 {
                break;
            }
        }
        let length = match <[u8; 4]>::try_from(&head[..]) {
            Ok(four) if is_fixed => u64::from(u32::from_be_bytes(four)),
            _ => varint(&mut &head[..]).ok_or_else(|| wrong("no length of a message"))?,
        };
        if length > LONGEST {
            return Err(wrong(&format!(
                "a message of {length} bytes, more than 64 MiB"
            )));
        }
        message.clear();
        (&mut *reader)
            .take(length)
            .read_to_end(&mut message)
            .map_err(failed())?;
        if (message.len() as u64) < length {
            return Ok(true);
        }
        request(&message, spans).map_err(|error| match error {
            Wrong::Content(why) => wrong(&why),
            Wrong::Other(error) => error,
        })?;
        at += head.len() as u64 + length;
    }
}

enum Wrong {
    Content(String),
    Other(TraceError),
}

/// Refuses a message whose bytes are not fields to its end: the rest would be missing.
fn is_whole(fields: Fields<'_>) -> Result<(), Wrong> {
    match fields.is_whole() {
        true => Ok(()),
        false => Err(Wrong::Content("a message that is damaged".to_owned())),
    }
}

/// Passes the spans of a request on. Only single spans are decoded, so that a small message cannot
/// become a large structure.
fn request(bytes: &[u8], spans: &mut Spans<'_>) -> Result<(), Wrong> {
    let mut is_request = false;
    is_whole(Fields(bytes))?;
    for (_, resource_spans) in Fields(bytes).filter(|&(field, _)| field == 1) {
        is_request = true;
        let fields = Fields(resource_spans.bytes());
        is_whole(fields)?;
        let resource = match fields.last(1) {
            Some(bytes) if bytes.bytes().len() <= LONGEST_SPAN => {
                Resource::decode(bytes.bytes())
                    .map_err(|error| Wrong::Content(format!("no resource of OTLP: {error}")))?
            }
            _ => Resource::default(),
        };
        let process = spans.process(&resource);
        for (_, scope) in fields.filter(|&(field, _)| field == 2) {
            is_whole(Fields(scope.bytes()))?;
            for (_, span) in Fields(scope.bytes()).filter(|&(field, _)| field == 2) {
                if span.bytes().len() > LONGEST_SPAN {
                    spans.intake.left_out(TOO_LONG);
                    continue;
                }
                let span = Span::decode(span.bytes())
                    .map_err(|error| Wrong::Content(format!("no span of OTLP: {error}")))?;
                spans.span(process, &span).map_err(Wrong::Other)?;
            }
        }
    }
    match is_request {
        true => Ok(()),
        false => Err(Wrong::Content("a message without spans".to_owned())),
    }
}
