//! A collector of OpenTelemetry, built from its own modules: it receives what we send, and what it
//! writes we import.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use super::Outcome::{self, Said, Skipped};
use super::{equal, json, undertick};
use crate::run::{Scratch, c_program, exists, output, root, run};

const SOURCE: &str = "crates/cli/tests/programs/collector";
/// Passes of the program, with two spans each.
const PASSES: u64 = 50_000;

/// A span as text: identifiers, name, times, events.
type Spans = BTreeSet<String>;

pub fn collector(scratch: &Scratch) -> Result<Outcome, String> {
    if !exists(&["go", "version"]) {
        return Ok(Skipped("no go here".to_owned()));
    }
    let begin = Instant::now();
    if let Err(error) = output(go(&["mod", "download"])) {
        let why = error.lines().last().unwrap_or_default().to_owned();
        return Ok(Skipped(format!(
            "the modules of the collector cannot be loaded: {why}"
        )));
    }
    let program = scratch.path("collector");
    output(go(&["build", "-o", &program, "."]))?;
    let built = begin.elapsed().as_secs();

    let trace = recorded(scratch)?;
    let sent_file = scratch.path("sent.jsonl");
    undertick(&["export", &trace, "--to", "otlp", &sent_file])?;
    let sent = spans(&sent_file)?;
    equal("spans", sent.len() as u64, 2 * PASSES)?;
    for format in ["json", "proto"] {
        let file = scratch.path(&format!("received.{format}"));
        receive(&program, &trace, &file, format)?;
        if format == "json" && spans(&file)? != sent {
            return Err("the collector received other spans".to_owned());
        }
        let (back, again) = (format!("{file}.ut"), format!("{file}.again.jsonl"));
        let said = json(&undertick(&["import", &file, "-o", &back, "--json"])?)?;
        if !said["warnings"]
            .to_string()
            .contains(&format!("{} spans", 2 * PASSES))
        {
            return Err(format!("import of {format}: {}", said["warnings"]));
        }
        undertick(&["export", &back, "--to", "otlp", &again])?;
        if spans(&again)? != sent {
            return Err(format!("spans differ after the import of {format}"));
        }
    }
    Ok(Said(format!(
        "{} spans, received and imported as JSON and protobuf with their identifiers, parents, times \
         and events (built in {built} s)",
        2 * PASSES
    )))
}

fn go(words: &[&str]) -> Command {
    let mut command = Command::new("go");
    command.args(words).current_dir(root().join(SOURCE));
    command.env("GOFLAGS", "-buildvcs=false");
    command
}

/// Records a program with an outer and an inner span, and an event, for each pass.
fn recorded(scratch: &Scratch) -> Result<String, String> {
    let (source, program, trace) = (
        scratch.path("passes.c"),
        scratch.path("passes"),
        scratch.path("passes.ut"),
    );
    let text = format!(
        "#include \"undertick.h\"\nint main(void) {{ ut_name(1, \"outer\"); ut_name(2, \"inner\");\n\
         for (int i = 0; i < {PASSES}; i++) {{ ut_begin(1); ut_begin(2); ut_end(2);\n\
         ut_event(3, i); ut_end(1); }} return 0; }}\n"
    );
    std::fs::write(&source, text).map_err(|e| e.to_string())?;
    run(c_program(&source, &program))?;
    undertick(&[
        "record",
        "--no-calibration",
        "--kernel",
        "off",
        "-o",
        &trace,
        "--",
        &program,
    ])?;
    Ok(trace)
}

/// Sends the trace to a collector, which writes a file.
fn receive(program: &str, trace: &str, file: &str, format: &str) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("collector: {e}");
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let address = port.map_err(failed)?.to_string();
    let mut collector = Command::new(program)
        .args([&address, file, format])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut line = String::new();
    if let Some(out) = collector.stdout.take() {
        BufReader::new(out).read_line(&mut line).map_err(failed)?;
    }
    let sent = match line.starts_with("listening") {
        true => undertick(&[
            "export",
            trace,
            "--to",
            "otlp",
            &format!("http://{address}"),
        ]),
        false => Err("the collector does not listen".to_owned()),
    };
    // It ends, with its file complete, when its input does.
    drop(collector.stdin.take());
    let status = collector.wait().map_err(failed)?;
    sent?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("collector: {status}")),
    }
}

/// The spans of a file of JSON lines, without attributes and resources.
fn spans(file: &str) -> Result<Spans, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    let mut all = Spans::new();
    for line in text.lines() {
        let request = json(line)?;
        for resource in array(&request["resourceSpans"]) {
            for scope in array(&resource["scopeSpans"]) {
                all.extend(array(&scope["spans"]).map(span));
            }
        }
    }
    Ok(all)
}

fn span(span: &Value) -> String {
    let text = |key: &str| span[key].as_str().unwrap_or_default();
    let events: Vec<String> = (array(&span["events"]))
        .map(|event| {
            let payload = &event["attributes"][0]["value"]["intValue"];
            format!("{} {} {payload}", event["name"], event["timeUnixNano"])
        })
        .collect();
    format!(
        "{} {} {} {} {} {} {events:?}",
        text("traceId"),
        text("spanId"),
        text("parentSpanId"),
        text("name"),
        text("startTimeUnixNano"),
        text("endTimeUnixNano")
    )
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
