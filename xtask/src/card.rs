//! Checks of the event card in hardware: `hw/event_card`.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::exchange::{Outcome, Step};
use crate::run::{command, exists, line, output, root, run};

use Outcome::{Said, Skipped};

/// The programs needed, and the Debian packages that contain them.
pub const PROGRAMS: [(&str, &[&str]); 3] = [
    ("verilator", &["verilator"]),
    ("yosys", &["yosys"]),
    ("make", &["make"]),
];
/// The newest release that works with the Verilator of Debian 12 (5.006); later ones use calls that
/// it lacks.
const COCOTB: &str = "cocotb==1.9.2";
/// A small RISC-V core whose source is on PyPI.
const PICORV32: &str = "pythondata-cpu-picorv32==1.0.post218";
const BUILD: &str = "target/card";
/// Top module and parameters with which the lint reports nothing.
const LINTED: [(&str, &[&str]); 3] = [
    ("event_card", &[]),
    ("event_card_wishbone", &["-GASYNC_TICK=1'b1", "-GID_BITS=4"]),
    (
        "event_card",
        &[
            "-GEVENT_BITS=7",
            "-GDEPTH_LOG2=2",
            "-GGAPS_LOG2=1",
            "-GCOUNT_BITS=32",
        ],
    ),
];

/// Runs all checks: the long form without a limit of time, the short form within three minutes.
pub fn all(is_long: bool) -> Vec<Step> {
    for (program, _) in PROGRAMS {
        if !exists(&[program, "--version"]) {
            return vec![Step {
                what: "the event card",
                result: Ok(Skipped(format!("no {program} here (Debian: {program})"))),
            }];
        }
    }
    let mut steps = Vec::new();
    let mut step = |what, result: Result<Outcome, String>| steps.push(Step { what, result });
    step("the event card, lint", lint());
    step("the event card, synthesis", synthesis(is_long));
    step("the event card, millions of events", bench(is_long));
    step("the event card, proofs and mutants", proofs(is_long));
    step("the event card, eight masters (cocotb)", cocotb(is_long));
    step("the event card, a lock's experiment", lock(is_long));
    step("the event card, the published lock", published());
    if is_long {
        step("the event card, compiled programs", riscv());
    }
    steps
}

fn sources() -> Result<Vec<String>, String> {
    let dir = root().join("hw/event_card/rtl");
    let files = std::fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut sources: Vec<String> = files
        .flatten()
        .map(|file| file.path().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".sv"))
        .collect();
    // Packages that others import come first.
    sources.sort_by_key(|name| (!name.ends_with("_pkg.sv"), name.clone()));
    Ok(sources)
}

fn lint() -> Result<Outcome, String> {
    let sources = sources()?;
    for (top, parameters) in LINTED {
        let mut lint = command(&["verilator", "--lint-only", "-Wall", "--top-module", top]);
        lint.args(parameters).args(&sources);
        run(lint)?;
    }
    Ok(Said(format!("{} files, no warning", sources.len())))
}

/// Synthesizes the card with Yosys to generic cells; the memory stays a black box.
fn synthesis(is_long: bool) -> Result<Outcome, String> {
    let sources = sources()?.join(" ");
    let mut said = Vec::new();
    let depths: &[u32] = if is_long { &[9, 16] } else { &[9] };
    for &depth in depths {
        let script = format!(
            "read_verilog -sv {sources}; chparam -set DEPTH_LOG2 {depth} event_card; hierarchy -top event_card; \
             proc; blackbox *event_memory*; synth -top event_card -flatten; check -assert; stat; ltp -noff"
        );
        let text = output(command(&["yosys", "-p", &script]))?;
        if text.contains("Latch inferred") {
            return Err("Yosys found a latch, where all is clocked".to_owned());
        }
        said.push(figures(&text, depth));
    }
    Ok(Said(said.join("; ")))
}

/// The last cell count and path length that Yosys reports.
fn figures(text: &str, depth: u32) -> String {
    let cells = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Number of cells:"))
        .next_back()
        .unwrap_or("?");
    let path = text
        .lines()
        .find_map(|line| line.split_once("(length=")?.1.split_once(')'))
        .map_or(String::new(), |(length, _)| {
            format!(", longest path {length} gates")
        });
    format!(
        "depth {}: {} cells beside the memory{path}",
        1u32 << depth,
        cells.trim()
    )
}

/// Builds and runs the test bench for each card, under each policy.
fn bench(is_long: bool) -> Result<Outcome, String> {
    let started = Instant::now();
    // A small card is full more often; a large one is like the one to be built.
    let (small, few) = (built(3, 3)?, built(4, 1)?);
    let mut cards = vec![(small.clone(), "7")];
    if is_long {
        cards.push((built(9, 9)?, "1"));
    }
    let events = if is_long { "10000000" } else { "500000" };
    let policies = ["drop", "overwrite", "back-pressure", "mixed"];
    for (seed, policy) in (1..).zip(policies) {
        let seed = i32::to_string(&seed);
        for (program, tick) in &cards {
            for resets in [&[][..], &["--resets"]] {
                let mut words = vec![program.as_str(), "--events", events, "--seed", &seed];
                words.extend(["--policy", policy, "--tick", tick]);
                words.extend(resets);
                run(command(&words))?;
            }
        }
        if policy != "back-pressure" {
            run(line(
                "{} --events {} --policy {} --few-gaps",
                &[&few, events, policy],
            ))?;
        }
    }
    run(command(&[&small, "--events", events, "--full-rate"]))?;
    Ok(Said(format!(
        "{events} events under each policy, {:.0} s",
        started.elapsed().as_secs_f64()
    )))
}

