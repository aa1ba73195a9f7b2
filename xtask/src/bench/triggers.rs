//! What the rules of a flight recorder cost the program and the recorder, and whether they find what
//! a program was held up by.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::{compile, manifest, ns_per_tick, record, undertick};
use crate::run::{Scratch, command, output, root};
use crate::statistics::median;

/// A rule about a span of which there are many, which is never met, and which needs each of them.
const RULE: &str = "request > 1s";
const FLIGHT: [&str; 4] = [
    "--overflow",
    "overwrite",
    "--no-calibration",
    "--kernel=off",
];
/// Events per second of one thread, and the share of a CPU that the recorder may use, %.
const RATES: [(&str, f64); 2] = [("1000000", 1.0), ("10000000", 5.0)];
const STALLS: &str = "200";
/// Kinds of stalls, the functions one of which their stacks must hold, and their first cause: these
/// together. A thread is sampled on a CPU or when it begins to wait: not while it is preempted.
const KINDS: [(&str, &[&str], &[&str]); 6] = [
    ("spin", &["stall"], &["unexplained"]),
    ("sleep", &["nanosleep", "clock_nanosleep"], &["waited"]),
    (
        "lock",
        &["pthread_mutex_lock", "__lll_lock_wait"],
        &["waited"],
    ),
    ("stopped", &["stall"], &["stopped"]),
    // A fault is CPU time before and after the wait for the disk.
    ("disk", &["fault", "stall"], &["blocked", "fault"]),
    ("preempted", &[], &["preempted"]),
];
/// Bytes of the file whose pages are read from the disk.
const COLD_BYTES: usize = 256 << 20;
/// Moments at which the recorder, then the program is killed.
const KILLS: u64 = 100;
/// Time over which the recorder's CPU time is read.
const SECONDS: u64 = 3;

pub fn measure(pairs: usize) -> Result<(), String> {
    let scratch = Scratch::new("triggers")?;
    let paced = compile(&scratch, "paced")?;
    let trace = scratch.path("t.ut");
    cost(&paced, &trace, pairs)?;
    for (rate, target) in RATES {
        let used = |rule: Option<&str>| recorder_cpu(&paced, rate, rule, &trace);
        let (without, with) = (used(None)?, used(Some(RULE))?);
        println!(
            "recorder at {rate} events a second: {with:.2} % of a CPU with a rule, {without:.2} % \
             without (target: {target} % more)"
        );
    }
    let stalls = stalls(&scratch)?;
    let cold = scratch.path("cold");
    std::fs::write(&cold, vec![1; COLD_BYTES]).map_err(|e| format!("{cold}: {e}"))?;
    let asked = scratch.path("preempt");
    let mut preempter = Command::new(&stalls)
        .args(["preempt", &asked])
        .spawn()
        .map_err(|e| format!("{stalls}: {e}"))?;
    let word = |kind: &str| match kind {
        "disk" => format!("disk={cold}"),
        "preempted" => format!("preempted={asked}"),
        _ => kind.to_owned(),
    };
    let result = each_kind(&stalls, &word, &scratch);
    let _ = preempter.kill();
    let _ = preempter.wait();
    result?;
    open(&stalls, &trace)
}

/// Whether what is kept is whole, whenever one of the two is killed.
pub fn kill() -> Result<(), String> {
    let scratch = Scratch::new("triggers")?;
    kills(&stalls(&scratch)?, &scratch)
}

fn each_kind(stalls: &str, word: &dyn Fn(&str) -> String, scratch: &Scratch) -> Result<(), String> {
    for (kind, ..) in KINDS {
        found(stalls, (kind, &word(kind)), scratch)?;
    }
    for (kind, functions, causes) in KINDS {
        explained(stalls, (kind, &word(kind)), (functions, causes), scratch)?;
    }
    Ok(())
}

/// The events that a program writes in a second, with a rule and without, in turn.
fn cost(paced: &str, trace: &str, pairs: usize) -> Result<(), String> {
    let events = |rule: &[&str]| -> Result<f64, String> {
        let said = record(trace, &[&FLIGHT, rule].concat(), &[paced, "1", "0", "1"])?;
        said.trim()
            .parse()
            .map_err(|_| format!("paced said {said:?}"))
    };
    let mut ratios = Vec::new();
    for _ in 0..pairs {
        let without = events(&[])?;
        ratios.push(without / events(&["--trigger", RULE])?);
    }
    println!(
        "\ntime of an event with a rule over that without: {:.4}, median of {pairs} pairs of a \
         second in turn (target 1.02)",
        median(&ratios)
    );
    Ok(())
}

