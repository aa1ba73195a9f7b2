//! Does the interference meter find the share and the slow-down of a disturber that
//! says itself when it was on; what does it say when nobody disturbs; and what does
//! the continuous meter cost, and when does it name who begins?

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{compile, undertick};
use crate::run::{Scratch, command, output};
use crate::statistics::{median, quantile};

const SHARES: [&str; 3] = ["0.1", "0.3", "0.6"];
/// The probe's two events.
const MIX: &str = "1";
const REGISTERS: &str = "2";
/// CPUs of the probe and of the other one.
const PROBE: &str = "1";
const OTHER: &str = "0";
/// Of one measurement.
const SECONDS: &str = "20s";
/// Longer than that, its start included: it is killed.
const LONGER: &str = "60";

/// A disturber that runs until it is dropped.
struct Disturber {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Disturber {
    fn start(program: &str, kind: &str, share: &str, seed: usize) -> Result<Self, String> {
        let cpu = if kind == "memory" { OTHER } else { PROBE };
        let mut child = Command::new(program)
            .args([kind, cpu, share, LONGER, &seed.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{program}: {e}"))?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("piped")?);
        let mut ready = String::new();
        lines.read_line(&mut ready).map_err(|e| e.to_string())?;
        Ok(Self { child, lines })
    }

    /// Ends it; the phases it was on, s, and how long of each it was kept from it.
    fn phases(mut self) -> Result<Vec<[f64; 3]>, String> {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let mut text = String::new();
        (self.lines.read_to_string(&mut text)).map_err(|e| e.to_string())?;
        let number = |word: &str| word.parse::<f64>().ok().map(|ns| ns / 1e9);
        let phase = |line: &str| {
            let mut numbers = line.split(' ').map(number);
            Some([numbers.next()??, numbers.next()??, numbers.next()??])
        };
        Ok(text.lines().filter_map(phase).collect())
    }
}

/// The kinds of disturbers.
pub const KINDS: [&str; 2] = ["memory", "cpu"];

/// So many runs with each of these kinds of disturbers, some with none, and the continuous
/// meter with each.
pub fn measure(runs: usize, kinds: &[&str]) -> Result<(), String> {
    let scratch = Scratch::new("interference")?;
    let program = compile(&scratch, "disturber")?;
    nobody(runs.div_ceil(4))?;
    let (mut held, mut all) = (0, 0);
    for &kind in kinds {
        println!(
            "\n{kind} disturber\n  true share   found (interval)            slow-down (interval)  meanwhile   always on   cause, name"
        );
        let mut off = Vec::new();
        let mut before = always(&program, kind)?;
        for run in 0..runs {
            let share = SHARES[run % SHARES.len()];
            let disturber = Disturber::start(&program, kind, share, run)?;
            std::thread::sleep(Duration::from_millis(300));
            let trace = scratch.path(&format!("{kind}-{run}.ut"));
            let found = meter(&[
                "--for",
                SECONDS,
                "--seed",
                &(run + 1).to_string(),
                "-o",
                &trace,
            ])?;
            // The phase that runs is printed at its end.
            std::thread::sleep(Duration::from_millis(1000));
            let phases = disturber.phases()?;
            let truth = truth(&phases, &found)?;
            // The host's other guests come and go, and what they do changes what the
            // disturber does: right before and right after is what a run is held to, and
            // its own seconds.
            let meanwhile = meanwhile(&trace, kind, &phases)?;
            let after = always(&program, kind)?;
            let both = [before, after];
            before = after;
            let apart = (both[0].of_middle / both[1].of_middle - 1.0).abs();
            let Some(peak) = slowed(&found, kind) else {
                println!("  {truth:.3}        nothing found");
                all += 1;
                off.push(Off {
                    holds: false,
                    share: 1.0,
                    always: 1.0,
                    meanwhile: 1.0,
                    apart,
                });
                continue;
            };
            let holds = peak.lo <= truth && truth <= peak.hi;
            // A peak is so many times slower than the clean peak; by its activity a process
            // slows what there is without it.
            let of = match peak.of.ends_with("activity") {
                true => both.map(|always| always.of_middle),
                false => both.map(|always| always.of_clean),
            };
            let always = f64::midpoint(of[0], of[1]);
            let shown = meanwhile.map_or_else(|| "    -".to_owned(), |by| format!("{by:.3}"));
            println!(
                "  {truth:.3}        {:.3} [{:.3}, {:.3}]{}      {:.3} [{:.3}, {:.3}]  {shown}       {always:.3}       {}, {} (peaks: {})",
                peak.share,
                peak.lo,
                peak.hi,
                if holds { " " } else { "!" },
                peak.slowdown,
                peak.slowed_lo,
                peak.slowed_hi,
                peak.cause,
                peak.name,
                peak.of
            );
            held += usize::from(holds);
            all += 1;
            let from = |slowdown: f64| (peak.slowdown / slowdown - 1.0).abs();
            off.push(Off {
                holds: meanwhile.is_some_and(|by| peak.slowed_lo <= by && by <= peak.slowed_hi),
                share: (peak.share - truth).abs(),
                always: from(always),
                meanwhile: meanwhile.map_or(f64::NAN, from),
                apart,
            });
        }
        let within = |limit: f64, of: fn(&Off) -> f64| {
            let n = off.iter().filter(|o| of(o) <= limit).count();
            let all: Vec<f64> = off.iter().map(of).collect();
            format!(
                "{n} of {runs} (90 % quantile {:.1} %, largest {:.1} %)",
                100.0 * quantile(&all, 0.9),
                100.0 * all.iter().copied().fold(0.0, f64::max)
            )
        };
        println!(
            "  within 3 points {}; slow-down within 10 % of always on before and after {}; these two within 10 % of \
             each other {}",
            within(0.03, |o| o.share),
            within(0.10, |o| o.always),
            within(0.10, |o| o.apart)
        );
        if kind == "memory" {
            println!(
                "  slow-down within 10 % of what it was in the same seconds {}, which its interval holds in {} of {runs}",
                within(0.10, |o| o.meanwhile),
                off.iter().filter(|o| o.holds).count()
            );
        }
    }
    println!(
        "{held} of {all} intervals (95 %) hold the true share: {:.0} % (target 90 %)",
        100.0 * held as f64 / all as f64
    );
    for kind in kinds {
        continuous(&program, kind)?;
    }
    Ok(())
}

/// How far off a run was: its share, its slow-down from two truths, and these two from each
/// other.
struct Off {
    /// The interval of the slow-down holds that of the same seconds.
    holds: bool,
    share: f64,
    always: f64,
    meanwhile: f64,
    apart: f64,
}

/// How many times longer the probe's blocks took inside the disturber's phases than outside,
/// right before and after each begin and end of one: in units of the registers beside them,
/// geometric means. Not of a disturber that takes the CPU itself.
fn meanwhile(trace: &str, kind: &str, phases: &[[f64; 3]]) -> Result<Option<f64>, String> {
    if kind != "memory" {
        return Ok(None);
    }
    let (_, text) = super::csv(trace)?;
    let mut begun = None;
    let mut mix = None;
    let mut blocks = Vec::new();
    for line in text.lines().skip(1) {
        let words: Vec<&str> = line.split(',').collect();
        let number = |place: usize| {
            let number: Result<i64, _> = words[place].parse();
            number.map_err(|_| format!("{trace}: {line}"))
        };
        let (unix_s, ticks) = (number(0)? as f64 / 1e9, number(1)?);
        match (words[7], words[9]) {
            ("begin_ordered", _) => begun = Some(ticks),
            ("end_ordered", event) => {
                let took = begun.take().map(|begun| (ticks - begun) as f64);
                let took = took.filter(|_| words[8] == "0");
                match (event, took, mix.take()) {
                    (MIX, Some(took), _) => mix = Some(took),
                    (REGISTERS, Some(registers), Some(mix)) => {
                        blocks.push((unix_s, f64::ln(mix / registers)));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    by_edges(&blocks, phases)
        .map(Some)
        .ok_or_else(|| format!("{trace}: no blocks on both sides of an edge of a phase"))
}

/// On either side of an edge so much time is compared, s: other guests come and go as well, but not
/// just then.
const BESIDE_AN_EDGE: f64 = 0.2;
/// Fewer blocks than these on one side of it say little: part of a burst.
const FEWEST_BLOCKS: usize = 50;

/// Blocks, when and the logarithm of how long, on the two sides of each begin and end of a phase:
/// by how much they differ, each edge by the blocks that it has.
fn by_edges(blocks: &[(f64, f64)], phases: &[[f64; 3]]) -> Option<f64> {
    let is_on = |at: f64| phases.iter().any(|[from, to, _]| *from <= at && at <= *to);
    let mean = |from: f64, to: f64, on: bool| {
        let inside = (blocks.iter()).filter(|(at, _)| from <= *at && *at < to && is_on(*at) == on);
        let (n, sum) = inside.fold((0, 0.0), |(n, sum), (_, log)| (n + 1, sum + log));
        (n >= FEWEST_BLOCKS).then(|| (n as f64, sum / n as f64))
    };
    let edges = phases
        .iter()
        .flat_map(|[from, to, _]| [(*from, true), (*to, false)]);
    let differences = edges.filter_map(|(at, begins)| {
        let (n, before) = mean(at - BESIDE_AN_EDGE, at, !begins)?;
        let (m, after) = mean(at, at + BESIDE_AN_EDGE, begins)?;
        let slower = if begins {
            after - before
        } else {
            before - after
        };
        Some((1.0 / (1.0 / n + 1.0 / m), slower))
    });
    let (weight, sum) = differences.fold((0.0, 0.0), |(weight, sum), (w, slower)| {
        (weight + w, sum + w * slower)
    });
    (weight > 0.0).then(|| (sum / weight).exp())
}

/// By how much the disturber slows when it is always on.
#[derive(Clone, Copy)]
struct Always {
    /// Against the clean peak without it.
    of_clean: f64,
    /// Against the middle of all without it.
    of_middle: f64,
}

/// In some seconds. In the memory's case by the middle time of a block with it over that of
/// runs before and after without: always on, it makes one peak.
fn always(program: &str, kind: &str) -> Result<Always, String> {
    let run = |on: bool, seed: usize| {
        let disturber = on
            .then(|| Disturber::start(program, kind, "1", seed))
            .transpose()?;
        let found = meter(&["--for", "2s"])?;
        disturber.map(Disturber::phases).transpose()?;
        Ok::<_, String>(found)
    };
    if kind != "memory" {
        let slowdown = slowed(&run(true, 0)?, kind).map(|p| p.slowdown);
        let slowdown = slowdown.ok_or("a process that always runs is not seen")?;
        return Ok(Always {
            of_clean: slowdown,
            of_middle: slowdown,
        });
    }
    let mut ratios = [Vec::new(), Vec::new()];
    let mut before = run(false, 0)?;
    for seed in 0..2 {
        let on = middle_time(&run(true, seed)?)?;
        let after = run(false, seed)?;
        let middle = (middle_time(&before)? * middle_time(&after)?).sqrt();
        let clean = (clean_rate(&before)? * clean_rate(&after)?).sqrt();
        ratios[0].push(on * clean);
        ratios[1].push(on / middle);
        before = after;
    }
    Ok(Always {
        of_clean: median(&ratios[0]),
        of_middle: median(&ratios[1]),
    })
}

/// Middle time of a unit of work, any unit: from the histogram.
fn middle_time(found: &Value) -> Result<f64, String> {
    let list = |name: &str| -> Vec<f64> {
        let values = found["histogram"][name].as_array().into_iter().flatten();
        values.filter_map(Value::as_f64).collect()
    };
    let (edges, counts) = (list("edges"), list("counts"));
    let half = counts.iter().sum::<f64>() / 2.0;
    let mut so_far = 0.0;
    let at = counts.iter().position(|count| {
        so_far += count;
        so_far >= half
    });
    let at = at.ok_or("an empty histogram")?;
    let rate = f64::midpoint(edges[at], edges[at + 1]);
    Ok(1.0 / (rate * clean_rate(found)?))
}

/// Runs without a disturber: what is found all the same.
fn nobody(runs: usize) -> Result<(), String> {
    println!(
        "\nnobody disturbs, {runs} runs of {SECONDS}: peaks besides the clean one over 0.5 % of the time (target: none blamed on somebody)"
    );
    for _ in 0..runs {
        let found = meter(&["--for", SECONDS])?;
        let others = (found["peaks"].as_array().into_iter().flatten())
            .filter(|p| p["cause"] != "clean")
            .filter(|p| p["time_share"]["value"].as_f64() > Some(0.005))
            .map(|p| {
                format!(
                    "{:.3} of the time {:.2} times slower: {} {}",
                    p["time_share"]["value"].as_f64().unwrap_or(f64::NAN),
                    p["slowdown"]["value"].as_f64().unwrap_or(f64::NAN),
                    p["cause"].as_str().unwrap_or("?"),
                    p["evidence"]
                )
            });
        let others: Vec<String> = others.collect();
        println!(
            "  lost {:.2} %, {}",
            100.0 * found["mean_loss"]["value"].as_f64().unwrap_or(f64::NAN),
            if others.is_empty() {
                "none".to_owned()
            } else {
                others.join("; ")
            }
        );
    }
    Ok(())
}

fn meter(options: &[&str]) -> Result<Value, String> {
    let undertick = undertick();
    let mut words = vec![undertick.as_str(), "interference", "--json", "--cpu", PROBE];
    words.extend(options);
    serde_json::from_str(&output(command(&words))?).map_err(|e| e.to_string())
}

fn clean_rate(found: &Value) -> Result<f64, String> {
    found["probe"]["clean_rate"]["value"]
        .as_f64()
        .ok_or_else(|| "no clean rate".to_owned())
}

struct Peak {
    share: f64,
    lo: f64,
    hi: f64,
    slowdown: f64,
    slowed_lo: f64,
    slowed_hi: f64,
    cause: String,
    name: String,
    of: String,
}

/// The disturber: of the bursts for a process on the probe's CPU, else of the samples or
/// of the activity; the one that holds most of the time.
fn slowed(found: &Value, kind: &str) -> Option<Peak> {
    let share = |d: &&Value| d["time_share"]["value"].as_f64().unwrap_or(0.0);
    let of = |d: &Value| {
        let first = d["peaks"][0].as_u64().unwrap_or(0) as usize;
        let of = found["peaks"][first]["of"].as_str().unwrap_or("nothing");
        of.to_owned()
    };
    let disturber = (found["disturbers"].as_array().into_iter().flatten())
        .filter(|d| (of(d) == "bursts") == (kind != "memory"))
        .max_by(|a, b| share(a).total_cmp(&share(b)))?;
    let word = |value: &Value| value.as_str().unwrap_or("nobody").to_owned();
    let peaks = disturber["peaks"].as_array().map_or(0, Vec::len);
    let slowed = |bound: usize| {
        let bound = disturber["slowdown"]["interval"][bound].as_f64();
        bound.unwrap_or(f64::NAN)
    };
    Some(Peak {
        share: share(&disturber),
        lo: disturber["time_share"]["interval"][0].as_f64()?,
        hi: disturber["time_share"]["interval"][1].as_f64()?,
        slowdown: disturber["slowdown"]["value"].as_f64()?,
        slowed_lo: slowed(0),
        slowed_hi: slowed(1),
        cause: word(&disturber["cause"]),
        name: word(&disturber["name"]),
        of: format!("{peaks} of {}", of(disturber)),
    })
}

/// Share of the measurement's time in which the disturber ran: inside a phase, and not
/// kept from it.
fn truth(phases: &[[f64; 3]], found: &Value) -> Result<f64, String> {
    let number = |name: &str| found["probe"][name].as_f64().ok_or("no time of day");
    let (begun, seconds) = (number("begun_unix_s")?, number("seconds")?);
    let inside = |[from, to, lost]: &[f64; 3]| {
        let inside = (to.min(begun + seconds) - from.max(begun)).max(0.0);
        inside * (1.0 - lost / (to - from))
    };
    Ok(phases.iter().map(inside).sum::<f64>() / seconds)
}

/// What it costs, and how long until it names a disturber that begins.
fn continuous(program: &str, kind: &str) -> Result<(), String> {
    let mut child = Command::new(undertick())
        .args([
            "interference",
            "--continuous",
            "--json",
            "--cpu",
            PROBE,
            "--for",
            "60s",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| e.to_string())?;
    let lines = BufReader::new(child.stdout.take().ok_or("piped")?).lines();
    let begun = Instant::now();
    let (mut disturber, mut since) = (None, None);
    let (mut named, mut own) = (None, Vec::new());
    let mut early = 0;
    for line in lines {
        let line: Value =
            serde_json::from_str(&line.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
        own.push(line["own_use"].as_f64().unwrap_or(f64::NAN));
        let names = line["suspects"].to_string();
        match since {
            None => early += usize::from(names != "[]"),
            Some(then) if named.is_none() && names.contains("disturber") => {
                named = Some(Instant::now().duration_since(then));
            }
            Some(_) => {}
        }
        if disturber.is_none() && begun.elapsed() > Duration::from_secs(32) {
            disturber = Some(Disturber::start(program, kind, "1", 1)?);
            since = Some(Instant::now());
        }
    }
    let _ = child.wait();
    if let Some(disturber) = disturber {
        disturber.phases()?;
    }
    println!(
        "\ncontinuous, {kind} disturber after 32 s: named {}, {early} lines named somebody before; own use {:.2} % of a \
         CPU (largest line {:.2} %; target 1 %)",
        named.map_or_else(
            || "never".to_owned(),
            |t| format!("after {:.1} s (target 10 s)", t.as_secs_f64())
        ),
        100.0 * median(&own),
        100.0 * own.iter().copied().fold(0.0, f64::max)
    );
    Ok(())
}
