//! `undertick compare --bench`: benchmark programs of other tools, here one that speaks as Google
//! Benchmark does and whose times are known.

use crate::support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{compile, refused, said, undertick};

/// `program SIDE SLOWER [HOW]`: six benchmarks of 100 to 600 ns, of which the third takes SLOWER times as
/// long. The n-th process of a side always says the same, a few per cent off, whoever runs first. HOW
/// is how the fourth fails: `crash`, `hang`, `say` (the tool says so), `later` (it does in the fifth process); or `slow`, which fails nothing; `late`:
/// from the sixth process on everything fails; or `other`: all have other names.
const PROGRAM: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static const char *OPTION = "--benchmark_min_time";
static double uniform(uint64_t *state) {
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(*state >> 11) / 9007199254740992.0;
}
int main(int argc, char **argv) {
    const char *side = argv[1], *how = argc > 3 && argv[3][0] != '-' ? argv[3] : "", *out = NULL, *only = NULL;
    double slower = atof(argv[2]);
    int i, is_list = 0, is_first = 1, n = 0;
    uint64_t state;
    FILE *file;
    for (i = 3; i < argc; i++) {
        if (strncmp(argv[i], "--benchmark_out=", 16) == 0) out = argv[i] + 16;
        if (strncmp(argv[i], "--benchmark_filter=^BM_", 23) == 0) only = argv[i] + 23;
        if (strncmp(argv[i], "--benchmark_list_tests", 22) == 0) is_list = 1;
    }
    if (is_list) {
        for (i = 1; i <= 6; i++) printf("BM_%d\n", i);
        return 0;
    }
    printf("%s{\"benchmarks\": [ not this\n", OPTION);
    if (strcmp(how, "slow") == 0) usleep(30000);
    if (only == NULL || only[0] == '1') { /* how many processes there were */
        file = fopen(side, "a");
        fputc('x', file);
        fclose(file);
    }
    file = fopen(side, "r");
    while (fgetc(file) != EOF) n++;
    fclose(file);
    if (strcmp(how, "late") == 0 && n > 5) abort();
    file = fopen(out, "w");
    fprintf(file, "{\"benchmarks\":[");
    for (i = 1; i <= 6; i++) {
        double ns;
        if (only != NULL && only[0] != '0' + i) continue;
        if (i == 4 && strcmp(how, "crash") == 0) abort();
        if (i == 4 && strcmp(how, "hang") == 0) pause();
        state = (uint64_t)n * 1000003 + (uint64_t)i * 7919 + (side[0] == 'b' ? 104729 : 0);
        ns = uniform(&state) + uniform(&state) + uniform(&state) + uniform(&state);
        ns = 100.0 * i * (1.0 + 0.03 * (ns - 2.0)) * (i == 3 ? slower : 1.0);
        if (!is_first) fputc(',', file);
        is_first = 0;
        if (i == 4 && (strcmp(how, "say") == 0 || (strcmp(how, "later") == 0 && n == 5)))
            fprintf(file, "{\"name\":\"BM_4\",\"run_type\":\"iteration\",\"error_occurred\":true,\"error_message\":\"no file\"}");
        else
            fprintf(file, "{\"name\":\"%s_%d\",\"run_type\":\"iteration\",\"iterations\":9,\"real_time\":%.6f,\"time_unit\":\"ns\"}",
                    strcmp(how, "other") == 0 ? "NEW" : "BM", i, ns);
    }
    fprintf(file, "]}\n");
    fclose(file);
    return 0;
}
"#;

/// A directory with the program, in which it keeps its counts.
struct Bench {
    dir: tempfile::TempDir,
    program: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let program = compile(dir.path(), "bench", PROGRAM, &[]);
        Self { dir, program }
    }

    /// Both sides: by how much B is slower, how it fails, and further arguments.
    fn command(&self, slower: &str, how: &str, arguments: &[&str]) -> Command {
        let side = |side: &str, slower: &str, how: &str| {
            format!("{} {side} {slower} {how}", self.program.display())
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_undertick"));
        command
            .current_dir(self.dir.path())
            .args(["compare", "--bench"])
            .args([side("a", "1", ""), side("b", slower, how)])
            .args(arguments);
        command
    }

    fn compare(&self, slower: &str, how: &str, arguments: &[&str]) -> Output {
        self.command(slower, how, arguments).output().unwrap()
    }
}

