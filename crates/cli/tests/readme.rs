//! The README's tutorial, as a newcomer would follow it.

use crate::support;

use std::fs;
use std::path::Path;

use support::{compile, said, undertick};

fn block(language: &str) -> String {
    let readme =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let start = format!("```{language}\n");
    let after = readme
        .split(&start)
        .nth(1)
        .unwrap_or_else(|| panic!("no {language} block"));
    after.split("```").next().unwrap().to_owned()
}

#[test]
fn the_c_tutorial_works_as_printed() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "program", &block("c"), &["-Wno-unused-result"]);
    let trace = dir.path().join("program.ut");
    let trace = trace.to_str().unwrap();
    let (code, text) = said(&undertick(&[
        "record",
        "-o",
        trace,
        "--",
        program.to_str().unwrap(),
    ]));
    assert_eq!(code, 0, "{text}");
    let (code, text) = said(&undertick(&["report", trace]));
    assert_eq!(code, 0, "{text}");
    for name in ["request", "write", "read"] {
        assert!(
            text.lines().any(|line| line
                .trim_start_matches(['|', '`', '-', ' '])
                .starts_with(name)),
            "no {name} in:\n{text}"
        );
    }
}

#[test]
fn the_table_of_the_tutorial_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(
        dir.path(),
        "queue",
        "#include \"undertick.h\"\nint main(void) { ut_name(1, \"enqueue\"); ut_name(2, \"reply\"); ut_name(3, \"request\");\n\
         for (uint32_t i = 0; i < 100; i++) { ut_event(3, i); ut_event(1, i); ut_event(2, i); } return 0; }\n",
        &[],
    );
    let trace = dir.path().join("queue.ut");
    let trace = trace.to_str().unwrap();
    let recorded = undertick(&[
        "record",
        "--no-calibration",
        "-o",
        trace,
        "--",
        program.to_str().unwrap(),
    ]);
    assert_eq!(said(&recorded).0, 0);
    let table = dir.path().join("table.toml");
    // The second toml block is the table; the first is a Cargo.toml.
    let readme =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let text = readme
        .split("```toml\n")
        .nth(2)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    fs::write(&table, text).unwrap();
    let output = undertick(&[
        "report",
        trace,
        "--table",
        table.to_str().unwrap(),
        "--json",
    ]);
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output).1));
    assert_eq!(report["intervals"][0]["name"], "queue to reply");
    let interval = &report["intervals"][0];
    assert_eq!(
        interval["count"].as_u64().unwrap() + interval["culled"]["count"].as_u64().unwrap(),
        100
    );
    assert_eq!(report["frequencies"][0]["count"], 100);
}
