use super::*;

#[test]
fn times_by_hand() {
    assert_eq!(nanos("2.5ms"), Some(2_500_000.0));
    assert_eq!(nanos("800 ns"), Some(800.0));
    assert_eq!(nanos("0us"), Some(0.0));
    assert_eq!(nanos("-1s"), Some(-1e9));
    for bad in ["", "5", "us", "1h", "1e999s", "nans", "infs", "1 e3s"] {
        assert_eq!(nanos(bad), None, "{bad}");
    }
}

#[test]
fn sizes_by_hand() {
    assert_eq!(bytes("4096"), Some(4096));
    assert_eq!(bytes("33KB"), Some(33_792));
    assert_eq!(bytes("4 KiB"), Some(4096));
    assert_eq!(bytes("1MiB"), Some(1_048_576));
    assert_eq!(bytes("1GiB"), Some(1_073_741_824));
    for bad in [
        "",
        "KiB",
        "1.5MiB",
        "-1KiB",
        "1TiB",
        "99999999999GiB",
        "4xB",
    ] {
        assert_eq!(bytes(bad), None, "{bad}");
    }
}