/// Share of a CPU that the recorder uses, %.
fn recorder_cpu(paced: &str, rate: &str, rule: Option<&str>, trace: &str) -> Result<f64, String> {
    let _ = std::fs::remove_dir_all(trace);
    let mut recorder = Command::new(undertick());
    recorder.args(["record", "-o", trace]).args(FLIGHT);
    if let Some(rule) = rule {
        recorder.args(["--trigger", rule]);
    }
    let seconds = (SECONDS + 2).to_string();
    let mut recorder = (recorder.args(["--", paced, &seconds, rate, "1"]))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    sleep(Duration::from_secs(1));
    let before = on_cpu_ns(recorder.id())?;
    sleep(Duration::from_secs(SECONDS));
    let after = on_cpu_ns(recorder.id())?;
    recorder.wait().map_err(|e| e.to_string())?;
    Ok(100.0 * (after - before) / (SECONDS as f64 * 1e9))
}

/// CPU time of all threads of a process, ns.
fn on_cpu_ns(pid: u32) -> Result<f64, String> {
    let failed = |e: std::io::Error| format!("the recorder's threads: {e}");
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_err(failed)?;
    let of_thread = |thread: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    };
    Ok(threads.filter_map(of_thread).sum())
}

/// The program of the tests that is held up at known places.
fn stalls(scratch: &Scratch) -> Result<String, String> {
    let out = scratch.path("stalls");
    let source = root().join("crates/record/tests/programs/stalls.c");
    let source = source.to_string_lossy();
    output(command(&[
        "cc",
        "-O2",
        "-Iinclude",
        "-pthread",
        &source,
        "-o",
        &out,
    ]))?;
    Ok(out)
}

/// Records a program that is held up 200 times for 8 ms among 400 000 requests of 10 us.
fn found(stalls: &str, (kind, word): (&str, &str), scratch: &Scratch) -> Result<(), String> {
    let dir = scratch.path(kind);
    std::fs::create_dir(&dir).map_err(|e| format!("{dir}: {e}"))?;
    let trace = format!("{dir}/t.ut");
    let rule = [
        "--trigger",
        "request > 6ms",
        "--keep",
        "20ms..1ms",
        "--at-most",
        "1000/h",
    ];
    let said = record(
        &trace,
        &[&FLIGHT[..], &rule].concat(),
        &[stalls, "stalls", STALLS, "20", word],
    )?;
    let wanted = said.lines().count();
    let (mut hits, mut snapshots, mut led_up_to) = (0, 0, 0);
    for snapshot in snapshots_in(&dir) {
        let reasons = manifest(&snapshot)?;
        let reasons = reasons["triggered"].as_array().ok_or("no reasons")?;
        let first = first_ticks(&snapshot)? as f64;
        let ns = ns_per_tick(&snapshot)?;
        let is_led_up_to = |reason: &&Value| {
            let began = reason["began_ts"].as_f64().unwrap_or(0.0);
            (began - first) * ns >= 10e6
        };
        hits += reasons.len();
        led_up_to += reasons.iter().filter(is_led_up_to).count();
        snapshots += 1;
    }
    println!(
        "held up by {kind}: {wanted} times for 8 ms; {hits} requests over 6 ms were found, in \
         {snapshots} snapshots, {led_up_to} with 10 ms before it (target 99 %, and none without a stall)"
    );
    Ok(())
}

/// The reading of the first event of a trace.
fn first_ticks(trace: &str) -> Result<i64, String> {
    let rows = rows(&undertick(), trace)?;
    let ticks = rows.at("ticks").zip(rows.at("mode"));
    let (ticks, mode) = ticks.ok_or("no ticks")?;
    let user = rows.rows.iter().filter(|row| row[mode] == "user");
    let first = user.filter_map(|row| row[ticks].parse().ok()).min();
    first.ok_or_else(|| format!("{trace}: no events"))
}

