//! Spans that carry pairs of readings, from a C program to the report.

use crate::support;

use serde_json::Value;
use support::{compile, document, said, undertick};

const PROGRAM: &str = "#include \"undertick.h\"\n\
    int main(void) {\n\
        volatile uint64_t sum = 0;\n\
        for (int i = 0; i < 3000; i++) {\n\
            for (int k = 0; k < 300; k++) sum += k;\n\
            ut_begin_paired(1);\n\
            for (int k = 0; k < 30; k++) sum += k;\n\
            ut_end_paired(1);\n\
            ut_pair(2);\n\
            ut_begin(3);\n\
            for (int k = 0; k < 30; k++) sum += k;\n\
            ut_end(3);\n\
        }\n\
        return 0;\n\
    }\n";

/// Fewest samples kept of 3000.
const FEWEST: u64 = 2700;

fn interval(report: &Value, name: &str) -> Value {
    let found = report["intervals"].as_array().unwrap().iter();
    let mut found = found.filter(|i| i["name"] == name);
    found
        .next()
        .unwrap_or_else(|| panic!("no {name}: {report}"))
        .clone()
}

/// Returns whether the method was refused, with a note, because it makes the samples of this run
/// scatter more; on a busy machine pairs do.
fn is_refused(section: &Value) -> bool {
    let said = section["notes"]
        .to_string()
        .contains("would make it scatter more");
    said && section["compensation"]["method"] == "long-term"
}

#[test]
fn every_method_works_on_a_recorded_program() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "paired", PROGRAM, &[]);
    let trace = dir.path().join("paired.ut");
    let trace = trace.to_str().unwrap();
    let (code, text) = said(&undertick(&[
        "record",
        "-o",
        trace,
        "--",
        program.to_str().unwrap(),
    ]));
    assert_eq!(code, 0, "{text}");
    let report = |method: &str| -> Value {
        let out = undertick(&["report", trace, "--json", "--compensate", method]);
        assert_eq!(out.status.code(), Some(0), "{method}: {}", said(&out).1);
        document("report", &out)
    };
    let mean =
        |report: &Value, name: &str| interval(report, name)["mean"]["value"].as_f64().unwrap();
    let plain = report("none");
    // A busy machine disturbs some; at most a tenth of a span's samples is dropped.
    let first = interval(&plain, "event 1");
    let [kept, dropped] = [&first["count"], &first["culled"]["count"]].map(|n| n.as_u64().unwrap());
    assert_eq!(kept + dropped, 3000, "{first}");
    assert!(kept >= FEWEST, "{first}");
    assert_eq!(interval(&plain, "event 1")["reads"], "ordered");
    for method in ["long-term", "pairs", "control-variate"] {
        let found = report(method);
        let section = interval(&found, "event 1");
        let refused = is_refused(&section);
        if !refused {
            assert_eq!(section["compensation"]["method"], method, "{section}");
        }
        // A reading costs some nanoseconds on any machine.
        let less = mean(&plain, "event 1") - mean(&found, "event 1");
        assert!(less > 1.0, "{method} subtracted {less} ns");
        let cost = section["compensation"]["cost"]["value"].as_f64().unwrap();
        // On a busy machine pairs can cost more than the whole duration: no mean is below 0.
        let is_all = mean(&found, "event 1") == 0.0 && cost > less;
        let is_less = (cost - less).abs() < 1e-6 * less + 1e-6;
        assert!(is_less || is_all, "{cost} {less}");
    }
    for method in ["pairs", "control-variate"] {
        let section = interval(&report(method), "event 1");
        let k = &section["compensation"]["k"];
        assert!(
            is_refused(&section)
                || k["value"].as_f64().unwrap() > 0.0 && k["n"].as_u64().unwrap() >= FEWEST,
            "{k}"
        );
    }
    // The plain span has the plain pairs around it.
    let found = report("pairs");
    let plain_one = interval(&found, "event 3");
    assert!(
        is_refused(&plain_one) || plain_one["compensation"]["method"] == "pairs",
        "{plain_one}"
    );
    // Only the program's own thread took pairs.
    let found = report("sampler");
    let section = interval(&found, "event 1");
    assert_eq!(section["compensation"]["method"], "none", "{section}");
}

#[test]
fn a_trace_without_pairs_is_refused_with_the_mend() {
    let dir = tempfile::tempdir().unwrap();
    let source = "#include \"undertick.h\"\nint main(void) { ut_begin(1); ut_end(1); return 0; }\n";
    let program = compile(dir.path(), "bare", source, &[]);
    let trace = dir.path().join("bare.ut");
    let trace = trace.to_str().unwrap();
    let program = program.to_str().unwrap();
    let (code, text) = said(&undertick(&[
        "record",
        "--no-calibration",
        "-o",
        trace,
        "--",
        program,
    ]));
    assert_eq!(code, 0, "{text}");
    for (method, told) in [
        ("pairs", "ut_begin_paired"),
        ("long-term", "ut_pair"),
        ("sampler", "ut_pair"),
        ("control-variate", "--no-calibration"),
    ] {
        let (code, text) = said(&undertick(&["report", trace, "--compensate", method]));
        assert_eq!(code, 2, "{method}: {text}");
        assert!(text.contains(told), "{method}: {text}");
    }
}

/// The work between the points of the calibration is done, in the variant without points as well:
/// a compiler that sees no use of its result removes it, and the cost of a point would be the work.
/// A step takes more than a nanosecond on any machine.
#[test]
fn the_calibration_does_its_work() {
    const PASSES: &str = "64";
    const STEPS: f64 = 128.0;
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("workload.ut");
    let trace = trace.to_str().unwrap();
    let own = env!("CARGO_BIN_EXE_undertick");
    let (code, text) = said(&undertick(&[
        "record",
        "--no-calibration",
        "-o",
        trace,
        "--",
        own,
        "__calibration-workload",
        PASSES,
    ]));
    assert_eq!(code, 0, "{text}");
    let out = undertick(&["report", trace, "--json"]);
    let report: Value = document("report", &out);
    // Steps of seven kinds, without a point, with one that is off, and with two.
    for event in 200..221 {
        let found = interval(&report, &format!("event {event}"));
        let least_ns = found["min"].as_f64().unwrap();
        assert!(least_ns >= STEPS, "{found}");
    }
}
