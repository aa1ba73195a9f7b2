use super::{Duration, parse, parse_time};

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
