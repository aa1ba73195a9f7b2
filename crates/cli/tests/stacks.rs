//! `undertick record --stacks` and `undertick stacks`, on a program that knows what its functions took.

use crate::exports::fields;
use crate::support;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use support::{compile, document, refused, said, undertick};

const PROGRAM: &str = include_str!("programs/stacks.c");
const ROUNDS: &str = "150";

/// Records the program; its times on the CPU, ns; `None`, with the reason printed, where perf is not
/// allowed.
fn recorded(dir: &Path, trace: &str, rounds: &str) -> Option<Vec<f64>> {
    let program = compile(dir, "stacks", PROGRAM, &[]);
    let program = program.to_str().unwrap();
    let words = [
        "record",
        "--no-calibration",
        "--stacks",
        "1ms",
        "-o",
        trace,
        "--",
    ];
    let output = undertick(&[words.as_slice(), &[program, rounds]].concat());
    let text = String::from_utf8_lossy(&output.stderr);
    if text.contains("perf events are not allowed") || text.contains("has no perf events") {
        println!("skipped: {text}");
        return None;
    }
    assert!(output.status.success(), "{text}");
    let times = String::from_utf8_lossy(&output.stdout);
    Some(
        times
            .split_whitespace()
            .map(|time| time.parse().expect("a time"))
            .collect(),
    )
}

/// What a command that must succeed printed.
#[track_caller]
fn text(words: &[&str]) -> String {
    let output = undertick(words);
    assert!(output.status.success(), "{}", said(&output).1);
    String::from_utf8(output.stdout).unwrap()
}

/// Samples of a function inside a path, and of all functions that it calls.
struct Tree<'a> {
    stacks: &'a Value,
    path: &'a Value,
}

impl<'a> Tree<'a> {
    fn of(report: &'a Value, path: &str) -> Self {
        let names = report["paths"].as_array().expect("paths");
        let at = names
            .iter()
            .position(|of| of["name"] == path)
            .expect("the path");
        let stacks = &report["stacks"];
        let paths = stacks["paths"].as_array().expect("paths of stacks");
        let path = paths
            .iter()
            .find(|of| of["path"] == at)
            .expect("samples of the path");
        Self { stacks, path }
    }

    fn name(&self, node: &Value) -> &'a str {
        let at = node["function"].as_u64().expect("a function") as usize;
        self.stacks["functions"][at]["name"]
            .as_str()
            .expect("a name")
    }

    /// The names of the functions from the innermost on, of each node.
    fn stacks(&self) -> Vec<(Vec<&'a str>, &'a Value)> {
        let nodes = self.path["nodes"].as_array().expect("nodes");
        (nodes.iter())
            .map(|node| {
                let up = |of: &&'a Value| {
                    of["caller"]
                        .as_u64()
                        .map(|at| &self.path["nodes"][at as usize])
                };
                let names = std::iter::successors(Some(node), up).map(|of| self.name(of));
                (names.collect(), node)
            })
            .collect()
    }

    fn sum(&self, field: &str, within: &str) -> f64 {
        (self.stacks().iter())
            .filter(|(names, _)| names.contains(&within))
            .map(|(_, node)| node[field].as_f64().expect("a number"))
            .sum()
    }
}