/// The events of a trace as CSV.
struct Csv {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Csv {
    fn at(&self, name: &str) -> Option<usize> {
        self.heads.iter().position(|head| head == name)
    }
}

fn rows(undertick: &str, trace: &str) -> Result<Csv, String> {
    let csv = format!("{trace}.csv");
    output(command(&[undertick, "export", trace, "--to", "csv", &csv]))?;
    let text = std::fs::read_to_string(&csv).map_err(|e| format!("{csv}: {e}"))?;
    std::fs::remove_file(&csv).map_err(|e| format!("{csv}: {e}"))?;
    let mut lines = (text.lines()).map(|line| line.split(',').map(str::to_owned).collect());
    Ok(Csv {
        heads: lines.next().ok_or("no heading")?,
        rows: lines.collect(),
    })
}

/// The snapshots that rules made of the trace `t.ut` in that directory.
fn snapshots_in(dir: &str) -> impl Iterator<Item = String> {
    (1..)
        .map(move |number| format!("{dir}/t-{number}.ut"))
        .take_while(|snapshot| Path::new(snapshot).exists())
}

/// Whether the snapshot of each stall says why it was long: the stack in which its thread was sampled
/// most, and the first cause.
fn explained(
    stalls: &str,
    (kind, word): (&str, &str),
    (functions, causes): (&[&str], &[&str]),
    scratch: &Scratch,
) -> Result<(), String> {
    let dir = scratch.path(&format!("{kind}-stacks"));
    std::fs::create_dir(&dir).map_err(|e| format!("{dir}: {e}"))?;
    let options = [
        "--overflow",
        "overwrite",
        "--no-calibration",
        "--stacks",
        "1ms",
        "--trigger",
        "request > 6ms",
        "--keep",
        "20ms..1ms",
        "--at-most",
        "1000/h",
    ];
    record(
        &format!("{dir}/t.ut"),
        &options,
        &[stalls, "stalls", STALLS, "20", word],
    )?;
    let (mut snapshots, mut hits, mut with_stack, mut with_cause) = (0, 0, 0, 0);
    for snapshot in snapshots_in(&dir) {
        let undertick = undertick();
        let said = output(command(&[
            &undertick,
            "explain",
            &snapshot,
            "request",
            "--slowest",
            "1",
            "--json",
        ]))?;
        let found: Value = serde_json::from_str(&said).map_err(|e| format!("{snapshot}: {e}"))?;
        let call = &found["paths"][0]["slowest"][0];
        let stack = call["stacks"][0]["functions"].as_array();
        let is_there = stack.is_some_and(|stack| {
            stack
                .iter()
                .any(|name| functions.iter().any(|wanted| name == wanted))
        });
        let reasons = manifest(&snapshot)?;
        hits += reasons["triggered"].as_array().map_or(0, Vec::len);
        snapshots += 1;
        with_stack += u32::from(is_there);
        with_cause += u32::from(are_first(&call["parts"], causes));
    }
    println!(
        "held up by {kind}, with --stacks 1ms: {hits} times; of {snapshots} snapshots {with_stack} have one of {functions:?} \
         in the stack, {with_cause} have {causes:?} as the first cause (target 95 %)"
    );
    Ok(())
}

/// Whether these causes together have the largest part of a call's excess.
fn are_first(parts: &Value, causes: &[&str]) -> bool {
    let (mut ours, mut others) = (0.0, 0.0_f64);
    for part in parts.as_array().into_iter().flatten() {
        let ns = part["ns"].as_f64().unwrap_or(0.0);
        match causes.iter().any(|cause| part["cause"] == *cause) {
            true => ours += ns,
            false => others = others.max(ns),
        }
    }
    ours > others
}

/// How late a span that stays open is found.
fn open(stalls: &str, trace: &str) -> Result<(), String> {
    let rule = ["--trigger", "request open for 100ms", "--keep", "1s..0s"];
    let mut late = Vec::new();
    for _ in 0..20 {
        let snapshot = trace.replace("t.ut", "t-1.ut");
        let _ = std::fs::remove_dir_all(&snapshot);
        record(
            trace,
            &[&FLIGHT[..], &rule].concat(),
            &[stalls, "open", "400"],
        )?;
        let reasons = manifest(&snapshot)?;
        let took = reasons["triggered"][0]["took_ns"]
            .as_f64()
            .ok_or("no reason")?;
        late.push(took / 1e6 - 100.0);
    }
    late.sort_by(f64::total_cmp);
    println!(
        "open for 100 ms: found {:.1} ms later at the median, {:.1} ms at most, of 20 (target 50)",
        median(&late),
        late[late.len() - 1]
    );
    Ok(())
}

/// Kills the recorder, then the program, at random moments while rules make snapshots, and checks that
/// each snapshot and the recording itself hold numbered requests without a hole.
fn kills(stalls: &str, scratch: &Scratch) -> Result<(), String> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut counts = [(0, 0); 2];
    for at in 0..2 * KILLS {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let after = Duration::from_millis(5 + (random >> 33) % 600);
        let of_recorder = at % 2 == 0;
        let dir = scratch.path("killed");
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir(&dir).map_err(|e| format!("{dir}: {e}"))?;
        let snapshots = killed(stalls, &dir, of_recorder, after)
            .map_err(|why| format!("kill {at}, after {after:?}: {why}"))?;
        let count = &mut counts[usize::from(!of_recorder)];
        *count = (count.0 + 1, count.1 + snapshots);
    }
    for (whom, (kills, snapshots)) in ["recorder", "program"].into_iter().zip(counts) {
        println!(
            "{whom} killed at {kills} random moments: {snapshots} snapshots and {kills} recordings, none torn, no \
             request missing among those kept"
        );
    }
    Ok(())
}

