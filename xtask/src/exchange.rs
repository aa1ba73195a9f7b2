//! Checks of import and export against the other tools: traces that these tools made, with their
//! own counts; and exports, read by their own readers.

mod otlp;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::lttng::Daemon;
use crate::run::{Scratch, c_program, command, exists, line, output, root, run};

/// Orders of each of the two threads of the program under LTTng; each has three events.
const ORDERS: u64 = 2000;
const SCRIPT: &str = "crates/cli/tests/exchange.py";
/// A script of Debian's libbenchmark-tools.
const COMPARE: &str = "/usr/share/benchmark/compare.py";

/// One comparison: its name, and whether it passed with a message, failed or was skipped.
pub struct Step {
    pub what: &'static str,
    pub result: Result<Outcome, String>,
}

/// The outcome of a comparison that did not fail.
pub enum Outcome {
    Said(String),
    Skipped(String),
}

use Outcome::{Said, Skipped};

/// Runs all comparisons.
pub fn all(python: Option<&str>) -> Vec<Step> {
    let scratch = match Scratch::new("exchange") {
        Ok(scratch) => scratch,
        Err(error) => {
            return vec![Step {
                what: "scratch",
                result: Err(error),
            }];
        }
    };
    let step = |what, result| Step { what, result };
    let mut steps = vec![
        step("import of LTTng-UST", lttng(&scratch)),
        step("import of perf script", perf(&scratch)),
        step("collector of OpenTelemetry", otlp::collector(&scratch)),
    ];
    let Some(python) = python else {
        let why = "no Python with perfetto, viztracer, pyperf and hdrhistogram".to_owned();
        steps.push(step("other tools of Python", Ok(Skipped(why))));
        return steps;
    };
    steps.push(step("import of VizTracer", viztracer(&scratch, python)));
    steps.push(step(
        "import of Chromium's Perfetto trace",
        chromium(&scratch, python),
    ));
    steps.push(step("export to Perfetto", slices(&scratch, python)));
    steps.push(step(
        "export to Google Benchmark",
        google_benchmark(&scratch, python),
    ));
    steps.push(step("export to pyperf", pyperf(&scratch, python)));
    steps.push(step("export to HdrHistogram", hdr(&scratch, python)));
    steps
}

fn undertick(words: &[&str]) -> Result<String, String> {
    let program = root().join("target/release/undertick");
    let mut command = Command::new(program);
    command.args(words).current_dir(root());
    output(command)
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|e| e.to_string())
}

/// Imports a file, and returns the command's output.
fn import(file: &str, trace: &str) -> Result<Value, String> {
    json(&undertick(&["import", file, "-o", trace, "--json"])?)
}

/// The rows of a trace as CSV.
fn csv(trace: &str) -> Result<String, String> {
    let file = format!("{trace}.csv");
    undertick(&["export", trace, "--to", "csv", &file])?;
    Ok(file)
}

fn equal(what: &str, found: u64, expected: u64) -> Result<(), String> {
    if found == expected && expected > 0 {
        return Ok(());
    }
    Err(format!(
        "{what}: {found}, and {expected} by the tool itself"
    ))
}

