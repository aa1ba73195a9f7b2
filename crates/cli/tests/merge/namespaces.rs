//! Merged traces of two hosts, whose times and figures are compared with the true ones.

use std::path::Path;
use std::time::Duration;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::hosts::{AHEAD_S, Hosts, record, run};
use super::support::{refused, undertick};
use super::{json, manifest, rows};

const TABLE: &str = r#"
[[interval]]
name = "there"
start = "a sends"
end = "b receives"
match = "message"

[[interval]]
name = "back"
start = "b answers"
end = "a has the answer"
match = "message"
"#;

/// In two namespaces of one machine the truth about the clocks is known: b's kernel clock is ahead
/// by the offset of its time namespace.
#[test]
fn the_truth_is_inside_between_namespaces() {
    let hosts = match Hosts::make() {
        Ok(hosts) => hosts,
        Err(why) => {
            println!("skipped: no two hosts can be made of namespaces here: {why}");
            return;
        }
    };
    let slow = format!(
        "ip netns exec utb{0} tc qdisc add dev utb{0} root tbf rate 16mbit burst 3000 latency 20ms",
        hosts.id
    );
    if let Err(why) = run(&slow) {
        println!("skipped: the way from b to a is not slowed: {why}");
    }
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("ping.toml");
    std::fs::write(&table, TABLE).unwrap();
    let table = table.display().to_string();

    // Merges once by exchanges, and once by the program's messages alone.
    let [a, b] = record(&hosts, dir.path(), ["monotonic", "monotonic"], true);
    assert_eq!(manifest(Path::new(&b))["host"]["name"], "b");
    for (name, more) in [("sync.ut", &[][..]), ("table.ut", &["--table", &table])] {
        let out = dir.path().join(name);
        let into = out.display().to_string();
        let found = json(
            "merge",
            &undertick(&[&["merge", &a, &b, "-o", &into, "--json"], more].concat()),
        );
        let map = &found["hosts"][1]["map"];
        assert_eq!(map["is_same_clock"], false, "{found}");
        if more.is_empty() {
            let half_ns = map["half_width_ns_median"].as_f64().unwrap();
            println!("half-width {half_ns:.0} ns at the median");
            assert!(half_ns < 5e6, "{half_ns}");
        } else {
            // The exchanges are used in addition.
            let sources = map["sources"].as_array().unwrap();
            assert!(sources.iter().any(|s| s == table.as_str()), "{sources:?}");
        }
        check(&out, |local| local - AHEAD_S * 1_000_000_000);
    }
    std::fs::remove_dir_all(Path::new(&a).join("sync")).unwrap();
    let alone = dir.path().join("alone.ut");
    let into = alone.display().to_string();
    let found = undertick(&["merge", &a, &b, "-o", &into, "--json", "--table", &table]);
    let messages = json("merge", &found)["hosts"][1]["map"]["messages"][0]
        .as_u64()
        .unwrap();
    assert!(messages > 300, "{messages}");
    check(&alone, |local| local - AHEAD_S * 1_000_000_000);
    let nothing = dir.path().join("nothing.ut").display().to_string();
    let without = undertick(&["merge", &a, &b, "-o", &nothing]);
    refused(
        &without,
        2,
        &["b (", "no messages between", "undertick sync --listen"],
    );

    // The report's figures for the two directions contain the true ones.
    let report = json(
        "report",
        &undertick(&["report", &into, "--table", &table, "--json"]),
    );
    for (interval, first) in report["intervals"].as_array().unwrap().iter().zip([1, 3]) {
        let truth = true_times(&a, &b, first);
        let across = &interval["across_hosts"];
        assert_eq!(across["samples"].as_u64().unwrap(), truth.len() as u64);
        let number = |value: &serde_json::Value| value.as_f64().unwrap();
        let mean = truth.iter().sum::<i64>() as f64 / truth.len() as f64;
        let median = truth[truth.len() / 2] as f64;
        println!(
            "{}: truly {mean:.0} ns, median {median:.0} ns; {across}",
            interval["name"]
        );
        for (figure, truth, width) in [
            ("mean", mean, "half_width_ns_mean"),
            ("median", median, "half_width_ns_max"),
        ] {
            let error = (number(&interval[figure]["value"]) - truth).abs();
            assert!(
                error <= number(&across[width]),
                "{figure}: {error} ns off, {across}"
            );
        }
    }
    drifting(&hosts, dir.path());
}