fn built(depth_log2: u32, gaps_log2: u32) -> Result<String, String> {
    let dir = root().join(format!("{BUILD}/bench-{depth_log2}-{gaps_log2}"));
    let name = dir.to_string_lossy().into_owned();
    make_dir(&root().join(BUILD))?;
    let numbers = [depth_log2.to_string(), gaps_log2.to_string()];
    run(command(&[
        "hw/event_card/tests/bench/build.sh",
        &name,
        &numbers[0],
        &numbers[1],
    ]))?;
    Ok(format!("{name}/bench"))
}

fn make_dir(dir: &Path) -> Result<(), String> {
    std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))
}

fn proofs(is_long: bool) -> Result<Outcome, String> {
    if !exists(&["berkeley-abc", "-c", "quit"]) {
        return Ok(Skipped(
            "no berkeley-abc here (Debian: berkeley-abc)".to_owned(),
        ));
    }
    let mut words = vec![
        "python3",
        "hw/event_card/formal/run.py",
        "target/card/formal",
    ];
    words.extend(is_long.then_some("--long"));
    last_line(command(&words))
}

fn cocotb(is_long: bool) -> Result<Outcome, String> {
    let Some(python) = crate::python::interpreter() else {
        return Ok(Skipped("no virtual environment for cocotb".to_owned()));
    };
    if !exists(&[&python, "-c", "import cocotb.runner"]) {
        println!("installing {COCOTB} into target/venv");
        let _ = run(command(&[&python, "-m", "pip", "install", "-q", COCOTB]));
    }
    if !exists(&[&python, "-W", "ignore", "-c", "import cocotb.runner"]) {
        return Ok(Skipped(format!("no {COCOTB} in target/venv")));
    }
    let mut words = vec![
        python.as_str(),
        "-W",
        "ignore",
        "hw/event_card/tests/run.py",
    ];
    words.push("target/card/cocotb");
    words.extend(is_long.then_some("--long"));
    last_line(command(&words))
}

/// Masters that contend for a lock: their events go through the card into a report.
fn lock(is_long: bool) -> Result<Outcome, String> {
    let dir = build_dir("lock")?;
    run(command(&["hw/event_card/sim/lock/build.sh", &dir]))?;
    let runs = if is_long { "200" } else { "5" };
    experiment(&format!("{dir}/lock"), &dir, runs)
}

/// The lock of the source on the simulated board: the figures that `undertick reproduce trams` shows.
fn published() -> Result<Outcome, String> {
    let dir = build_dir("lock")?;
    let Some(undertick) = undertick() else {
        return Ok(Skipped(NOT_BUILT.to_owned()));
    };
    last_line(line(
        "python3 hw/event_card/sim/lock/published.py {} {} {} --check crates/reproduce/src/trams/card.txt",
        &[&format!("{dir}/lock"), &undertick, &format!("{dir}/runs")],
    ))
}

/// The same experiment with compiled programs on RISC-V processors.
fn riscv() -> Result<Outcome, String> {
    const COMPILER: &str = "riscv64-unknown-elf-gcc";
    if !exists(&[COMPILER, "--version"]) {
        let why = format!("no {COMPILER} here (Debian: gcc-riscv64-unknown-elf)");
        return Ok(Skipped(why));
    }
    let Some(python) = crate::python::interpreter() else {
        return Ok(Skipped(format!("no virtual environment for {PICORV32}")));
    };
    let find = "import pythondata_cpu_picorv32 as core; print(core.data_file('picorv32.v'))";
    let source = || output(command(&[&python, "-c", find]));
    if source().is_err() {
        println!("installing {PICORV32} into target/venv");
        let _ = run(command(&[&python, "-m", "pip", "install", "-q", PICORV32]));
    }
    let Ok(source) = source() else {
        return Ok(Skipped(format!("no {PICORV32} in target/venv")));
    };
    let dir = build_dir("riscv")?;
    run(command(&[
        "hw/event_card/sim/riscv/build.sh",
        &dir,
        source.trim(),
    ]))?;
    experiment(&format!("{dir}/system"), &dir, "200")
}

const NOT_BUILT: &str = "undertick is not built: cargo build --release";

fn undertick() -> Option<String> {
    let path = root().join("target/release/undertick");
    path.exists().then(|| path.to_string_lossy().into_owned())
}

/// Runs a simulation `runs` times and compares the report with the truth.
fn experiment(simulation: &str, dir: &str, runs: &str) -> Result<Outcome, String> {
    let Some(undertick) = undertick() else {
        return Ok(Skipped(NOT_BUILT.to_owned()));
    };
    last_line(line(
        "python3 hw/event_card/sim/lock/experiment.py {} {} {} --runs {}",
        &[simulation, &undertick, &format!("{dir}/runs"), runs],
    ))
}

fn build_dir(name: &str) -> Result<String, String> {
    let dir = root().join(BUILD).join(name);
    make_dir(&dir)?;
    Ok(dir.to_string_lossy().into_owned())
}

/// Runs a command, shows its output, and returns the last line.
fn last_line(command: Command) -> Result<Outcome, String> {
    let mut last = String::new();
    let mut wrong = Vec::new();
    crate::run::run_lines(command, |line| {
        if line.starts_with("FAILED") {
            wrong.push(line.to_owned());
        }
        line.clone_into(&mut last);
        true
    })
    .map_err(|error| format!("{} ({error})", wrong.join("\n")))?;
    Ok(Said(last))
}