fn lttng(scratch: &Scratch) -> Result<Outcome, String> {
    if !exists(&["babeltrace2", "--version"]) || !exists(&["lttng", "--version"]) {
        return Ok(Skipped("no lttng and babeltrace2 here".to_owned()));
    }
    let program = scratch.path("shop");
    let sources = "crates/record/tests/programs/lttng";
    let include = format!("-I{sources}");
    let source = format!("{sources}/shop.c");
    let compile = [
        "cc",
        "-O2",
        &include,
        &source,
        "-o",
        &program,
        "-llttng-ust",
        "-ldl",
        "-pthread",
    ];
    if output(command(&compile)).is_err() {
        return Ok(Skipped("no liblttng-ust-dev here".to_owned()));
    }
    let session = scratch.path("lttng");
    let daemon = Daemon::start(scratch)?;
    let recorded = daemon.record(&session, "shop:*", &[], &[&program, &ORDERS.to_string()]);
    drop(daemon);
    recorded?;
    let of_tool = output(command(&["babeltrace2", &session]))?.lines().count() as u64;
    let trace = scratch.path("lttng.ut");
    let said = import(&session, &trace)?;
    equal("events", said["events"].as_u64().unwrap_or(0), of_tool)?;
    equal("events", of_tool, 6 * ORDERS)?;
    let report = json(&undertick(&["report", &trace, "--json"])?)?;
    let orders = (report["intervals"].as_array().into_iter().flatten())
        .find(|interval| interval["name"] == "shop:order")
        .and_then(|interval| interval["count"].as_u64());
    equal("orders", orders.unwrap_or(0), 2 * ORDERS)?;
    Ok(Said(format!(
        "{of_tool} events, as babeltrace2 prints; {} orders",
        2 * ORDERS
    )))
}

fn perf(scratch: &Scratch) -> Result<Outcome, String> {
    let data = scratch.path("perf.data");
    let events = "cpu-clock,sched:sched_switch,syscalls:sys_enter_write,syscalls:sys_exit_write";
    let program = "for i in 1 2 3 4 5 6 7 8 9; do echo $i > /dev/null; ls / > /dev/null; done";
    let recorded = output(command(&[
        "perf", "record", "-q", "-o", &data, "-e", events, "--", "sh", "-c", program,
    ]));
    if let Err(error) = recorded {
        let why = error.lines().nth(1).unwrap_or("no perf here").to_owned();
        return Ok(Skipped(format!("perf records no tracepoints here: {why}")));
    }
    let text = output(command(&["perf", "script", "--ns", "-i", &data]))?;
    // One word a line: the count by perf itself.
    let events = output(command(&["perf", "script", "-F", "event", "-i", &data]))?;
    let lines = events
        .lines()
        .filter(|line| !line.trim().is_empty())
        .count() as u64;
    let writes = text.matches("sys_enter_write: ").count() as u64;
    let (file, trace) = (scratch.path("perf.txt"), scratch.path("perf.ut"));
    std::fs::write(&file, text).map_err(|e| e.to_string())?;
    let said = import(&file, &trace)?;
    let number = |name: &str| said[name].as_u64().unwrap_or(0);
    equal("lines", number("events") + number("kernel_records"), lines)?;
    let rows = std::fs::read_to_string(csv(&trace)?).map_err(|e| e.to_string())?;
    let begins = rows.matches(",begin,").count() as u64;
    equal("writes", begins, writes)?;
    Ok(Said(format!(
        "{lines} lines: {} events and {} switches; {writes} writes",
        number("events"),
        number("kernel_records")
    )))
}

fn script(python: &str, words: &[&str]) -> Result<Outcome, String> {
    let all: Vec<&str> = [python, SCRIPT].iter().chain(words).copied().collect();
    Ok(Said(output(command(&all))?.trim().to_owned()))
}

fn viztracer(scratch: &Scratch, python: &str) -> Result<Outcome, String> {
    let (file, trace) = (scratch.path("viz.json"), scratch.path("viz.ut"));
    script(python, &["viztracer", &file])?;
    import(&file, &trace)?;
    script(python, &["chrome", &file, &csv(&trace)?])
}

fn chromium(scratch: &Scratch, python: &str) -> Result<Outcome, String> {
    if !exists(&["chromium", "--version"]) {
        return Ok(Skipped("no chromium here".to_owned()));
    }
    let (file, trace) = (
        scratch.path("chromium.pftrace"),
        scratch.path("chromium.ut"),
    );
    output(command(&[
        "chromium",
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        &format!("--user-data-dir={}", scratch.path("chromium")),
        "--trace-startup=*",
        &format!("--trace-startup-file={file}"),
        "--trace-startup-format=proto",
        "--trace-startup-duration=2",
        "--virtual-time-budget=4000",
        "--dump-dom",
        "data:text/html,hello",
    ]))?;
    if !Path::new(&file).exists() {
        return Ok(Skipped(
            "this chromium writes no trace of its start".to_owned(),
        ));
    }
    import(&file, &trace)?;
    script(python, &["perfetto", &file, &csv(&trace)?])
}

