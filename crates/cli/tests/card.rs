//! The event card on the command line: a stream written by hand, from a file and from a pipe.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The card's record (10 MHz, ten periods a tick), then `spans` of master 2 that last 5 us each.
fn stream(spans: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut record = |ts: u64, payload: u32, event: u16, last: u16| {
        bytes.extend(ts.to_le_bytes());
        bytes.extend(payload.to_le_bytes());
        bytes.extend(event.to_le_bytes());
        bytes.extend(last.to_le_bytes());
    };
    record(10 << 32 | 10_000_000, 4, 1, 8 | 7 << 11 | 2 << 14);
    for i in 0..spans {
        record(100 * i, 0, 1, 2 | 1 << 11 | 2 << 14);
        record(100 * i + 5, 0, 1, 2 | 2 << 11 | 2 << 14);
    }
    bytes
}

fn undertick(words: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_undertick"));
    command.args(words).current_dir(dir);
    command
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_stream_becomes_a_trace_that_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("s.bin"), stream(200)).unwrap();
    std::fs::write(dir.join("names.toml"), "[names]\n1 = \"lock\"\n").unwrap();
    let import = [
        "import",
        "--from",
        "card",
        "--events",
        "names.toml",
        "s.bin",
        "-o",
        "t.ut",
        "--json",
    ];
    let told = said(&undertick(&import, dir).output().unwrap());
    let told: serde_json::Value = crate::support::document("import", told.as_bytes());
    assert_eq!(
        (told["events"].as_u64(), told["lost"].as_u64()),
        (Some(400), Some(0))
    );
    let report = said(
        &undertick(&["report", "t.ut", "--json"], dir)
            .output()
            .unwrap(),
    );
    let report: serde_json::Value = crate::support::document("report", report.as_bytes());
    let lock = &report["intervals"][0];
    assert_eq!(lock["name"], "lock");
    assert_eq!(
        (lock["count"].as_u64(), lock["mean"]["value"].as_f64()),
        (Some(200), Some(5000.0))
    );
    // Options of the card are refused for other files.
    let other = [
        "import",
        "--from",
        "chrome",
        "--ticks-per-second",
        "5",
        "s.bin",
        "-o",
        "u.ut",
    ];
    let refused = undertick(&other, dir).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--from card"));
}

#[test]
fn a_pipe_is_recorded_until_a_signal() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let fifo = dir.join("card");
    if !Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .is_ok_and(|made| made.success())
    {
        println!("skipped: no mkfifo here");
        return;
    }
    let mut recorder = undertick(&["record", "--card", "card", "-o", "t.ut"], dir)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Opening waits for the recorder. A signal may end it before it has read all of the pipe; the
    // trace has whole records in either case.
    let mut pipe = std::fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    pipe.write_all(&stream(100_000)).unwrap();
    let killed = Command::new("kill")
        .args(["-INT", &recorder.id().to_string()])
        .status();
    assert!(killed.unwrap().success());
    let status = recorder.wait().unwrap();
    assert!(status.success(), "{status:?}");
    let report = said(
        &undertick(&["report", "t.ut", "--json"], dir)
            .output()
            .unwrap(),
    );
    let report: serde_json::Value = crate::support::document("report", report.as_bytes());
    let events = report["trace"]["events"].as_u64().unwrap();
    // When the signal came, all but the contents of a full pipe and two buffers had been read.
    assert!((190_000..=200_000).contains(&events), "{events}");
    drop(pipe);
}
