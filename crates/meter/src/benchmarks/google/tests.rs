use super::*;

/// Repetitions and aggregates, units, and a benchmark that skips itself with an error.
#[test]
fn the_document_of_google_benchmark() {
    let entry = |name: &str, time: f64, unit: &str| {
        format!(
            r#"{{"name":"{name}","run_name":"{name}","run_type":"iteration","iterations":100,"real_time":{time},
                "cpu_time":1.0,"time_unit":"{unit}"}}"#
        )
    };
    let text = format!(
        r#"{{"context":{{"num_cpus":2}},"benchmarks":[{},{},{},
            {{"name":"BM_a_mean","run_name":"BM_a","run_type":"aggregate","real_time":99.0,"time_unit":"us"}},
            {{"name":"BM_b","run_name":"BM_b","run_type":"iteration","error_occurred":true,"error_message":"no file","iterations":0}},
            {{"name":"BM_old/8","iterations":7,"real_time":3.0,"cpu_time":3.0,"time_unit":"ms"}}]}}"#,
        entry("BM_a", 1.5, "us"),
        entry("BM_a", 1.7, "us"),
        entry("BM_a", 9.0, "us")
    );
    let said = of_text(&text).unwrap();
    let told: Vec<(&str, f64, u64)> = (said.benchmarks.iter())
        .map(|one| (one.name.as_str(), one.time_ns, one.iterations))
        .collect();
    assert_eq!(told, [("BM_a", 1700.0, 300), ("BM_old/8", 3e6, 7)]);
    assert_eq!(said.failed, [("BM_b".to_owned(), "no file".to_owned())]);
    assert!(of_text("{\"benchmarks\": [").is_err());
}

/// Counters that JSON has no form for, and the same words in names.
#[test]
fn what_is_no_number_is_left_out() {
    let text = r#"{"benchmarks":[{"name":"BM_NaN/\"inf","iterations":1,"real_time":2.0,"rate":NaN,"most":-Infinity,
        "least":inf,"time_unit":"ns"}]}"#;
    let said = of_text(text).unwrap();
    assert_eq!(said.benchmarks[0].name, "BM_NaN/\"inf");
    assert_eq!(said.benchmarks[0].time_ns, 2.0);
}