/// Host a records with its counter, host b with a clock that the kernel steers: they drift, and
/// their ticks differ. Both are also read together, which gives the truth.
fn drifting(hosts: &Hosts, dir: &Path) {
    let Some(truth) = Beside::start() else {
        println!("skipped: no time-stamp counter here that may be used as a clock");
        return;
    };
    for file in ["a.ut", "b.ut"] {
        std::fs::remove_dir_all(dir.join(file)).unwrap();
    }
    let [a, b] = record(hosts, dir, ["tsc", "monotonic"], true);
    let truth = truth.end();
    let out = dir.join("drifting.ut");
    let into = out.display().to_string();
    let found = json(
        "merge",
        &undertick(&["merge", &a, &b, "-o", &into, "--json"]),
    );
    assert_eq!(found["hosts"][0]["clock"]["clock"], "tsc");
    let ahead = AHEAD_S * 1_000_000_000;
    check(&out, |local| interpolated(&truth, local - ahead));
}

/// Reads the steered clock and the counter together, continually.
struct Beside {
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
    reading: std::thread::JoinHandle<Vec<(i64, i64)>>,
}

impl Beside {
    fn start() -> Option<Self> {
        use std::sync::atomic::{AtomicBool, Ordering};
        use undertick_clock::{ClockId, Source};
        let counter = Source::open(ClockId::Tsc).ok()?;
        let steered = Source::open(ClockId::Monotonic).ok()?;
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let ends = std::sync::Arc::clone(&stop);
        let bracket = move || {
            let before = counter.read_ticks_ordered() as i64;
            let between = steered.read_ticks_ordered() as i64;
            let after = counter.read_ticks_ordered() as i64;
            (after - before, (between, before + (after - before) / 2))
        };
        let reading = std::thread::spawn(move || {
            let mut read = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                read.extend((0..100).map(|_| bracket()).min().map(|(_, both)| both));
                std::thread::sleep(Duration::from_millis(20));
            }
            read
        });
        Some(Self { stop, reading })
    }

    fn end(self) -> Vec<(i64, i64)> {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        self.reading.join().unwrap()
    }
}

/// Returns the counter when the steered clock showed `at`, interpolated between readings.
fn interpolated(truth: &[(i64, i64)], at: i64) -> i64 {
    let after = truth.partition_point(|(steered, _)| *steered < at);
    let (a, b) = (truth[after - 1], truth[after]);
    let share = (at - a.0) as f64 / (b.0 - a.0) as f64;
    a.1 + (share * (b.1 - a.1) as f64) as i64
}

/// Asserts that the time of every row of host b is a's reading at that moment, within the
/// half-width.
fn check(out: &Path, truth: impl Fn(i64) -> i64) {
    let manifest = manifest(out);
    let map: undertick_format::manifest::HostMap =
        serde_json::from_value(manifest["hosts"][1]["map"].clone()).unwrap();
    let mut checked = 0;
    for (_, host, ts, local) in rows(out, "events.parquet") {
        if host == 0 {
            assert_eq!(ts, local);
            continue;
        }
        let (mapped, half_width) = map.at(local).unwrap();
        assert_eq!(mapped, ts);
        let error = (ts - truth(local)).abs();
        assert!(
            error <= half_width,
            "{error} ticks off, {half_width} allowed"
        );
        checked += 1;
    }
    assert!(checked > 600, "{checked}");
}

/// Returns the times from one event to the next one of the same number, ns, ascending, by the known
/// clocks; the first event is a's, 1, or b's, 3.
fn true_times(a: &str, b: &str, first: i32) -> Vec<i64> {
    use arrow_array::types::Int32Type;
    let events = |trace: &str, event: i32| {
        let file = std::fs::File::open(Path::new(trace).join("events.parquet")).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let mut found = std::collections::HashMap::new();
        for batch in reader.build().unwrap() {
            let batch = batch.unwrap();
            let column = |name: &str| batch.column_by_name(name).unwrap().clone();
            let (number, ts) = (column("event"), column("ts"));
            let payload = column("payload");
            for i in 0..batch.num_rows() {
                if number.as_primitive::<Int32Type>().value(i) == event {
                    let key = payload.as_primitive::<Int64Type>().value(i);
                    found.insert(key, ts.as_primitive::<Int64Type>().value(i));
                }
            }
        }
        found
    };
    let ahead = AHEAD_S * 1_000_000_000;
    let (from, to, ahead) = match first {
        1 => (events(a, 1), events(b, 2), ahead),
        _ => (events(b, 3), events(a, 4), -ahead),
    };
    let both = from
        .iter()
        .filter_map(|(key, sent)| Some(to.get(key)? - sent - ahead));
    let mut all: Vec<i64> = both.collect();
    all.sort_unstable();
    all
}
