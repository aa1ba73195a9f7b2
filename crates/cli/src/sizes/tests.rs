use super::*;

#[test]
fn times() {
    assert_eq!(parse_time("500ms"), Ok(Duration::from_millis(500)));
    assert_eq!(parse_time("10s"), Ok(Duration::from_secs(10)));
    assert_eq!(parse_time("2m"), Ok(Duration::from_secs(120)));
    assert_eq!(parse_time("1.5h"), Ok(Duration::from_secs(5400)));
    for wrong in [
        "",
        "10",
        "s",
        "0s",
        "-1s",
        "1d",
        "1.2.3s",
        "1e400h",
        "9999999999999999999h",
    ] {
        assert!(parse_time(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn sizes() {
    assert_eq!(parse("4096"), Ok(4096));
    assert_eq!(parse("64KiB"), Ok(65_536));
    assert_eq!(parse("16m"), Ok(16 << 20));
    assert_eq!(parse("1GiB"), Ok(1 << 30));
    assert!(
        parse("x").is_err()
            && parse("1TB").is_err()
            && parse("99999999999G").is_err()
            && parse("").is_err()
    );
}

#[test]
fn times_before_and_after() {
    let seconds = Duration::from_secs_f64;
    assert_eq!(
        parse_before_and_after("2s..0.5s"),
        Ok((seconds(2.0), seconds(0.5)))
    );
    assert_eq!(
        parse_before_and_after("0s .. 100ms"),
        Ok((seconds(0.0), seconds(0.1)))
    );
    for wrong in ["2s", "2s..", "..1s", "2..1s", "1s..2s..3s", "2s..25h"] {
        assert!(parse_before_and_after(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_number_in_a_time() {
    let seconds = Duration::from_secs;
    assert_eq!(parse_at_most("10/min"), Ok((10, seconds(60))));
    assert_eq!(parse_at_most("1/s"), Ok((1, seconds(1))));
    assert_eq!(parse_at_most("100 / 24h"), Ok((100, seconds(86_400))));
    for wrong in ["10", "0/min", "-1/s", "10/", "10/day", "1.5/s"] {
        assert!(parse_at_most(wrong).is_err(), "{wrong}");
    }
}
