//! The cost that the report subtracts from a span for the points inside it, against the same
//! program without points. Two kinds of the work between the points are code of other projects:
//! zlib and SQLite.

use super::{compile_as, interval, ns_per_tick, record, report_json};
use crate::run::{Scratch, command, output};

/// Points move the code around them. A short loop that is moved across a cache line runs half as
/// fast again (160 additions: 23 ns for 15, recorded or not). This is no cost of a record, so loops
/// and functions begin on cache lines in all programs.
const ON_LINES: [&str; 2] = ["-falign-loops=64", "-falign-functions=64"];
/// Kinds of work of benches/recorder/nested.c.
const KINDS: [&str; 7] = [
    "latency",
    "throughput",
    "memory",
    "branches",
    "hash map",
    "zlib",
    "SQLite",
];
/// Kinds of points, by number; 0 is without points.
const WAYS: [&str; 6] = [
    "",
    "events",
    "spans",
    "ordered spans",
    "sampled spans",
    "functions",
];
const FUNCTIONS: usize = 5;
const POINTS: [u32; 4] = [1, 10, 100, 1000];
/// Pairs of runs of each cell. The same program varies by 2 to 10 % from one process to the next,
/// depending on where its memory lies, and takes half as long again while a neighbour uses the
/// other thread of its core.
const PAIRS: usize = 9;
/// Pairs of runs of each cell where points are switched off and on.
const PAIRS_SWITCHED: usize = 5;

/// Counts over all cells.
#[derive(Default)]
struct Count {
    cells: u32,
    holds: u32,
    nearer: u32,
    at_most_1_percent: u32,
    in_place: u32,
    in_place_holds: u32,
}

/// Measures the cells of the kinds and ways in `only`; all of them where it names none.
pub fn measure(only: &[&str]) -> Result<(), String> {
    let known = |word: &&str| KINDS.contains(word) || WAYS[1..].contains(word);
    if let Some(word) = only.iter().find(|word| !known(word)) {
        return Err(format!(
            "there is no {word:?}: kinds are {KINDS:?}, ways {:?}",
            &WAYS[1..]
        ));
    }
    let is_wanted = |name: &str, of: &[&str]| {
        only.contains(&name) || !only.iter().any(|word| of.contains(word))
    };
    let scratch = Scratch::new("nested")?;
    let programs = (0..WAYS.len())
        .map(|way| build(&scratch, &format!("nested{way}"), &options(way)))
        .collect::<Result<Vec<_>, String>>()?;
    // The inner function is a call, recorded or not.
    let apart = [options(0), vec!["-DAPART".to_owned()]].concat();
    let apart = build(&scratch, "apart", &apart)?;
    let trace = scratch.path("t.ut");
    println!(
        "\nmean of a span around points, ns: without points (truth), as read, as reported [bounds]; \
         {PAIRS} pairs of runs each, in turn"
    );
    let mut count = Count::default();
    for (kind, name) in KINDS.iter().enumerate() {
        if !is_wanted(name, &KINDS) {
            continue;
        }
        for points in POINTS {
            // The number of spans for about 100 ms a run, so that each run has enough of them.
            let spans = (400_000 / points).clamp(400, 20_000);
            for (way, program) in programs.iter().enumerate().skip(1) {
                if !is_wanted(WAYS[way], &WAYS[1..]) {
                    continue;
                }
                let cell = Cell {
                    program,
                    without: if way == FUNCTIONS {
                        &apart
                    } else {
                        &programs[0]
                    },
                    options: if way == FUNCTIONS { &BY_FUNCTIONS } else { &[] },
                    kind,
                    points,
                    spans,
                    trace: &trace,
                };
                let found = cell.measure()?;
                let holds = found.lo <= found.truth && found.truth <= found.hi;
                let off = (found.reported - found.truth).abs();
                let nearer = off <= (found.read - found.truth).abs();
                count.cells += 1;
                count.holds += u32::from(holds);
                count.nearer += u32::from(nearer);
                println!(
                    "{name:<12}{points:>6} {:<14}{:>12.1}{:>12.1}{:>12.1} [{:.1}, {:.1}]{}{}",
                    WAYS[way],
                    found.truth,
                    found.read,
                    found.reported,
                    found.lo,
                    found.hi,
                    if holds { "" } else { "  not held" },
                    if nearer { "" } else { "  no nearer" },
                );
                if points >= 10 && way < 3 {
                    let found = cell.in_place()?;
                    let off = (found.reported - found.truth) / found.truth;
                    let holds = found.lo <= found.truth && found.truth <= found.hi;
                    count.in_place += 1;
                    count.in_place_holds += u32::from(holds);
                    count.at_most_1_percent += u32::from(off.abs() <= 0.01);
                    println!(
                        "{:<12}{points:>6} {:<14}{:>12.1}{:>12.1}{:>12.1} [{:.1}, {:.1}] {:+.1} %{}",
                        "",
                        "switched",
                        found.truth,
                        found.read,
                        found.reported,
                        found.lo,
                        found.hi,
                        100.0 * off,
                        if holds { "" } else { "  not held" },
                    );
                }
            }
        }
    }
    let share = |n: u32, of: u32| 100.0 * f64::from(n) / f64::from(of.max(1));
    println!(
        "\nthe truth lies within the bounds in {} of {} cells ({:.1} %; target 95 %), and what is \
         reported is nearer than what was read in {} ({:.1} %; 95 %)",
        count.holds,
        count.cells,
        share(count.holds, count.cells),
        count.nearer,
        share(count.nearer, count.cells)
    );
    println!(
        "with --perturbation it is within 1 % of the truth in {} of {} cells, and the truth within \
         the bounds in {}",
        count.at_most_1_percent, count.in_place, count.in_place_holds
    );
    Ok(())
}

