//! Documents with impossible figures, through every renderer: no impossible figure is shown.
//!
//! The documents are invented, with some figures set at random. Independent rules in this file
//! check the results, on JSON and on text.

use std::sync::LazyLock;

use rand::{Rng, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use undertick_document::{IntervalKind, Report, without_impossible};
use undertick_report::{html, terminal};

use super::invented;

const DOCUMENTS: u64 = 10_000;
/// The page and the terminal's text are checked for one in this many documents, because that takes
/// longer.
const DRAWN_EVERY: u64 = 20;

/// The document in which figures are replaced, and pointers into it.
struct Base {
    value: Value,
    /// Numbers with a fraction.
    floats: Vec<String>,
    estimates: Vec<String>,
}

static BASE: LazyLock<Base> = LazyLock::new(|| {
    let mut report = invented::six();
    report.intervals.push(invented::two_modes());
    // Points may slow a program by more than 100 %.
    report.trace.perturbation = None;
    for interval in &mut report.intervals {
        // The cost of points is a difference, and may be below 0. It has a separate test.
        interval.slowed = None;
        interval.on_cpu_ns = Some(1e6);
        interval.off_cpu_ns = Some(1e6);
    }
    let value = serde_json::to_value(&report).unwrap();
    let (mut numbers, mut estimates) = (Vec::new(), Vec::new());
    floats(&value, &mut String::new(), &mut numbers);
    every_pointer(&value, &mut String::new(), &mut estimates);
    Base {
        value,
        floats: numbers,
        estimates,
    }
});

/// Makes an invented report, some of whose figures are arbitrary.
fn spoilt(seed: u64) -> Report {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let Base {
        value,
        floats,
        estimates,
    } = &*BASE;
    let mut value = value.clone();
    for _ in 0..rng.random_range(1..40) {
        let at = &floats[rng.random_range(0..floats.len())];
        *value.pointer_mut(at).unwrap() = anything(&mut rng, at);
    }
    // Whole estimates are too large or too small, which is not impossible by itself.
    for _ in 0..rng.random_range(0..6) {
        let at = &estimates[rng.random_range(0..estimates.len())];
        let factor = 10_f64.powf(rng.random_range(-3.0..3.0));
        for part in ["value", "interval/0", "interval/1"] {
            let part = value.pointer_mut(&format!("{at}/{part}")).unwrap();
            if let Some(number) = part.as_f64() {
                *part = (number * factor).into();
            }
        }
    }
    serde_json::from_value(value).unwrap()
}

/// Finds pointers to all estimates.
fn every_pointer(value: &Value, at: &mut String, found: &mut Vec<String>) {
    if value["value"].is_number() && value["interval"].is_array() {
        found.push(at.clone());
        return;
    }
    let entries: Vec<(String, &Value)> = match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), value))
            .collect(),
        Value::Array(list) => (list.iter().enumerate())
            .map(|(i, v)| (i.to_string(), v))
            .collect(),
        _ => return,
    };
    for (key, value) in entries {
        let length = at.len();
        at.push('/');
        at.push_str(&key.replace('~', "~0").replace('/', "~1"));
        every_pointer(value, at, found);
        at.truncate(length);
    }
}

/// Finds pointers to all numbers with a fraction.
fn floats(value: &Value, at: &mut String, found: &mut Vec<String>) {
    let mut deeper = |key: &str, value: &Value| {
        let length = at.len();
        at.push('/');
        at.push_str(&key.replace('~', "~0").replace('/', "~1"));
        floats(value, at, found);
        at.truncate(length);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| deeper(key, value)),
        Value::Array(list) => {
            let each = list.iter().enumerate();
            each.for_each(|(i, value)| deeper(&i.to_string(), value));
        }
        Value::Number(n) if n.is_f64() => found.push(at.clone()),
        _ => {}
    }
}

