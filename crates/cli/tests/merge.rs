//! `undertick merge`: two recordings of this host, and two hosts made of network, time and
//! host-name namespaces, whose clocks differ by a known offset.

mod support;

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int8Type, Int16Type, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use support::{compile, refused, said, undertick};

/// Returns the rows of a file of a merged trace: mode, host, ts, ts_local.
fn rows(trace: &Path, file: &str) -> Vec<(i8, i16, i64, i64)> {
    let file = std::fs::File::open(trace.join(file)).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let mut rows = Vec::new();
    for batch in reader.build().unwrap() {
        let batch = batch.unwrap();
        let column = |name: &str| batch.column_by_name(name).unwrap().clone();
        let (mode, host) = (column("mode"), column("host"));
        let (ts, local) = (column("ts"), column("ts_local"));
        for i in 0..batch.num_rows() {
            rows.push((
                mode.as_primitive::<Int8Type>().value(i),
                host.as_primitive::<Int16Type>().value(i),
                ts.as_primitive::<Int64Type>().value(i),
                local.as_primitive::<Int64Type>().value(i),
            ));
        }
    }
    rows
}

fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", said(output).1);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn manifest(trace: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(trace.join("manifest.json")).unwrap()).unwrap()
}

/// Two recordings of one boot have one clock: a message says that no map is needed.
#[test]
fn two_recordings_of_one_boot_need_no_map() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let first = support::trace(dir.path());
    std::fs::rename(&first, at("a.ut")).unwrap();
    let program = compile(
        dir.path(),
        "other",
        "#include \"undertick.h\"\n#include <unistd.h>\nint main(void) { ut_name(1, \"other\");\n\
         for (uint32_t i = 0; i < 300; i++) { ut_begin(1); if (i % 50 == 0) usleep(100); ut_end(1); } return 0; }\n",
        &[],
    );
    let recorded = undertick(&[
        "record",
        "-o",
        at("b.ut").to_str().unwrap(),
        "--",
        program.to_str().unwrap(),
    ]);
    assert_eq!(recorded.status.code(), Some(0), "{}", said(&recorded).1);
    let out = at("both.ut");
    let [a, b, both] = [at("a.ut"), at("b.ut"), out.clone()].map(|p| p.display().to_string());
    let (code, text) = said(&undertick(&["merge", &a, &b, "-o", &both]));
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("same boot and same clock as host 0: no map is needed"),
        "{text}"
    );
    // No row moved or is missing, and rows of the kernel are in order of time.
    let events = rows(&out, "events.parquet");
    assert!(
        events
            .iter()
            .all(|(mode, _, ts, local)| *mode == 0 && ts == local)
    );
    let told = |trace: &Path| manifest(trace)["events"].as_u64().unwrap() as usize;
    assert_eq!(told(&out), told(&at("a.ut")) + told(&at("b.ut")));
    let of_host = |host: i16| events.iter().filter(|row| row.1 == host).count();
    assert_eq!(
        (of_host(0), of_host(1)),
        (told(&at("a.ut")), told(&at("b.ut")))
    );
    if out.join("kernel.parquet").exists() {
        let kernel = rows(&out, "kernel.parquet");
        assert!(kernel.iter().all(|row| row.0 == 1));
        assert!(kernel.is_sorted_by_key(|row| row.2));
        println!("{} rows of the kernel", kernel.len());
    } else {
        println!("skipped: no kernel events here");
    }
    // The names stay separate: event 1 has a different name in each.
    let report = json(&undertick(&["report", &both, "--json"]));
    let count = |name: &str| {
        let intervals = report["intervals"].as_array().unwrap();
        let of = intervals.iter().find(|i| i["name"] == name);
        of.unwrap_or_else(|| panic!("no {name}"))["count"]
            .as_u64()
            .unwrap()
            + of.unwrap()["culled"]["count"].as_u64().unwrap()
    };
    assert_eq!((count("request, \"quoted\""), count("other")), (1000, 300));
    // All commands that read a trace read this one.
    for format in ["csv", "perfetto", "parquet"] {
        let file = at(format).display().to_string();
        let exported = undertick(&["export", &both, "--to", format, &file]);
        assert_eq!(exported.status.code(), Some(0), "{}", said(&exported).1);
    }
    refused(
        &undertick(&["merge", &a, &b, "-o", &both]),
        2,
        &["exists already"],
    );
    refused(
        &undertick(&["merge", &a, "-o", &both]),
        2,
        &["2 values required"],
    );
    let again = undertick(&["merge", &a, &a, "-o", at("x.ut").to_str().unwrap()]);
    refused(&again, 2, &["given twice"]);
    let none = undertick(&[
        "merge",
        &a,
        "nowhere.ut",
        "-o",
        at("x.ut").to_str().unwrap(),
    ]);
    refused(&none, 2, &["nowhere.ut"]);
}

