//! Text that people, programs and other machines write: manifests, tables, names.

use std::sync::OnceLock;

use undertick_analyze::{Options, Table, analyze};
use undertick_format::read::Trace;

/// Reads a manifest beside the events of a recording, and makes a report where possible.
pub fn manifest(bytes: &[u8]) {
    const EVENTS: &[u8] = include_bytes!("../seeds/events.parquet");
    static DIR: OnceLock<tempfile::TempDir> = OnceLock::new();
    let dir = DIR.get_or_init(|| {
        let dir = tempfile::tempdir_in(super::imports::memory()).expect("a directory");
        std::fs::write(dir.path().join("events.parquet"), EVENTS).expect("room for a file");
        dir
    });
    std::fs::write(dir.path().join("manifest.json"), bytes).expect("room for a file");
    let _ = std::fs::write(dir.path().join("raw.utb"), b"");
    if let Ok(trace) = Trace::open(dir.path())
        && let Ok(report) = analyze(&trace, Options::default(), &mut |_| {})
    {
        let text = serde_json::to_string(&report).expect("numbers that JSON has");
        assert!(!text.contains(":NaN") && !text.contains(":inf"));
    }
    // Restores the events after a manifest in the state "recording" was finished.
    if !dir.path().join("raw.utb").exists() {
        std::fs::write(dir.path().join("events.parquet"), EVENTS).expect("room for a file");
    }
}

pub fn table(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err(error) = Table::parse(&text, "t.toml") {
        assert!(error.to_string().contains("t.toml"));
    }
}

pub fn names(bytes: &[u8]) {
    let found = undertick_record::names::parse(bytes);
    let n = found.events.len() + found.threads.len() + found.locks.len();
    assert!(16 * n <= bytes.len());
}
