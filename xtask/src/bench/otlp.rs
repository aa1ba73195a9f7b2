//! The cost of a span of OpenTelemetry's SDK with Undertick's span processor, beside its own batch
//! processor.

use super::peers_of_registries::{bin, version_of_crate};
use super::recorder::blocks;
use super::undertick;
use crate::run::{Scratch, command, output};
use crate::statistics::{median, median_interval};

/// Blocks of each kind in a round, and spans in each: fewer than the queue of the batch processor.
const BLOCKS: &str = "200";
const SPANS: &str = "1000";
/// The share of the batch processor's cost that Undertick's may have.
const TARGET: f64 = 0.2;

/// Prints the cost that each processor adds to a span, and the median of their ratios in the rounds.
pub fn measure(rounds: usize) -> Result<(), String> {
    let scratch = Scratch::new("bench-otlp")?;
    let program = bin("opentelemetry")?;
    let trace = scratch.path("otlp.ut");
    let mut figures = [Figures::default(), Figures::default()];
    for _ in 0..rounds {
        let _ = std::fs::remove_dir_all(&trace);
        let text = output(command(&[
            &undertick(),
            "record",
            "--no-calibration",
            "--kernel",
            "off",
            "-o",
            &trace,
            "--",
            &program,
            BLOCKS,
            SPANS,
        ]))?;
        let blocks = blocks(&text);
        let of = |what: &str| {
            let found = blocks.get(what).map(|ns| median(ns));
            found.ok_or_else(|| format!("no {what} in {text:?}"))
        };
        for (figures, kind) in figures.iter_mut().zip(["", "-cpu"]) {
            let of = |what: &str| of(&format!("{what}{kind}"));
            figures.add(of("none")?, of("undertick")?, of("batch")?);
        }
    }
    println!(
        "opentelemetry_sdk {}, medians of {rounds} rounds [95 %], ns a span, in turn block by block; the \
         exporter encodes OTLP and sends nothing",
        version_of_crate("opentelemetry_sdk")?
    );
    figures[0].print("in the program's thread");
    figures[1].print("CPU of all threads of the program");
    println!("target: at most {TARGET} of what the batch processor adds");
    Ok(())
}

/// One kind of time, round by round.
#[derive(Default)]
struct Figures {
    /// Of a span of the SDK without a processor, and what the two processors add, ns.
    added: [Vec<f64>; 3],
    /// What ours adds over what the batch processor adds.
    ratios: Vec<f64>,
}

impl Figures {
    fn add(&mut self, none: f64, ours: f64, batch: f64) {
        for (all, ns) in self.added.iter_mut().zip([none, ours - none, batch - none]) {
            all.push(ns);
        }
        self.ratios.push((ours - none) / (batch - none));
    }

    fn print(&self, kind: &str) {
        let names = [
            "the SDK itself",
            "Undertick adds",
            "the batch processor adds",
        ];
        println!("{kind}:");
        for (name, ns) in names.iter().zip(&self.added) {
            let (lo, hi) = median_interval(ns);
            println!("  {name}: {:.0} [{lo:.0}, {hi:.0}]", median(ns));
        }
        let (lo, hi) = median_interval(&self.ratios);
        println!("  ratio: {:.2} [{lo:.2}, {hi:.2}]", median(&self.ratios));
    }
}
