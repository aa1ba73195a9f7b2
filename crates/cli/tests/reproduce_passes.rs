//! `undertick run --passes-table`: the table of a live trace is consistent, and agrees with the
//! trace's rows; without privilege, too.

use crate::support;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::{compile, copy_program, document, refused, said, undertick};

/// Two processes that hand the CPU to and fro.
const SCRIPT: &str = "
passes = 120
repetitions = 2
backend = \"futex\"
[[process]]
name = \"A\"
place = \"cpu 0\"
[[process.step]]
wakeup = \"B\"
[[process.step]]
block = true
[[process]]
name = \"B\"
start = \"blocked\"
place = \"same cpu as A\"
[[process.step]]
number = 3
wakeup = \"A\"
[[process.step]]
number = 4
block = true
";

fn sums(found: &Value) {
    let counts = &found["counts"];
    let by: u64 = (counts["by"].as_object().unwrap().values())
        .map(|n| n.as_u64().unwrap())
        .sum();
    assert_eq!(counts["out_of_place"], by);
    let of_steps: u64 = (found["steps"].as_array().unwrap().iter())
        .map(|step| step["out_of_place"].as_u64().unwrap())
        .sum();
    assert_eq!(of_steps, by);
    let passes = found["passes"].as_u64().unwrap();
    assert!((118..=122).contains(&passes), "{passes}");
    let values = counts["values"].as_u64().unwrap();
    assert!(
        values >= 4 * (passes - 2) && values <= 4 * passes,
        "{values}"
    );
    if let Some(share) = counts["without_evidence"].as_f64() {
        let none = counts["by"]
            .get("no evidence")
            .map_or(0, |n| n.as_u64().unwrap());
        assert!((share - none as f64 / by as f64).abs() < 1e-12);
    }
}

#[test]
fn a_live_table_adds_up() {
    let dir = tempfile::tempdir().unwrap();
    let (script, trace) = (dir.path().join("s.toml"), dir.path().join("s.ut"));
    fs::write(&script, SCRIPT).unwrap();
    let words = [
        "run",
        script.to_str().unwrap(),
        "-o",
        trace.to_str().unwrap(),
    ];
    let output = undertick(&[&words[..], &["--passes-table", "--json"]].concat());
    let (code, text) = said(&output);
    assert_eq!(code, 0, "{text}");
    let report: Value = document("report", &output);
    let tables = report["passes"].as_array().unwrap();
    assert_eq!(tables.len(), 1);
    let found = &tables[0];
    assert_eq!(
        (&found["shown"], &found["one_cpu"]),
        (&Value::from(3), &Value::from(true))
    );
    sums(found);
    let steps = found["steps"].as_array().unwrap();
    assert_eq!(
        steps
            .iter()
            .map(|s| s["number"].as_u64().unwrap())
            .collect::<Vec<_>>(),
        [1, 2, 3, 4]
    );
    for step in steps {
        assert_eq!(step["next_ns"].as_array().unwrap().len(), 3);
        // The next stamp of any process is no later than the next one of the same process.
        for (next, own) in
            (step["next_ns"].as_array().unwrap().iter()).zip(step["own_ns"].as_array().unwrap())
        {
            assert!(next.as_f64() <= own.as_f64() || own.is_null(), "{step}");
        }
    }
    let kernel: Value =
        serde_json::from_str(&fs::read_to_string(trace.join("manifest.json")).unwrap()).unwrap();
    assert!(
        !kernel["kernel"].is_null(),
        "the table turns the kernel's evidence on"
    );
    assert!(
        report["passes"][0]["evidence"]
            .as_str()
            .unwrap()
            .contains("evidence is from")
    );
}

#[test]
fn without_the_table_the_document_has_none() {
    let dir = tempfile::tempdir().unwrap();
    let (script, trace) = (dir.path().join("s.toml"), dir.path().join("s.ut"));
    fs::write(&script, SCRIPT).unwrap();
    let words = [
        "run",
        script.to_str().unwrap(),
        "-o",
        trace.to_str().unwrap(),
    ];
    let output = undertick(&[&words[..], &["--json"]].concat());
    let report: Value = document("report", &output);
    assert!(report.get("passes").is_none());
    let again = dir.path().join("t.ut");
    fs::write(
        &script,
        SCRIPT.replace("passes = 120", "passes = 120\nstamps = \"around\""),
    )
    .unwrap();
    let words = [
        "run",
        script.to_str().unwrap(),
        "-o",
        again.to_str().unwrap(),
    ];
    let output = undertick(&[&words[..], &["--passes-table"]].concat());
    refused(&output, 2, &["--passes-table", "stamps = \"between\""]);
}

/// Changes to the user nobody and executes its arguments.
const NOBODY: &str = r#"
#define _GNU_SOURCE
#include <grp.h>
#include <unistd.h>
int main(int argc, char **argv) {
    (void)argc;
    if (geteuid() == 0 && (setgroups(0, 0) || setgid(65534) || setuid(65534))) return 111;
    execv(argv[1], argv + 1);
    return 114;
}
"#;

#[test]
fn without_privilege_the_table_says_what_it_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let path: &Path = dir.path();
    let nobody = compile(path, "nobody", NOBODY, &[]);
    let binary = path.join("undertick");
    copy_program(Path::new(env!("CARGO_BIN_EXE_undertick")), &binary);
    fs::write(path.join("s.toml"), SCRIPT).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(path, open).unwrap();
    let output = Command::new(&nobody)
        .arg(&binary)
        .arg("run")
        .arg(path.join("s.toml"))
        .arg("-o")
        .arg(path.join("s.ut"))
        .args(["--passes-table", "2", "--json"])
        .output()
        .unwrap();
    if let Some(111..=114) = output.status.code() {
        println!(
            "skipped: this user cannot become another: {}",
            output.status
        );
        return;
    }
    let (code, text) = said(&output);
    assert_eq!(code, 0, "{text}");
    let report: Value = document("report", &output);
    let found = &report["passes"][0];
    sums(found);
    assert_eq!(found["shown"], 2);
    let evidence = found["evidence"].as_str().unwrap();
    let lacks = ["neither interrupts nor softirqs", "tells no switches"];
    assert!(
        lacks.iter().any(|what| evidence.contains(what)),
        "{evidence}"
    );
    let by = found["counts"]["by"].as_object().unwrap();
    assert!(
        !by.contains_key("interrupt") && !by.contains_key("softirq"),
        "{by:?}"
    );
}
