//! The cost of an event and of a span with other recorders and with Undertick. All programs run in
//! turn, round by round, each with the floor beside it, block by block.

use super::peers_of_registries::{bin, compile, installed, version_of_crate, version_of_package};
use super::recorder::blocks;
use super::undertick;
use crate::lttng::Daemon;
use crate::run::{Scratch, command, output};
use crate::statistics::{median, median_interval};

const ROUNDS: usize = 21;
/// Number of blocks of each kind in a round, and of points in each.
const BLOCKS: &str = "5";
const POINTS: &str = "20000";

/// Runs a recorder's program once while recording it, and returns its output.
type Program<'a> = Box<dyn Fn() -> Result<String, String> + 'a>;

struct Recorder<'a> {
    name: String,
    run: Program<'a>,
    /// Cost of an event and of a span in each round: in ns, and over the floor.
    event: Vec<[f64; 2]>,
    section: Vec<[f64; 2]>,
}

pub fn measure() -> Result<(), String> {
    installed(&["liblttng-ust-dev", "lttng-tools"])?;
    let scratch = Scratch::new("beside")?;
    let daemon = Daemon::start(&scratch)?;
    let mut recorders = vec![ours(&scratch)?, lttng(&scratch, &daemon)?];
    for (name, crate_name) in [("tracy", "tracy-client"), ("perfetto", "perfetto-sdk")] {
        match of_crates(name, crate_name) {
            Ok(recorder) => recorders.push(recorder),
            Err(why) => println!("left out: {name}: {why}"),
        }
    }
    for _ in 0..ROUNDS {
        for recorder in &mut recorders {
            let text = (recorder.run)()?;
            recorder.add(&text)?;
        }
    }
    print(&recorders);
    Ok(())
}

fn recorder<'a>(name: &str, version: &str, run: Program<'a>) -> Recorder<'a> {
    Recorder {
        name: format!("{name} {version}"),
        run,
        event: Vec::new(),
        section: Vec::new(),
    }
}

fn ours(scratch: &Scratch) -> Result<Recorder<'static>, String> {
    let program = compile(scratch, "undertick.c", &[])?;
    let trace = scratch.path("ours.ut");
    let run = move || {
        let _ = std::fs::remove_dir_all(&trace);
        let undertick = undertick();
        output(command(&[
            &undertick,
            "record",
            "--no-calibration",
            "-o",
            &trace,
            "--",
            &program,
            BLOCKS,
            POINTS,
        ]))
    };
    Ok(recorder(
        "Undertick",
        env!("CARGO_PKG_VERSION"),
        Box::new(run),
    ))
}

/// LTTng with 8 sub-buffers of 16 MiB for each CPU, so that nothing is discarded.
fn lttng<'a>(scratch: &Scratch, daemon: &'a Daemon) -> Result<Recorder<'a>, String> {
    let program = compile(scratch, "lttng.c", &["-llttng-ust", "-ldl"])?;
    let sessions = scratch.path("lttng");
    let round = std::cell::Cell::new(0);
    let run = move || {
        // Each round has a separate directory: LTTng's daemon still knows the last one.
        let _ = std::fs::remove_dir_all(format!("{sessions}-{}", round.get()));
        round.set(round.get() + 1);
        let session = format!("{sessions}-{}", round.get());
        let channel = ["--subbuf-size=16M", "--num-subbuf=8"];
        let words = [program.as_str(), BLOCKS, POINTS];
        daemon.record(&session, "undertick_peers:*", &channel, &words)
    };
    let version = version_of_package("liblttng-ust-dev")?;
    Ok(recorder("LTTng-UST", &version, Box::new(run)))
}

fn of_crates(name: &str, crate_name: &str) -> Result<Recorder<'static>, String> {
    let program = bin(name)?;
    let run = move || output(command(&[&program, BLOCKS, POINTS]));
    let version = version_of_crate(crate_name)?;
    Ok(recorder(crate_name, &version, Box::new(run)))
}

impl Recorder<'_> {
    /// Adds one round: the medians of its blocks.
    fn add(&mut self, text: &str) -> Result<(), String> {
        let blocks = blocks(text);
        let of = |what: &str| {
            let found = blocks.get(what).map(|ns| median(ns));
            found.ok_or_else(|| format!("{}: no {what} in {text:?}", self.name))
        };
        let [floor, event, section] = [of("floor")?, of("event")?, of("section")?];
        self.event.push([event, event / floor]);
        self.section.push([section, section / floor]);
        Ok(())
    }
}

fn print(recorders: &[Recorder]) {
    println!(
        "\nmedians of {ROUNDS} rounds [95 %]; floor: one clock reading and one 16-byte store; \
         one thread, warm"
    );
    println!(
        "| recorder | event, ns | over the floor | over ours | section, ns | over the floor | over ours |"
    );
    println!("|---|---|---|---|---|---|---|");
    let Some(ours) = recorders.first() else {
        return;
    };
    for recorder in recorders {
        let columns = [
            (&recorder.event, &ours.event),
            (&recorder.section, &ours.section),
        ];
        let columns = columns.map(|(theirs, ours)| {
            let ns: Vec<f64> = theirs.iter().map(|[ns, _]| *ns).collect();
            let floors: Vec<f64> = theirs.iter().map(|[_, floors]| *floors).collect();
            let pairs = theirs.iter().zip(ours);
            let over: Vec<f64> = pairs.map(|([_, t], [_, o])| t / o).collect();
            format!("{} | {} | {}", stated(&ns), stated(&floors), stated(&over))
        });
        println!("| {} | {} |", recorder.name, columns.join(" | "));
    }
}

fn stated(values: &[f64]) -> String {
    let (lo, hi) = median_interval(values);
    let digits = if median(values) < 20.0 { 2 } else { 0 };
    format!("{:.digits$} [{lo:.digits$}, {hi:.digits$}]", median(values))
}