/// Sends numbers and receives the answers, or answers. Each end is an event with the number.
const PING: &str = r#"
#include "undertick.h"
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int answers = argc == 2;
    uint32_t n = 0, i = 0, last = answers ? 0 : (uint32_t)atoi(argv[2]);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7777)};
    struct timeval wait = {answers ? 20 : 0, answers ? 0 : 300000};
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    inet_pton(AF_INET, argv[1], &at.sin_addr);
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    ut_name(answers ? 2 : 1, answers ? "b receives" : "a sends");
    ut_name(answers ? 3 : 4, answers ? "b answers" : "a has the answer");
    if (answers) {
        if (bind(s, (struct sockaddr *)&at, sizeof at)) return 3;
        for (;;) {
            socklen_t size = sizeof at;
            if (recvfrom(s, &n, sizeof n, 0, (struct sockaddr *)&at, &size) != sizeof n) return 4;
            if (n == UINT32_MAX) return 0;
            ut_event(2, n);
            ut_event(3, n);
            if (sendto(s, &n, sizeof n, 0, (struct sockaddr *)&at, size) < 0) return 5;
        }
    }
    if (connect(s, (struct sockaddr *)&at, sizeof at)) return 6;
    for (i = 0; i < last; i++) {
        ut_event(1, i);
        if (send(s, &i, sizeof i, 0) < 0) { usleep(100000); continue; }
        if (recv(s, &n, sizeof n, 0) == sizeof n) ut_event(4, n);
        usleep(3000);
    }
    n = UINT32_MAX;
    return send(s, &n, sizeof n, 0) < 0;
}
"#;

/// Fills the link from b to a with unwanted packets: 4 Mbit/s in bursts.
const FLOOD: &str = r#"
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv) {
    static char bytes[1000];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(9)};
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    if (argc != 2) return 2;
    inet_pton(AF_INET, argv[1], &at.sin_addr);
    for (int i = 0; i < 20000; i++) {
        if (i % 8 == 0) usleep(16000);
        (void)!sendto(s, bytes, sizeof bytes, 0, (struct sockaddr *)&at, sizeof at);
    }
    return 0;
}
"#;

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

/// Clocks of the kernel on host b are ahead by this.
const AHEAD_S: i64 = 123_456;

fn run(command: &str) -> Result<(), String> {
    let words: Vec<&str> = command.split(' ').collect();
    let output = Command::new(words[0]).args(&words[1..]).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("`{command}`: {}", said(&output).1.trim())),
        Err(why) => Err(format!("`{command}`: {why}")),
    }
}

/// Two hosts with a wire between them: namespaces of this host.
struct Hosts {
    id: u32,
}

