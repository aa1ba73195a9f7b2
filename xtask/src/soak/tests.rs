use super::{Soaked, seconds};

#[test]
fn times() {
    assert_eq!(seconds("90s"), Some(90));
    assert_eq!(seconds("20m"), Some(1200));
    assert_eq!(seconds("8h"), Some(28_800));
    assert_eq!(seconds("5"), Some(5));
    for bad in ["", "h", "0s", "1d", "-1s", "99999999999999999999h"] {
        assert_eq!(seconds(bad), None, "{bad}");
    }
}

#[test]
fn what_is_no_soak() {
    let of = |kept, lost, end| Soaked {
        seconds: 1,
        written: 100,
        kept,
        lost,
        own: (20_000.0, end),
        rings: (0.0, 0.0),
        readings: 1,
    };
    assert!(of(90, 10, 20_000.0).check().is_ok());
    assert!(of(90, 9, 20_000.0).check().is_err());
    assert!(of(100, 0, 30_000.0).check().is_err());
    let unseen = Soaked {
        readings: 0,
        ..of(90, 10, 20_000.0)
    };
    assert!(unseen.check().is_err());
}
