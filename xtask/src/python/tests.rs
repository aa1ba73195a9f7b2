use super::counted;

#[test]
fn the_last_line_of_pytest() {
    let line = "=== 2 failed, 148 passed, 1 skipped in 32.15s ===";
    assert_eq!(counted(line, "passed"), Some(148));
    assert_eq!(counted(line, "failed"), Some(2));
    assert_eq!(counted(line, "error"), None);
    assert_eq!(counted("35 passed in 7.29s", "passed"), Some(35));
    assert_eq!(counted("nobody passed", "passed"), None);
}
