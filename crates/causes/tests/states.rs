//! What tells calls apart, in traces whose every call is known.

use std::path::{Path, PathBuf};

use undertick_analyze::{Options, analyze};
use undertick_causes::{add_states, add_states_of_runs};
use undertick_combine::{Run, combine};
use undertick_document::{PathStates, Report, StateCondition, StateFact};
use undertick_format::manifest::Perturbation;
use undertick_format::read::Trace;
use undertick_record::synthetic::SyntheticRing;
use undertick_ring::Kind;

use crate::support;

use support::made::{self, Thread};

const NAMES: [&str; 7] = ["request", "fill", "parse", "size", "turn", "even", "late"];
const REQUEST: u16 = 1;
const FILL: u16 = 2;
const PARSE: u16 = 3;
const SIZE: u16 = 4;
const TURN: u16 = 5;
const EVEN: u16 = 6;
const LATE: u16 = 7;

/// When `late` begins to take longer.
const CHANGES: i64 = 20_000_000;

/// Begins a request, and parses what takes longer from a size on.
fn begin_and_parse(thread: &mut Thread) {
    thread.record(REQUEST, Kind::Begin, 0);
    let size = (thread.uniform() * 1000.0) as u32;
    thread.record(PARSE, Kind::Begin, 0);
    thread.record(SIZE, Kind::Instant, size);
    thread.spend(if size >= 700 { 3_000.0 } else { 1_000.0 });
    thread.record(PARSE, Kind::End, 0);
}

/// What takes longer from a time on, and what scatters for no reason.
fn late_and_even(thread: &mut Thread, changes: i64) {
    let late_ns = if thread.now < changes {
        1_500.0
    } else {
        2_500.0
    };
    thread.span(LATE, late_ns);
    let scatter = if thread.uniform() < 0.5 { 1.0 } else { 2.0 };
    thread.span(EVEN, 1_500.0 * scatter);
}

/// Requests of which 40 % fill something; what they parse takes longer from a size on; one thread
/// of a role is slower than the other at the same; something that gets slower in both threads at one time; and
/// something that scatters for no reason.
fn threads(turns: usize) -> Vec<SyntheticRing> {
    let thread = |tid: i32, name: &str, turn_ns: f64| {
        let mut thread = Thread::new(tid as u64);
        for _ in 0..turns {
            begin_and_parse(&mut thread);
            if thread.uniform() < 0.4 {
                thread.span(FILL, 8_000.0);
            }
            thread.record(REQUEST, Kind::End, 0);
            thread.span(TURN, turn_ns);
            late_and_even(&mut thread, CHANGES);
        }
        thread.ring(tid, name)
    };
    vec![
        thread(7, "worker 1", 1_000.0),
        thread(8, "worker 2", 4_000.0),
    ]
}

fn reported(dir: &Path, turns: usize) -> Report {
    let path = dir.join("t.ut");
    made::write(&path, &NAMES, &threads(turns));
    let trace = Trace::open(&path).unwrap();
    let options = Options::default();
    let mut report = analyze(&trace, options.clone(), &mut |_| {}).unwrap();
    add_states(&trace, &options, &mut report, &mut |_| {}).unwrap();
    report
}

fn of<'a>(report: &'a Report, name: &str) -> Option<&'a PathStates> {
    let path = report
        .paths
        .iter()
        .position(|path| path.name == name)
        .unwrap();
    report
        .states
        .iter()
        .find(|states| states.path as usize == path)
}

/// The condition of each state and its median, by the median.
fn told(states: &PathStates) -> Vec<(&StateCondition, f64)> {
    let mut told: Vec<_> = (states.states.iter())
        .map(|state| {
            assert_eq!(state.conditions.len(), 1, "{states:#?}");
            (&state.conditions[0], state.median.as_ref().unwrap().value)
        })
        .collect();
    told.sort_by(|a, b| a.1.total_cmp(&b.1));
    told
}

fn near(value: f64, truth: f64) {
    assert!((value / truth - 1.0).abs() < 0.05, "{value} for {truth}");
}

