//! Why other tools' figures for a socket, a fork and a mutex differ from Undertick's: their loop,
//! their loop with the surroundings of Undertick's script, and that script, in turn.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{compile, undertick};
use crate::run::{Scratch, command, output};
use crate::statistics::{median, median_interval};

/// Number of rounds of all loops and scripts.
const ROUNDS: usize = 9;

/// A parent that forks for some seconds, to be examined while it runs.
const LONG_FORK: &str = "passes = 20000\nrepetitions = 1\ntimeout = \"60s\"\n[[process]]\nname = \"parent\"\n[[process.step]]\nfork = \"fork\"\n[[process.step]]\nreap = true\n";

pub fn measure() -> Result<(), String> {
    let scratch = Scratch::new("peers")?;
    let program = compile(&scratch, "peers")?;
    let parent = parent(&scratch)?;
    let bare = numbers(&program, "fork 0 0 0 0")?;
    let [maps, faults, tables] = [
        parent.maps - bare[1],
        parent.faults - bare[2],
        (parent.tables_kib - bare[3]) / 4.0,
    ]
    .map(|more| more.max(1.0));
    println!(
        "\nour parent of a fork has {:.0} KiB of memory of its own, {maps:.0} more mappings than \
         the loop's, {tables:.0} more page tables, and {faults:.1} more page faults a pass",
        parent.bytes / 1024.0,
    );
    let fork_as_ours = format!(
        "fork {:.0} {tables:.0} {:.0} {faults:.0}",
        parent.bytes,
        (maps - tables).max(0.0)
    );
    let rows = [
        Row {
            what: "unix socket, there and back, us",
            theirs: "unix one 8".to_owned(),
            as_ours: "unix two 8".to_owned(),
            number: 0,
            script: "messages",
            name: "message round trip",
            parameters: &[("kind", "unix"), ("place", "same cpu as client")],
        },
        Row {
            what: "fork alone, us",
            theirs: "fork 0 0 0 0".to_owned(),
            as_ours: fork_as_ours,
            number: 0,
            script: "children",
            name: "make a child",
            parameters: &[("way", "fork")],
        },
        Row {
            what: "a turn with a mutex of two users, us",
            theirs: "mutex 0 0".to_owned(),
            as_ours: "mutex 2000 200".to_owned(),
            number: 1,
            script: "rivals",
            name: "(pass)",
            parameters: &[("kind", "pthread")],
        },
    ];
    let mut found: Vec<[Vec<f64>; 3]> = rows.iter().map(|_| Default::default()).collect();
    let mut switches = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (row, [theirs, as_ours, ours]) in rows.iter().zip(&mut found) {
            let first = numbers(&program, &row.theirs)?;
            let second = numbers(&program, &row.as_ours)?;
            if row.script == "messages" {
                switches[0].push(first[1]);
                switches[1].push(second[1]);
            }
            theirs.push(first[row.number] / 1e3);
            as_ours.push(second[row.number] / 1e3);
            ours.push(row.ours()? / 1e3);
        }
    }
    println!("medians of {ROUNDS} rounds, and their order statistics (95 %)");
    for (row, [theirs, as_ours, ours]) in rows.iter().zip(&found) {
        let ratios: Vec<f64> = ours.iter().zip(as_ours).map(|(o, a)| o / a).collect();
        println!(
            "{}: loop {}, loop as ours ({}) {}, ours {}; ours against the latter {}",
            row.what,
            stated(theirs),
            row.as_ours,
            stated(as_ours),
            stated(ours),
            stated(&ratios)
        );
    }
    println!(
        "switches of the client a round trip: {} over one pair, {} over a pair each way",
        stated(&switches[0]),
        stated(&switches[1])
    );
    Ok(())
}

struct Row {
    what: &'static str,
    /// Arguments of `peers`: as other tools do it, and with the surroundings of Undertick's script.
    theirs: String,
    as_ours: String,
    /// Index of the number in its output: 0 is a median, 1 a mean.
    number: usize,
    /// The figure of Undertick: its script, name and parameters.
    script: &'static str,
    name: &'static str,
    parameters: &'static [(&'static str, &'static str)],
}

