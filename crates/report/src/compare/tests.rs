use super::*;
use crate::survey::Survey;

fn survey_text() -> String {
    r#"{"schema_version": 1, "kind": "survey", "host": {"name": "a", "cpus": 1, "cpu_model": "m", "kernel": "6",
        "hypervisor": null, "memory_bytes": null, "clock": "tsc", "tool_version": "0.1.0"},
        "begun_unix_s": 0, "took_s": 1, "metrics": [{"id": "x", "group": "calls", "name": "x", "includes": "",
        "estimate": {"value": 5.0, "interval": [4.0, 6.0], "level": 0.95, "unit": "ns", "method": "", "n": 10,
        "n_effective": 10.0, "notes": []}}], "warnings": [], "missing": []}"#
        .to_owned()
}

#[test]
fn kinds_are_told_apart() {
    let found = subject(&survey_text()).unwrap();
    assert_eq!(found.kind(), "survey");
    let side = found.side("a.json");
    assert_eq!(
        (side.about.file.as_str(), side.metrics.len()),
        ("a.json", 1)
    );
    // A survey without `kind` is recognised by its fields.
    let plain = survey_text().replace("\"kind\": \"survey\",", "");
    assert_eq!(subject(&plain).unwrap().kind(), "survey");
}

#[track_caller]
fn refused(text: &str, words: &[&str]) {
    let wrong = subject(text).unwrap_err();
    assert!(!wrong.mend.is_empty() && !wrong.why.is_empty());
    let shown = wrong.to_string();
    for word in words {
        assert!(shown.contains(word), "{word:?} is not in {shown}");
    }
    assert!(!shown.contains('\x1b'), "{shown:?}");
}

/// The error for text that is no document says where it is wrong and what to do.
#[test]
fn what_cannot_be_compared_is_named() {
    refused("", &["empty", "again"]);
    let torn = &survey_text()[..300];
    refused(torn, &["line 3", "torn"]);
    refused(
        &survey_text().replace("5.0", "NaN"),
        &["line 4", "column", "broken JSON"],
    );
    refused(&survey_text().replace("5.0", "1e999"), &["line 4"]);
    refused("what clock\n  5 ns", &["no JSON", "--json"]);
    refused("[1, 2]", &["not an object"]);
    let newer = survey_text().replace("\"schema_version\": 1", "\"schema_version\": 2");
    refused(&newer, &["schema_version", "version 2", "reads version 1"]);
    refused(
        &survey_text().replace("\"schema_version\": 1,", ""),
        &["version null"],
    );
    refused(&survey_text().replace("\"took_s\": 1,", ""), &["took_s"]);
    refused(
        &survey_text().replace("[4.0, 6.0]", "[6.0, 4.0]"),
        &["metrics[0]", "ends before"],
    );
    refused(
        r#"{"schema_version": 1, "clocks": []}"#,
        &["audit of clocks", "survey --json"],
    );
    refused(r#"{"schema_version": 1, "peaks": []}"#, &["interference"]);
    refused("{\"kind\": \"\\u001b[2Jevil\"}", &["kind", "evil"]);
    refused(r#"{"a": 1}"#, &["not known"]);
}

/// Deep nesting and malformed input end in an error, not in a stack overflow.
#[test]
fn rubbish_is_refused() {
    let deep = "[".repeat(100_000);
    for text in [
        deep.as_str(),
        "{\"a\":{\"a\":{",
        "\u{0}\u{1}",
        "{\"kind\": 5}",
        "{\"host\": 1, \"metrics\": 2}",
    ] {
        assert!(subject(text).is_err());
    }
}

/// Writing and reading again loses nothing.
#[test]
fn a_survey_is_what_was_written() {
    let Subject::Survey(found) = subject(&survey_text()).unwrap() else {
        panic!("a survey");
    };
    let again = serde_json::to_string(&*found).unwrap();
    assert_eq!(serde_json::from_str::<Survey>(&again).unwrap(), *found);
}
