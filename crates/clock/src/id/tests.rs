use super::*;

#[test]
fn names_are_stable_and_read_back() {
    let names = ClockId::ALL.map(ClockId::name);
    assert_eq!(
        names,
        [
            "tsc",
            "cntvct",
            "monotonic",
            "monotonic_raw",
            "boottime",
            "monotonic_coarse",
            "realtime"
        ]
    );
    for clock in ClockId::ALL {
        assert_eq!(clock.name().parse(), Ok(clock));
    }
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    let error = "TSC".parse::<ClockId>().unwrap_err().to_string();
    assert!(
        error.contains("\"TSC\"") && error.contains("tsc, cntvct"),
        "{error}"
    );
}