fn anything(rng: &mut impl Rng, at: &str) -> Value {
    let may_be_unknown = at.contains("/interval/");
    let scale = 10_f64.powi(rng.random_range(-3..15));
    match rng.random_range(0..8) {
        0 if may_be_unknown => Value::Null,
        1 => (-scale).into(),
        2 => 0.0.into(),
        3 => 1.5.into(),
        4 => (-639_342.8).into(),
        5 => 1e300.into(),
        _ => (scale * rng.random_range(-0.2..1.0)).into(),
    }
}

/// Returns what is wrong with this document, by the rules of the format.
fn wrong(report: &Value) -> Vec<String> {
    let mut found = Vec::new();
    every_estimate(report, &mut String::new(), &mut found);
    for interval in report["intervals"].as_array().unwrap() {
        let name = interval["name"].as_str().unwrap();
        of_interval(interval, &mut |what: String| {
            found.push(format!("{name}: {what}"))
        });
    }
    let states = report["states"].as_array().into_iter().flatten();
    for state in states.flat_map(|of| of["states"].as_array().unwrap()) {
        let share = at(state, "/share/value");
        if share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            found.push(format!("a state with the share {share:?}"));
        }
        if at(state, "/median/value").is_some_and(|median| median < 0.0) {
            found.push("a state below 0".to_owned());
        }
    }
    let tasks = report.pointer("/tasks/rows").and_then(Value::as_array);
    for task in tasks.into_iter().flatten() {
        of_task(task, &mut found);
    }
    for frequency in report["frequencies"].as_array().unwrap() {
        if at(frequency, "/per_second/value").is_some_and(|v| v < 0.0) {
            found.push("a rate below 0".to_owned());
        }
    }
    found
}

/// Checks the lives of the tasks of one name.
fn of_task(task: &Value, found: &mut Vec<String>) {
    let name = &task["name"];
    for part in ["lifetime", "busy", "idle", "queued", "poll", "queue"] {
        let figures = ["total_ns", "median_ns", "p99_ns", "max_ns"];
        let [total, rising @ ..] = figures.map(|figure| at(task, &format!("/{part}/{figure}")));
        let rising: Vec<f64> = rising.into_iter().flatten().collect();
        if total
            .into_iter()
            .chain(rising.first().copied())
            .any(|ns| ns < 0.0)
        {
            found.push(format!("{name}: {part} below 0"));
        }
        if rising
            .windows(2)
            .any(|pair| pair[0] > pair[1] * (1.0 + 1e-6))
        {
            found.push(format!("{name}: {part} has quantiles {rising:?}"));
        }
    }
    let parts = ["busy", "idle", "queued"].map(|part| at(task, &format!("/{part}/total_ns")));
    if let ([Some(busy), Some(idle), Some(queued)], Some(all)) =
        (parts, at(task, "/lifetime/total_ns"))
        && (busy + idle + queued - all).abs() > 1e-6 * all + 2.0
    {
        found.push(format!("{name}: {parts:?} are not {all}"));
    }
    let lives = task["longest"].as_array().into_iter().flatten();
    for life in lives {
        let all = at(life, "/lifetime_ns").unwrap_or(0.0);
        for part in ["busy_ns", "idle_ns", "queued_ns", "longest_queue_ns"] {
            if life[part]
                .as_f64()
                .is_some_and(|ns| ns < 0.0 || ns > all * (1.0 + 1e-6))
            {
                found.push(format!(
                    "{name}: a life of {all} with {part} {}",
                    life[part]
                ));
            }
        }
    }
}

/// Checks that values lie in their intervals, wherever there is an estimate.
fn every_estimate(value: &Value, path: &mut String, found: &mut Vec<String>) {
    if let (Some(v), Some(interval)) = (value["value"].as_f64(), value["interval"].as_array()) {
        let (lo, hi) = (interval[0].as_f64(), interval[1].as_f64());
        let slack = v.abs() * 1e-6;
        if lo.is_some_and(|lo| lo > v + slack) || hi.is_some_and(|hi| hi < v - slack) {
            found.push(format!("{path}: {v} in [{lo:?}, {hi:?}]"));
        }
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let length = path.len();
                path.push('/');
                path.push_str(key);
                every_estimate(value, path, found);
                path.truncate(length);
            }
        }
        Value::Array(list) => list.iter().for_each(|v| every_estimate(v, path, found)),
        _ => {}
    }
}