impl Hosts {
    /// Makes them, or returns the reason why not.
    fn make() -> Result<Self, String> {
        let id = std::process::id() % 100_000;
        let hosts = Self { id };
        run(&format!("ip netns add uta{id}"))?;
        run(&format!("ip netns add utb{id}"))?;
        run(&format!(
            "ip link add uta{id} netns uta{id} type veth peer name utb{id} netns utb{id}"
        ))?;
        for (host, number) in [("a", 1), ("b", 2)] {
            let (name, on) = (format!("ut{host}{id}"), format!("ip -n ut{host}{id}"));
            run(&format!("{on} addr add 10.203.7.{number}/24 dev {name}"))?;
            run(&format!("{on} link set {name} up"))?;
            run(&format!("{on} link set lo up"))?;
        }
        run("unshare --time --monotonic 1 --boottime 1 --uts --fork true")?;
        Ok(hosts)
    }

    /// Returns a command on host a, or on b, whose kernel clocks are ahead.
    fn on(&self, host: &str, clock: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("ut{host}{}", self.id)]);
        command.args(["unshare", "--uts"]);
        if host == "b" {
            let ahead = AHEAD_S.to_string();
            command.args(["--time", "--monotonic", &ahead, "--boottime", &ahead]);
        }
        command.args(["--fork", "--kill-child", "sh", "-c"]);
        command.arg(format!("hostname {host} && exec \"$@\""));
        command.args(["sh"]);
        command.env("UNDERTICK_CLOCK", clock);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in ["a", "b"] {
            let _ = run(&format!("ip netns del ut{host}{}", self.id));
        }
    }
}

/// A process that is ended when the value is dropped.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Both hosts record while one sends probes to the other; the link from b to a is slow and full.
/// Returns the traces.
fn record(hosts: &Hosts, dir: &Path, clocks: [&str; 2], with_sync: bool) -> [String; 2] {
    let program = compile(dir, "ping", PING, &["-Wno-unused-parameter"]);
    let flood = compile(dir, "flood", FLOOD, &[]);
    let [a, b] = ["a.ut", "b.ut"].map(|name| dir.join(name).display().to_string());
    let tool = env!("CARGO_BIN_EXE_undertick");
    let _flood = Ends(
        hosts
            .on("b", clocks[1])
            .arg(&flood)
            .arg("10.203.7.1")
            .spawn()
            .unwrap(),
    );
    let recording = ["record", "--no-calibration", "--kernel", "off", "-o"];
    let mut answering = hosts.on("b", clocks[1]);
    answering
        .arg(tool)
        .args(recording)
        .args([&b, "--"])
        .arg(&program)
        .arg("10.203.7.2");
    let answering = answering.spawn().unwrap();
    let mut listening = hosts.on("b", clocks[1]);
    listening.args([tool, "sync", "--listen", "10.203.7.2:7367", "--for", "60s"]);
    let _listening = Ends(listening.spawn().unwrap());
    std::thread::sleep(Duration::from_millis(1200)); // until both listen
    let mut asking = hosts.on("a", clocks[0]);
    asking
        .arg(tool)
        .args(recording)
        .args([&a, "--"])
        .arg(&program)
        .args(["10.203.7.2", "400"]);
    let asking = asking.spawn().unwrap();
    if with_sync {
        while !Path::new(&a).join("manifest.json").exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut sync = hosts.on("a", clocks[0]);
        sync.args([
            tool,
            "sync",
            "10.203.7.2",
            "--for",
            "2s",
            "--every",
            "5ms",
            "--into",
            &a,
        ]);
        let output = sync.output().unwrap();
        assert!(output.status.success(), "{}", said(&output).1);
    }
    for child in [asking, answering] {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output).1);
    }
    [a, b]
}

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
        let found = json(&undertick(
            &[&["merge", &a, &b, "-o", &into, "--json"], more].concat(),
        ));
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
    let messages = json(&found)["hosts"][1]["map"]["messages"][0]
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
    let report = json(&undertick(&["report", &into, "--table", &table, "--json"]));
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
    let found = json(&undertick(&["merge", &a, &b, "-o", &into, "--json"]));
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
