//! The cost of the live view: its share of a CPU, and how much work the program does under it.

use super::{compile, manifest, undertick};
use crate::run::{Scratch, command, exists, output};
use crate::statistics::{median, median_interval};

const SECONDS: &str = "10";
const ROUNDS: usize = 5;

pub fn measure() -> Result<(), String> {
    if !exists(&["script", "--version"]) {
        return Err("the view needs a terminal, which `script` (bsdutils) makes".to_owned());
    }
    let scratch = Scratch::new("live")?;
    let paced = compile(&scratch, "paced")?;
    println!(
        "\nwatched and recorded in turn, {SECONDS} s each, {ROUNDS} times (view's target: below 2 % of a CPU)"
    );
    for (what, wanted, threads) in [
        ("10 k events/s of one thread", "1e4", "1"),
        ("1 M events/s of one thread", "1e6", "1"),
        ("1 M events/s of 16 threads", "62500", "16"),
        ("as many as go, two threads", "0", "2"),
    ] {
        let (mut views, mut ratios, mut lost) = (Vec::new(), Vec::new(), 0);
        for round in 0..ROUNDS {
            let mut done = [0.0; 2];
            for turn in 0..2 {
                // The order alternates, too.
                let is_live = (round + turn) % 2 == 1;
                let name =
                    scratch.path(&format!("{what}-{round}-{turn}.ut").replace([' ', '/'], "-"));
                let how = if is_live { "live" } else { "record" };
                let line = format!(
                    "{} {how} --no-calibration --kernel off -o {name} -- {paced} {SECONDS} {wanted} {threads}",
                    undertick()
                );
                let said = output(command(&["script", "-qec", &line, "/dev/null"]))?;
                let manifest = manifest(&name)?;
                done[usize::from(is_live)] = manifest["events"].as_f64().unwrap_or(f64::NAN);
                lost += manifest["lost"].as_u64().unwrap_or(u64::MAX);
                if is_live {
                    views.push(share(&said).ok_or("the view did not say what it took")?);
                }
                let _ = std::fs::remove_dir_all(&name);
            }
            ratios.push(done[1] / done[0]);
        }
        let (lo, hi) = median_interval(&ratios);
        println!(
            "  {what}: view {:.2} % of a CPU (most {:.2} %); events watched/recorded {:.3} [{lo:.3}, {hi:.3}], {lost} lost",
            median(&views),
            views.iter().copied().fold(0.0, f64::max),
            median(&ratios)
        );
    }
    Ok(())
}

/// The share in per cent from `the view took 0.71 % of a CPU`.
fn share(said: &str) -> Option<f64> {
    let after = said.split("the view took ").nth(1)?;
    after
        .split(['\u{a0}', ' '])
        .next()?
        .trim_start_matches('<')
        .parse()
        .ok()
}