#[test]
fn samples_are_in_the_functions_that_took_the_time() {
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().join("t.ut").to_str().unwrap().to_owned();
    let Some(times) = recorded(dir.path(), &name, ROUNDS) else {
        return;
    };
    let report = document("report", &undertick(&["stacks", &name, "--json"]));
    let stacks = &report["stacks"];
    let (work, inner) = (Tree::of(&report, "work"), Tree::of(&report, "inner"));
    // A sample for each millisecond. One standard deviation of a count is its root at most; six of
    // them are exceeded once in 10^8.
    let near = |what: &str, samples: f64, ns: f64| {
        let expected = ns / 1e6;
        let off = 6.0 * expected.sqrt() + 0.05 * expected;
        assert!(
            (samples - expected).abs() <= off,
            "{what}: {samples} of {expected}"
        );
    };
    near("hot", work.sum("on_cpu", "hot"), times[0]);
    near("cold", work.sum("on_cpu", "cold"), times[1]);
    near("inner", inner.sum("on_cpu", "in_inner"), times[2]);
    assert_eq!(
        inner.sum("on_cpu", "hot") + work.sum("on_cpu", "in_inner"),
        0.0
    );
    // Frames between: each sample of the leaf came through all of them.
    let through: f64 = (inner.stacks().iter())
        .filter(|(names, _)| names.contains(&"in_inner"))
        .filter(|(names, _)| names.iter().filter(|name| name.starts_with("deep")).count() >= 20)
        .map(|(_, node)| node["on_cpu"].as_f64().unwrap())
        .sum();
    assert!(
        through >= 0.98 * inner.sum("on_cpu", "in_inner"),
        "{through}"
    );
    let whole = |tree: &Tree<'_>| tree.sum("on_cpu", "thread");
    assert!(whole(&work) >= 0.98 * work.path["on_cpu"].as_f64().unwrap());
    assert!(
        stacks["incomplete"].as_f64().unwrap() < 0.02,
        "{}",
        stacks["incomplete"]
    );
    if stacks["when_waiting"] == true {
        let wait = Tree::of(&report, "wait");
        let asked = 5e6 * ROUNDS.parse::<f64>().unwrap();
        let waited = wait.sum("waited_ns", "stall");
        // Sleeping longer is what a busy machine does; the span knows.
        let paths = report["paths"].as_array().unwrap();
        let span = paths.iter().find(|of| of["name"] == "wait").unwrap();
        let took = span["total"]["value"].as_f64().unwrap();
        assert!(
            waited >= 0.95 * asked && waited <= took,
            "{waited} of {asked} in {took}"
        );
    } else {
        println!("skipped: samples of waits: {}", stacks["why"]);
    }
}

#[test]
fn functions_are_said_in_words_and_as_lines_for_other_tools() {
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().join("t.ut").to_str().unwrap().to_owned();
    if recorded(dir.path(), &name, ROUNDS).is_none() {
        return;
    }
    let table = text(&["stacks", &name]);
    assert!(
        table.contains("work/inner") && table.contains("in_inner"),
        "{table}"
    );
    let path = text(&["stacks", &name, "inner"]);
    assert!(
        path.contains("heaviest stack") && path.contains("in_inner"),
        "{path}"
    );
    let folded = text(&["stacks", &name, "--folded"]);
    let mut samples = 0;
    for line in folded.lines() {
        let (frames, n) = line.rsplit_once(' ').expect("frames and a number");
        samples += n.parse::<u64>().expect("a number");
        assert!(frames.split(';').count() >= 2, "{line}");
    }
    let report = document("report", &undertick(&["stacks", &name, "--json"]));
    let left_out: u64 = (report["stacks"]["paths"].as_array().unwrap().iter())
        .map(|of| of["left_out"].as_u64().unwrap())
        .sum();
    assert_eq!(
        samples + left_out,
        report["stacks"]["on_cpu"].as_u64().unwrap()
    );
    assert!(folded.contains("work;inner;"), "{folded}");
    refused(
        &undertick(&["stacks", &name, "nonsense"]),
        2,
        &["no path \"nonsense\""],
    );
}