/// Kills one of the two; the number of snapshots that there are then.
fn killed(stalls: &str, dir: &str, of_recorder: bool, after: Duration) -> Result<usize, String> {
    let trace = format!("{dir}/t.ut");
    let undertick = undertick();
    let mut recorder = Command::new(&undertick)
        .args(["record", "-o", &trace, "--ring", "256KiB"])
        .args(FLIGHT)
        .args(["--trigger", "request > 6ms", "--keep", "20ms..1ms"])
        .args(["--at-most", "1000/h", "--", stalls])
        .args(["stalls", "60", "5", "sleep"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let said = recorder.stdout.take().ok_or("no output")?;
    while !Path::new(&trace).join("manifest.json").exists() {
        sleep(Duration::from_millis(1));
    }
    sleep(after);
    let pid = recorder.id();
    let victim = match of_recorder {
        true => pid.to_string(),
        false => {
            let path = format!("/proc/{pid}/task/{pid}/children");
            let children = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
            let program = children.split_whitespace().next();
            program.ok_or("no program")?.to_owned()
        }
    };
    output(command(&["kill", "-KILL", &victim]))?;
    recorder.wait().map_err(|e| e.to_string())?;
    // The program runs to its end without its recorder.
    let said = std::io::read_to_string(said).map_err(|e| e.to_string())?;
    let last = said
        .lines()
        .last()
        .and_then(|line| line.strip_prefix("stall "));
    if of_recorder && manifest(&trace)?["state"] != "complete" {
        output(command(&[&undertick, "record", "--finish", &trace]))?;
    }
    let numbers = numbers(&undertick, &trace)?;
    if of_recorder {
        let last: Option<u64> = last.and_then(|last| last.parse().ok());
        if last.is_none() || numbers.last().copied() != last {
            return Err(format!(
                "the last request is {:?}, not {last:?}",
                numbers.last()
            ));
        }
    }
    let mut snapshots = 0;
    for snapshot in snapshots_in(dir) {
        self::numbers(&undertick, &snapshot)?;
        snapshots += 1;
    }
    // Nothing else may lie there, which a reader could take for a snapshot.
    let entries = std::fs::read_dir(dir).map_err(|e| e.to_string())?;
    let named = entries.filter_map(Result::ok).filter(|entry| {
        let name = entry.file_name();
        name.to_string_lossy().ends_with(".ut") && !name.to_string_lossy().starts_with('.')
    });
    match named.count() == snapshots + 1 {
        true => Ok(snapshots),
        false => Err(format!("{dir} has something else")),
    }
}

/// The numbers of the requests of a trace, which must follow each other without a hole.
fn numbers(undertick: &str, trace: &str) -> Result<Vec<u64>, String> {
    let csv = rows(undertick, trace)?;
    let columns = csv.at("name").zip(csv.at("payload"));
    let (name, payload) = columns.ok_or("no names or payloads")?;
    let of_requests = csv.rows.iter().filter(|row| row[name] == "number");
    let found: Vec<u64> = (of_requests)
        .filter_map(|row| row[payload].parse().ok())
        .collect();
    let is_whole = !found.is_empty() && found.windows(2).all(|pair| pair[1] == pair[0] + 1);
    match is_whole {
        true => Ok(found),
        false => Err(format!("{trace}: a hole among {} requests", found.len())),
    }
}
