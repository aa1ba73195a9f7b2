use super::*;

#[test]
fn pieces_by_hand() {
    let of = |text| pieces(0, text).unwrap();
    assert_eq!(of("$n"), [Piece::Parameter("n")]);
    assert_eq!(of("cpu $n"), [Piece::Plain("cpu "), Piece::Parameter("n")]);
    let with_unit = [Piece::Parameter("n"), Piece::Plain("us")];
    assert_eq!(of("${n}us"), with_unit);
    assert_eq!(of("$a$b"), [Piece::Parameter("a"), Piece::Parameter("b")]);
    assert_eq!(of(""), [Piece::Plain("")]);
    for bad in ["$", "a$ b", "${", "${}", "${n", "$1", "$$"] {
        assert!(pieces(0, bad).is_err(), "{bad}");
    }
}

#[test]
fn ranges_by_hand() {
    let of = |text| {
        let values = range("n", 0, text).unwrap();
        values.iter().map(|v| shown(&v.kind)).collect::<Vec<_>>()
    };
    assert_eq!(of("1..4"), ["1", "2", "3", "4"]);
    assert_eq!(of("1..16 by 5"), ["1", "6", "11", "16"]);
    assert_eq!(of("7..7"), ["7"]);
    assert_eq!(of("0..9 by 4"), ["0", "4", "8"]);
    assert_eq!(of("18446744073709551615..18446744073709551615").len(), 1);
    for bad in [
        "",
        "1",
        "4..1",
        "1..4 by 0",
        "-1..4",
        "1..18446744073709551615",
        "a..b",
    ] {
        assert!(range("n", 0, bad).is_err(), "{bad}");
    }
}
