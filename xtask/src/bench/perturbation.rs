//! By how much points slow a loop, as `record --perturbation` states it, against
//! what the program itself measures by its own clock: each four blocks of loops with
//! points have the same loop without any in the code beside them, whatever is
//! switched on. Where it lies in memory makes that loop faster or slower by some
//! nanoseconds for good, so the truth is what the difference between the two changes
//! by when the points are on; what is left while they are off is shown.

use serde_json::Value;

use super::{compile, record, report_json};
use crate::run::Scratch;
use crate::statistics::median;

const SECONDS: &str = "5";
const KINDS: [&str; 3] = ["latency", "throughput", "memory"];
const POINTS: [&str; 3] = ["1", "4", "16"];
/// Blocks longer than their median by so many loops' time were hit by something long,
/// and are left out, as the report leaves spans of over four times their median out.
/// Each state has a median of its own: a limit common to both would drop more of
/// the blocks whose points are on, which are longer (8 of 124 ns too little at 1.25
/// times the common median), and dropping by rank leaves out every change of segment,
/// which only points make (7 of 18 ns at 2 %).
const LONG_LOOPS: f64 = 3.0;
/// Loops whose mean is one figure of the program.
const LOOPS: f64 = 20.0;

/// A mean and its standard error.
#[derive(Clone, Copy)]
struct Mean {
    value: f64,
    error: f64,
}

/// One recording.
struct Run {
    /// With points on less with them off, each less without any in the code, ns a
    /// loop.
    truth: Mean,
    /// With points switched off less without any in the code.
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
    /// The truth is measured, too: both errors together.
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

/// The error from 32 batches, so that neighbours that are alike do not count twice.
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
