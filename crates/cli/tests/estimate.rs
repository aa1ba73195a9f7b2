//! `undertick estimate`: numbers in, estimates out.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn undertick(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_undertick"))
        .arg("estimate")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // A program that refuses its arguments does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().expect("it ends")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// 1..=9: mean 5, sd 2.73861, t(0.975; 8) = 2.30600: 5 +- 2.10510. Median 5,
/// between the ranks 2 and 8 (0.96094) and 3 and 7 (0.82031): I = 0.07778,
/// share = 7 I / (2 + 5 I) = 0.22792: 2.22792 and 7.77208.
#[test]
fn by_hand() {
    let input: String = (1..=9).map(|i| format!("{i}\n")).collect();
    let json = |arguments: &[&str]| -> serde_json::Value {
        let out = undertick(arguments, &input);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        crate::support::document("estimate", &out)
    };
    let near = |value: &serde_json::Value, expected: f64| {
        let value = value.as_f64().unwrap();
        assert!((value - expected).abs() < 1e-4, "{value} for {expected}");
    };
    let mean = json(&["--json"]);
    near(&mean["value"], 5.0);
    near(&mean["interval"][0], 5.0 - 2.105_10);
    near(&mean["interval"][1], 5.0 + 2.105_10);
    assert_eq!(
        (&mean["n"], &mean["schema_version"]),
        (&9.into(), &1.into())
    );
    let median = json(&["--json", "--of", "median", "-"]);
    near(&median["value"], 5.0);
    near(&median["interval"][0], 2.227_92);
    near(&median["interval"][1], 7.772_08);
    let p99 = json(&["--json", "--of", "p99"]);
    near(&p99["value"], 9.0);
    assert!(p99["interval"][1].is_null(), "{p99}");
}

#[test]
fn sets_are_answered_line_by_line() {
    let out = undertick(&["--sets", "--of", "median"], "1 2 3\n10\t20 30 40\n5\n");
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let shown = text(&out.stdout);
    let lines: Vec<serde_json::Value> = (shown.lines())
        .map(|line| crate::support::document("estimate", line.as_bytes()))
        .collect();
    let values: Vec<f64> = lines.iter().map(|l| l["value"].as_f64().unwrap()).collect();
    assert_eq!(values, [2.0, 25.0, 5.0]);
    assert_eq!(lines[1]["n"], 4);
}

#[test]
fn a_person_is_told_in_one_line() {
    let input: String = (0..100).map(|i| format!("{}\n", (i * 37) % 100)).collect();
    let out = undertick(&[], &input);
    let shown = text(&out.stdout);
    assert!(
        shown.starts_with("mean 49") || shown.starts_with("mean 50"),
        "{shown}"
    );
    assert!(
        shown.contains("95 %") && shown.contains("n = 100"),
        "{shown}"
    );
}

/// Numbers that resemble their neighbours have a wider interval than the same numbers shuffled.
#[test]
fn order_matters() {
    let width = |input: String| {
        let out = undertick(&["--json"], &input);
        let e: serde_json::Value = crate::support::document("estimate", &out);
        e["interval"][1].as_f64().unwrap() - e["interval"][0].as_f64().unwrap()
    };
    // Each number comes ten times in a row, which widens the interval by the root of ten.
    let mut state = 1_u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state >> 33
    };
    let numbers: Vec<u64> = (0..200).map(|_| random() % 1000).collect();
    let mut all: Vec<u64> = numbers.iter().flat_map(|&x| [x; 10]).collect();
    let lines = |all: &[u64]| all.iter().map(|x| format!("{x}\n")).collect::<String>();
    let slow = lines(&all);
    for i in (1..all.len()).rev() {
        all.swap(i, random() as usize % (i + 1));
    }
    let mixed = lines(&all);
    assert!(width(slow) > 2.0 * width(mixed));
}

#[test]
fn bad_input_is_named_with_its_line() {
    for (arguments, input, told) in [
        (&[][..], "1\n2\nthree\n", "standard input:3: \"three\""),
        (&[], "1\nNaN\n", ":2:"),
        (&[], "", "no numbers"),
        (&["--sets"], "1 2\n\n3\n", ":2: an empty line"),
        (&["--sets"], "1 2\n3 inf\n", ":2: \"inf\""),
        (&["--of", "mode"], "1\n", "p99"),
        (&["--of", "p100"], "1\n", "p99"),
        (&["--confidence", "1"], "1\n", "0.95"),
        (&["no-such-file"], "", "no-such-file"),
    ] {
        let out = undertick(arguments, input);
        assert_eq!(out.status.code(), Some(2), "{arguments:?} {input:?}");
        assert!(text(&out.stderr).contains(told), "{}", text(&out.stderr));
    }
}
