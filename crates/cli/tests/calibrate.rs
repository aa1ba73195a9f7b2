//! `undertick calibrate`: the document, and bad input. Of a live clock's figures the tests check
//! only what must hold on any machine.

use std::process::{Command, Output};

fn undertick(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args(arguments)
        .output()
        .expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_document_has_every_method_with_bias_and_k() {
    let out = undertick(&["calibrate", "--json", "--load", "self:1"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let found: serde_json::Value = crate::support::document("calibrate", &out);
    assert_eq!(found["schema_version"], 1);
    assert_eq!(found["load"], "self:1");
    let names: Vec<&str> = (found["methods"].as_array().unwrap().iter())
        .map(|m| m["method"].as_str().unwrap())
        .collect();
    for name in ["long-term", "pairs", "control-variate", "known-dose"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(
        names.contains(&found["chosen"].as_str().unwrap()),
        "{found}"
    );
    assert!(!found["why"].as_str().unwrap().is_empty());
    for method in found["methods"].as_array().unwrap() {
        let bias = &method["bias"];
        let (lo, hi) = (&bias["interval"][0], &bias["interval"][1]);
        assert!(lo.as_f64() <= bias["value"].as_f64(), "{method}");
        assert!(bias["value"].as_f64() <= hi.as_f64(), "{method}");
        assert_eq!(bias["unit"], "ns");
        assert_eq!(method["doses"].as_array().unwrap().len(), 4);
        for r in ["r13", "r34", "r14"] {
            let r = method["correlations"][r].as_f64().unwrap();
            assert!((-1.0..=1.0).contains(&r), "{method}");
        }
    }
    // Long-term averaging subtracts one constant: k is 1, and the residue is 0, by construction.
    let long_term = &found["methods"][0];
    assert!((long_term["k"]["value"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    let chosen = found["methods"].as_array().unwrap().iter();
    let chosen = chosen
        .clone()
        .find(|m| m["method"] == found["chosen"])
        .unwrap();
    assert!(
        chosen["k"]["interval"][0].as_f64().unwrap() >= 0.98,
        "{chosen}"
    );
}

#[test]
fn the_table_says_what_was_chosen_and_why() {
    let out = undertick(&["calibrate"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let shown = text(&out.stdout);
    assert!(shown.contains("Chosen: "), "{shown}");
    assert!(
        shown.lines().all(|line| line.chars().count() <= 100),
        "{shown}"
    );
}

#[test]
fn bad_input_is_answered_with_the_mend() {
    for (arguments, told) in [
        (&["--clock", "sundial"][..], "monotonic_raw"),
        (&["--load", "heavy"], "self:N"),
        (&["--load", "no-such-file.toml"], "no-such-file.toml"),
        (&["--confidence", "95"], "0.95"),
    ] {
        let all: Vec<&str> = ["calibrate"].iter().chain(arguments).copied().collect();
        let out = undertick(&all);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}");
        assert!(text(&out.stderr).contains(told), "{}", text(&out.stderr));
        assert!(out.stdout.is_empty());
    }
}

#[test]
fn a_clock_too_coarse_for_the_test_is_sent_to_the_slow_clock() {
    let out = undertick(&["calibrate", "--clock", "monotonic_coarse"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(
        text(&out.stderr).contains("undertick slow"),
        "{}",
        text(&out.stderr)
    );
}
