//! The user's defaults.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::{PROGRAM, compile, document, refused, said, undertick};

/// A command of a user with that file of defaults.
fn with(file: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args(words)
        .env("UNDERTICK_CONFIG", file)
        .output()
        .unwrap()
}

fn confidence(output: &Output) -> f64 {
    assert_eq!(said(output).0, 0, "{}", said(output).1);
    document("report", output)["settings"]["confidence"]
        .as_f64()
        .unwrap()
}

#[test]
fn what_the_command_line_leaves_out_is_the_users() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "program", PROGRAM, &[]);
    let trace = dir.path().join("t.ut");
    let (trace, program) = (trace.to_str().unwrap(), program.to_str().unwrap());
    let file = dir.path().join("defaults.toml");
    // An option of one command, a flag, and one for all that have it.
    let text = "confidence = 0.8\nquiet = true\n[record]\nkernel = \"off\"\n[report]\nconfidence = 0.9\nfull = true\n";
    std::fs::write(&file, text).unwrap();
    let recorded = with(
        &file,
        &["record", "--no-calibration", "-o", trace, "--", program],
    );
    assert_eq!(said(&recorded), (0, String::new()), "quiet");
    let manifest = std::fs::read(Path::new(trace).join("manifest.json")).unwrap();
    assert!(document("manifest", &*manifest)["kernel"].is_null(), "off");
    // What is asked for goes before: --json is not for --full, and another level.
    assert_eq!(confidence(&with(&file, &["report", trace, "--json"])), 0.9);
    let asked = ["report", trace, "--json", "--confidence", "0.99"];
    assert_eq!(confidence(&with(&file, &asked)), 0.99);
    let full = said(&with(&file, &["report", trace])).1;
    assert_eq!(
        full,
        said(&undertick(&[
            "report",
            trace,
            "--full",
            "--confidence",
            "0.9"
        ]))
        .1
    );
    let clock = with(
        &file,
        &[
            "slow",
            "plan",
            "--duration",
            "50us",
            "--tick",
            "1ms",
            "--precision",
            "0.1",
            "--json",
        ],
    );
    assert_eq!(document("slow-plan", &clock)["level"], 0.8);
    // The commands without a report have no such option, and no file is none.
    assert_eq!(said(&with(&file, &["schema"])).0, 0);
    assert_eq!(
        confidence(&with(Path::new(""), &["report", trace, "--json"])),
        0.95
    );
}

#[test]
fn what_is_no_default_has_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("defaults.toml");
    let report = ["report", "none.ut"];
    for (text, words) in [
        (
            "\n[report]\nconfidense = 0.9\n",
            [
                "defaults.toml:3: confidense: no such option",
                "undertick report --help",
            ],
        ),
        (
            "[report]\nconfidence = \"much\"\n",
            ["defaults.toml:2: confidence", "much"],
        ),
        (
            "[report]\nconfidence = true\n",
            ["defaults.toml:2: confidence", "takes a value"],
        ),
        ("[report]\nfull = 3\n", ["defaults.toml:2: full", "3"]),
        (
            "[report.html]\n",
            ["defaults.toml:1: html: no such command", "undertick --help"],
        ),
        ("[report\n", ["defaults.toml", "line 1"]),
        (
            "confidence = 2026-01-01\n",
            ["defaults.toml:1: confidence", "give a string"],
        ),
        (
            "confidense = 0.9\n",
            [
                "defaults.toml:1: confidense",
                "no command has such an option",
            ],
        ),
        ("[recrod]\n", ["defaults.toml:1: recrod", "no such command"]),
    ] {
        std::fs::write(&file, text).unwrap();
        refused(&with(&file, &report), 2, &words);
    }
    let missing = with(&dir.path().join("missing.toml"), &report);
    refused(
        &missing,
        2,
        &["missing.toml", "No such file", "UNDERTICK_CONFIG="],
    );
    // Help and what no shown command is do without.
    std::fs::write(&file, "[report]\nconfidense = 0.9\n").unwrap();
    assert_eq!(said(&with(&file, &["report", "--help"])).0, 0);
}
