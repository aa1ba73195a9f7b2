use super::*;

#[test]
fn times_have_units_and_few_digits() {
    assert_eq!(
        [0.3846, 5.0, 19.53, 10.0].map(ns),
        ["0.38 ns", "5 ns", "19.5 ns", "10 ns"]
    );
    assert_eq!(
        [4_000_000.0, 27_400.0, -31.2].map(ns),
        ["4 ms", "27.4 us", "-31.2 ns"]
    );
    assert_eq!(seconds(0.000_655_36), "655 us");
    assert_eq!(seconds(42.9), "42.9 s");
    assert_eq!(seconds(1.844_674e10), "585 years");
    assert_eq!(seconds(90_000.0), "25.0 h");
}
