use super::*;

#[test]
fn reads_what_it_prints() {
    for text in ["auto", "kernel", "ratio:4", "ratio:2.5", "none"] {
        assert_eq!(text.parse::<Cull>().unwrap().to_string(), text);
    }
    for (_, text) in Compensate::ALL {
        assert_eq!(text.parse::<Compensate>().unwrap().to_string(), text);
    }
}

#[test]
fn refuses_with_the_mend() {
    for text in [
        "",
        "ratio",
        "ratio:",
        "ratio:1",
        "ratio:-4",
        "ratio:nan",
        "ratio:inf",
        "Auto",
    ] {
        let error = text.parse::<Cull>().unwrap_err().to_string();
        assert!(error.contains("ratio:4"), "{error}");
    }
    assert!("magic".parse::<Compensate>().is_err());
    let refused = |options: Options| options.check().unwrap_err().to_string();
    for confidence in [0.0, 1.0, f64::NAN, 95.0] {
        refused(Options {
            confidence,
            ..Options::default()
        });
    }
    assert!(Options::default().check().is_ok());
}
