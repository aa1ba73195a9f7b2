use super::*;

fn condition(text: &str) -> Condition {
    let rule = text.parse::<Rule>();
    rule.unwrap_or_else(|error| panic!("{error}")).condition
}

fn longer(name: &str, limit: Limit) -> Condition {
    Condition::Longer {
        name: name.to_owned(),
        limit,
    }
}

#[test]
fn all_forms_of_a_rule() {
    let ms = |ms: f64| Limit::Nanoseconds(ms * 1e6);
    let cases = [
        ("request > 5ms", longer("request", ms(5.0))),
        ("request>5ms", longer("request", ms(5.0))),
        ("  request  >  0.25 us ", longer("request", ms(0.00025))),
        ("request > 3µs", longer("request", ms(0.003))),
        ("request > 2min", longer("request", ms(120_000.0))),
        (
            "\"parse > header\" > 1s",
            longer("parse > header", ms(1000.0)),
        ),
        ("\"event\" > 1ns", longer("event", ms(1e-6))),
        ("event > 1h", longer("event", ms(3_600_000.0))),
        ("lost_and_found > 1s", longer("lost_and_found", ms(1000.0))),
        ("17 > 1s", longer("17", ms(1000.0))),
        ("größe > 1s", longer("größe", ms(1000.0))),
        ("request > p99.9", longer("request", Limit::Quantile(0.999))),
        ("request > P50", longer("request", Limit::Quantile(0.5))),
        (
            "request > 4 x median",
            longer("request", Limit::Medians(4.0)),
        ),
        (
            "request > 1.5 times Median",
            longer("request", Limit::Medians(1.5)),
        ),
        (
            "request open for 1s",
            Condition::Open {
                name: "request".into(),
                for_ns: 1e9,
            },
        ),
        (
            "event error",
            Condition::Event {
                name: "error".into(),
            },
        ),
        (
            "event \"out of memory\"",
            Condition::Event {
                name: "out of memory".into(),
            },
        ),
        (
            "rate of beat < 100/s",
            Condition::Rate {
                name: "beat".into(),
                is_below: true,
                per_second: 100.0,
            },
        ),
        (
            "rate of beat > 30 / min",
            Condition::Rate {
                name: "beat".into(),
                is_below: false,
                per_second: 0.5,
            },
        ),
        ("lost > 0", Condition::Lost),
    ];
    for (text, expected) in cases {
        let is_near = |a: &Condition, b: &Condition| match (a, b) {
            (
                Condition::Longer {
                    name,
                    limit: Limit::Nanoseconds(a),
                },
                Condition::Longer {
                    name: other,
                    limit: Limit::Nanoseconds(b),
                },
            ) => name == other && (a - b).abs() <= b * 1e-12,
            (
                Condition::Longer {
                    name,
                    limit: Limit::Quantile(a),
                },
                Condition::Longer {
                    name: other,
                    limit: Limit::Quantile(b),
                },
            ) => name == other && (a - b).abs() <= 1e-12,
            _ => a == b,
        };
        let found = condition(text);
        assert!(is_near(&found, &expected), "{text}: {found:?}");
    }
}

/// Each error is at the character from which on the text is no rule.
#[test]
fn an_error_points_at_the_character() {
    let cases = [
        ("", 0, "a rule is"),
        ("request", 7, "a comparison is missing"),
        ("request >", 9, "a time is missing"),
        ("request > 5", 11, "a unit"),
        ("request > 5 parsecs", 12, "a unit"),
        ("request > fast", 10, "a time above 0"),
        ("request > 0ms", 10, "a time above 0"),
        ("request > 1e999s", 11, "a unit"),
        ("request > p100", 10, "a percentile below 100"),
        ("request > p", 10, "a percentile"),
        ("request > 4 x mean", 14, "\"median\""),
        ("request > 4 x", 13, "\"median\" is missing"),
        ("request < 5ms", 8, "a rule is"),
        ("request = 5ms", 8, "a rule is"),
        ("request > 5ms now", 14, "nothing more"),
        ("request open 5ms", 13, "\"for\""),
        ("request open for", 16, "a time is missing"),
        ("> 5ms", 0, "a name"),
        ("\"request > 5ms", 0, "the second quotation mark"),
        ("\"\" > 5ms", 0, "a name is empty"),
        ("event", 5, "a comparison is missing"),
        ("event >", 7, "a time is missing"),
        ("rate of beat", 12, "< or >"),
        ("rate of beat = 5/s", 13, "< or >"),
        ("rate of beat < 5", 15, "a rate"),
        ("rate of beat < 5/fortnight", 15, "a rate"),
        ("lost > 5", 7, "0 is expected"),
    ];
    for (text, at, why) in cases {
        let error = text.parse::<Rule>().expect_err(text);
        assert_eq!(error.at, at, "{text}: {error}");
        assert!(error.why.contains(why), "{text}: {error}");
    }
    let error = "größe > fast".parse::<Rule>().unwrap_err();
    let shown = error.to_string();
    let (line, mark) = shown.split_once('\n').unwrap();
    assert_eq!(line, "größe > fast");
    assert_eq!(mark.find('^'), Some(8), "{shown}");
}

/// Whatever the text, the answer is a rule or an error inside the text.
#[test]
fn any_text_gives_an_answer() {
    let parts = [
        "request", ">", "<", "5", "ms", "p99", "x", "median", "open", "for", "event", "rate", "of",
        "/", "/s", "lost", "0", "\"", " ", "é", ".", "",
    ];
    for a in parts {
        for b in parts {
            for c in parts {
                for d in parts {
                    let text = format!("{a}{b} {c}{d}");
                    if let Err(error) = text.parse::<Rule>() {
                        assert!(text.is_char_boundary(error.at), "{text}: {error:?}");
                        let _ = error.to_string();
                    }
                }
            }
        }
    }
}