/// A trace recorded by Undertick, of nested spans with a short sleep now and then.
fn own_trace(scratch: &Scratch) -> Result<String, String> {
    let trace = scratch.path("own.ut");
    if Path::new(&trace).exists() {
        return Ok(trace);
    }
    let (source, program) = (scratch.path("own.c"), scratch.path("own"));
    let text = "#include \"undertick.h\"\nint main(void) { ut_name(1, \"outer\"); ut_name(2, \"inner\");\n\
        for (volatile int i = 0; i < 5000; i++) { ut_begin(1); for (volatile int k = 0; k < 300; k++) {}\n\
        ut_begin(2); ut_end(2); ut_begin(1); ut_end(1); ut_event(3, 7); ut_end(1);\n\
        ut_event(4, i); ut_event(6, i * i % 9); ut_event(5, i); } return 0; }\n";
    std::fs::write(&source, text).map_err(|e| e.to_string())?;
    run(c_program(&source, &program))?;
    undertick(&["record", "--no-calibration", "-o", &trace, "--", &program])?;
    Ok(trace)
}

fn exported(scratch: &Scratch, format: &str) -> Result<(String, String), String> {
    let trace = own_trace(scratch)?;
    let file = scratch.path(&format!("own.{format}"));
    undertick(&["export", &trace, "--to", format, &file])?;
    Ok((trace, file))
}

/// A table for messages in that trace, from event 4 to event 5.
const MESSAGES: &str = "[[interval]]\nname='sent'\nstart=4\nend=5\nmatch='message'\n";

fn slices(scratch: &Scratch, python: &str) -> Result<Outcome, String> {
    let trace = own_trace(scratch)?;
    let (file, table) = (scratch.path("own.pftrace"), scratch.path("messages.toml"));
    std::fs::write(&table, MESSAGES).map_err(|e| e.to_string())?;
    undertick(&[
        "export", &trace, "--to", "perfetto", "--table", &table, &file,
    ])?;
    script(python, &["slices", &file, &csv(&trace)?])
}

fn google_benchmark(scratch: &Scratch, python: &str) -> Result<Outcome, String> {
    if !Path::new(COMPARE).exists() {
        return Ok(Skipped(
            "no compare.py here (libbenchmark-tools)".to_owned(),
        ));
    }
    let (_, file) = exported(scratch, "google-benchmark")?;
    let said = output(command(&[python, COMPARE, "benchmarks", &file, &file]))?;
    for wanted in [
        "outer_pvalue",
        "outer_mean",
        "inner_stddev",
        "OVERALL_GEOMEAN",
    ] {
        if !said.contains(wanted) {
            return Err(format!("compare.py says nothing of {wanted}: {said}"));
        }
    }
    Ok(Said(
        "compare.py: means, deviations and its U test".to_owned(),
    ))
}

fn pyperf(scratch: &Scratch, python: &str) -> Result<Outcome, String> {
    let (_, file) = exported(scratch, "pyperf")?;
    let stats = output(command(&[python, "-m", "pyperf", "stats", &file]))?;
    let compared = output(line(
        "{} -m pyperf compare_to {} {}",
        &[python, &file, &file],
    ))?;
    if !stats.contains("outer") || !stats.contains("Total number of values") {
        return Err(format!("pyperf stats: {stats}"));
    }
    Ok(Said(format!(
        "stats and compare_to ({})",
        compared.lines().last().unwrap_or_default()
    )))
}

fn hdr(scratch: &Scratch, python: &str) -> Result<Outcome, String> {
    let (trace, file) = exported(scratch, "hdrhistogram")?;
    let report = scratch.path("own.json");
    std::fs::write(&report, undertick(&["report", &trace, "--json"])?)
        .map_err(|e| e.to_string())?;
    script(python, &["hdr", &file, &report])
}
