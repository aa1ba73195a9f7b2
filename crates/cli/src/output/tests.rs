use super::*;

#[test]
fn long_lines_of_errors_keep_both_ends() {
    assert_eq!(shortened("a\nb"), "a\nb");
    let long = format!("file: {}: mend", "x".repeat(1 << 20));
    let short = shortened(&format!("one\n{long}"));
    assert!(
        short.starts_with("one\nfile: x") && short.ends_with("x: mend"),
        "{short}"
    );
    assert!(short.chars().count() < MOST_OF_A_LINE + 10);
}
