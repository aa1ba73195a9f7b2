//! The JSON of pyperf: a block of time is a run with one value.

use std::io::Write;

use serde_json::{Value, json};

use super::blocks::{Block, blocks};
use super::spans::Spans;
use crate::Failure;

const ABOUT: &str = "a value is the mean over one of 20 equal blocks of the recording's time";

pub fn write(spans: &Spans, out: &mut dyn Write) -> Result<String, Failure> {
    let found = blocks(spans)?;
    let benchmarks: Vec<Value> = (found.iter())
        .map(|(name, blocks)| {
            let runs: Vec<Value> = blocks.iter().map(run).collect();
            json!({"metadata": {"name": name, "unit": "second"}, "runs": runs})
        })
        .collect();
    let manifest = &spans.manifest;
    let mut metadata = serde_json::Map::new();
    for (key, value) in [
        ("hostname", manifest.host.name.as_str()),
        ("cpu_model_name", &manifest.host.cpu_model),
        ("undertick_version", &manifest.undertick_version),
        ("description", ABOUT),
    ] {
        // pyperf refuses a file with an empty one.
        if !value.is_empty() {
            metadata.insert(key.to_owned(), value.into());
        }
    }
    let page = json!({"version": "1.0", "metadata": metadata, "benchmarks": benchmarks});
    serde_json::to_writer(&mut *out, &page).map_err(Failure::usage)?;
    Ok(format!("{} benchmarks", found.len()))
}

fn run(block: &Block) -> Value {
    json!({"metadata": {"loops": block.count}, "values": [block.mean_ns() / 1e9]})
}
