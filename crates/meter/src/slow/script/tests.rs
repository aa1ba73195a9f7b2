use super::*;

const GOOD: &str = "cycles = 100\n[[step]]\nname = \"small\"\nwork = \"50us\"\n\
        [[step]]\ncall = \"getppid\"\n[[step]]\npoint = false\nsleep = \"1ms\"\n";

#[test]
fn a_script() {
    let script = Script::parse(GOOD).unwrap();
    assert_eq!(script.length, Length::Cycles(100));
    assert_eq!(script.activities.len(), 2);
    assert_eq!(script.activities[0].name, "small");
    assert_eq!(script.activities[0].steps, [Step::Work { ns: 50_000.0 }]);
    assert_eq!(script.activities[1].steps.len(), 2);
    assert!(script.blocks());
}

#[test]
fn mistakes_name_their_place_and_the_nearest_word() {
    for (from, to, expected) in [
        (
            "\"getppid\"",
            "\"getpid\"",
            "6:8: there is no call \"getpid\"; did you mean \"getppid\"?",
        ),
        (
            "\"50us\"",
            "\"50 mikros\"",
            "4:8: \"50 mikros\" is no duration",
        ),
        (
            "name =",
            "nome =",
            "3:1: there is no key \"nome\"; did you mean \"name\"?",
        ),
        (
            "cycles = 100",
            "cycles = 1",
            "1:10: cycles = 1 is out of range; from 2 to 1000000000",
        ),
        (
            "cycles = 100",
            "cycles = 1000000001",
            "1:10: cycles = 1000000001 is out of range; from 2 to 1000000000",
        ),
        ("cycles = 100", "seconds = 1e300", "1:11: seconds = 1"),
        (
            "cycles = 100",
            "seconds = inf",
            "1:11: seconds = inf is out of range; above 0, up to 3600",
        ),
        (
            "cycles = 100",
            "cycles = 100\nshots = 4611686018427387904",
            "2:9: shots = 4611686018427387904 is out of range; from 1 to 1000000",
        ),
        (
            "cycles = 100",
            "cycles = 100\nwarm_up = 4611686018427387904",
            "2:11: warm_up = 4611686018427387904 is out of range; from 0 to",
        ),
        ("cycles = 100", "", "1:1: say how long"),
        ("work = \"50us\"", "", "2:1: a step is one of"),
    ] {
        let error = Script::parse(&GOOD.replace(from, to))
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn durations() {
    assert_eq!(duration_ns("2.5ms"), Some(2_500_000.0));
    assert_eq!(duration_ns("800 ns"), Some(800.0));
    for bad in ["", "5", "us", "-1us", "1h", "1e99s", "nans"] {
        assert_eq!(duration_ns(bad), None, "{bad}");
    }
}
