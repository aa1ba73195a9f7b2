//! Unfinished traces: what a reader does with them, who may finish them, and what is never lost. A
//! recorder is this file in a separate process.

mod broken;
#[path = "../common/mod.rs"]
mod common;
mod limits;
mod received;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::flight::{Cells, STOP};
use common::recorders::{Recorders, act_as_recorder, raw_bytes, wait_until};
use undertick_format::manifest::Manifest;
use undertick_format::read::read_manifest;
use undertick_record::Overflow;

const MIB: u64 = 1 << 20;

/// Not a test: a recorder.
#[test]
fn recorder() {
    act_as_recorder();
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-r").arg(from).arg(to).status();
    assert!(status.unwrap().success());
}

fn change_manifest(trace: &Path, change: impl FnOnce(&mut Manifest)) {
    let mut manifest = read_manifest(trace).unwrap();
    change(&mut manifest);
    let text = serde_json::to_vec(&manifest).unwrap();
    fs::write(trace.join("manifest.json"), text).unwrap();
}

/// Makes a recording whose recorder was killed and whose program has ended.
fn killed(dir: &Path, cells: &Cells, name: &str) -> (PathBuf, Recorders) {
    let trace = dir.join(name);
    let recorders = Recorders::new(trace.clone(), Overflow::Grow, MIB, 64 * MIB);
    let recorder = recorders.start("record", &cells.command(&["write", "2", "500", "1000"]));
    wait_until(|| raw_bytes(&trace) > 0);
    recorder.kill();
    end(cells);
    (trace, recorders)
}

/// Ends the program of a recording, and waits for its end.
fn end(cells: &Cells) {
    cells.store(STOP, 1);
    wait_until(|| cells.load(common::flight::PID) != 0);
    let pid = cells.load(common::flight::PID);
    wait_until(|| !Path::new(&format!("/proc/{pid}/task")).exists());
}
