use super::upwards;

#[test]
fn per_cents_are_rounded_upwards() {
    assert_eq!(
        [0.0, 3.4, 3.41, 9.96, 10.2].map(upwards),
        ["0.0", "3.4", "3.5", "10", "11"]
    );
}