/// By the numbers of Perfetto's published messages: a sample refers to a stack, a stack to frames, a frame
/// to a name and a file, each described before. By innermost function there are as many samples as the
/// report has.
#[test]
fn perfetto_gets_the_samples_with_their_functions() {
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().join("t.ut").to_str().unwrap().to_owned();
    if recorded(dir.path(), &name, ROUNDS).is_none() {
        return;
    }
    let file = dir.path().join("t.pftrace");
    text(&["export", &name, "--to", "perfetto", file.to_str().unwrap()]);
    let string = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (mut names, mut files) = (BTreeMap::new(), BTreeMap::new());
    let (mut frames, mut stacks) = (BTreeMap::new(), BTreeMap::new());
    let mut innermost = BTreeMap::<String, u64>::new();
    let (mut waits, mut with_file) = (0, 0);
    for (_, _, packet) in fields(&std::fs::read(&file).unwrap()) {
        let packet = fields(&packet);
        for (_, _, interned) in packet.iter().filter(|of| of.0 == 12) {
            for (field, _, entry) in fields(interned) {
                let entry = fields(&entry);
                let numbers = |wanted: u64| -> Vec<u64> {
                    entry
                        .iter()
                        .filter(|of| of.0 == wanted)
                        .map(|of| of.1)
                        .collect()
                };
                match field {
                    5 => drop(names.insert(entry[0].1, string(&entry[1].2))),
                    17 => drop(files.insert(entry[0].1, string(&entry[1].2))),
                    19 => assert!(files.contains_key(&numbers(7)[0])),
                    6 => {
                        assert!(names.contains_key(&numbers(2)[0]));
                        with_file += usize::from(!numbers(3).is_empty());
                        frames.insert(entry[0].1, numbers(2)[0]);
                    }
                    7 => {
                        assert!(numbers(2).iter().all(|frame| frames.contains_key(frame)));
                        stacks.insert(entry[0].1, numbers(2));
                    }
                    _ => {}
                }
            }
        }
        for (field, _, bytes) in &packet {
            let of = |wanted: u64| {
                fields(bytes)
                    .iter()
                    .find(|of| of.0 == wanted)
                    .map(|of| of.1)
            };
            match field {
                66 => {
                    assert!(packet.iter().any(|of| of.0 == 8), "a time");
                    assert!(of(2) > Some(0) && of(3) > Some(0), "a thread");
                    let leaf = stacks[&of(4).unwrap()].last().unwrap();
                    *innermost.entry(names[&frames[leaf]].clone()).or_default() += 1;
                }
                11 if of(56).is_some() => {
                    let has_stall = |frame: &u64| names[&frames[frame]] == "stall";
                    waits += usize::from(stacks[&of(56).unwrap()].iter().any(has_stall));
                }
                _ => {}
            }
        }
    }
    let report = document("report", &undertick(&["stacks", &name, "--json"]));
    let (mut reported, mut left_out) = (BTreeMap::<String, u64>::new(), 0);
    for path in report["stacks"]["paths"].as_array().unwrap() {
        left_out += path["left_out"].as_u64().unwrap();
        for node in path["nodes"].as_array().unwrap() {
            let function = node["function"].as_u64().unwrap() as usize;
            let function = report["stacks"]["functions"][function]["name"]
                .as_str()
                .unwrap();
            *reported.entry(function.to_owned()).or_default() += node["on_cpu"].as_u64().unwrap();
        }
    }
    for function in ["hot", "cold", "in_inner"] {
        assert!(reported[function] > 50, "{reported:?}");
        let sampled = reported[function]..=reported[function] + left_out;
        assert!(
            sampled.contains(&innermost[function]),
            "{function}: {innermost:?}"
        );
    }
    assert_eq!(
        innermost.values().sum::<u64>(),
        report["stacks"]["on_cpu"].as_u64().unwrap()
    );
    assert!(
        with_file > 0 && files.values().any(|file| file.ends_with("/stacks")),
        "{files:?}"
    );
    match report["stacks"]["when_waiting"] == true {
        true => assert!(waits >= ROUNDS.parse().unwrap(), "{waits}"),
        false => println!("skipped: samples of waits: {}", report["stacks"]["why"]),
    }
}

#[test]
fn a_span_that_never_ended_has_its_functions() {
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().join("t.ut").to_str().unwrap().to_owned();
    if recorded(dir.path(), &name, "0").is_none() {
        return;
    }
    let table = text(&["stacks", &name]);
    assert!(table.contains("stuck (still open)"), "{table}");
    let path = text(&["stacks", &name, "stuck"]);
    let hot = path
        .lines()
        .find(|line| line.ends_with(" hot"))
        .expect("hot");
    let own: f64 = hot
        .split('\u{a0}')
        .next()
        .unwrap()
        .trim()
        .parse()
        .expect("a share");
    assert!(own > 90.0, "{path}");
    refused(
        &undertick(&["stacks", &name, "stack"]),
        2,
        &["no path \"stack\""],
    );
}

