//! The cost of a point where code and data are cold, against one clock reading and one 16-byte
//! store in the same surroundings. Real programs have other work between their points, so this is
//! what a recorder costs them.

use super::{compile_as, ns_per_tick, record};
use crate::run::{Scratch, command, output};
use crate::statistics::{median, median_interval};

/// Memory that the work between points touches, KiB.
const BETWEEN_KIB: [&str; 3] = ["0", "64", "1024"];
/// What is measured, and its floor: numbers of benches/recorder/cold.c.
const WHATS: [(&str, usize, usize); 2] = [("event", 2, 1), ("begin", 3, 4)];
const NOTHING: usize = 0;
const POINTS: &str = "4000";

pub fn measure(rounds: usize) -> Result<(), String> {
    let scratch = Scratch::new("cold")?;
    let programs = (0..5)
        .map(|what| {
            let option = format!("-DWHAT={what}");
            compile_as(&scratch, "cold", &format!("cold{what}"), &[option])
        })
        .collect::<Result<Vec<_>, String>>()?;
    let trace = scratch.path("c.ut");
    println!(
        "\none point behind other work that touches so much memory, ns beyond an empty call; \
         {rounds} rounds of {POINTS} in turn, medians; ratio to the floor [95 %], target 1.6"
    );
    for kib in BETWEEN_KIB {
        for (name, what, floor) in WHATS {
            let mut ratios = Vec::new();
            let (mut points, mut floors) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                let words = |program: &str| [program.to_owned(), kib.to_owned(), POINTS.to_owned()];
                let of = |what: usize| {
                    let words = words(&programs[what]);
                    output(command(&words.each_ref().map(String::as_str)))
                };
                let recorded = words(&programs[what]);
                let recorded = recorded.each_ref().map(String::as_str);
                let options = ["--no-calibration", "--kernel", "off"];
                let recorded = ticks(&record(&trace, &options, &recorded)?)?;
                let nothing = ticks(&of(NOTHING)?)?;
                let ns = ns_per_tick(&trace)?;
                let point = (recorded - nothing) * ns;
                let floor = (ticks(&of(floor)?)? - nothing) * ns;
                ratios.push(point / floor);
                points.push(point);
                floors.push(floor);
            }
            let (lo, hi) = median_interval(&ratios);
            println!(
                "{name:<8}{kib:>6} KiB between {:>8.1} floor {:>8.1}  {:.2} [{lo:.2}, {hi:.2}]",
                median(&points),
                median(&floors),
                median(&ratios)
            );
        }
    }
    Ok(())
}

fn ticks(said: &str) -> Result<f64, String> {
    (said.trim().parse()).map_err(|_| format!("cold.c said {said:?}"))
}