fn at(value: &Value, pointer: &str) -> Option<f64> {
    value.pointer(pointer).and_then(Value::as_f64)
}

fn of_interval(i: &Value, say: &mut dyn FnMut(String)) {
    for never_negative in [
        "/mean/value",
        "/mean/interval/0",
        "/total_ns",
        "/on_cpu_ns",
        "/off_cpu_ns",
        "/taken_off/time_ns",
        "/compensation/cost/value",
        "/sd",
    ] {
        if at(i, never_negative).is_some_and(|v| v < 0.0) {
            say(format!("{never_negative} below 0"));
        }
    }
    // Near the resolution a quantile may be below 0 by some steps.
    let near = 20.0 * at(i, "/granularity_ns").unwrap().max(1.0);
    let mut last = f64::NEG_INFINITY;
    for quantile in [
        "/median",
        "/quantiles/0.9",
        "/quantiles/0.99",
        "/quantiles/0.999",
    ] {
        let Some(value) = at(i, &format!("{quantile}/value")) else {
            continue;
        };
        let hi = at(i, &format!("{quantile}/interval/1"));
        if value < 0.0 && (value < -near || hi.is_none_or(|hi| hi < 0.0)) {
            say(format!("{quantile} below 0"));
        }
        if value < last - 1e-6 * last.abs() {
            say(format!("{quantile} below the one before"));
        }
        if at(i, "/max").is_some_and(|max| value > max + 1e-6 * max.abs()) {
            say(format!("{quantile} above the greatest"));
        }
        last = value;
    }
    let shares = [
        "/culled/share",
        "/share_of/share/value",
        "/share_of/share/interval/1",
    ];
    for share in shares {
        if at(i, share).is_some_and(|s| !(0.0..=1.0).contains(&s)) {
            say(format!("{share} is no share"));
        }
    }
    let edges: Vec<f64> = (i["histogram"]["edges"].as_array().unwrap().iter())
        .map(|e| e.as_f64().unwrap())
        .collect();
    if edges.windows(2).any(|e| e[0] >= e[1]) {
        say("bins that do not ascend".to_owned());
    }
    for mode in i["modes"].as_array().unwrap() {
        let share = mode["share"].as_f64().unwrap();
        let places = ["lo", "at", "hi"].map(|key| mode[key].as_f64().unwrap());
        if !(0.0..=1.0 + 1e-6).contains(&share) || !places.is_sorted() {
            say(format!("mode {mode}"));
        }
    }
}

/// Returns what is wrong with a text: bounds in the wrong order, times far below 0, shares above a
/// whole.
fn wrong_text(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in text.split('[').skip(1) {
        let Some((inside, _)) = part.split_once(']') else {
            continue;
        };
        let bounds: Vec<f64> = (inside.split(", "))
            .filter_map(|b| b.parse().ok())
            .collect();
        if bounds.len() == 2 && bounds[0] > bounds[1] {
            found.push(format!("[{inside}]"));
        }
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    for pair in words.windows(2) {
        let Ok(number) = pair[0].parse::<f64>() else {
            continue;
        };
        let size = match pair[1].trim_end_matches([',', ';', '.', ')']) {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "%" if !(0.0..=100.0).contains(&number) => {
                found.push(format!("{number} %"));
                continue;
            }
            _ => continue,
        };
        if number * size < -201.0 {
            found.push(format!("{number} {}", pair[1]));
        }
    }
    found
}

/// Returns the text of a page without its tags, script and data.
fn shown(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        text.push(' ');
        let end = match after {
            _ if after.starts_with("script") => "</script>",
            _ if after.starts_with("style") => "</style>",
            _ => ">",
        };
        rest = after.split_once(end).map_or("", |(_, rest)| rest);
    }
    text.replace('\u{a0}', " ").replace("&nbsp;", " ")
}

