use super::*;

#[test]
fn microseconds_by_hand() {
    let us = |text| ns(text, 3).map(|found| (found.ns, found.is_cut));
    assert_eq!(us("123.456"), Some((123_456, false)));
    assert_eq!(us("123"), Some((123_000, false)));
    assert_eq!(us("0.0019"), Some((1, true)));
    assert_eq!(us("-0.001"), Some((-1, false)));
    assert_eq!(us("-0.0011"), Some((-2, true)));
    assert_eq!(us("1.5e3"), Some((1_500_000, false)));
    assert_eq!(us("15E-1"), Some((1500, false)));
    // A double would have lost the last digit.
    assert_eq!(
        us("1700000000123456.789"),
        Some((1_700_000_000_123_456_789, false))
    );
    assert_eq!(us("0e99"), Some((0, false)));
    assert_eq!(us("1e-99"), Some((0, true)));
    for bad in [
        "",
        ".",
        "-",
        "1e",
        "1e99",
        "1.2.3",
        "nan",
        "0x1",
        "1e+",
        "99999999999999999999",
    ] {
        assert_eq!(us(bad), None, "{bad}");
    }
    assert_eq!(us("."), None);
}
