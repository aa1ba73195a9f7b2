use super::{counted, not_allowed};

#[test]
fn packages_need_a_licence_that_we_allow() {
    let lock = r#"{"packages": {"": {}, "node_modules/a": {"license": "MIT"},
            "node_modules/b": {"license": "GPL-3.0"}, "node_modules/c": {}}}"#;
    let bad = not_allowed(lock).unwrap();
    assert_eq!(
        bad,
        ["node_modules/b: GPL-3.0", "node_modules/c: none stated"]
    );
    assert!(not_allowed("{}").is_err());
}

#[test]
fn summary_lines_are_counted() {
    assert_eq!(counted("# pass 17"), (17, 0, 0));
    assert_eq!(counted("# fail 2"), (0, 2, 0));
    assert_eq!(counted("# skipped 3"), (0, 0, 3));
    assert_eq!(counted("# Subtest: pass 3"), (0, 0, 0));
}
