use super::*;

#[test]
fn harmful_characters_are_spelled_out() {
    assert_eq!(clean("a\x1b[31mb"), "a\\u{1b}[31mb");
    assert_eq!(
        clean("x\u{202e}y\u{200b}\u{7f}\u{9b}\u{2066}"),
        "x\\u{202e}y\\u{200b}\\u{7f}\\u{9b}\\u{2066}"
    );
    assert_eq!(clean("two\r\nlines\t"), "two  lines ");
    assert_eq!(clean("größe 測定 <b>"), "größe 測定 <b>");
}

#[test]
fn lines_stay_lines() {
    assert_eq!(clean_lines("a\nb\r\x1b"), "a\nb \\u{1b}");
}

#[test]
fn cells_are_no_formulas() {
    for formula in ["=1+1", "+1", "-1", "@x"] {
        assert_eq!(csv_cell(formula), format!("'{formula}"));
    }
    assert_eq!(csv_cell("\t=1"), "' =1");
    assert_eq!(csv_cell("\r=1"), "' =1");
    assert_eq!(csv_cell("=a,\"b\""), "\"'=a,\"\"b\"\"\"");
    assert_eq!(csv_cell("a,b"), "\"a,b\"");
    assert_eq!(csv_cell("a\nb\x1b"), "a b\\u{1b}");
    assert_eq!(csv_cell("a=b"), "a=b");
}

#[test]
fn cleaning_twice_is_cleaning_once() {
    let all: String = (0..0x11_0000).filter_map(char::from_u32).collect();
    let once = clean(&all).into_owned();
    assert_eq!(clean(&once), once);
    assert!(!once.contains(is_unsafe_to_show));
}