impl Row {
    /// Undertick's typical figure, or the mean where the loop states a mean, ns.
    fn ours(&self) -> Result<f64, String> {
        let mut command = Command::new(undertick());
        command.args(["primitives", "--json", "--only", self.script]);
        let report: Value = serde_json::from_str(&output(command)?).map_err(|e| e.to_string())?;
        let is_it = |interval: &&Value| {
            interval["name"] == self.name
                && (self.parameters.iter())
                    .all(|(key, value)| interval["repeated"]["parameters"][key] == *value)
        };
        let mut intervals = report["intervals"].as_array().into_iter().flatten();
        let found = intervals.find(is_it);
        found
            .and_then(|interval| match self.number {
                0 => interval["repeated"]["typical"]["value"].as_f64(),
                _ => interval["mean"]["value"].as_f64(),
            })
            .ok_or_else(|| format!("no {:?} in the report of {}", self.name, self.script))
    }
}

/// The numbers that `peers` prints.
fn numbers(program: &str, words: &str) -> Result<Vec<f64>, String> {
    let all: Vec<&str> = std::iter::once(program)
        .chain(words.split_whitespace())
        .collect();
    let text = output(command(&all))?;
    let numbers: Vec<f64> = (text.split_whitespace())
        .filter_map(|word| word.parse().ok())
        .collect();
    match numbers.len() {
        0 | 1 => Err(format!("peers {words}: {text}")),
        _ => Ok(numbers),
    }
}

/// Figures of a process that forks.
#[derive(Clone, Copy, Default)]
struct Parent {
    /// Private memory that was touched, bytes.
    bytes: f64,
    maps: f64,
    /// Size of its page tables, KiB.
    tables_kib: f64,
    /// Page faults, per second or per pass.
    faults: f64,
}

/// Examines the process that forks in one of Undertick's scripts.
fn parent(scratch: &Scratch) -> Result<Parent, String> {
    let (script, trace) = (scratch.path("fork.toml"), scratch.path("fork.ut"));
    std::fs::write(&script, LONG_FORK).map_err(|e| e.to_string())?;
    let mut run = Command::new(undertick());
    run.args(["run", &script, "-o", &trace, "--json"]);
    let mut run = run
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let found = look(&mut run);
    let ended = run.wait_with_output().map_err(|e| e.to_string())?;
    let report: Value = serde_json::from_slice(&ended.stdout).map_err(|e| e.to_string())?;
    let pass = (report["intervals"].as_array().into_iter().flatten())
        .find(|interval| interval["name"] == "(pass)")
        .and_then(|interval| interval["mean"]["value"].as_f64());
    match (found, pass) {
        (Some(parent), Some(pass_ns)) => Ok(Parent {
            faults: parent.faults * pass_ns / 1e9,
            ..parent
        }),
        _ => Err("the script's process was not found under /proc".to_owned()),
    }
}

fn look(run: &mut Child) -> Option<Parent> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) && run.try_wait().ok()?.is_none() {
        std::thread::sleep(Duration::from_millis(300));
        if let Some(found) = descendants(run.id()).into_iter().find_map(forking) {
            return Some(found);
        }
    }
    None
}

/// All descendants of a process, the nearest first.
fn descendants(of: u32) -> Vec<u32> {
    let path = format!("/proc/{of}/task/{of}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let children: Vec<u32> = (text.split_whitespace())
        .filter_map(|w| w.parse().ok())
        .collect();
    let below: Vec<u32> = children.iter().flat_map(|c| descendants(*c)).collect();
    [children, below].concat()
}

/// Figures of a process if it has children; faults are per second.
fn forking(pid: u32) -> Option<Parent> {
    // Faults of the process itself, and of its children.
    let faults = || -> Option<[f64; 2]> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut words = text.rsplit_once(')')?.1.split_whitespace().skip(7);
        Some([words.next()?.parse().ok()?, words.next()?.parse().ok()?])
    };
    let begun = Instant::now();
    let [own, children] = faults()?;
    std::thread::sleep(Duration::from_millis(500));
    let [own_later, children_later] = faults()?;
    let seconds = begun.elapsed().as_secs_f64();
    if children_later - children < 1000.0 {
        return None;
    }
    let kib = |file: &str, key: &str| -> Option<f64> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    Some(Parent {
        bytes: kib("smaps_rollup", "Anonymous:")? * 1024.0,
        tables_kib: kib("status", "VmPTE:")?,
        maps: maps.lines().count() as f64,
        faults: (own_later - own) / seconds,
    })
}

/// Median and its confidence interval, as text.
fn stated(values: &[f64]) -> String {
    let (lo, hi) = median_interval(values);
    format!("{:.3} [{lo:.3}, {hi:.3}]", median(values))
}
