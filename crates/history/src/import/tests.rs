use super::*;

fn read_text(text: &str) -> Result<Measured, HistoryError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.json");
    fs::write(&path, text).unwrap();
    read(&path)
}

/// As Google Benchmark 1.9 writes it with two repetitions: the aggregates are left out.
#[test]
fn google_benchmark() {
    let found = read_text(
        r#"{"context": {"date": "2026-11-29T19:00:00+00:00", "host_name": "rack7", "executable": "./build/bench_parser"},
            "benchmarks": [
              {"name": "BM_Sort/8/repeats:2", "run_name": "BM_Sort/8", "run_type": "iteration", "repetition_index": 0, "real_time": 1.5, "cpu_time": 1.4, "time_unit": "us"},
              {"name": "BM_Sort/8/repeats:2", "run_name": "BM_Sort/8", "run_type": "iteration", "repetition_index": 1, "real_time": 1.7, "cpu_time": 1.4, "time_unit": "us"},
              {"name": "BM_Sort/8_mean", "run_name": "BM_Sort/8", "run_type": "aggregate", "real_time": 1.6, "cpu_time": 1.4, "time_unit": "us"},
              {"name": "BM_Bad", "run_name": "BM_Bad", "run_type": "iteration", "error_occurred": true, "error_message": "no", "real_time": 0, "time_unit": "ns"}]}"#,
    )
    .unwrap();
    assert_eq!(found.machine.as_deref(), Some("rack7"));
    assert_eq!(found.suite.as_deref(), Some("bench_parser"));
    let expected = [("BM_Sort/8", 0, 1500.0), ("BM_Sort/8", 1, 1700.0)];
    assert_eq!(
        found.figures,
        expected.map(|(name, i, ns)| (name.to_owned(), i, ns))
    );
}

#[test]
fn pytest_benchmark() {
    let found = read_text(
        r#"{"machine_info": {"node": "rack7", "cpu": {}}, "commit_info": {"id": "abc123", "dirty": false},
            "benchmarks": [{"name": "test_a", "fullname": "tests/test_a.py::test_a", "stats": {"mean": 2e-6, "median": 1.5e-6}}],
            "datetime": "2026-11-29T19:00:00", "version": "5.2"}"#,
    )
    .unwrap();
    assert_eq!(found.version.as_deref(), Some("abc123"));
    assert_eq!(found.figures.len(), 1);
    assert_eq!(found.figures[0].0, "tests/test_a.py::test_a");
    assert!((found.figures[0].2 - 1500.0).abs() < 1e-9);
}

#[test]
fn hyperfine() {
    let found = read_text(
        r#"{"results": [{"command": "sleep 0.1", "mean": 0.101, "stddev": 0.001, "times": [0.1, 0.102]},
                        {"command": "true", "mean": 0.001}]}"#,
    )
    .unwrap();
    let names: Vec<(&str, i32)> = found
        .figures
        .iter()
        .map(|(name, i, _)| (&**name, *i))
        .collect();
    assert_eq!(names, [("sleep 0.1", 0), ("sleep 0.1", 1), ("true", 0)]);
    assert!((found.figures[1].2 - 1.02e8).abs() < 1.0);
}

#[test]
fn criterion() {
    let dir = tempfile::tempdir().unwrap();
    for (path, name, mean) in [
        ("sort/8", "sort/8", 1500.0),
        ("parse", "parse", 2.5e6),
        ("Vec/new", "Vec/new", 9.0),
    ] {
        let new = dir.path().join(path).join("new");
        fs::create_dir_all(&new).unwrap();
        fs::write(
            new.join("benchmark.json"),
            format!(r#"{{"full_id": "{name}"}}"#),
        )
        .unwrap();
        let estimates =
            format!(r#"{{"mean": {{"point_estimate": {mean}, "standard_error": 1.0}}}}"#);
        fs::write(new.join("estimates.json"), estimates).unwrap();
    }
    fs::create_dir_all(dir.path().join("report")).unwrap();
    std::os::unix::fs::symlink(dir.path(), dir.path().join("round")).unwrap();
    let found = read(dir.path()).unwrap();
    let expected = [
        ("Vec/new", 0, 9.0),
        ("parse", 0, 2.5e6),
        ("sort/8", 0, 1500.0),
    ];
    assert_eq!(
        found.figures,
        expected.map(|(name, i, ns)| (name.to_owned(), i, ns))
    );
}

#[test]
fn what_is_of_another_form_is_refused() {
    for text in [
        "",
        "[1, 2]",
        "{}",
        r#"{"context": {}, "benchmarks": []}"#,
        r#"{"kind": "benchmarks"}"#,
    ] {
        let error = read_text(text).unwrap_err().to_string();
        assert!(error.contains("a.json"), "{text}: {error}");
    }
    let dir = tempfile::tempdir().unwrap();
    assert!(
        read(dir.path())
            .unwrap_err()
            .to_string()
            .contains("target/criterion")
    );
}

#[test]
fn a_program_is_named_without_the_number_of_its_build() {
    assert_eq!(
        suite("target/release/deps/parser-1f2e3d4c5b6a7988"),
        "parser"
    );
    assert_eq!(suite("./bench-parser"), "bench-parser");
}
