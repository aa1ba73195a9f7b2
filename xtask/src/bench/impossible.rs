//! Figures that cannot be true, in recordings beside increasing numbers of busy loops. The checks
//! here are independent of the filter that the report goes through.

use serde_json::Value;

use super::programs::Hogs;
use super::{record, report_json, undertick};
use crate::run::{Scratch, command, output};

/// Maximum number of busy loops beside a recording; the number cycles from none up to this.
const MOST_HOGS: usize = 6;
/// The hidden subcommand that is the program of `undertick demo`.
const DEMO: &str = "__demo-workload";
/// Options for the reports of each recording.
const WAYS: [&[&str]; 4] = [
    &[],
    &["--cull", "none"],
    &["--compensate", "none"],
    &["--confidence", "0.8"],
];

/// The figures of a document, judged.
#[derive(Default)]
struct Judged {
    figures: u64,
    /// Number of figures that are given without an interval, or with half of one.
    open: u64,
    impossible: Vec<String>,
}

pub fn measure(recordings: usize) -> Result<(), String> {
    let scratch = Scratch::new("impossible")?;
    let trace = scratch.path("demo.ut");
    let program = undertick();
    println!(
        "\n{recordings} recordings of the demo's program beside busy loops, each reported in {} ways",
        WAYS.len()
    );
    let mut by_load: Vec<Judged> = (0..=MOST_HOGS).map(|_| Judged::default()).collect();
    for number in 0..recordings {
        let load = number % (MOST_HOGS + 1);
        let hogs = Hogs::start(load)?;
        record(&trace, &[], &[&program, DEMO])?;
        for way in WAYS {
            by_load[load].judge(&report_json(&trace, way)?);
        }
        // A page derives drawings from the figures as well.
        let page = scratch.path("page.html");
        output(command(&[
            &program, "report", &trace, "--full", "--html", &page,
        ]))?;
        drop(hogs);
    }
    for (load, judged) in by_load.iter().enumerate() {
        println!(
            "{load} busy loops: {} figures, {} without both bounds, {} impossible (target: 0)",
            judged.figures,
            judged.open,
            judged.impossible.len()
        );
        for text in &judged.impossible {
            println!("  {text}");
        }
    }
    Ok(())
}

impl Judged {
    fn judge(&mut self, report: &Value) {
        let about = &report["trace"];
        let thread_time_ns = about["duration_ns"]
            .as_f64()
            .zip(about["threads"].as_f64())
            .map_or(f64::INFINITY, |(time, threads)| time * threads);
        for interval in report["intervals"].as_array().into_iter().flatten() {
            self.interval(interval, thread_time_ns);
        }
    }

    fn interval(&mut self, interval: &Value, thread_time_ns: f64) {
        let name = interval["name"].as_str().unwrap_or("?");
        let mut must = |is_so: bool, what: &str, value: &Value| {
            if !is_so {
                self.impossible.push(format!("{name}: {what}: {value}"));
            }
        };
        let total = &interval["total_ns"];
        let is_possible = |total: f64| (0.0..=thread_time_ns * (1.0 + ROUNDING)).contains(&total);
        must(
            total.as_f64().is_none_or(is_possible),
            "a total below 0 or beyond the time of all threads",
            total,
        );
        let share = &interval["share_of"]["share"]["value"];
        must(
            share
                .as_f64()
                .is_none_or(|share| (0.0..=1.0 + ROUNDING).contains(&share)),
            "a share outside 0 to 1",
            share,
        );
        let cost = &interval["compensation"]["cost"]["value"];
        must(
            cost.as_f64().is_none_or(|cost| cost >= 0.0),
            "a cost below 0",
            cost,
        );
        let quantiles: Vec<&Value> = std::iter::once(&interval["median"])
            .chain(
                interval["quantiles"]
                    .as_object()
                    .into_iter()
                    .flat_map(|all| all.values()),
            )
            .collect();
        let values: Vec<f64> = (quantiles.iter())
            .filter_map(|q| q["value"].as_f64())
            .collect();
        must(
            values.is_sorted(),
            "quantiles that do not rise with their probability",
            &Value::from(values),
        );
        // For a span near the clock's step a quantile may lie below 0, but a mean may not.
        let mean = &interval["mean"];
        let least = mean["value"].as_f64().is_none_or(|mean| mean >= 0.0);
        must(least || interval["negative"] != 0, "a mean below 0", mean);
        for figure in quantiles.into_iter().chain([mean]) {
            self.estimate(name, figure);
        }
    }

    /// Judges a value with its bounds.
    fn estimate(&mut self, name: &str, figure: &Value) {
        let Some(value) = figure["value"].as_f64() else {
            return;
        };
        self.figures += 1;
        let [lo, hi] = [0, 1].map(|at| figure["interval"][at].as_f64());
        self.open += u64::from(lo.is_none() || hi.is_none());
        let room = ROUNDING * value.abs();
        let is_outside =
            lo.is_some_and(|lo| value < lo - room) || hi.is_some_and(|hi| value > hi + room);
        let is_surely_negative = value < 0.0 && hi.is_some_and(|hi| hi < 0.0);
        if is_outside || is_surely_negative {
            self.impossible.push(format!("{name}: {figure}"));
        }
    }
}

/// Relative error of sums of rounded figures.
const ROUNDING: f64 = 1e-9;