/// Options of `undertick record` for recording by functions.
const BY_FUNCTIONS: [&str; 2] = ["--functions", "^(outer|inner_[0-9])$"];

fn options(way: usize) -> Vec<String> {
    let instrument = (way == FUNCTIONS).then(|| "-finstrument-functions".to_owned());
    let way = format!("-DWAY={way}");
    let on_lines = ON_LINES.iter().map(ToString::to_string);
    on_lines.chain([way]).chain(instrument).collect()
}

fn build(scratch: &Scratch, out: &str, options: &[String]) -> Result<String, String> {
    let libraries = ["-lz".to_owned(), "-lsqlite3".to_owned()];
    compile_as(scratch, "nested", out, &[options, &libraries].concat())
        .map_err(|e| format!("{e}\n(needs the packages zlib1g-dev and libsqlite3-dev)"))
}

struct Cell<'a> {
    program: &'a str,
    without: &'a str,
    /// Options of `undertick record`.
    options: &'a [&'a str],
    kind: usize,
    points: u32,
    spans: u32,
    trace: &'a str,
}

/// Mean durations of a cell, ns.
struct MeanDurations {
    truth: f64,
    read: f64,
    reported: f64,
    lo: f64,
    hi: f64,
}

impl Cell<'_> {
    /// The command line of a run.
    fn words(&self, program: &str, seed: usize) -> Vec<String> {
        let numbers = [self.kind, self.points as usize, self.spans as usize, seed];
        let numbers = numbers.iter().map(ToString::to_string);
        std::iter::once(program.to_owned()).chain(numbers).collect()
    }

    /// The span's duration without points, ns, by fenced readings.
    fn truth(&self, seed: usize, ns_per_tick: f64) -> Result<f64, String> {
        let words = self.words(self.without, seed);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = output(command(&words))?;
        let numbers: Vec<f64> = said.split_whitespace().flat_map(str::parse).collect();
        match numbers[..] {
            [span, nothing] => Ok((span - nothing) * ns_per_tick),
            _ => Err(format!("nested.c said {said:?}")),
        }
    }

    /// Measures runs without points before and after a recording.
    fn turn(&self, seed: usize, options: &[&str]) -> Result<MeanDurations, String> {
        let words = self.words(self.program, seed);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        record(self.trace, options, &words)?;
        let ns_per_tick = ns_per_tick(self.trace)?;
        let report = report_json(self.trace, &[])?;
        let outer = interval(&report, "outer")?;
        let mean = |of: &serde_json::Value| of["value"].as_f64().ok_or("no mean of the span");
        let bound = |at: usize| outer["mean"]["interval"][at].as_f64();
        Ok(MeanDurations {
            truth: (self.truth(seed, ns_per_tick)? + self.truth(seed, ns_per_tick)?) / 2.0,
            read: mean(&outer["uncompensated"]["mean"])?,
            reported: mean(&outer["mean"])?,
            lo: bound(0).unwrap_or(f64::NEG_INFINITY),
            hi: bound(1).unwrap_or(f64::INFINITY),
        })
    }

    /// The median of several pairs of runs, ordered by their error.
    fn middle(&self, pairs: usize, options: &[&str]) -> Result<MeanDurations, String> {
        let mut found = (1..=pairs)
            .map(|seed| self.turn(seed, options))
            .collect::<Result<Vec<_>, String>>()?;
        found.sort_by(|a, b| (a.reported - a.truth).total_cmp(&(b.reported - b.truth)));
        Ok(found.swap_remove(pairs / 2))
    }

    fn measure(&self) -> Result<MeanDurations, String> {
        self.middle(PAIRS, self.options)
    }

    /// Measures a cell with switched points. This takes seconds each, because it needs many halves.
    fn in_place(&self) -> Result<MeanDurations, String> {
        let longer = Self {
            spans: self.spans * 40,
            ..*self
        };
        longer.middle(PAIRS_SWITCHED, &["--perturbation", "1"])
    }
}