/// All calls that were looked at are counted, each in a bin of its state. Half of them lie on either
/// side of the median, and nearly all within the tenth by which they scatter.
fn binned(states: &PathStates) {
    let edges = &states.edges_ns;
    assert!((10..=60).contains(&edges.len()), "{edges:?}");
    assert!(edges.is_sorted_by(|a, b| a < b), "{edges:?}");
    let all: u64 = states.states.iter().flat_map(|state| &state.counts).sum();
    assert_eq!(all, states.looked_at);
    for state in &states.states {
        let (n, median) = (
            state.counts.iter().sum::<u64>(),
            state.median.as_ref().unwrap().value,
        );
        assert!((n as f64 / all as f64 - state.share.value).abs() < 1e-9);
        let count = |is_counted: &dyn Fn(f64, f64) -> bool| -> u64 {
            let bins = edges.windows(2).zip(&state.counts);
            let counted = bins.filter(|(bin, _)| is_counted(bin[0], bin[1]));
            counted.map(|(_, n)| *n).sum()
        };
        // The bin of the median holds part of each half; the median is that of half of the calls.
        let (below, above) = (
            count(&|_, to| to <= median),
            count(&|from, _| from > median),
        );
        assert!(below.max(above) <= n * 55 / 100, "{below} {above} of {n}");
        let [near, far] = [0.8, 1.25].map(|part| part * median);
        let around = count(&|from, to| to > near && from < far);
        assert!(around > n * 9 / 10, "{around} of {n} around {median}");
    }
}

#[test]
fn every_planted_cause_is_found_and_none_for_chance() {
    let dir = tempfile::tempdir().unwrap();
    let report = reported(dir.path(), 4_000);

    let parse = told(of(&report, "parse").expect("sizes differ"));
    assert_eq!(parse[0].0.fact, StateFact::Value);
    assert_eq!(parse[0].0.of.as_deref(), Some("size"));
    // One of 64 places of 1000 sizes.
    let from = parse[1].0.from.unwrap();
    assert!((684.0..=716.0).contains(&from), "{from}");
    assert_eq!(parse[0].0.below, Some(from));
    near(parse[0].1, 1_040.0);
    near(parse[1].1, 3_040.0);

    let turn = told(of(&report, "turn").expect("threads differ"));
    assert_eq!(turn[0].0.fact, StateFact::Thread);
    assert_eq!(turn[0].0.among, ["worker 1"]);
    assert_eq!(turn[1].0.among, ["worker 2"]);
    near(turn[0].1, 1_000.0);
    near(turn[1].1, 4_000.0);
    for name in ["parse", "turn", "late"] {
        binned(of(&report, name).unwrap());
    }

    let late = told(of(&report, "late").expect("it changes"));
    assert_eq!(late[0].0.fact, StateFact::Time);
    assert_eq!(late[0].0.below, late[1].0.from);
    let change = late[0].0.below.unwrap();
    assert!((change - CHANGES as f64).abs() < 1e6, "{change}");
    near(late[0].1, 1_500.0);
    near(late[1].1, 2_500.0);

    assert_eq!(of(&report, "even"), None);
}

#[test]
fn a_child_tells_the_calls_around_it_apart() {
    let dir = tempfile::tempdir().unwrap();
    let report = reported(dir.path(), 4_000);
    let request = of(&report, "request").expect("some fill");
    let first = &request.states[0].conditions[0];
    assert_eq!(
        (first.fact, first.of.as_deref()),
        (StateFact::With, Some("fill"))
    );
    let share: f64 = (request.states.iter())
        .filter(|state| state.conditions[0].is == Some(true))
        .map(|state| state.share.value)
        .sum();
    // 0.4 of 8000 requests, within 5 standard deviations of 0.0055, or of half of them.
    assert!((share - 0.4).abs() < 0.04, "{share}");
    assert!(request.explained > 0.5, "{}", request.explained);
}

