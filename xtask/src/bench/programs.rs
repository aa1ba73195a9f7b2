//! Whole programs, most of them from other projects: how many samples of their spans are dropped,
//! whether the time on the CPU equals the kernel's, and whether busy loops beside them change the
//! report.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{compile, interval, intervals, report_json, undertick};
use crate::run::{Scratch, command, line, output};
use crate::sources::{self, LZ4, Package, REDIS, ZSTD};
use crate::statistics::median;
use crate::unedited;

/// Number of pairs of recordings with and without busy loops beside them.
const PAIRS: usize = 5;
const HOGS: usize = 3;

/// A program to record.
#[derive(Clone)]
pub struct Program {
    pub name: &'static str,
    /// Options of `undertick record`.
    pub options: Vec<String>,
    pub command: Vec<String>,
    /// Spans that cover all the work of its threads.
    pub(super) roots: &'static [&'static str],
}

pub fn measure() -> Result<(), String> {
    let scratch = Scratch::new("programs")?;
    let cpu_time = compile(&scratch, "cpu_time")?;
    println!(
        "\nprogram: spans, most dropped of any with ten samples (target 10 %), time on CPU over the kernel's (target 0.98..1.02)"
    );
    for program in &programs(&scratch)? {
        alone(program, &cpu_time, &scratch)?;
    }
    redis(&cpu_time, &scratch)?;
    println!(
        "\nbeside {HOGS} busy loops, {PAIRS} pairs in turn: what the kernel charged the program that \
         nobody recorded, over that without them, is the machine's change; a span's median over that \
         without them (target 0.97..1.03), and divided by the machine's change"
    );
    for program in programs(&scratch)? {
        beside_hogs(&program, &cpu_time, &scratch)?;
    }
    Ok(())
}

/// Undertick's own programs (the demo, a queue, a copy), and lz4, zstd and minigzip recorded by
/// their functions.
pub fn programs(scratch: &Scratch) -> Result<Vec<Program>, String> {
    let strings = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let zlib = unedited::zlib()?;
    let input = scratch.path("input");
    unedited::input(&zlib, &input, 60)?;
    let out = scratch.path("out");
    let minigzip = unedited::minigzip(
        &zlib,
        &scratch.path("minigzip"),
        &["-O2", "-finstrument-functions"],
    )?;
    let lz4 = instrumented(&LZ4, "lz4", "programs/lz4")?;
    let zstd = instrumented(&ZSTD, "zstd-release", "programs/zstd")?;
    // Functions called for every few bytes would measure nothing but the recording.
    let functions = |filter: &str| strings(&["--functions", filter]);
    Ok(vec![
        Program {
            name: "demo",
            options: vec![],
            command: strings(&[&undertick(), "__demo-workload"]),
            roots: &[],
        },
        Program {
            name: "queue",
            options: vec![],
            command: strings(&[&compile(scratch, "queue")?, "60000"]),
            roots: &["all"],
        },
        Program {
            name: "copy",
            options: vec![],
            // Long enough that the program's start, which lies in no span, is below 1 %.
            command: strings(&[&compile(scratch, "copy")?, &input, &out, "400"]),
            roots: &["all"],
        },
        Program {
            name: "lz4",
            options: functions("^main$|^LZ4F_|^LZ4IO_|^LZ4_compress"),
            command: strings(&[&lz4, "-q", "-f", "-9", &input, &out]),
            roots: &["main"],
        },
        Program {
            name: "zstd",
            options: functions(
                "^main$|^POOL_thread$|^ZSTD_compress|^ZSTD_entropy|^FIO_|^HUF_compress",
            ),
            // Slow enough that the program's start, which lies in no span, is below 1 %.
            command: strings(&[&zstd, "-q", "-f", "-15", &input, "-o", &out]),
            roots: &["main", "POOL_thread"],
        },
        Program {
            name: "minigzip",
            options: functions("^main$|^deflate|^gz"),
            command: strings(&["sh", "-c", &format!("'{minigzip}' < '{input}' > '{out}'")]),
            roots: &["main"],
        },
    ])
}

/// The program of a package, compiled with hooks at its functions; kept in `target`.
pub(super) fn instrumented(
    package: &Package,
    target: &str,
    program: &str,
) -> Result<String, String> {
    let source = sources::unpacked(package)?;
    let made = format!("{source}/{program}");
    if !std::path::Path::new(&made).exists() {
        let flags = "CFLAGS=-O2 -g -finstrument-functions";
        output(line(
            "make -s -C {} {} {}",
            &[&format!("{source}/programs"), target, flags],
        ))?;
    }
    Ok(made)
}

