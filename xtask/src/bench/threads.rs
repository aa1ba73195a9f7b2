//! The cost of a thread's first span, and of ten spans in a short thread.

use super::{compile, ns_per_tick, record};
use crate::run::{Scratch, command, output};
use crate::statistics::quantile;

/// Number of threads, and how many of them run at once.
const SCENES: [[&str; 2]; 3] = [["2000", "1"], ["3000", "1500"], ["20000", "1"]];

pub fn measure() -> Result<(), String> {
    let scratch = Scratch::new("threads")?;
    let program = compile(&scratch, "threads")?;
    let trace = scratch.path("t.ut");
    println!(
        "\nfirst span of a thread and ten spans, us: median, 99 % (targets: 5, 20), by fenced readings"
    );
    for [threads, at_once] in SCENES {
        let words = [program.as_str(), threads, at_once];
        let recorded = record(&trace, &["--no-calibration", "--kernel", "off"], &words)?;
        let us = ns_per_tick(&trace)? / 1e3;
        print(
            &format!("{threads} threads, {at_once} at once"),
            &recorded,
            us,
        );
        print("the same without a session", &output(command(&words))?, us);
    }
    Ok(())
}

fn print(what: &str, said: &str, us_per_tick: f64) {
    let column = |place: usize| -> Vec<f64> {
        said.lines()
            .filter_map(|line| line.split(' ').nth(place)?.parse::<f64>().ok())
            .map(|ticks| ticks * us_per_tick)
            .collect()
    };
    let (first, ten) = (column(0), column(1));
    println!(
        "{what:<32}{:>9.1}{:>9.1}   ten {:>9.1}{:>9.1}",
        quantile(&first, 0.5),
        quantile(&first, 0.99),
        quantile(&ten, 0.5),
        quantile(&ten, 0.99)
    );
}
