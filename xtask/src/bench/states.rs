//! Do states name the cause of live programs? Each program has one cause that was put there, or none.

use serde_json::Value;

use super::{compile, record, report_json};
use crate::run::Scratch;

/// The causes of the program, and the fact that must be the first condition of the states.
const CAUSES: [(&str, &str); 6] = [
    ("neighbour", "beside"),
    ("size", "value"),
    ("after", "after"),
    ("fault", "faulted"),
    ("phase", "time"),
    ("flush", "with"),
];
/// Recordings without a cause, for each with one.
const WITHOUT: usize = 10;

/// `runs` recordings with each cause, and [`WITHOUT`] times as many with none.
pub fn measure(runs: usize) -> Result<(), String> {
    let scratch = Scratch::new("states")?;
    let program = compile(&scratch, "causes")?;
    let trace = scratch.path("t.ut");
    let first = |cause: &str, seed: usize| -> Result<Option<String>, String> {
        let seed = seed.to_string();
        record(&trace, &["--no-calibration"], &[&program, cause, &seed])?;
        Ok(first_fact(&report_json(&trace, &[])?))
    };
    println!("\nstates of a span with one known cause, {runs} recordings of each (wanted: 95 %)");
    for (cause, fact) in CAUSES {
        let mut others: Vec<String> = Vec::new();
        for seed in 0..runs {
            let found = first(cause, seed)?.unwrap_or_else(|| "none".to_owned());
            if found != fact {
                others.push(found);
            }
        }
        let right = runs - others.len();
        let others = match others.is_empty() {
            true => String::new(),
            false => format!("; otherwise {}", others.join(", ")),
        };
        println!("  {cause:<10} {right} of {runs} named first{others}");
    }
    let mut found: Vec<String> = Vec::new();
    for seed in 0..runs * WITHOUT {
        found.extend(first("none", 1000 + seed)?);
    }
    let (by_time, others): (Vec<&String>, Vec<&String>) =
        found.iter().partition(|fact| *fact == "time");
    println!(
        "  none       {} of {} with a false cause (wanted: 2 % at most){}; {} change with time, which other \
         programs on the machine may do",
        others.len(),
        runs * WITHOUT,
        others
            .iter()
            .map(|fact| format!(", {fact}"))
            .collect::<String>(),
        by_time.len()
    );
    Ok(())
}

/// The first condition of the states of `work`; `None` if it has no states.
fn first_fact(report: &Value) -> Option<String> {
    let paths = report["paths"].as_array()?;
    let work = paths.iter().position(|path| path["name"] == "work")?;
    let states = report["states"].as_array()?;
    let states = states.iter().find(|of| of["path"] == work)?;
    let fact = &states["states"][0]["conditions"][0]["fact"];
    Some(fact.as_str()?.to_owned())
}