/// Where points were switched off and on, no call is told apart by the points in it or before it.
#[test]
fn points_that_were_off_at_times_tell_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.ut");
    made::write(&path, &NAMES, &threads(4_000));
    let mut trace = Trace::open(&path).unwrap();
    trace.manifest.perturbation = Some(Perturbation {
        asked: "1".to_owned(),
        kept: vec![REQUEST, TURN, EVEN, LATE],
        pairs: 40,
        half_ns: 1_000_000,
    });
    let options = Options::default();
    let mut report = analyze(&trace, options.clone(), &mut |_| {}).unwrap();
    add_states(&trace, &options, &mut report, &mut |_| {}).unwrap();
    let facts: Vec<StateFact> = (report.states.iter())
        .flat_map(|of| of.states.iter().flat_map(|state| &state.conditions))
        .map(|condition| condition.fact)
        .collect();
    assert!(facts.contains(&StateFact::Thread), "{facts:?}");
    let of_points = |fact: &StateFact| {
        matches!(
            fact,
            StateFact::With | StateFact::WithEvent | StateFact::Value | StateFact::After
        )
    };
    assert!(!facts.iter().any(of_points), "{facts:?}");
}

/// Five runs, each as above with chances of its own. In two of them the requests take longer.
fn runs(dir: &Path) -> Report {
    let traces: Vec<PathBuf> = (0..5)
        .map(|run| {
            let path = dir.join(format!("run {run}.ut"));
            let slow = if SLOW_RUNS.contains(&run) { 2.0 } else { 1.0 };
            let mut thread = Thread::new(run + 1);
            for _ in 0..2_000 {
                begin_and_parse(&mut thread);
                thread.spend(6_000.0 * slow);
                thread.record(REQUEST, Kind::End, 0);
                // Later in the same part of each run, whatever it is part of.
                late_and_even(&mut thread, CHANGES / 2);
            }
            made::write(&path, &NAMES, &[thread.ring(7, "main")]);
            path
        })
        .collect();
    let options = Options::default();
    let each = traces.iter().map(|path| Run {
        name: path.display().to_string(),
        report: analyze(&Trace::open(path).unwrap(), options.clone(), &mut |_| {}).unwrap(),
    });
    let mut report = combine(&each.collect::<Vec<Run>>(), 0.95).unwrap();
    add_states_of_runs(&traces, &options, &mut report, &mut |_| {}).unwrap();
    report
}

const SLOW_RUNS: [u64; 2] = [1, 3];

/// What differs between runs is said of the runs, and what is the same in all of them is found in all
/// of them together, with the interval between them.
#[test]
fn runs_have_their_states_together() {
    let dir = tempfile::tempdir().unwrap();
    let report = runs(dir.path());
    let request = told(of(&report, "request").expect("runs differ"));
    assert_eq!(request.len(), 2, "{request:#?}");
    let (is_fast, fast_ns) = request[0];
    let (is_slow, slow_ns) = request[1];
    assert_eq!(is_fast.fact, StateFact::Run);
    assert_eq!(is_fast.among, ["run 0", "run 2", "run 4"]);
    assert_eq!(is_slow.among, ["run 1", "run 3"]);
    assert!((7_000.0..8_500.0).contains(&fast_ns), "{fast_ns}");
    assert!((13_000.0..14_500.0).contains(&slow_ns), "{slow_ns}");

    let states = of(&report, "parse").expect("sizes differ");
    // Half of 10 000 calls, chosen by lot: within 10 standard deviations of 50.
    assert!(
        (4_500..5_500).contains(&states.looked_at),
        "{}",
        states.looked_at
    );
    let parse = told(states);
    assert_eq!(parse[0].0.of.as_deref(), Some("size"));
    near(parse[0].1, 1_040.0);
    near(parse[1].1, 3_040.0);
    for state in &states.states {
        let median = state.median.as_ref().unwrap();
        assert_eq!(median.n, 5, "{median:?}");
        // Runs do not differ here: their medians scatter as those of hundreds of calls do.
        let half = median.interval.half_width().unwrap();
        assert!(half > 0.0 && half < 0.05 * median.value, "{median:?}");
    }
    let late = told(of(&report, "late").expect("it changes in each run"));
    assert_eq!(late[0].0.fact, StateFact::Time);
    near(late[0].1, 1_500.0);
    near(late[1].1, 2_500.0);
    assert_eq!(of(&report, "even"), None);
}

#[test]
fn few_calls_and_a_table_of_intervals_have_no_states() {
    let dir = tempfile::tempdir().unwrap();
    assert!(reported(dir.path(), 200).states.is_empty());
}
