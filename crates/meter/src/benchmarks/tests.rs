use super::*;

/// The middle of three, and of two the mean; names in the order in which they first come.
#[test]
fn what_is_measured_repeatedly_is_its_middle() {
    let of = |name: &str, ns: f64| (name.to_owned(), ns, 10);
    let found = middles([
        of("b", 7.0),
        of("a", 3.0),
        of("b", 90.0),
        of("b", 6.0),
        of("a", 5.0),
        of("a", f64::NAN),
    ]);
    let told: Vec<(&str, f64, u64)> = (found.iter())
        .map(|one| (one.name.as_str(), one.time_ns, one.iterations))
        .collect();
    assert_eq!(told, [("b", 7.0, 30), ("a", 4.0, 20)]);
}

#[test]
fn a_name_is_taken_literally() {
    assert_eq!(escaped("BM_a<int>/8/x:1.5"), r"BM_a<int>/8/x:1\.5");
    assert_eq!(escaped("f(a|b)*[c]$"), r"f\(a\|b\)\*\[c\]\$");
}

/// As `go test` prints them, with what a benchmark printed itself in between.
#[test]
fn lines_of_go() {
    let text = "goos: linux\ncpu: some CPU\nBenchmarkSort/8-4   \t 1000000\t      1034 ns/op\t     120 B/op\t       3 allocs/op\n\
        BenchmarkSort/8-4  hello\nfrom the benchmark\n 1000000\t      1036 ns/op\n\
        --- FAIL: BenchmarkBad-4\n    x_test.go:9: it is bad\nBenchmarkCopy \t 5\t 2.5e+08 ns/op\t  12.00 MB/s\nFAIL\n";
    let said = go::read(text).unwrap();
    let times: Vec<(&str, f64)> = (said.benchmarks.iter())
        .map(|one| (one.name.as_str(), one.time_ns))
        .collect();
    assert_eq!(
        times,
        [("BenchmarkSort/8-4", 1035.0), ("BenchmarkCopy", 2.5e8)]
    );
    assert_eq!(
        said.failed,
        [(
            "BenchmarkBad-4".to_owned(),
            "it failed (--- FAIL)".to_owned()
        )]
    );
    let listed = go::listed("TestA\nBenchmarkSort\nBenchmarkCopy\nok x 0.1s\n".lines());
    assert_eq!(listed, ["BenchmarkSort", "BenchmarkCopy"]);
}

#[test]
fn lines_of_rusts_bench() {
    let text = "\nrunning 2 tests\ntest sort::eight ... bench:       1,234.50 ns/iter (+/- 12.00)\n\
        test fast        ... bench:           0 ns/iter (+/- 0)\ntest a_test ... ignored\n";
    let said = libtest::read(text).unwrap();
    let times: Vec<(&str, f64)> = (said.benchmarks.iter())
        .map(|one| (one.name.as_str(), one.time_ns))
        .collect();
    assert_eq!(times, [("sort::eight", 1234.5), ("fast", 0.0)]);
}

/// Two samples of a benchmark in a group, as Criterion leaves them beside those of the run before.
#[test]
fn files_of_criterion() {
    let home = tempfile::tempdir().unwrap();
    let write = |dir: &str, id: &str, iters: &str, times: &str| {
        let dir = home.path().join(dir);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(
            dir.join("benchmark.json"),
            format!(r#"{{"group_id":"g","full_id":"{id}"}}"#),
        )
        .unwrap();
        let sample = format!(r#"{{"sampling_mode":"Linear","iters":[{iters}],"times":[{times}]}}"#);
        std::fs::write(dir.join("sample.json"), sample).unwrap();
    };
    write("g/f/8/new", "g/f/8", "1.0,2.0,3.0", "100.0,240.0,330.0");
    write("g/f/8/base", "g/f/8", "1.0", "900.0");
    write("other/new", "other", "0.0,4.0", "5.0,20.0");
    let said = criterion::read(home.path()).unwrap();
    let times: Vec<(&str, f64)> = (said.benchmarks.iter())
        .map(|one| (one.name.as_str(), one.time_ns))
        .collect();
    assert_eq!(times, [("g/f/8", 110.0), ("other", 5.0)]);
    std::fs::write(home.path().join("other/new/sample.json"), "{").unwrap();
    let why = criterion::read(home.path()).unwrap_err();
    assert!(why.contains("other/new/sample.json"), "{why}");
}

/// Go's names of what was measured, of what failed, and of what is listed.
#[test]
fn a_failed_benchmark_is_known_by_any_of_its_names() {
    let go = |name, failed| is_of(Harness::Go, name, failed);
    assert!(go("BenchmarkX-4", "BenchmarkX") && go("BenchmarkX/8-4", "BenchmarkX"));
    assert!(go("BenchmarkX", "BenchmarkX-4") && go("BenchmarkX-4", "BenchmarkX-4"));
    assert!(!go("BenchmarkXY-4", "BenchmarkX") && !go("BenchmarkX", "BenchmarkX/8"));
    assert!(!is_of(Harness::Google, "BM_x-4", "BM_x") && is_of(Harness::Google, "BM_x", "BM_x"));
}