fn document(output: &Output) -> Value {
    support::document("compare", output)
}

/// Name and verdict of each benchmark.
fn verdicts(found: &Value) -> Vec<(&str, &str)> {
    let rows = found["rows"].as_array().unwrap().iter();
    rows.map(|row| {
        (
            row["id"].as_str().unwrap(),
            row["verdict"].as_str().unwrap(),
        )
    })
    .collect()
}

/// The third of six takes 10 % longer, and processes scatter by 1.7 %: it is found, with its ratio, and
/// the others surely differ by less than 2 %, long before all rounds that were planned.
#[test]
fn one_slower_benchmark_among_others() {
    let bench = Bench::new();
    let kept = bench.dir.path().join("kept");
    let output = bench.compare(
        "1.1",
        "",
        &[
            "--json", "--gate", "0.03", "--runs", "200", "--for", "10m", "-o", "kept",
        ],
    );
    assert_eq!(output.status.code(), Some(3), "{}", said(&output).1);
    let found = document(&output);
    let expected: Vec<(String, &str)> = (1..=6)
        .map(|i| (format!("BM_{i}"), if i == 3 { "slower" } else { "alike" }))
        .collect();
    let expected: Vec<(&str, &str)> = expected.iter().map(|(id, v)| (id.as_str(), *v)).collect();
    assert_eq!(verdicts(&found), expected, "{found:#}");
    let ratio = found["rows"][2]["ratio"]["value"].as_f64().unwrap();
    assert!((ratio - 1.1).abs() < 0.01, "{ratio}");
    assert_eq!(found["gate"]["too_slow"][0], "BM_3");
    let sequential = &found["sequential"];
    assert_eq!(sequential["end"], "decided", "{sequential}");
    let rounds = sequential["rounds"].as_u64().unwrap();
    assert!((27..200).contains(&rounds), "{rounds}");
    // Each process' figures are kept, and give the same comparison.
    let one = std::fs::read(kept.join("a/0001.json")).unwrap();
    let one = support::document("benchmarks", &one[..]);
    assert_eq!(one["harness"], "google");
    assert_eq!(one["benchmarks"].as_array().unwrap().len(), 6);
    let sides = ["a", "b"].map(|side| kept.join(side).display().to_string());
    let again = document(&undertick(&["compare", "--json", &sides[0], &sides[1]]));
    assert_eq!(again["rows"][2]["ratio"], found["rows"][2]["ratio"]);
    assert_eq!(again["paired"], true);
}

/// Equal programs: nothing is called different; what is not known to be alike is said so.
#[test]
fn equal_programs_do_not_differ() {
    let bench = Bench::new();
    let output = bench.compare("1", "", &["--runs", "40", "--for", "10m"]);
    let (status, text) = said(&output);
    assert_eq!(status, 0, "{text}");
    // Lines break where the terminal ends.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "6 benchmarks (Google Benchmark)",
        "None of 6 figures is known to differ",
        "at most 1.0 % of such comparisons would call one different",
    ] {
        assert!(text.contains(words), "{words:?} is not in: {text}");
    }
}

/// A benchmark that crashes, hangs, or says that it fails, and a program that prints: it is named, and the
/// rest goes on.
#[test]
fn a_benchmark_that_fails_is_named() {
    for (how, why) in [
        ("crash", "ended by signal 6"),
        ("hang", "had not ended after 1 s, and was killed"),
        ("say", "no file"),
    ] {
        let bench = Bench::new();
        let output = bench.compare(
            "1.1",
            how,
            &["--json", "--runs", "30", "--for", "10m", "--timeout", "1s"],
        );
        assert_eq!(output.status.code(), Some(0), "{how}: {}", said(&output).1);
        let found = document(&output);
        let names: Vec<&str> = verdicts(&found).iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["BM_1", "BM_2", "BM_3", "BM_5", "BM_6"], "{how}");
        assert_eq!(verdicts(&found)[2].1, "slower", "{how}");
        let warnings = found["warnings"].to_string();
        assert!(
            warnings.contains(&format!(
                "BM_4 of B failed: {}",
                if how == "say" { why } else { "it " }
            )),
            "{warnings}"
        );
        assert!(warnings.contains(why), "{how}: {warnings}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("BM_4 of B failed, and is left out")
        );
    }
}

