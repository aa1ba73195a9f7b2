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
fn a_tool_of_the_tests_may_have_its_own_licence_while_nothing_ships_it() {
    let lock = |dev: &str, licence: &str| {
        let package = format!(r#"{{{dev} "license": "{licence}"}}"#);
        format!(r#"{{"packages": {{"": {{}}, "node_modules/axe-core": {package}}}}}"#)
    };
    let none: [&str; 0] = [];
    assert_eq!(
        not_allowed(&lock(r#""dev": true,"#, "MPL-2.0")).unwrap(),
        none
    );
    let shipped = not_allowed(&lock("", "MPL-2.0")).unwrap();
    assert_eq!(shipped, ["node_modules/axe-core: MPL-2.0"]);
    let other = not_allowed(&lock(r#""dev": true,"#, "GPL-3.0")).unwrap();
    assert_eq!(other, ["node_modules/axe-core: GPL-3.0"]);
}

#[test]
fn summary_lines_are_counted() {
    assert_eq!(counted("# pass 17"), (17, 0, 0));
    assert_eq!(counted("# fail 2"), (0, 2, 0));
    assert_eq!(counted("# skipped 3"), (0, 0, 3));
    assert_eq!(counted("# Subtest: pass 3"), (0, 0, 0));
}
