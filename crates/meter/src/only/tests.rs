use super::matches;

#[test]
fn forms() {
    for (form, name) in [
        ("parse", "parse"),
        ("*", ""),
        ("*", "anything at all"),
        ("par*", "parse"),
        ("*rse", "parse"),
        ("p?r*e", "parse"),
        ("*a*b*c*", "xxaxxbxxbc"),
        ("a**b", "ab"),
        ("h\u{e9}*", "h\u{e9}llo"),
    ] {
        assert!(matches(form, name), "{form} {name}");
    }
    for (form, name) in [
        ("parse", "parser"),
        ("parse", "Parse"),
        ("", "x"),
        ("?", ""),
        ("*a*b", "ba"),
        ("a*b*c", "abcb"),
    ] {
        assert!(!matches(form, name), "{form} {name}");
    }
}

/// Matching many stars with a long name takes little time.
#[test]
fn stars_do_not_explode() {
    assert!(!matches(&"*a".repeat(40), &("a".repeat(5000) + "b")));
}
