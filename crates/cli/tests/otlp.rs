//! `undertick export --to otlp`: what is said, and what is refused.

use crate::support;

use std::fs;
use std::net::TcpListener;

use support::{refused, said, trace, undertick};

#[test]
fn counts_are_those_of_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    let file = dir.path().join("run.jsonl");
    let output = undertick(&["export", &trace, "--to", "otlp", file.to_str().unwrap()]);
    let (code, text) = said(&output);
    assert_eq!(code, 0, "{text}");
    // 1000 requests, each with two stages and two points.
    let words = "3000 spans (0 unfinished), 0 events lost, 2000 points in spans";
    assert!(text.contains(words), "{text}");
    let lines = fs::read_to_string(&file).unwrap();
    assert_eq!(lines.matches("\"spanId\":").count(), 3000);
    // Nothing is overwritten.
    let again = undertick(&["export", &trace, "--to", "otlp", file.to_str().unwrap()]);
    refused(&again, 2, &["run.jsonl", "exists already"]);
}

#[test]
fn only_slow_spans() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    let file = dir.path().join("slow.pb");
    let words = ["export", &trace, "--to", "otlp", "--only", "parse > 1ns"];
    let output = undertick(&[&words[..], &[file.to_str().unwrap()]].concat());
    let (code, text) = said(&output);
    assert_eq!(code, 0, "{text}");
    let words = "1000 of 1000 spans parse took longer than 1 ns";
    assert!(
        text.contains(words) && text.contains("2000 other spans were not"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_done_says_what_can() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    let export = |words: &[&str]| undertick(&[&["export", &trace, "--to"], words].concat());
    refused(
        &export(&["otlp", "out"]),
        2,
        &["out", ".jsonl", ".pb", "http://"],
    );
    refused(
        &export(&["otlp", "grpc://here:4317"]),
        2,
        &["gRPC", "http://HOST:4318"],
    );
    refused(&export(&["otlp", "https://here"]), 2, &["TLS"]);
    let only = ["otlp", "--only", "nobody > p99", "out.pb"];
    refused(&export(&only), 2, &["nobody", "undertick report"]);
    assert!(!std::path::Path::new("out.pb").exists());
    refused(
        &export(&["otlp", "--only", "parse", "out.pb"]),
        2,
        &["--only"],
    );
    refused(
        &export(&["csv", "--only", "parse > 1ms", "out.csv"]),
        2,
        &["--to otlp"],
    );
    refused(
        &export(&["otlp", "--table", "x.toml", "out.pb"]),
        2,
        &["--table"],
    );
    // Nothing listens there.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    refused(
        &export(&["otlp", &address]),
        1,
        &[&address, "does a collector listen there?"],
    );
}