#[test]
fn a_slow_call_says_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().join("t.ut").to_str().unwrap().to_owned();
    if recorded(dir.path(), &name, ROUNDS).is_none() {
        return;
    }
    let of = |path: &str| {
        document(
            "explain",
            &undertick(&["explain", &name, path, "--slowest", "5", "--json"]),
        )
    };
    let functions = |call: &Value| {
        let stack = &call["stacks"][0]["functions"];
        (stack.as_array().unwrap().iter())
            .map(|of| of.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let inner = of("inner");
    for call in inner["paths"][0]["slowest"].as_array().unwrap() {
        let stack = functions(call);
        assert!(stack.iter().any(|name| name == "in_inner"), "{stack:?}");
        assert!(
            !stack.iter().any(|name| name == "hot" || name == "stall"),
            "{stack:?}"
        );
    }
    if document("report", &undertick(&["stacks", &name, "--json"]))["stacks"]["when_waiting"]
        == true
    {
        for call in of("wait")["paths"][0]["slowest"].as_array().unwrap() {
            let (took, waited) = (
                call["took_ns"].as_f64().unwrap(),
                &call["stacks"][0]["waited_ns"],
            );
            assert!(functions(call).iter().any(|name| name == "stall"), "{call}");
            assert!(waited.as_f64().unwrap() <= took, "{call}");
        }
    }
    let said = text(&["explain", &name, "inner", "--slowest", "5"]);
    assert!(said.contains(" in in_inner < deep"), "{said}");
}

#[test]
fn a_snapshot_of_a_hanging_span_has_its_functions() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (flight, program) = (
        path("flight.ut"),
        compile(dir.path(), "stacks", PROGRAM, &[]),
    );
    let output = undertick(&[
        "record",
        "--no-calibration",
        "--overflow",
        "overwrite",
        "--stacks",
        "1ms",
        "--trigger",
        "stuck open for 60ms",
        "--keep",
        "50ms..20ms",
        "-o",
        &flight,
        "--",
        program.to_str().unwrap(),
        "0",
    ]);
    let (status, said) = said(&output);
    if said.contains("perf events are not allowed") || said.contains("has no perf events") {
        println!("skipped: {said}");
        return;
    }
    assert_eq!(status, 0, "{said}");
    let snapshots: Vec<String> = (std::fs::read_dir(dir.path()).unwrap())
        .map(|entry| entry.unwrap().path().to_str().unwrap().to_owned())
        .filter(|path| path.ends_with(".ut") && *path != flight)
        .collect();
    let [snapshot] = snapshots.as_slice() else {
        panic!("{snapshots:?}: {said}");
    };
    let found = text(&["stacks", snapshot, "stuck"]);
    assert!(found.lines().any(|line| line.ends_with(" hot")), "{found}");
}

#[test]
fn a_trace_without_samples_says_how_to_get_them() {
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().join("t.ut").to_str().unwrap().to_owned();
    let program = compile(dir.path(), "stacks", PROGRAM, &[]);
    text(&[
        "record",
        "--no-calibration",
        "-o",
        &name,
        "--",
        program.to_str().unwrap(),
        "1",
    ]);
    refused(&undertick(&["stacks", &name]), 2, &["--stacks 1ms"]);
    for (words, mend) in [
        (
            ["--kernel", "off", "--stacks", "1ms"],
            "leave out --kernel off",
        ),
        (["--kernel", "auto", "--stacks", "50us"], "at least 100 us"),
    ] {
        let other = dir.path().join("u.ut").to_str().unwrap().to_owned();
        let words = [&["record", "-o", &other], words.as_slice(), &["--", "true"]].concat();
        refused(&undertick(&words), 2, &[mend]);
    }
}
