//! What recorded tasks cost a Tokio program, and whether their polls are its CPU time.

use super::record;
use crate::run::{Scratch, command, line, output, root, run};
use crate::statistics::{median_interval, quantile};

const ROUNDS: usize = 15;
/// Tasks, polls of each, and ns of work in a poll: about 10^6 polls a second, and long polls.
const SHORT: [&str; 3] = ["1000", "2000", "900"];
const LONG: [&str; 3] = ["50", "40", "1000000"];

pub fn measure() -> Result<(), String> {
    run(line(
        "cargo build --release --quiet -p undertick-tokio --example polls",
        &[],
    ))?;
    let program = root().join("target/release/examples/polls");
    let program = program.to_string_lossy().into_owned();
    let scratch = Scratch::new("tasks")?;
    let trace = scratch.path("t.ut");
    let off = ["--no-calibration", "--kernel", "off"];
    let words = |how: &'static str, amount: [&'static str; 3]| {
        let mut words = vec![program.as_str(), how];
        words.extend(amount);
        words
    };
    let first = |said: &str| -> Result<f64, String> {
        let number = said.split_whitespace().next().and_then(|n| n.parse().ok());
        number.ok_or_else(|| format!("{said:?}: no number"))
    };
    let (mut recorded, mut idle) = (Vec::new(), Vec::new());
    let mut rate = Vec::new();
    for _ in 0..ROUNDS {
        let plain = first(&output(command(&words("plain", SHORT)))?)?;
        let wrapped = first(&output(command(&words("tasks", SHORT)))?)?;
        let under = first(&record(&trace, &off, &words("tasks", SHORT))?)?;
        recorded.push(under / plain);
        idle.push(wrapped / plain);
        rate.push(2e6 / (plain * 1e-9));
    }
    println!(
        "\n{ROUNDS} rounds in turn, one worker, {:.2e} polls/s without tasks; time with tasks of that without, median",
        quantile(&rate, 0.5)
    );
    for (what, ratios, target) in [
        ("recorded", &recorded, "target 1.10"),
        ("not recorded", &idle, ""),
    ] {
        let (lo, hi) = median_interval(ratios);
        println!(
            "{what:<16}{:>7.3} [{lo:.3}, {hi:.3}]   {target}",
            quantile(ratios, 0.5)
        );
    }
    let mut shares = Vec::new();
    for _ in 0..ROUNDS {
        let said = record(&trace, &["--no-calibration"], &words("tasks", LONG))?;
        let cpu = said
            .split_whitespace()
            .nth(1)
            .and_then(|n| n.parse::<f64>().ok());
        let cpu = cpu.ok_or_else(|| format!("{said:?}: no CPU time"))?;
        let report = super::report_json(&trace, &["--cull", "none"])?;
        let found = report["intervals"].as_array().into_iter().flatten();
        let polls = found.into_iter().find(|of| of["name"] == "polled");
        let on_cpu = polls.and_then(|of| of["on_cpu_ns"].as_f64().or(of["total_ns"].as_f64()));
        shares.push(on_cpu.ok_or("no polls in the report")? / cpu);
    }
    let (lo, hi) = median_interval(&shares);
    println!(
        "polls of 1 ms: their time on a CPU of the worker's, by the kernel: {:.4} [{lo:.4}, {hi:.4}]   target 0.99 to 1.01",
        quantile(&shares, 0.5)
    );
    Ok(())
}
