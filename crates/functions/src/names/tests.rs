use super::*;

/// Expected values derived by hand from the grammar of the names (Itanium C++ ABI).
#[test]
fn as_a_person_reads_them() {
    for (symbol, name) in [
        ("main", "main"),
        ("_start", "_start"),
        ("_Zrubbish", "_Zrubbish"),
        ("_Z1fv", "f()"),
        ("_Z1fid", "f(int, double)"),
        ("_ZN1a1bEPKc", "a::b(char const*)"),
        ("_ZN1aC1Ev", "a::a()"),
        ("_ZN1aD2Ev", "a::~a()"),
        ("_ZN1alsEi", "a::operator<<(int)"),
        // A template's symbol states its return type, which is left out here.
        ("_Z1gIiEvT_", "g<int>(int)"),
        ("_ZNK1a1cEv", "a::c() const"),
    ] {
        assert_eq!(demangled(symbol), name, "{symbol}");
    }
}

#[test]
fn long_ones_lose_arguments_inside_out() {
    let x = "x".repeat(60);
    for (full, expected) in [
        (
            "f<int, g<h> >(int)".to_owned(),
            "f<int, g<h> >(int)".to_owned(),
        ),
        (
            format!("f({STRING} const&)"),
            "f(std::string const&)".to_owned(),
        ),
        (
            format!("f<int, g<{x}>, h>(int, g<k>)"),
            "f<int, g<\u{2026}>, h>(int, g<k>)".to_owned(),
        ),
        (
            format!("f<{x}>::g<{x}>()"),
            "f<\u{2026}>::g<\u{2026}>()".to_owned(),
        ),
        (
            format!("a<{x}, b<{x}> >::operator<<(b<c<int> >)"),
            "a<\u{2026}>::operator<<(b<\u{2026}>)".to_owned(),
        ),
        (
            format!("a<{x}>::operator->(b<{x}>)"),
            "a<\u{2026}>::operator->(b<\u{2026}>)".to_owned(),
        ),
        // Unbalanced brackets leave the name unchanged.
        (format!("{x}>{x}"), format!("{x}>{x}")),
        (format!("{x}<{x}"), format!("{x}<{x}")),
    ] {
        assert_eq!(shown(&full), expected, "{full}");
    }
    let endless = shown(&"\u{e9}".repeat(1000));
    assert_eq!(endless.chars().count(), 151);
    assert!(endless.ends_with('\u{2026}'));
}
