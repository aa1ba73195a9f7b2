//! The JSON of Google Benchmark. Its compare script and the dashboards that accept it read a
//! trace's intervals as benchmarks, a block of time as a repetition.

use std::io::Write;

use serde_json::{Value, json};

use super::blocks::{Block, blocks};
use super::spans::Spans;
use crate::Failure;

pub fn write(spans: &Spans, out: &mut dyn Write) -> Result<String, Failure> {
    let mut benchmarks = Vec::new();
    let found = blocks(spans)?;
    for (family, (name, blocks)) in found.iter().enumerate() {
        let about = || {
            json!({
                "name": name, "family_index": family, "per_family_instance_index": 0,
                "run_name": name, "repetitions": blocks.len(), "threads": 1,
                "time_unit": "ns",
            })
        };
        benchmarks.extend(blocks.iter().enumerate().map(|(i, block)| {
            let mut repetition = about();
            add(&mut repetition, &repetition_fields(i, block));
            repetition
        }));
        benchmarks.extend(aggregates(name, blocks, &about()));
    }
    let manifest = &spans.manifest;
    let page = json!({
        "context": {
            "host_name": manifest.host.name,
            "executable": manifest.command.first().cloned().unwrap_or_default(),
            "num_cpus": manifest.host.cpus,
            "mhz_per_cpu": 0,
            "cpu_scaling_enabled": false,
            "caches": [],
            "load_avg": [],
            "library_build_type": "release",
            "undertick_started_unix_ns": manifest.started_unix_ns,
            "undertick_version": manifest.undertick_version,
            "undertick_repetition": "mean over one of 20 equal blocks of the recording's time, \
                without dropped samples, compensated as by undertick report",
            "undertick_cpu_time": "not measured: the same as real_time",
        },
        "benchmarks": benchmarks,
    });
    serde_json::to_writer_pretty(&mut *out, &page).map_err(Failure::usage)?;
    Ok(format!("{} benchmarks", found.len()))
}

fn repetition_fields(index: usize, block: &Block) -> Value {
    json!({
        "run_type": "iteration",
        "repetition_index": index,
        "iterations": block.count,
        "real_time": block.mean_ns(),
        "cpu_time": block.mean_ns(),
    })
}

fn add(to: &mut Value, fields: &Value) {
    if let (Some(to), Some(fields)) = (to.as_object_mut(), fields.as_object()) {
        to.extend(fields.clone());
    }
}

/// Returns Google Benchmark's aggregates of repetitions, each of which counts once.
fn aggregates(name: &str, blocks: &[Block], about: &Value) -> Vec<Value> {
    let mut values: Vec<f64> = blocks.iter().map(Block::mean_ns).collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let median = f64::midpoint(values[(n - 1) / 2], values[n / 2]);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let sd = if n > 1 {
        (squares / (n - 1) as f64).sqrt()
    } else {
        0.0
    };
    [("mean", mean), ("median", median), ("stddev", sd)]
        .into_iter()
        .map(|(aggregate, value)| {
            let mut entry = about.clone();
            let fields = json!({
                "name": format!("{name}_{aggregate}"),
                "run_type": "aggregate",
                "aggregate_name": aggregate,
                "aggregate_unit": "time",
                "iterations": n,
                "real_time": value,
                "cpu_time": value,
            });
            add(&mut entry, &fields);
            entry
        })
        .collect()
}

#[cfg(test)]
mod tests;
