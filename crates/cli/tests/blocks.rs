//! Large recordings, whose events stay in raw blocks.

use crate::support;

use std::hash::{DefaultHasher, Hasher as _};
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;
use support::{compile, document, refused, said, undertick};

/// Two threads, 2 x 3 million events: spans with a payload inside, and 64-bit values now and then.
const PROGRAM: &str = r#"
#include "undertick.h"
#include <pthread.h>
static void *work(void *of) {
    uint32_t i, first = of ? 1u << 20 : 0;
    for (i = 0; i < 1000000; i++) {
        ut_begin(1);
        ut_event(2, first + i * 2654435761u % 65536);
        if (i % 1000 == 0) ut_event64(3, (uint64_t)i << 33);
        ut_end(1);
    }
    return of;
}
int main(void) {
    pthread_t other;
    ut_name(1, "step");
    pthread_create(&other, 0, work, "other");
    work(0);
    return pthread_join(other, 0);
}
"#;
const EVENTS: u64 = 2 * (3 * 1_000_000 + 1_000);

fn recorded(dir: &Path, name: &str, more: &[&str]) -> String {
    let program = compile(dir, "program", PROGRAM, &[]);
    let trace = dir.join(name).to_str().unwrap().to_owned();
    let words = [
        "record",
        "--overflow",
        "block",
        "--kernel",
        "off",
        "--no-calibration",
    ];
    let words = [
        &words,
        more,
        &["-o", &trace, "--", program.to_str().unwrap()],
    ]
    .concat();
    let (status, text) = said(&undertick(&words));
    assert_eq!(status, 0, "{text}");
    trace
}

fn parts(trace: &str) -> Vec<Value> {
    let manifest = std::fs::read(Path::new(trace).join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["events"], EVENTS);
    assert_eq!(manifest["lost"], 0);
    manifest["parts"].as_array().unwrap().clone()
}

fn report(trace: &str) -> Value {
    let mut report = document("report", &undertick(&["report", trace, "--json"]));
    report["trace"]["path"].take();
    report
}

/// Lines of the trace as CSV, and a hash of them: the file has 400 MB.
fn exported(trace: &str) -> (u64, u64) {
    let out = Path::new(trace).with_extension("csv");
    let (status, text) = said(&undertick(&[
        "export",
        trace,
        "--to",
        "csv",
        out.to_str().unwrap(),
    ]));
    assert_eq!(status, 0, "{text}");
    let (mut lines, mut hash) = (0, DefaultHasher::new());
    let mut file = std::fs::File::open(&out).unwrap();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut buffer).unwrap();
        if read == 0 {
            break;
        }
        lines += buffer[..read].iter().filter(|&&byte| byte == b'\n').count() as u64;
        hash.write(&buffer[..read]);
    }
    std::fs::remove_file(out).unwrap();
    (lines, hash.finish())
}

/// A large trace stays as raw blocks. Its rows and its report are the same after `--finish` has turned
/// them into Parquet; a changed byte is found, and a second `--finish` is refused.
#[test]
fn a_large_recording_stays_as_raw_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let trace = recorded(dir.path(), "large.ut", &[]);
    let blocks = parts(&trace);
    assert_eq!(blocks.len(), 1);
    assert_eq!(blocks[0]["file"], "raw.utb");
    assert_eq!(blocks[0]["rows"], EVENTS);
    let (found, rows) = (report(&trace), exported(&trace));
    assert_eq!(rows.0, EVENTS + 1);
    let step = found["intervals"].as_array().unwrap().iter();
    let step = step.filter(|interval| interval["name"] == "step");
    let steps = step
        .map(|step| step["count"].as_u64().unwrap() + step["culled"]["count"].as_u64().unwrap());
    assert_eq!(steps.sum::<u64>(), 2_000_000);

    let damaged = dir.path().join("damaged.ut");
    std::fs::create_dir(&damaged).unwrap();
    for name in ["manifest.json", "raw.utb"] {
        std::fs::copy(Path::new(&trace).join(name), damaged.join(name)).unwrap();
    }
    let file = damaged.join("raw.utb");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let damaged = damaged.to_str().unwrap();
    refused(&undertick(&["report", damaged]), 2, &["raw.utb", "restore"]);
    refused(
        &undertick(&["record", "--finish", damaged]),
        2,
        &["raw.utb", "restore"],
    );
    assert!(!Path::new(damaged).join("events.parquet").exists());

    let (status, text) = said(&undertick(&["record", "--finish", &trace]));
    assert_eq!(status, 0, "{text}");
    let parquet = parts(&trace);
    assert_eq!(parquet.len(), 1);
    assert_eq!(parquet[0]["file"], "events.parquet");
    assert_eq!(parquet[0]["rows"], EVENTS);
    assert!(!Path::new(&trace).join("raw.utb").exists());
    assert_eq!(exported(&trace), rows, "other rows than before");
    assert_eq!(report(&trace), found);
    refused(
        &undertick(&["record", "--finish", &trace]),
        2,
        &["finished"],
    );
}

/// With `--parquet` it is Parquet from the beginning.
#[test]
fn parquet_option_encodes_a_large_recording() {
    let dir = tempfile::tempdir().unwrap();
    let trace = recorded(dir.path(), "large.ut", &["--parquet"]);
    let parts = parts(&trace);
    assert_eq!(parts[0]["file"], "events.parquet");
    assert!(!Path::new(&trace).join("raw.utb").exists());
}
