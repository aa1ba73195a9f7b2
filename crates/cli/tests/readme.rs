//! The README's tutorial, as a newcomer would follow it, and the screen of the demo that it shows.

use crate::support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use support::{compile, said, undertick};

/// Writes the screen of this run's demo into the README.
const WRITE: &str = "UNDERTICK_WRITE_README";

fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

/// The first block of that language in a document.
fn block(name: &str, language: &str) -> String {
    let text = fs::read_to_string(document(name)).unwrap();
    let start = format!("```{language}\n");
    let after = text
        .split(&start)
        .nth(1)
        .unwrap_or_else(|| panic!("no {language} block in {name}"));
    after.split("```").next().unwrap().to_owned()
}

/// What the README shows of a first screen: the table, and what dominates.
fn shown(screen: &str) -> String {
    let (table, rest) = screen.split_once("\n\n\"").unwrap_or((screen, ""));
    let first = rest.lines().next().unwrap_or_default();
    let rows: Vec<&str> = table.lines().filter(is_row).collect();
    format!("{}\n\n\"{first}\n", rows.join("\n"))
}

/// Whether a line above the findings is a row of the table, or above it.
fn is_row(line: &&str) -> bool {
    !line.starts_with("...") && !line.starts_with("events:")
}

/// The names in the table of a screen, without the number of a role's threads.
fn names(screen: &str) -> BTreeSet<String> {
    let lines = screen.lines().skip_while(|line| !line.starts_with("span "));
    let rows = lines
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(is_row);
    rows.map(|line| line.trim_start_matches(['|', '`', '-', ' ']))
        .filter_map(|line| line.split("  ").next()?.split(" (").next())
        .map(str::to_owned)
        .collect()
}

/// The README's screen is one of another run: its figures differ, and which rows are too short to be
/// shown. What has a row there is a path of this run's report, and it begins with the same words.
pub fn has_the_screen(screen: &str, report: &serde_json::Value) {
    if std::env::var_os(WRITE).is_some() {
        let text = fs::read_to_string(document("README.md")).unwrap();
        assert!(screen.contains("\" takes most:"), "{screen}");
        let written = text.replace(&block("README.md", "text"), &shown(screen));
        fs::write(document("README.md"), written).unwrap();
    }
    let readme = block("README.md", "text");
    let hint = format!("{WRITE}=1 writes this one there:\n{screen}");
    let paths: BTreeSet<String> = (report["paths"].as_array().unwrap().iter())
        .map(|path| path["name"].as_str().unwrap().to_owned())
        .collect();
    for of in [&readme, screen] {
        assert!(names(of).len() > 6, "{of}");
        assert!(names(of).is_subset(&paths), "{paths:?}\n{hint}");
    }
    let words = |screen: &str| -> Vec<String> {
        let line = screen.lines().next().unwrap_or_default();
        // What follows depends on the machine: the clock, and whether events were lost.
        let line = line.split(" events").next().unwrap_or_default();
        line.split(|c: char| !c.is_ascii_lowercase())
            .filter(|word| word.len() > 1)
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(words(&readme), words(screen), "{hint}");
}

#[test]
fn the_c_tutorial_works_as_printed() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(
        dir.path(),
        "program",
        &block("README.md", "c"),
        &["-Wno-unused-result"],
    );
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
fn the_table_of_the_book_is_read() {
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
    fs::write(&table, block("docs/book/report.md", "toml")).unwrap();
    let output = undertick(&[
        "report",
        trace,
        "--table",
        table.to_str().unwrap(),
        "--json",
    ]);
    let report: serde_json::Value = support::document("report", &output);
    assert_eq!(report["intervals"][0]["name"], "queue to reply");
    let interval = &report["intervals"][0];
    assert_eq!(
        interval["count"].as_u64().unwrap() + interval["culled"]["count"].as_u64().unwrap(),
        100
    );
    assert_eq!(report["frequencies"][0]["count"], 100);
}
