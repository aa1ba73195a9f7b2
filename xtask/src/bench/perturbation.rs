//! By how much points slow a loop, as `record --perturbation` states it, against the program's own
//! measurement by its own clock. Every four blocks of loops with points accompany the same loop
//! without any in the code, whatever is switched on. The position in memory makes that loop
//! permanently faster or slower by some nanoseconds. The truth is therefore the change of the
//! difference between the two when the points are on; the difference while they are off is shown.

use serde_json::Value;

use super::{compile, record, report_json};
use crate::run::Scratch;
use crate::statistics::median;

const SECONDS: &str = "5";
const KINDS: [&str; 3] = ["latency", "throughput", "memory"];
const POINTS: [&str; 3] = ["1", "4", "16"];
/// Blocks longer than their median by the time of this many loops had a long disturbance. They are
/// dropped, as the report drops spans of over four times their median. Each state has a separate
/// median: a common limit would drop more of the blocks whose points are on, which are longer (8 of
/// 124 ns too little at 1.25 times the common median). Dropping by rank would leave out every
/// change of segment, which only points cause (7 of 18 ns at 2 %).
const LONG_LOOPS: f64 = 3.0;
/// Number of loops whose mean is one figure of the program.
const LOOPS: f64 = 20.0;

/// A mean and its standard error.
#[derive(Clone, Copy)]
struct Mean {
    value: f64,
    error: f64,
}

/// Results of one recording.
struct Run {
    /// Difference with points on less the difference with them off, ns per loop; each difference is
    /// to the loop without points in the code.
    truth: Mean,
    /// Difference of points switched off to no points in the code, ns per loop.
    off: Mean,
    loop_ns: f64,
    stated: [f64; 3],
}

pub fn measure(repetitions: usize) -> Result<(), String> {
    let scratch = Scratch::new("perturbation")?;
    let program = compile(&scratch, "perturbation")?;
    let trace = scratch.path("p.ut");
    println!(
        "\nby how much points slow a loop of 5 us: {repetitions} recordings of {SECONDS} s each\n\
         {:<12}{:>7}{:>12}{:>22}{:>16}{:>14}{:>12}",
        "loop bound",
        "points",
        "truth, ns",
        "stated less truth, ns",
        "off, ns a point",
        "half-width",
        "holds it"
    );
    let (mut held, mut all) = (0, 0);
    let mut widths = Vec::new();
    for kind in KINDS {
        for points in POINTS {
            let runs = (0..repetitions)
                .map(|_| run(&trace, &program, kind, points))
                .collect::<Result<Vec<_>, _>>()?;
            let of = |f: &dyn Fn(&Run) -> f64| median(&runs.iter().map(f).collect::<Vec<_>>());
            let holds = runs.iter().filter(|run| run.holds()).count();
            let n: f64 = points.parse().expect("a number");
            let width = of(&|run| (run.stated[2] - run.stated[1]) / 2.0 / run.loop_ns);
            println!(
                "{kind:<12}{points:>7}{:>12.2}{:>22.2}{:>16.2}{:>12.3} %{holds:>6} of {}",
                of(&|run| run.truth.value),
                of(&|run| run.stated[0] - run.truth.value),
                of(&|run| run.off.value) / n,
                100.0 * width,
                runs.len()
            );
            held += holds;
            all += runs.len();
            widths.push(width);
        }
    }
    println!(
        "{held} of {all} intervals (95 %) hold the truth, the truth's own error allowed for: {:.1} % \
         (target 93 %); half-widths are medians, target 0.3 % of the loop",
        100.0 * held as f64 / all as f64
    );
    Ok(())
}

impl Run {
    /// The truth has an error, too: both errors are combined.
    fn holds(&self) -> bool {
        let [value, lo, hi] = self.stated;
        let off = self.truth.value - value;
        let half = if off < 0.0 { value - lo } else { hi - value };
        off.abs() <= half.hypot(1.96 * self.truth.error)
    }
}

fn run(trace: &str, program: &str, kind: &str, points: &str) -> Result<Run, String> {
    let options = ["--no-calibration", "--perturbation", "1"];
    let text = record(trace, &options, &[program, kind, points, SECONDS])?;
    let quads: Vec<[f64; 3]> = (text.lines())
        .filter_map(|line| {
            let mut words = line.split(' ').map(|word| word.parse().ok());
            Some([words.next()??, words.next()??, words.next()??])
        })
        .collect();
    let of = |state: f64| {
        let whole: Vec<&[f64; 3]> = quads.iter().filter(|q| q[0] == state).collect();
        let middle = |column: usize| median(&whole.iter().map(|q| q[column]).collect::<Vec<_>>());
        let (with, without) = (middle(1), middle(2));
        let room = LONG_LOOPS / LOOPS * without;
        let usual = (whole.iter()).filter(|q| q[1] < with + room && q[2] < without + room);
        mean(&usual.map(|q| q[1] - q[2]).collect::<Vec<_>>())
    };
    let report = report_json(trace, &[])?;
    let interval = (report["intervals"].as_array().into_iter().flatten())
        .find(|interval| interval["name"] == "event 1")
        .ok_or("no event 1 in the report")?;
    let by = &interval["slowed"]["by"];
    let number = |value: &Value| value.as_f64().ok_or(format!("{kind} {points}: {by}"));
    let (on, off) = (of(1.0), of(2.0));
    Ok(Run {
        truth: Mean {
            value: on.value - off.value,
            error: on.error.hypot(off.error),
        },
        off,
        loop_ns: median(&quads.iter().map(|q| q[2]).collect::<Vec<_>>()),
        stated: [
            number(&by["value"])?,
            number(&by["interval"][0])?,
            number(&by["interval"][1])?,
        ],
    })
}

/// The mean, with its error from 32 batches, so that correlated neighbours do not count twice.
fn mean(values: &[f64]) -> Mean {
    let of = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let value = of(values);
    let batches: Vec<f64> = values
        .chunks_exact((values.len() / 32).max(1))
        .map(of)
        .collect();
    let n = batches.len() as f64;
    let squares: f64 = batches.iter().map(|b| (b - value).powi(2)).sum();
    Mean {
        value,
        error: (squares / (n - 1.0) / n).sqrt(),
    }
}