fn rounds(kept: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(kept.join("rounds.json")).unwrap_or_default();
    let rounds: Value = serde_json::from_str(&text).unwrap_or_default();
    rounds["first"].as_array().cloned().unwrap_or_default()
}

/// Stopped after some rounds, it says what it has; the same command goes on from there.
#[test]
fn what_is_stopped_goes_on() {
    let bench = Bench::new();
    let kept = bench.dir.path().join("kept");
    let arguments = ["--json", "--runs", "40", "--for", "10m", "-o", "kept"];
    let mut command = bench.command("1.1", "slow", &arguments);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while rounds(&kept).len() < 4 {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "no round in two minutes"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = child.id().to_string();
    Command::new("kill").args(["-INT", &pid]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output).1);
    let found = document(&output);
    assert_eq!(found["sequential"]["end"], "interrupted");
    let before = rounds(&kept);
    assert_eq!(found["sequential"]["rounds"], before.len());
    assert!(before.len() < 40);

    let output = bench.compare("1.1", "slow", &arguments);
    let found = document(&output);
    let after = rounds(&kept);
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(found["sequential"]["rounds"], after.len());
    assert!(after.len() > before.len(), "{}", said(&output).1);
    // The counts of the program show that no round was made twice, but for the one that was stopped.
    let processes = std::fs::read(bench.dir.path().join("b")).unwrap().len();
    assert!(
        (after.len()..=after.len() + 1).contains(&processes),
        "{processes}"
    );

    let other = bench.compare("1.2", "slow", &arguments);
    refused(&other, 2, &["of other programs, of another build"]);
}

/// A program that works for five rounds and fails from then on: what was measured is compared.
#[test]
fn a_program_that_fails_later_ends_the_comparison() {
    let bench = Bench::new();
    let output = bench.compare("1.1", "late", &["--json", "--runs", "30", "--for", "10m"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output).1);
    let found = document(&output);
    assert_eq!(found["sequential"]["end"], "failed");
    assert_eq!(found["sequential"]["rounds"], 5);
    assert_eq!(verdicts(&found).len(), 6, "{found:#}");
    assert!(found["warnings"].to_string().contains("ended by signal 6"));
}

/// Rounds of another build, of which nothing is known, are not continued; programs without a benchmark in
/// common are not compared.
#[test]
fn what_does_not_belong_together_is_refused() {
    let bench = Bench::new();
    let arguments = ["--json", "--runs", "12", "--for", "10m", "-o", "kept"];
    // The same rounds give the same answer, however often they are asked for it.
    let [first, second] = [0, 1].map(|_| document(&bench.compare("1.4", "", &arguments)));
    assert_eq!(first, second);
    assert_eq!(verdicts(&first)[2].1, "slower", "{first:#}");
    assert_eq!(rounds(&bench.dir.path().join("kept")).len(), 12);
    let built = std::fs::read(&bench.program).unwrap();
    std::fs::write(&bench.program, built).unwrap();
    refused(&bench.compare("1.4", "", &arguments), 2, &["another build"]);
    let other = bench.compare("1", "other", &["--runs", "3", "--for", "10m"]);
    refused(&other, 2, &["no benchmark is in both", "BM_1", "NEW_1"]);
}

