//! `undertick history`, as a user and CI run it.

use crate::support;

use std::path::Path;
use std::process::Command;

use support::{document, refused, said, undertick};

/// What Google Benchmark writes: two benchmarks of three repetitions.
fn google(dir: &Path, version: usize) -> String {
    let repetition = |name: &str, time: f64| {
        (0..3)
            .map(|i| {
                let time = time * (1.0 + 0.002 * ((version * 3 + i) * 37 % 11) as f64);
                format!(
                    r#"{{"name": "{name}", "run_name": "{name}", "run_type": "iteration",
                        "repetition_index": {i}, "real_time": {time}, "cpu_time": 1.0, "time_unit": "us"}}"#
                )
            })
            .collect::<Vec<_>>()
            .join(", ")
    };
    let sort = if version < 12 { 40.0 } else { 44.0 };
    let parse = if version < 24 { 7.0 } else { 7.7 };
    let text = format!(
        r#"{{"context": {{"host_name": "rack7", "executable": "./bench"}}, "benchmarks": [{}, {}]}}"#,
        repetition("sort/<1000>", sort),
        repetition("parse", parse)
    );
    let path = dir.join("google.json");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn history(dir: &Path, versions: usize) -> String {
    let history = dir.join("history").to_str().unwrap().to_owned();
    for version in 0..versions {
        let (commit, time) = (format!("v{version}"), (1_000_000 + version).to_string());
        let file = google(dir, version);
        let added = undertick(&[
            "history", "add", &history, &file, "--commit", &commit, "--time", &time,
        ]);
        let (status, text) = said(&added);
        assert_eq!(status, 0, "{text}");
        assert!(text.contains(&format!("6 figures of {commit}")), "{text}");
    }
    history
}

#[test]
fn a_change_is_shown_and_the_newest_version_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let history = history(dir.path(), 24);
    let page = dir.path().join("history.html");
    let shown = undertick(&[
        "history",
        "show",
        &history,
        "--html",
        page.to_str().unwrap(),
    ]);
    let (status, text) = said(&shown);
    assert_eq!(status, 0, "{text}");
    assert!(
        text.contains("2 benchmarks, 24 versions, 1 machine"),
        "{text}"
    );
    let sort = text
        .lines()
        .find(|line| line.contains("sort/<1000>"))
        .unwrap();
    assert!(sort.contains("v12") && sort.contains("+10."), "{text}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Measurement 13, from v12 on: +10."), "{page}");
    let found = document(
        "history",
        &undertick(&["history", "show", &history, "--json", "--only", "par*"]),
    );
    let benchmarks = found["benchmarks"].as_array().unwrap();
    assert_eq!(benchmarks.len(), 1);
    assert_eq!(benchmarks[0]["changes"], serde_json::json!([]));
    assert_eq!(benchmarks[0]["points"].as_array().unwrap().len(), 24);
    assert_eq!(benchmarks[0]["points"][0]["processes"], 3);

    // The same versions, and a newest one in which parsing takes 10 % longer.
    let check = |options: &[&str]| {
        said(&undertick(
            &[&["history", "check", &*history], options].concat(),
        ))
        .0
    };
    assert_eq!(check(&[]), 0);
    let file = google(dir.path(), 24);
    let newest = [
        "history", "add", &history, &file, "--commit", "v24", "--time", "1000024",
    ];
    assert_eq!(said(&undertick(&newest)).0, 0);
    assert_eq!(check(&[]), 3);
    assert_eq!(check(&["--allow", "0.05"]), 3);
    assert_eq!(check(&["--allow", "0.2"]), 0);
    let text = said(&undertick(&["history", "check", &history])).1;
    assert!(
        text.contains("bench: parse is slower in v24: +10."),
        "{text}"
    );
}

/// The commit and its time come from git.
#[test]
fn a_version_is_the_commit_here() {
    let dir = tempfile::tempdir().unwrap();
    let git = |words: &[&str]| {
        let done = Command::new("git")
            .args(words)
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
    git(&[
        &identity[..],
        &["commit", "-q", "--allow-empty", "-m", "first"],
    ]
    .concat());
    let file = google(dir.path(), 0);
    let added = Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args(["history", "add", "history", &file])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert_eq!(said(&added).0, 0, "{}", said(&added).1);
    let (commit, time) = (
        git(&["rev-parse", "--short=12", "HEAD"]),
        git(&["show", "-s", "--format=%ct"]),
    );
    let files = std::fs::read_dir(dir.path().join("history"))
        .unwrap()
        .flatten();
    let names: Vec<String> = files
        .map(|file| file.file_name().into_string().unwrap())
        .collect();
    assert!(
        names[0].starts_with(&format!("{time}-{commit}-")),
        "{names:?}"
    );
    // Another name of the same commit is the same version; an option of git is none.
    for (name, is_told) in [("HEAD", false), ("v1", true)] {
        let add = Command::new(env!("CARGO_BIN_EXE_undertick"))
            .args([
                "history",
                "add",
                "history",
                &file,
                &format!("--commit={name}"),
            ])
            .current_dir(dir.path())
            .output()
            .unwrap();
        let text = said(&add).1;
        assert_eq!(text.contains("is no commit here"), is_told, "{text}");
        assert_eq!(text.contains(&commit), !is_told, "{text}");
    }
    let option = undertick(&["history", "add", "history", &file, "--commit=--output=leak"]);
    refused(&option, 2, &["no name of a version"]);
}

#[test]
fn what_is_no_history_or_no_measurement_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    refused(
        &undertick(&["history", "show", &path("none")]),
        2,
        &["none", "undertick history add"],
    );
    std::fs::write(path("a.json"), "{\"results\": 5}").unwrap();
    let add = [
        "history",
        "add",
        &path("h"),
        &path("a.json"),
        "--commit",
        "v1",
    ];
    refused(&undertick(&add), 2, &["a.json", "hyperfine"]);
    assert!(!dir.path().join("h").exists());
    let few = history(dir.path(), 3);
    let (status, text) = said(&undertick(&["history", "check", &few]));
    assert_eq!(status, 0, "{text}");
    assert!(
        text.contains("2 benchmarks: 2 earlier versions are too few"),
        "{text}"
    );
    refused(
        &undertick(&["history", "show", &few, "--only", "x"]),
        2,
        &["--only"],
    );
    refused(
        &undertick(&["history", "check", &few, "--allow=-1"]),
        2,
        &["allow"],
    );
}
