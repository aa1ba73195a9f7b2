use super::*;

#[test]
fn dates_by_the_calendar() {
    // Expected dates from `date -u -d @...`.
    for (unix_s, date) in [
        (0, "1970-01-01 00:00:00 UTC"),
        (951_782_399, "2000-02-28 23:59:59 UTC"),
        (951_782_400, "2000-02-29 00:00:00 UTC"),
        (1_772_323_200, "2026-03-01 00:00:00 UTC"),
        (4_107_542_399, "2100-02-28 23:59:59 UTC"),
        (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        (-1, "1969-12-31 23:59:59 UTC"),
    ] {
        assert_eq!(unix_date(unix_s * 1_000_000_000), date);
    }
    assert_eq!(unix_date(-1), "1969-12-31 23:59:59 UTC");
}

#[test]
fn plurals_and_parts() {
    assert_eq!(number_of(1, "thread"), "1 thread");
    assert_eq!(number_of(0, "thread"), "0 threads");
    assert_eq!(number_of(2, "process"), "2 processes");
    assert_eq!(parts(42.4), "42 ppb");
    assert_eq!(parts(1_715.0), "1.7 ppm");
}

#[test]
fn quantiles_are_named_in_per_cent() {
    let named = ["0.5", "0.9", "0.99", "0.999", "rest"].map(quantile_name);
    assert_eq!(named, ["p50", "p90", "p99", "p99.9", "rest"]);
}

#[test]
fn a_mean_between_modes_is_said() {
    let mode = |at| Mode {
        at,
        lo: at,
        hi: at,
        share: 0.5,
        place: None,
        share_interval: None,
        valley: None,
    };
    let modes = [mode(7.0), mode(32.0)];
    // A tenth of the distance to the next mode is 2.5.
    let said = [9.4, 9.6, 29.4, 29.6, 40.0].map(|mean| is_between(mean, &modes));
    assert_eq!(said, [false, true, true, false, false]);
}
