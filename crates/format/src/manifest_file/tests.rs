use super::*;

#[test]
fn texts_are_measured_as_they_stand() {
    assert_eq!(text_bytes(b"ab\"c"), 2);
    assert_eq!(text_bytes(br#"a\"b\\"c"#), 6);
    assert_eq!(text_bytes(b"open"), 4);
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MOST_TEXT_BYTES + 1));
    assert!(
        check_texts(long.as_bytes())
            .unwrap_err()
            .starts_with("byte 6: ")
    );
    let fits = format!("{{\"a\":\"{}\"}}", "x".repeat(MOST_TEXT_BYTES));
    assert_eq!(check_texts(fits.as_bytes()), Ok(()));
}