/// Records a program with `around` before the recorder and `before` before the program.
pub fn record(
    program: &Program,
    around: &[&str],
    before: &[&str],
    trace: &str,
) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(trace);
    let undertick = undertick();
    let mut words = around.to_vec();
    words.extend([undertick.as_str(), "record", "-o", trace]);
    words.extend(program.options.iter().map(String::as_str));
    words.push("--");
    words.extend(before);
    words.extend(program.command.iter().map(String::as_str));
    output(command(&words)).map(|_| ())
}

fn alone(program: &Program, cpu_time: &str, scratch: &Scratch) -> Result<(), String> {
    let (trace, used) = (scratch.path("alone.ut"), scratch.path("used"));
    record(program, &[], &[cpu_time, &used], &trace)?;
    say(program.name, program.roots, &trace, &used)
}

fn say(name: &str, roots: &[&str], trace: &str, used: &str) -> Result<(), String> {
    let report = report_json(trace, &[])?;
    let most = (intervals(&report).iter())
        .filter(|i| {
            i["count"].as_u64().unwrap_or(0) + i["culled"]["count"].as_u64().unwrap_or(0) >= 10
        })
        .filter_map(|i| Some((i["culled"]["share"].as_f64()?, i["name"].as_str()?)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    // Uncompensated, because the kernel's time includes the cost of recording, too.
    let report = report_json(trace, &["--compensate", "none"])?;
    let kernel = seconds(used)?;
    let ratio = match roots.is_empty() {
        true => "it has no span around all".to_owned(),
        false => format!("{:.4} of {kernel:.2} s", roots_s(&report, roots) / kernel),
    };
    let (share, worst) = most.unwrap_or((0.0, "none"));
    println!(
        "{name}: {} spans, {:.2} % of {worst}, {ratio}",
        intervals(&report).len(),
        100.0 * share
    );
    Ok(())
}

/// Time on the CPU of spans that cover all the work, s, with what interrupted them.
fn roots_s(report: &Value, roots: &[&str]) -> f64 {
    let ns: f64 = (intervals(report).iter())
        .filter(|i| i["name"].as_str().is_some_and(|name| roots.contains(&name)))
        .filter_map(|i| Some(i["on_cpu_ns"].as_f64()? + interrupts_ns(i)))
        .sum();
    ns / 1e9
}

/// What `cpu_time` wrote, s.
pub(super) fn seconds(used: &str) -> Result<f64, String> {
    let text = std::fs::read_to_string(used).map_err(|e| format!("{used}: {e}"))?;
    (text.trim().parse()).map_err(|_| format!("{used}: {text:?}"))
}

/// Time of interrupts, which the kernel charges to the interrupted thread, ns.
fn interrupts_ns(interval: &Value) -> f64 {
    let evidence = interval["evidence"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    (evidence.iter())
        .filter(|e| e["cause"] == "interrupt" || e["cause"] == "softirq")
        .filter_map(|e| e["time_ns"].as_f64())
        .sum()
}

/// Measures a server under load through loopback: softirqs raised by its own sends are its own.
fn redis(cpu_time: &str, scratch: &Scratch) -> Result<(), String> {
    let source = sources::unpacked(&REDIS)?;
    let server = format!("{source}/src/redis-server");
    for target in ["redis-server", "redis-benchmark"] {
        if !std::path::Path::new(&format!("{source}/src/{target}")).exists() {
            let source = format!("{source}/src");
            let flags = "REDIS_CFLAGS=-finstrument-functions";
            let words = [
                "make",
                "-s",
                "-C",
                &source,
                "MALLOC=libc",
                "OPTIMIZATION=-O2",
                flags,
                target,
            ];
            output(command(&words))?;
        }
    }
    let (trace, used) = (scratch.path("redis.ut"), scratch.path("used"));
    let filter =
        "^aeProcessEvents$|^beforeSleep$|Client$|^connSocket|^processCommand$|^call$|Command$";
    let mut recorder = Command::new(undertick())
        .args([
            "record",
            "-o",
            &trace,
            "--functions",
            filter,
            "--",
            cpu_time,
            &used,
            &server,
        ])
        .args(["--port", "7781", "--save", "", "--appendonly", "no"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("redis: {e}"))?;
    std::thread::sleep(Duration::from_secs(4));
    let benchmark = format!("{source}/src/redis-benchmark");
    let load = output(command(&[
        &benchmark, "-p", "7781", "-n", "100000", "-c", "20", "-t", "set,get", "-q",
    ]));
    let stopped = output(command(&["pkill", "-TERM", "-f", "redis-server .*:7781"]));
    recorder.wait().map_err(|e| e.to_string())?;
    load.and(stopped)?;
    say("redis", &["aeProcessEvents"], &trace, &used)
}

/// Busy loops that use all the CPU that they get, until this is dropped.
pub(super) struct Hogs(Vec<Child>);

impl Hogs {
    pub(super) fn start(loops: usize) -> Result<Self, String> {
        let one = |_| {
            Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .spawn()
        };
        let hogs: Result<Vec<Child>, _> = (0..loops).map(one).collect();
        hogs.map(Self).map_err(|e| format!("a busy loop: {e}"))
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

/// One state of the machine: reports of a program, and the kernel's CPU time of each execution, s.
#[derive(Default)]
struct State {
    reports: Vec<Value>,
    /// Time of the roots on the CPU over the kernel's, in the same execution.
    covered: Vec<f64>,
    plain_s: Vec<f64>,
    recorded_s: Vec<f64>,
}

impl State {
    fn add(&mut self, program: &Program, cpu_time: &str, scratch: &Scratch) -> Result<(), String> {
        let (trace, used) = (scratch.path("hogs.ut"), scratch.path("used"));
        let mut words = vec![cpu_time, used.as_str()];
        words.extend(program.command.iter().map(String::as_str));
        output(command(&words))?;
        self.plain_s.push(seconds(&used)?);
        record(program, &[], &[cpu_time, &used], &trace)?;
        let kernel = seconds(&used)?;
        self.recorded_s.push(kernel);
        let read = report_json(&trace, &["--compensate", "none"])?;
        self.covered.push(roots_s(&read, program.roots) / kernel);
        self.reports.push(report_json(&trace, &[])?);
        Ok(())
    }

    /// Median over the executions of a span's median, ns; nothing if one of them has no such span.
    fn median_ns(&self, span: &str) -> Option<f64> {
        let values: Option<Vec<f64>> = (self.reports.iter())
            .map(|report| interval(report, span).ok()?["median"]["value"].as_f64())
            .collect();
        Some(median(&values?))
    }
}

fn beside_hogs(program: &Program, cpu_time: &str, scratch: &Scratch) -> Result<(), String> {
    let (mut quiet, mut busy) = (State::default(), State::default());
    for _ in 0..PAIRS {
        quiet.add(program, cpu_time, scratch)?;
        let _hogs = Hogs::start(HOGS)?;
        busy.add(program, cpu_time, scratch)?;
    }
    let change = |of: fn(&State) -> &[f64]| median(of(&busy)) / median(of(&quiet));
    // The demo runs for a fixed time, and does less beside others.
    let machine = (!program.roots.is_empty()).then(|| change(|state| &state.plain_s));
    match machine {
        None => println!("{}: it runs for a fixed time", program.name),
        Some(machine) => println!(
            "{}: the machine's change {machine:.3} (of single pairs {}), recorded {:.3}; time on CPU over \
             the kernel's {:.3} without and {:.3} beside them",
            program.name,
            pairs(&quiet.plain_s, &busy.plain_s),
            change(|state| &state.recorded_s),
            median(&quiet.covered),
            median(&busy.covered)
        ),
    }
    let names: Vec<&str> = (intervals(&quiet.reports[0]).iter())
        .filter(|i| i["count"].as_u64().unwrap_or(0) >= 20)
        .filter_map(|i| i["name"].as_str())
        .collect();
    for name in names {
        if let (Some(without), Some(beside)) = (quiet.median_ns(name), busy.median_ns(name)) {
            let ratio = beside / without;
            let apart = machine.map_or_else(String::new, |machine| {
                format!(", over the machine's change {:.3}", ratio / machine)
            });
            println!("  {name}: {ratio:.3} of {without:.0} ns{apart}");
        }
    }
    Ok(())
}

/// The ratio of each pair, as text.
fn pairs(without: &[f64], beside: &[f64]) -> String {
    let ratios: Vec<String> = (without.iter().zip(beside))
        .map(|(without, beside)| format!("{:.3}", beside / without))
        .collect();
    ratios.join(" ")
}
