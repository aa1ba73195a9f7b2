use std::io::Write;

use super::*;

/// A text that lies across two of the parts in which a file is searched.
#[test]
fn a_tool_is_seen_wherever_its_text_lies() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("program");
    for before in [0, PART - 5, PART + 3, 2 * PART - 1] {
        for (text, tool) in [
            ("--benchmark_min_time=1", Harness::Google),
            ("CRITERION_HOME RUST_TEST_THREADS", Harness::Criterion),
            ("test.benchtime", Harness::Go),
            ("RUST_TEST_THREADS", Harness::Libtest),
        ] {
            let mut file = File::create(&program).unwrap();
            file.write_all(&vec![b'x'; before]).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            drop(file);
            assert_eq!(
                harness(&[program.clone().into()]),
                Ok(tool),
                "{text} after {before}"
            );
        }
    }
    std::fs::write(&program, "nothing of the kind").unwrap();
    assert!(
        harness(&[program.into()])
            .unwrap_err()
            .contains("--harness")
    );
    assert!(
        harness(&["/nowhere/at/all".into()])
            .unwrap_err()
            .contains("no such program")
    );
}

#[test]
fn pytest_is_known_by_its_name() {
    let is = |words: &[&str]| is_pytest(&words.iter().map(OsString::from).collect::<Vec<_>>());
    assert!(is(&["/usr/bin/pytest", "bench"]) && is(&["python3.11", "-m", "pytest", "x.py"]));
    assert!(!is(&["python3", "x.py"]) && !is(&["./bench", "-m", "pytest"]));
}
