//! OpenTelemetry's SDK without a processor, with Undertick's and with its own batch processor, block by
//! block. A block is shorter than the queue of the batch processor, which is emptied between blocks, so
//! that no span is dropped. For each block: the time in the program's thread, and the CPU time of all
//! threads until the queue is empty.

use opentelemetry::trace::{Tracer, TracerProvider};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{BatchSpanProcessor, SdkTracerProvider, SpanData, SpanExporter};
use peers::{timed, told};
use prost::Message;

/// Spans of a trace: one, and those in it.
const OF_A_TRACE: u32 = 10;
/// Spans that are not measured, so that names are known and memory is warm.
const WARM: u32 = 1000;

/// Encodes spans as every exporter of OTLP does, and sends them nowhere.
#[derive(Debug)]
struct Encode;

impl SpanExporter for Encode {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let resource = ResourceAttributesWithSchema::default();
        for spans in group_spans_by_resource_and_scope(batch, &resource) {
            std::hint::black_box(spans.encode_to_vec());
        }
        Ok(())
    }
}

fn main() {
    let (blocks, n) = told();
    let builder = SdkTracerProvider::builder;
    let providers = [
        ("none", builder().build()),
        (
            "undertick",
            builder()
                .with_span_processor(undertick_opentelemetry::processor())
                .build(),
        ),
        (
            "batch",
            builder()
                .with_span_processor(BatchSpanProcessor::builder(Encode).build())
                .build(),
        ),
    ];
    for (_, provider) in &providers {
        spans(provider, WARM);
    }
    for _ in 0..blocks {
        for (name, provider) in &providers {
            let before = cpu_ns();
            timed(name, n, |n| spans(provider, n));
            provider.force_flush().expect("nothing is sent");
            let cpu = (cpu_ns() - before) as f64 / f64::from(n);
            println!("{name}-cpu 0 {cpu:.4} {n}");
        }
    }
}

fn spans(provider: &SdkTracerProvider, n: u32) {
    let tracer = provider.tracer("peers");
    for _ in 0..n / OF_A_TRACE {
        tracer.in_span("order", |_| {
            for _ in 1..OF_A_TRACE {
                tracer.in_span("part", |_| std::hint::black_box(0));
            }
        });
    }
}

/// CPU time of all threads of this process, ns.
fn cpu_ns() -> i64 {
    // SAFETY: an all-zero value is valid, and the call only writes to it.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}
