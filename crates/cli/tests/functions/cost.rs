//! What a recorded function costs: measured, stored and subtracted.

use std::fs;
use std::process::Command;

use super::support::{said, undertick};
use super::{build, text};

/// The cost of a recorded function is measured where functions are recorded, stored for the next
/// recording, and subtracted: in the function itself, and in the enclosing one for the begin and
/// the end of each function that it calls.
#[test]
fn what_functions_cost_is_subtracted() {
    let dir = tempfile::tempdir().unwrap();
    let source = "static volatile unsigned long x = 1;\n\
        __attribute__((noinline)) static void inner(void) { for (int i = 0; i < 20; i++) x = x * 5 + 1; }\n\
        __attribute__((noinline)) static void outer(void) { for (int i = 0; i < 10; i++) inner(); }\n\
        int main(void) { for (int i = 0; i < 2000; i++) outer(); return 0; }\n";
    let program = build(dir.path(), "program", source, &["cc", "-O1"]);
    let recorded = |name: &str, options: &[&str]| {
        let trace = dir.path().join(name);
        let output = Command::new(env!("CARGO_BIN_EXE_undertick"))
            .env("XDG_CACHE_HOME", dir.path().join("cache"))
            .args(["record", "--kernel", "off", "-o", text(&trace)])
            .args(options)
            .args(["--", text(&program)])
            .output()
            .unwrap();
        let (code, told) = said(&output);
        assert_eq!(code, 0, "{told}");
        let manifest = fs::read_to_string(trace.join("manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        (trace, manifest, told)
    };
    let by_functions = ["--functions", "^(outer|inner)$"];
    let (_, without, _) = recorded("without.ut", &[]);
    let (trace, manifest, told) = recorded("with.ut", &by_functions);
    let (without, with) = (&without["calibration"], &manifest["calibration"]);
    let is_busy = told.contains("too few undisturbed") || told.contains("came out at");
    if without.is_null() || with.is_null() || is_busy {
        println!("skipped: this machine is too busy to measure what recording costs");
        return;
    }
    assert!(!told.contains("could not be measured"), "{told}");
    assert!(without["functions"].is_null() && with["functions"].is_object());
    let report = undertick(&["report", text(&trace), "--json"]);
    let report: serde_json::Value = crate::support::document("report", &report);
    let subtracted = |name: &str| {
        let intervals = report["intervals"].as_array().unwrap();
        let found = intervals.iter().find(|interval| interval["name"] == name);
        let cost = &found.unwrap()["compensation"]["cost"]["value"];
        cost.as_f64().unwrap()
    };
    let ns = |figure: &serde_json::Value| figure["value"].as_f64().unwrap();
    let function = &with["functions"];
    let (ends, inside) = (ns(&function["span"]["dosed_ns"]), ns(&function["inner_ns"]));
    // The costs are scaled by the read cost of the program's only ring.
    let clock = &manifest["clock"];
    let [ticks, seconds] = ["numerator", "denominator"]
        .map(|part| clock[format!("ticks_per_second_{part}")].as_f64().unwrap());
    let read_ticks = manifest["rings"][0]["read_cost"]["mean_ticks"].as_f64();
    let ratio = read_ticks.unwrap() * 1e9 * seconds / ticks / ns(&with["read_ns"]);
    let [ends, inside] = [ends, inside].map(|cost| cost * ratio.powf(1.2));
    for (name, expected) in [("inner", ends), ("outer", ends + 20.0 * inside)] {
        let found = subtracted(name);
        assert!(
            (found - expected).abs() < 1e-3 * expected,
            "{name}: {found} for {expected}"
        );
    }
    // The next recording finds the stored cost, here changed to that of a quiet machine.
    let kept = dir.path().join("cache/undertick");
    let kept = fs::read_dir(kept).unwrap().next().unwrap().unwrap().path();
    let mut contents: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&kept).unwrap()).unwrap();
    for span in ["plain", "ordered"] {
        for cost in ["empty_ns", "dosed_ns"] {
            let figure = &mut contents["calibration"][span][cost];
            let value = ns(figure);
            figure["interval"] = serde_json::json!([value - 0.1, value + 0.1]);
        }
    }
    let mut other = function.clone();
    other["inner_ns"]["value"] = 12.345.into();
    contents["calibration"]["functions"] = other;
    fs::write(&kept, contents.to_string()).unwrap();
    let (_, again, told) = recorded("again.ut", &by_functions);
    let found = ns(&again["calibration"]["functions"]["inner_ns"]);
    assert!(found == 12.345 || told.contains("holds no more"), "{told}");
    let (_, without, _) = recorded("without-again.ut", &[]);
    assert!(without["calibration"]["functions"].is_null());
}

/// An installed program is stripped, and has the names of the calibration's functions all the same.
#[test]
fn a_stripped_undertick_measures_the_cost_too() {
    let dir = tempfile::tempdir().unwrap();
    let stripped = dir.path().join("undertick");
    let own = env!("CARGO_BIN_EXE_undertick");
    let strip = Command::new("strip")
        .args(["-o", text(&stripped), own])
        .status();
    assert!(strip.unwrap().success());
    let source = "__attribute__((noinline)) static void inner(void) { __asm__ volatile(\"\"); }\n\
        int main(void) { for (int i = 0; i < 20; i++) inner(); return 0; }\n";
    let program = build(dir.path(), "program", source, &["cc", "-O1"]);
    let trace = dir.path().join("t.ut");
    // `strip` wrote the file, so no child of a test beside this one holds it open.
    let output = Command::new(&stripped)
        .env("XDG_CACHE_HOME", dir.path().join("cache"))
        .args(["record", "--kernel", "off", "--functions", "^inner$"])
        .args(["-o", text(&trace), "--", text(&program)])
        .output()
        .unwrap();
    let (code, told) = said(&output);
    assert_eq!(code, 0, "{told}");
    assert!(!told.contains("stripped"), "{told}");
    let manifest = fs::read_to_string(trace.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let calibration = &manifest["calibration"];
    if calibration.is_null() || told.contains("too few undisturbed") || told.contains("came out at")
    {
        println!("skipped: this machine is too busy to measure what recording costs");
        return;
    }
    assert!(calibration["functions"].is_object(), "{told}");
}
