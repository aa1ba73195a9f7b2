//! The longest of a million events at a steady rate, against those of a program that reads the clock
//! and stores 16 bytes into its own memory: does the recorder ever make a program wait?

use super::{compile_as, ns_per_tick, record};
use crate::run::{Scratch, command, output};
use crate::statistics::{median, median_interval};

const EVENTS: &str = "1000000";
const PER_S: &str = "1000000";

pub fn measure(rounds: usize) -> Result<(), String> {
    let scratch = Scratch::new("longest")?;
    let compiled = |what: u32| {
        let option = format!("-DWHAT={what}");
        compile_as(&scratch, "longest", &format!("longest{what}"), &[option])
    };
    let (floor, event) = (compiled(1)?, compiled(2)?);
    let trace = scratch.path("l.ut");
    let options = ["--no-calibration", "--kernel", "off"];
    record(&trace, &options, &["true"])?;
    let ns = ns_per_tick(&trace)?;
    let per_s = format!("{:.0}", 1e9 / ns);
    println!(
        "\nthe longest of {EVENTS} events at {PER_S} a second, and the tenth longest, us, median of {rounds} \
         rounds in turn; ratio to the floor [95 %], target 1"
    );
    let (mut points, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let words = [EVENTS, PER_S, &per_s];
        let alone = [&[floor.as_str()][..], &words].concat();
        floors.push(said(&output(command(&alone))?, ns)?);
        let recorded = [&[event.as_str()][..], &words].concat();
        points.push(said(&record(&trace, &options, &recorded)?, ns)?);
    }
    for (at, what) in ["longest", "tenth longest"].into_iter().enumerate() {
        let of = |all: &[[f64; 2]]| all.iter().map(|us| us[at]).collect::<Vec<f64>>();
        let (points, floors) = (of(&points), of(&floors));
        let ratios: Vec<f64> = points.iter().zip(&floors).map(|(a, b)| a / b).collect();
        let (lo, hi) = median_interval(&ratios);
        println!(
            "{what:<14}{:>8.1} floor {:>8.1}  {:.2} [{lo:.2}, {hi:.2}]",
            median(&points),
            median(&floors),
            median(&ratios)
        );
    }
    Ok(())
}

fn said(said: &str, ns: f64) -> Result<[f64; 2], String> {
    let ticks: Vec<f64> = said
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    match ticks[..] {
        [longest, tenth] => Ok([longest, tenth].map(|ticks| ticks * ns / 1e3)),
        _ => Err(format!("longest.c said {said:?}")),
    }
}
