use super::*;

#[test]
fn places_by_hand() {
    let lines = Lines::new("ab\n\u{e4}\u{f6}x\n");
    assert_eq!(lines.place(0), (1, 1));
    assert_eq!(lines.place(2), (1, 3));
    assert_eq!(lines.place(3), (2, 1));
    assert_eq!(lines.place(7), (2, 3));
    assert_eq!(lines.place(9), (3, 1));
    assert_eq!(lines.place(900), (3, 1));
    assert_eq!(lines.line(7), 2);
    assert_eq!(Lines::new("").place(0), (1, 1));
}
