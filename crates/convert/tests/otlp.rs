//! Spans as OTLP: what is written and sent. The traces are made from files written by hand, so the
//! spans are known; they are read with OpenTelemetry's own messages.

#[path = "otlp/exports.rs"]
mod exports;
#[path = "otlp/imports.rs"]
mod imports;
#[path = "otlp/sending.rs"]
mod sending;
#[path = "otlp/support.rs"]
mod support;
