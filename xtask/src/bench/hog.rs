//! The descheduled flag with a CPU hog pinned to the same CPU.

use serde_json::Value;

use super::{compile, interval, record, report_json};
use crate::run::Scratch;

const SPANS: &str = "200000";

pub fn measure() -> Result<(), String> {
    let scratch = Scratch::new("hog")?;
    let program = compile(&scratch, "preempted")?;
    let quiet = scratch.path("quiet.ut");
    let hogged = scratch.path("hog.ut");
    record(&quiet, &["--no-calibration"], &[&program, SPANS, "0"])?;
    record(&hogged, &["--no-calibration"], &[&program, SPANS, "1"])?;
    println!("\nsections of 20 us on a CPU with a hog, and without");
    spans("quiet", &quiet)?;
    spans("hog", &hogged)?;
    let medians: Vec<(f64, f64)> = [&quiet, &hogged]
        .iter()
        .map(|trace| {
            let report = report_json(trace, &[])?;
            let section = interval(&report, "event 1")?;
            let of = |value: &Value| value["value"].as_f64().ok_or("no figure");
            Ok((of(&section["median"])?, of(&section["mean"])?))
        })
        .collect::<Result<_, String>>()?;
    let change = |a: f64, b: f64| 100.0 * (b / a - 1.0);
    println!(
        "  culled median: {:.1} -> {:.1} ns, {:+.2} % (target: under 3 %)",
        medians[0].0,
        medians[1].0,
        change(medians[0].0, medians[1].0)
    );
    println!(
        "  culled mean:   {:.1} -> {:.1} ns, {:+.2} %",
        medians[0].1,
        medians[1].1,
        change(medians[0].1, medians[1].1)
    );
    Ok(())
}

/// Goes through the spans one by one: which were flagged, and which were long?
fn spans(what: &str, trace: &str) -> Result<(), String> {
    let (csv, text) = super::csv(trace)?;
    let mut spans = Vec::new();
    let mut begin = None;
    for line in text.lines().skip(1) {
        let words: Vec<&str> = line.split(',').collect();
        let ns: i64 = words[0].parse().map_err(|_| format!("{csv}: {line}"))?;
        match words[7] {
            "begin" => begin = Some(ns),
            "end" => {
                if let Some(begin) = begin.take() {
                    spans.push((ns - begin, words[8] == "1"));
                }
            }
            _ => {}
        }
    }
    let least = spans.iter().map(|span| span.0).min().ok_or("no spans")?;
    let long: Vec<_> = spans.iter().filter(|span| span.0 > 50 * least).collect();
    let long_flagged = long.iter().filter(|span| span.1).count();
    // Normal spans exceed the minimum by less than a quarter.
    let normal: Vec<_> = spans
        .iter()
        .filter(|span| span.0 < least + least / 4)
        .collect();
    let normal_flagged = normal.iter().filter(|span| span.1).count();
    let mut clean: Vec<f64> = spans
        .iter()
        .filter(|span| !span.1)
        .map(|span| span.0 as f64)
        .collect();
    clean.sort_by(f64::total_cmp);
    let trimmed = &clean[clean.len() / 100..clean.len() - clean.len() / 100];
    println!(
        "  {what}: {} spans, least {least} ns; over 50 times that: {}, flagged {long_flagged} (target 99.9 %); \
         normal: {}, flagged {normal_flagged} (target under 1 in 1e5); 1 %-trimmed mean of the unflagged {:.1} ns",
        spans.len(),
        long.len(),
        normal.len(),
        trimmed.iter().sum::<f64>() / trimmed.len() as f64
    );
    Ok(())
}