#[test]
fn none_leaves() {
    none_of(0..DOCUMENTS / 10);
}

#[test]
#[ignore = "long: cargo xtask test --all"]
fn none_of_ten_thousand_leaves() {
    none_of(DOCUMENTS / 10..DOCUMENTS);
}

/// Checks the invented reports of these seeds before and after the gate.
fn none_of(seeds: std::ops::Range<u64>) {
    let (mut refused, documents) = (0, seeds.end - seeds.start);
    for seed in seeds {
        let report = spoilt(seed);
        let before = wrong(&serde_json::to_value(&report).unwrap());
        let gated = without_impossible(report.clone());
        let after = wrong(&serde_json::to_value(&gated).unwrap());
        assert!(after.is_empty(), "document {seed}: {after:?}");
        let json = |report: &Report| serde_json::to_string(report).unwrap();
        let twice = without_impossible(gated.clone());
        assert_eq!(json(&twice), json(&gated), "twice is once: {seed}");
        let notes = |report: &Report| {
            report
                .intervals
                .iter()
                .map(|i| i.notes.len())
                .sum::<usize>()
        };
        refused += usize::from(notes(&gated) > notes(&report));
        if before.iter().any(|w| w.contains("mean/value")) {
            assert!(
                notes(&gated) > notes(&report),
                "{seed}: without a reason: {before:?}"
            );
        }
        // The clocks at the two ends of a message may differ by more than it takes, and what a clock
        // of coarser steps than 10 ns shows of short spans may be that much below 0.
        let may_be_negative = (gated.intervals.iter())
            .filter(|i| i.statistics.min.is_some_and(|min| min < 0.0))
            .any(|i| i.kind == IntervalKind::Message || i.granularity_ns > 10.0)
            // Quantiles of paths are judged by the trace's clock: 20 of its steps.
            || (gated.paths.iter())
                .flat_map(|path| [path.median_ns, path.p99_ns])
                .flatten()
                .any(|ns| ns < 0.0 && ns >= -20.0 * gated.trace.clock.granularity_ns);
        if seed % DRAWN_EVERY == 0 {
            // The report was not filtered before: the renderers do it.
            let options = terminal::Options {
                histograms: 400,
                ..terminal::Options::default()
            };
            for text in [
                terminal::render(&report, options),
                terminal::overview(&report, terminal::Spans::Tree, 100).plain(),
                terminal::overview(&report, terminal::Spans::Flat, 100).plain(),
                shown(&html::render(&report)),
            ] {
                let mut found = wrong_text(&text);
                found.retain(|wrong| !(may_be_negative && wrong.starts_with('-')));
                assert!(found.is_empty(), "document {seed}: {found:?}\n{text}");
            }
        }
    }
    // If all documents were possible, nothing would be tested.
    assert!(refused > documents as usize / 2, "{refused}");
}

/// A possible report stays unchanged, bit by bit.
#[test]
fn possible_reports_stay() {
    for report in [invented::one(), invented::six(), invented::many(300)] {
        assert_eq!(without_impossible(report.clone()), report);
    }
}

/// The rules of this file detect impossible text.
#[test]
fn the_rules_see() {
    for text in ["mean -639 us", "1.4 ms\n[1.7, 1.2]", "share 120 %"] {
        assert_eq!(wrong_text(text).len(), 1, "{text}");
    }
    for text in [
        "-20 ns [-30, 12]",
        "1.7 ms [?, ?]",
        "-> 4.24 ms",
        "100 %",
        "[lo, hi]: 95 %",
    ] {
        assert!(wrong_text(text).is_empty(), "{text}");
    }
    let text = shown("<p>-639 us</p><script>let a = '<-1 s';</script><b>2</b>");
    assert_eq!(wrong_text(&text), ["-639 us"]);
}
