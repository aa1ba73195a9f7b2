//! `undertick sync` on one machine, where the truth about its clocks is known.

use crate::support;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use support::{document, refused, said, undertick};

/// `undertick sync --listen` on a free port of this host, with one of its clocks.
struct Listening {
    child: Child,
    address: String,
}

impl Listening {
    fn with(clock: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_undertick"))
            .args(["sync", "--listen", "127.0.0.1:0", "--for", "60s", "--json"])
            .env("UNDERTICK_CLOCK", clock)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        told.read_line(&mut line).unwrap();
        let address = line
            .split(" at ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, address }
    }

    /// Ends it; returns its document.
    fn end(mut self) -> serde_json::Value {
        // SAFETY: a signal to a child of this process that was not waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGINT) };
        let mut text = Vec::new();
        let mut printed = self.child.stdout.take().unwrap();
        printed.read_to_end(&mut text).unwrap();
        document("sync-listen", &*text)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ask(clock: &str, arguments: &[&str]) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args(["sync", "--json", "--for", "700ms", "--every", "3ms"])
        .args(arguments)
        .env("UNDERTICK_CLOCK", clock)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output).1);
    document("sync", &output)
}

fn read_ns(clock: libc::clockid_t) -> i64 {
    // SAFETY: a timespec of zeros is a valid one, and the call writes it.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        assert_eq!(libc::clock_gettime(clock, &mut time), 0);
        time
    };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Returns the second clock less the first, by the narrowest of many brackets.
fn offset_ns(first: libc::clockid_t, second: libc::clockid_t) -> (i64, i64) {
    let bracket = || {
        let (before, between, after) = (read_ns(first), read_ns(second), read_ns(first));
        (between - after, between - before)
    };
    (0..1000)
        .map(|_| bracket())
        .min_by_key(|(lo, hi)| hi - lo)
        .unwrap()
}

#[test]
fn a_clock_compared_with_itself_is_at_0() {
    let listening = Listening::with("monotonic_raw");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("exchanges.json");
    let file = file.to_str().unwrap();
    let found = ask("monotonic_raw", &[&listening.address, "-o", file]);
    assert_eq!(found["is_one_clock"], true, "{found}");
    assert_eq!(found["here"], found["there"]);
    let number = |key: &str| found[key].as_f64().unwrap();
    assert!(
        number("offset_ns").abs() <= number("half_width_ns"),
        "{found}"
    );
    assert!(
        number("rate_ppm").abs() <= number("rate_half_width_ppm"),
        "{found}"
    );
    let kept: serde_json::Value = document("exchanges", &*std::fs::read(file).unwrap());
    let exchanges = kept["exchanges"].as_array().unwrap();
    assert_eq!(exchanges.len() as f64, number("answered"));
    assert!(exchanges.len() > 30, "{}", exchanges.len());
    let ascends = |stamps: &serde_json::Value| {
        (stamps.as_array().unwrap().iter())
            .map(|s| s.as_i64().unwrap())
            .is_sorted()
    };
    assert!(exchanges.iter().all(ascends));
    // No method can have less than half of the shortest delays in both directions, which need not
    // come from one exchange.
    let shortest = |from: usize| {
        let ways = exchanges
            .iter()
            .map(|s| s[from + 1].as_i64().unwrap() - s[from].as_i64().unwrap());
        ways.min().unwrap() as f64
    };
    assert!(
        number("half_width_ns") >= (shortest(0) + shortest(2)) / 2.0,
        "{found}"
    );
    // The same as text.
    let output = Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args(["sync", &listening.address, "--for", "200ms"])
        .env("UNDERTICK_CLOCK", "monotonic_raw")
        .output()
        .unwrap();
    let (code, text) = said(&output);
    assert_eq!(code, 0, "{text}");
    for word in [
        "questions answered",
        "both are one clock",
        "not kept: give -o FILE",
    ] {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

/// Two clocks of the kernel that differ: their difference is read directly, before and after.
#[test]
fn the_difference_of_two_clocks_is_within_the_bounds() {
    let (raw, steered) = (libc::CLOCK_MONOTONIC_RAW, libc::CLOCK_MONOTONIC);
    let listening = Listening::with("monotonic");
    let before = offset_ns(raw, steered);
    let found = ask("monotonic_raw", &[&listening.address]);
    let after = offset_ns(raw, steered);
    assert_eq!(found["is_one_clock"], false, "{found}");
    assert_eq!(found["there"]["clock"]["clock"], "monotonic");
    let (offset, half) = (
        found["offset_ns"].as_i64().unwrap(),
        found["half_width_ns"].as_f64().unwrap() as i64,
    );
    let (lo, hi) = (before.0.min(after.0), before.1.max(after.1));
    println!("truth in {lo}..{hi} ns, found {offset} within {half} ns");
    assert!(offset - half <= hi && offset + half >= lo);
    let ended = listening.end();
    assert!(ended["answered"].as_u64().unwrap() >= found["answered"].as_u64().unwrap());
    assert_eq!(ended["strange"], 0);
}

#[test]
fn ctrl_c_keeps_the_exchanges_so_far() {
    let listening = Listening::with("monotonic_raw");
    let dir = tempfile::tempdir().unwrap();
    let answered_within = |ms: u64| {
        let file = dir.path().join(format!("exchanges-{ms}.json"));
        let child = Command::new(env!("CARGO_BIN_EXE_undertick"))
            .args(["sync", &listening.address, "--for", "60s", "--json", "-o"])
            .arg(&file)
            .env("UNDERTICK_CLOCK", "monotonic_raw")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(ms));
        // SAFETY: a signal to a child of this process that was not waited for.
        unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output).1);
        assert!(file.exists());
        let found: serde_json::Value = document("sync", &output);
        found["answered"].as_u64().unwrap()
    };
    // A busy machine answers less often.
    assert!(
        [1_500, 6_000, 24_000]
            .into_iter()
            .any(|ms| answered_within(ms) > 5)
    );
}

#[test]
fn what_cannot_be_asked_is_refused_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = dir.path().join("no.ut");
    let nowhere = nowhere.to_str().unwrap();
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    let taken = undertick(&["sync", "--listen", &address]);
    refused(&taken, 1, &[&address, "this port is taken"]);
    drop(free);
    refused(
        &undertick(&["sync", &address]),
        1,
        &[&address, "nobody listens", "--listen"],
    );
    refused(
        &undertick(&["sync", "no such host"]),
        2,
        &["no such host: give HOST"],
    );
    refused(
        &undertick(&["sync", &address, "--into", nowhere]),
        2,
        &["no.ut", "no trace"],
    );
    refused(&undertick(&["sync"]), 2, &["HOST"]);
    let both = undertick(&["sync", &address, "--listen", "127.0.0.1:0"]);
    refused(&both, 2, &["cannot be used with"]);
    refused(
        &undertick(&["sync", &address, "--every", "5"]),
        2,
        &["a time has a unit"],
    );
}
