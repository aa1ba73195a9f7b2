//! Does the interference meter find the share and the slow-down of a disturber that logs when it
//! was on? What does it report without a disturber? What does the continuous meter cost, and when
//! does it name a disturber that begins?

mod truth;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{compile, undertick};
use crate::run::{Scratch, command, output};
use crate::statistics::{median, quantile};

const SHARES: [&str; 3] = ["0.1", "0.3", "0.6"];
/// CPUs of the probe and of the disturber.
const PROBE: &str = "1";
const OTHER: &str = "0";
/// Duration of one measurement.
const SECONDS: &str = "20s";
/// Time after which a disturber ends, s: longer than a measurement and its start.
const LONGER: &str = "60";

/// A disturber that runs until this is dropped.
struct Disturber {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Disturber {
    /// Starts a disturber that is on for this share of the time, at random, or for this many
    /// seconds at a time.
    fn start(
        program: &str,
        kind: &str,
        share: &str,
        seed: usize,
        on_s: Option<f64>,
    ) -> Result<Self, String> {
        let cpu = if kind == "memory" { OTHER } else { PROBE };
        let mut child = Command::new(program)
            .args([kind, cpu, share, LONGER, &seed.to_string()])
            .args(on_s.map(|s| s.to_string()))
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{program}: {e}"))?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("piped")?);
        let mut ready = String::new();
        lines.read_line(&mut ready).map_err(|e| e.to_string())?;
        Ok(Self { child, lines })
    }

    /// Ends the disturber; returns the phases in which it was on, s, and for how long in each it
    /// was kept from its CPU.
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

/// Runs the meter `runs` times with each of these kinds of disturbers, some times with none, and
/// the continuous meter with each.
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
        let reference = |n: usize| scratch.path(&format!("{kind}-always-{n}.ut"));
        let mut before = truth::always(&program, kind, &reference(0))?;
        for run in 0..runs {
            let share = SHARES[run % SHARES.len()];
            let disturber = Disturber::start(&program, kind, share, run, None)?;
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
            // The current phase is printed at its end.
            std::thread::sleep(Duration::from_millis(1000));
            let phases = disturber.phases()?;
            let truth = truth::share(&phases, &found)?;
            // The host's other guests come and go, and change the effect of the disturber. A run is
            // therefore compared with references right before and right after it, and with its own
            // seconds.
            let meanwhile = truth::meanwhile(&trace, kind, &phases)?;
            let after = truth::always(&program, kind, &reference(run + 1))?;
            let both = [before, after];
            before = after;
            let apart = (both[0] / both[1] - 1.0).abs();
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
            let always = f64::midpoint(both[0], both[1]);
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
        let all: Vec<&Off> = off.iter().collect();
        println!(
            "  within 3 points {}; slow-down within 10 % of always on before and after {}",
            within(0.03, &all, |o| o.share),
            within(0.10, &all, |o| o.always),
        );
        if kind == "memory" {
            println!(
                "  slow-down within 10 % of what it was in the same seconds {}, which its interval holds in {} of {runs}",
                within(0.10, &all, |o| o.meanwhile),
                off.iter().filter(|o| o.holds).count()
            );
            // The host decides whether the two CPUs share what the disturber uses. A disturber that
            // is always on therefore has a varying effect, down to none, for seconds at a time.
            let steady: Vec<&Off> = off.iter().filter(|o| o.apart <= 0.10).collect();
            println!(
                "  always on before and after are within 10 % of each other in {} of {runs}; of these, slow-down within \
                 10 % of it {}",
                steady.len(),
                within(0.10, &steady, |o| o.always)
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

/// The number of runs whose error is within the limit, as text.
fn within(limit: f64, of: &[&Off], by: fn(&Off) -> f64) -> String {
    let by: Vec<f64> = of.iter().map(|o| by(o)).collect();
    if by.is_empty() {
        return "none of none".to_owned();
    }
    format!(
        "{} of {} (90 % quantile {:.1} %, largest {:.1} %)",
        by.iter().filter(|&&by| by <= limit).count(),
        by.len(),
        100.0 * quantile(&by, 0.9),
        100.0 * by.iter().copied().fold(0.0, f64::max)
    )
}

/// Errors of a run: of its share, and of its slow-down from two truths; and the difference of the
/// two references.
struct Off {
    /// Whether the interval of the slow-down holds the truth of the same seconds.
    holds: bool,
    share: f64,
    always: f64,
    meanwhile: f64,
    apart: f64,
}

/// Runs without a disturber, to see what the meter still reports.
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

/// The peak of the disturber: a peak of bursts for a process on the probe's CPU, else of samples or
/// of activity. It is the benchmark's own disturber if that is among them, else the one that holds
/// most of the time.
fn slowed(found: &Value, kind: &str) -> Option<Peak> {
    let share = |d: &&Value| d["time_share"]["value"].as_f64().unwrap_or(0.0);
    let of = |d: &Value| {
        let first = d["peaks"][0].as_u64().unwrap_or(0) as usize;
        let of = found["peaks"][first]["of"].as_str().unwrap_or("nothing");
        of.to_owned()
    };
    let disturber = (found["disturbers"].as_array().into_iter().flatten())
        .filter(|d| (of(d) == "bursts") == (kind != "memory"))
        .max_by(|a, b| {
            let ours = |d: &Value| d["name"] == "disturber";
            (ours(a).cmp(&ours(b))).then(share(a).total_cmp(&share(b)))
        })?;
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

/// Measures the cost of the continuous meter and the time until it names a disturber that begins.
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
            disturber = Some(Disturber::start(program, kind, "1", 1, None)?);
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
