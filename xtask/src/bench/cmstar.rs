//! The simulator of Cm* against others on the same queues, and with a thousand Cms.

use std::collections::BTreeMap;

use crate::run::{self, command, line, output, root};
use crate::statistics::{median, median_interval};

/// Number of events of a run.
const EVENTS: u64 = 4_000_000;
/// Target for one core, events per second.
const TARGET_PER_S: f64 = 10e6;
/// Target for a thousand Cms during a minute, MiB.
const TARGET_MIB: f64 = 500.0;

/// Events per second by scenario and simulator, with one value for each round.
type Rates = BTreeMap<(String, String), Vec<f64>>;

pub fn measure(rounds: usize) -> Result<(), String> {
    let manifest = root().join("benches/simulators/Cargo.toml");
    let manifest = manifest.to_string_lossy();
    run::run(line(
        "cargo build --release --locked --manifest-path {}",
        &[&manifest],
    ))?;
    let simulators = root().join("benches/simulators/target/release/simulators");
    let simulators = simulators.to_string_lossy();
    let (rounds, events) = (rounds.to_string(), EVENTS.to_string());
    let text = output(command(&[&simulators, "race", &rounds, &events]))?;
    let rates = rates(&text)?;
    println!(
        "\nevents/s on one core, {rounds} rounds in turn; target {TARGET_PER_S:.0e}, not slower than others"
    );
    for ((scenario, name), values) in &rates {
        let ours = &rates[&(scenario.clone(), "undertick".to_owned())];
        let ratios: Vec<f64> = ours.iter().zip(values).map(|(o, v)| o / v).collect();
        let (lo, hi) = median_interval(&ratios);
        println!(
            "{scenario:7} {name:10} {:7.2} M/s   ours over it {:6.2} [{lo:.2}, {hi:.2}] (95 %)",
            median(values) / 1e6,
            median(&ratios),
        );
    }
    let text = output(command(&[&simulators, "scale", "1000", "60"]))?;
    let numbers: Vec<f64> = text
        .split_whitespace()
        .filter_map(|w| w.parse().ok())
        .collect();
    let [events, seconds, kib] = numbers[..] else {
        return Err(format!("simulators scale: {text}"));
    };
    println!(
        "1000 Cms, a simulated minute: {:.1} M events in {seconds:.1} s ({:.1} M/s), {:.1} MiB (target {TARGET_MIB})",
        events / 1e6,
        events / seconds / 1e6,
        kib / 1024.0,
    );
    Ok(())
}

/// Parses the lines of a race; all simulators must have the same results.
fn rates(text: &str) -> Result<Rates, String> {
    let mut rates = Rates::new();
    let mut results: BTreeMap<String, String> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, scenario, name, events, seconds, result] = words[..] else {
            return Err(format!("simulators race: {line}"));
        };
        let number = |word: &str| word.parse::<f64>().map_err(|e| format!("{line}: {e}"));
        let rate = number(events)? / number(seconds)?;
        let key = (scenario.to_owned(), name.to_owned());
        rates.entry(key).or_default().push(rate);
        let first = results
            .entry(scenario.to_owned())
            .or_insert_with(|| result.to_owned());
        if first != result {
            return Err(format!(
                "{scenario}: {name} found {result}, another {first}"
            ));
        }
    }
    Ok(rates)
}

#[cfg(test)]
mod tests;
