//! A program with OpenTelemetry's spans under `undertick record`: the spans that are exported again
//! are those that the program had, by OpenTelemetry's own exporter in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use opentelemetry::Context;
use opentelemetry::trace::{Span as _, TraceContextExt as _, Tracer as _, TracerProvider as _};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, Span, SpanData, SpanProcessor};

/// Variable that makes this test the program.
const AS_PROGRAM: &str = "UNDERTICK_OPENTELEMETRY_TEST_PROGRAM";
const ORDERS: u64 = 500;
const TASKS: usize = 40;

/// A span: name, trace, span, parent.
type Known = (String, String, String, String);

/// The program's own list of its spans.
#[derive(Debug)]
struct Truth(&'static Mutex<Vec<Known>>);

impl SpanProcessor for Truth {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        let parent = match format!("{}", span.parent_span_id) {
            none if none.trim_start_matches('0').is_empty() => String::new(),
            parent => parent,
        };
        self.0.lock().unwrap().push((
            span.name.to_string(),
            span.span_context.trace_id().to_string(),
            span.span_context.span_id().to_string(),
            parent,
        ));
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: std::time::Duration) -> OTelSdkResult {
        Ok(())
    }
}

#[test]
fn what_is_exported_is_what_the_program_had() {
    if let Some(out) = std::env::var_os(AS_PROGRAM) {
        return program(Path::new(&out));
    }
    let Some(undertick) = undertick() else {
        println!("skipped: no target/release/undertick beside this test");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let recorded = Command::new(&undertick)
        .args(["record", "--no-calibration", "--kernel", "off", "-o"])
        .args([at("t.ut").as_os_str(), "--".as_ref()])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "what_is_exported_is_what_the_program_had"])
        .env(AS_PROGRAM, at("truth"))
        .output()
        .unwrap();
    assert!(recorded.status.success(), "{recorded:?}");
    let exported = Command::new(&undertick)
        .args(["export", "--to", "otlp"])
        .args([at("t.ut"), at("out.jsonl")])
        .output()
        .unwrap();
    assert!(exported.status.success(), "{exported:?}");
    let mut truth: Vec<Known> =
        serde_json::from_str(&std::fs::read_to_string(at("truth")).unwrap()).unwrap();
    let (mut found, unfinished) = spans(&std::fs::read_to_string(at("out.jsonl")).unwrap());
    truth.sort();
    found.sort();
    let count = |all: &[Known], name: &str| all.iter().filter(|span| span.0 == name).count();
    for (name, count_of_name) in [
        ("order", ORDERS as usize),
        ("part", 2 * ORDERS as usize),
        ("task", TASKS),
        ("remote", 1),
    ] {
        assert_eq!(count(&truth, name), count_of_name, "{name}");
        assert_eq!(count(&found, name), count_of_name, "{name}");
    }
    assert!(found == truth, "identifiers differ");
    assert_eq!(unfinished, BTreeMap::new());
}

/// The spans of a file of JSON lines, and the number of unfinished ones by name.
fn spans(text: &str) -> (Vec<Known>, BTreeMap<String, u64>) {
    let (mut all, mut unfinished) = (Vec::new(), BTreeMap::new());
    for line in text.lines() {
        let request: serde_json::Value = serde_json::from_str(line).unwrap();
        for resource in request["resourceSpans"].as_array().unwrap() {
            for span in resource["scopeSpans"][0]["spans"].as_array().unwrap() {
                let text = |key: &str| span[key].as_str().unwrap().to_owned();
                if span["attributes"]
                    .to_string()
                    .contains("undertick.unfinished")
                {
                    *unfinished.entry(text("name")).or_default() += 1;
                }
                all.push((
                    text("name"),
                    text("traceId"),
                    text("spanId"),
                    text("parentSpanId"),
                ));
            }
        }
    }
    (all, unfinished)
}

/// Returns the command line beside this test, if it has been built.
fn undertick() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let found = exe.parent()?.parent()?.join("undertick");
    found.exists().then_some(found)
}

fn program(out: &Path) {
    static SPANS: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    let provider = SdkTracerProvider::builder()
        .with_span_processor(Truth(&SPANS))
        .with_span_processor(undertick_opentelemetry::processor())
        .build();
    let tracer = provider.tracer("shop");
    for _ in 0..ORDERS {
        tracer.in_span("order", |_| {
            for _ in 0..2 {
                tracer.in_span("part", |_| std::hint::black_box(0));
            }
        });
    }
    // Tasks that another thread ends, inside a span of this one.
    tracer.in_span("all tasks", |context| {
        let remote = context.span().span_context().clone();
        for _ in 0..TASKS {
            let mut task = tracer.start("task");
            std::thread::spawn(move || task.end()).join().unwrap();
        }
        // A child in another thread.
        let tracer = provider.tracer("shop");
        let other = std::thread::spawn(move || {
            let context = Context::new().with_remote_span_context(remote);
            tracer.start_with_context("remote", &context).end();
        });
        other.join().unwrap();
    });
    let spans = SPANS.lock().unwrap();
    std::fs::write(out, serde_json::to_string(&*spans).unwrap()).unwrap();
}
