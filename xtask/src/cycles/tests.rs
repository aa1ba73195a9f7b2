use std::collections::{BTreeMap, BTreeSet};

use super::{cycles, names_after, uses};

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn paths_are_found_in_lists_and_not_in_comments() {
    let text = "use crate::a::B;\nuse crate::{c, d::{self, e}, f as g};\n// crate::h\n\
        fn i() -> crate::j::K { undertick_crate::l() }\nuse other::crate_::m;\n";
    assert_eq!(
        names_after(text, "crate::"),
        set(&["a", "c", "d", "f", "j"])
    );
}

/// `b` with its part uses `a` and `c`, and `d/mod.rs` with its part `a` and `c`: as many `super` as the
/// file lies deep lead to the crate's root.
#[test]
fn parts_belong_to_their_module() {
    let files = [
        ("lib.rs", "mod a;".to_owned()),
        ("a.rs", "use super::b;".to_owned()),
        ("b.rs", "use crate::a;".to_owned()),
        ("b/part.rs", "use super::a;\nuse crate::c::X;".to_owned()),
        ("c.rs", String::new()),
        ("d/mod.rs", "use super::a;\nuse self::part::Y;".to_owned()),
        (
            "d/part.rs",
            "use super::super::c;\nuse super::b;".to_owned(),
        ),
    ];
    let expected: BTreeMap<String, BTreeSet<String>> = [
        ("a", set(&["b"])),
        ("b", set(&["a", "c"])),
        ("c", set(&[])),
        ("d", set(&["a", "c"])),
        ("lib", set(&[])),
    ]
    .into_iter()
    .map(|(name, uses)| (name.to_owned(), uses))
    .collect();
    assert_eq!(uses(&files), expected);
}

#[test]
fn cycles_of_two_do_not_count() {
    let graph = |edges: &[(&str, &[&str])]| {
        (edges.iter())
            .map(|&(from, to)| (from.to_owned(), set(to)))
            .collect::<BTreeMap<_, _>>()
    };
    let two = graph(&[("a", &["b"]), ("b", &["a", "c"]), ("c", &[])]);
    assert_eq!(cycles(&two), Vec::<Vec<String>>::new());
    let three = graph(&[("a", &["b"]), ("b", &["c"]), ("c", &["a", "d"]), ("d", &[])]);
    assert_eq!(cycles(&three), [["a", "b", "c"]]);
}