#[test]
fn what_is_no_benchmark_program_is_refused() {
    let bench = Bench::new();
    let dir = bench.dir.path();
    let of = |a: &str, more: &[&str]| undertick(&[&["compare", "--bench", a, a], more].concat());
    refused(
        &of("/bin/true", &[]),
        2,
        &["is not recognized", "--harness"],
    );
    refused(
        &of("/bin/true", &["--harness", "google"]),
        2,
        &["/bin/true (Google Benchmark)", "wrote no measurements"],
    );
    refused(&of("/no/such/bench", &[]), 2, &["no such program"]);
    refused(
        &of("/bin/true", &["--reference", "x"]),
        2,
        &["--reference is for recordings"],
    );
    refused(
        &of(
            "/bin/true",
            &["-o", dir.to_str().unwrap(), "--harness", "command"],
        ),
        2,
        &["no rounds of benchmarks"],
    );
    refused(
        &undertick(&["compare", "--each", "1s", "/bin/true", "/bin/true"]),
        2,
        &["--bench"],
    );
    // The whole program, where that is asked for.
    let output = of(
        "/bin/true",
        &[
            "--harness",
            "command",
            "--runs",
            "9",
            "--for",
            "10m",
            "--json",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", said(&output).1);
    assert_eq!(verdicts(&document(&output))[0].0, "elapsed");
}

impl Bench {
    /// `undertick bench` of the program, which fails as `how` says.
    fn measure(&self, arguments: &[&str], how: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_undertick"));
        command
            .current_dir(self.dir.path())
            .args(["bench", "--for", "10m"])
            .args(arguments)
            .arg("--")
            .arg(&self.program)
            .args(["a", "1", how]);
        command.output().unwrap()
    }
}

/// Processes scatter by 1.7 %, so a mean is within 1 % after some 18 of them; its truth is known. What is
/// kept of each process is one side of a comparison.
#[test]
fn one_program_until_its_means_are_known() {
    let bench = Bench::new();
    let output = bench.measure(&["--json", "-o", "kept"], "");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output).1);
    let found = support::document("benchmark-runs", &output);
    assert_eq!(
        (&found["end"], &found["harness"]),
        (&"decided".into(), &"google".into())
    );
    let runs = found["runs"].as_u64().unwrap();
    assert!((8..=41).contains(&runs), "{runs}");
    let benchmarks = found["benchmarks"].as_array().unwrap();
    assert_eq!(benchmarks.len(), 6);
    let mut held = 0;
    for (at, of) in benchmarks.iter().enumerate() {
        let truth = 100.0 * (at + 1) as f64;
        let number = |name: &str| of["mean"][name].as_f64().unwrap();
        let bound = |at: usize| of["mean"]["interval"][at].as_f64().unwrap();
        let (lo, hi) = (bound(0), bound(1));
        assert_eq!(of["name"], format!("BM_{}", at + 1));
        assert!((hi - lo) / 2.0 <= 0.01 * number("value"), "{of}");
        assert!((number("value") / truth - 1.0).abs() < 0.02, "{of}");
        assert!(of["min_ns"].as_f64().unwrap() < number("value"), "{of}");
        assert!(of["max_ns"].as_f64().unwrap() > number("value"), "{of}");
        held += usize::from(lo <= truth && truth <= hi);
    }
    assert!(held >= 5, "{held} of 6 intervals hold the truth");
    let kept = bench.dir.path().join("kept");
    assert_eq!(std::fs::read_dir(&kept).unwrap().count() as u64, runs);
    let kept = kept.to_str().unwrap();
    let output = undertick(&["compare", kept, kept, "--json"]);
    assert!(
        verdicts(&document(&output))
            .iter()
            .all(|(_, verdict)| *verdict != "slower")
    );
    refused(
        &bench.measure(&["-o", "kept"], ""),
        2,
        &["kept", "exists already"],
    );
}

/// What fails is named and left out; limits end it; the table says what is not known.
#[test]
fn one_program_that_fails_in_part() {
    let bench = Bench::new();
    let output = bench.measure(&["--json", "--runs", "8"], "crash");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output).1);
    let found = support::document("benchmark-runs", &output);
    assert_eq!(found["end"], "rounds");
    let names = found["benchmarks"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|of| of["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["BM_1", "BM_2", "BM_3", "BM_5", "BM_6"]);
    assert_eq!(found["warnings"][0]["code"], "benchmark_failed");
    let (_, text) = said(&bench.measure(&["--runs", "8", "--within", "0.001"], "say"));
    for word in [
        "BM_4 failed",
        "no file",
        "5 of 5 means not known within 0.10 %",
        "8 rounds",
    ] {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
    let (_, text) = said(&bench.measure(&["--runs", "8", "--only", "*_2"], ""));
    assert!(text.contains("BM_2") && !text.contains("BM_3"), "{text}");
}

/// A benchmark that failed after it was measured is in no result.
#[test]
fn one_program_that_fails_later() {
    let bench = Bench::new();
    let output = bench.measure(&["--json", "--runs", "12"], "later");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output).1);
    let found = support::document("benchmark-runs", &output);
    let names = found["benchmarks"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|of| of["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["BM_1", "BM_2", "BM_3", "BM_5", "BM_6"]);
    assert_eq!(found["runs"], 12);
}
