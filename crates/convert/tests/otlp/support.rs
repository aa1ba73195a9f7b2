//! Traces of known spans, and exports as messages.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use undertick_convert::export::otlp::{Exported, FileForm, Only, Target, export_spans};
use undertick_convert::import::{Source, import};
use undertick_format::read::Trace;

/// Makes a trace from Chrome's events, in a directory.
pub fn trace(dir: &Path, events: &str) -> Trace {
    let (file, out) = (dir.join("events.json"), dir.join("t.ut"));
    std::fs::write(&file, format!("[{events}]")).unwrap();
    import(&file, Some(Source::Chrome), &out, &mut |_| {}).unwrap();
    Trace::open(&out).unwrap()
}

/// Exports as JSON lines; returns all requests.
pub fn exported(
    trace: &Trace,
    dir: &Path,
    form: FileForm,
    only: Option<&str>,
) -> (Exported, Vec<ExportTraceServiceRequest>) {
    let file = dir.join("out");
    let _ = std::fs::remove_file(&file);
    let only: Option<Only> = only.map(|only| only.parse().unwrap());
    let target = Target::File(&file, form);
    let stop = AtomicBool::new(false);
    let exported = export_spans(trace, target, only.as_ref(), &stop, &mut |_| {}).unwrap();
    (exported, requests(&file, form))
}

pub fn requests(file: &PathBuf, form: FileForm) -> Vec<ExportTraceServiceRequest> {
    let bytes = std::fs::read(file).unwrap();
    let mut rest = &bytes[..];
    match form {
        FileForm::JsonLines => (String::from_utf8(bytes.clone()).unwrap().lines())
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
        FileForm::Delimited => std::iter::from_fn(|| {
            (!rest.is_empty()).then(|| Message::decode_length_delimited(&mut rest).unwrap())
        })
        .collect(),
    }
}

pub fn spans(requests: &[ExportTraceServiceRequest]) -> Vec<Span> {
    let resources = requests.iter().flat_map(|request| &request.resource_spans);
    let scopes = resources.flat_map(|resource| &resource.scope_spans);
    scopes.flat_map(|scope| scope.spans.clone()).collect()
}

/// The only span of that name.
#[track_caller]
pub fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let mut of_name = spans.iter().filter(|span| span.name == name);
    let first = of_name
        .next()
        .unwrap_or_else(|| panic!("no span {name}: {spans:?}"));
    assert!(of_name.next().is_none(), "two spans {name}");
    first
}

pub fn value(attributes: &[KeyValue], key: &str) -> Option<Value> {
    let of_key = attributes.iter().find(|attribute| attribute.key == key)?;
    of_key.value.clone()?.value
}
