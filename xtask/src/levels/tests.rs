use std::collections::BTreeMap;

use serde_json::json;

use super::{against, dependencies, levels};

const TEXT: &str = "## Code map\n\n### Level 0\n\n**`a`**: one.\n**`b`**: two.\n\n### Level 1\n\n\
    **`c`**: three.\n\n### Beside the levels\n\n**`x`**: four.\n";

fn crates(of: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    of.iter()
        .map(|&(name, needed)| (name.to_owned(), owned(needed)))
        .collect()
}

#[test]
fn a_dependency_that_is_not_down_is_named() {
    let found = levels(TEXT);
    assert_eq!(found, [("a".into(), 0), ("b".into(), 0), ("c".into(), 1)]);
    let good = crates(&[("a", &[]), ("b", &[]), ("c", &["a", "b"])]);
    assert_eq!(against(&found, &good), Vec::<String>::new());
    let beside = crates(&[("a", &["xtask"]), ("b", &[]), ("c", &[])]);
    assert_eq!(
        against(&found, &beside),
        ["a (level 0) depends on xtask, which has no level"]
    );
    let upward = crates(&[("a", &["c"]), ("b", &[]), ("c", &[])]);
    let same = crates(&[("a", &["b"]), ("b", &[]), ("c", &[])]);
    for (crates, other) in [(upward, "c (level 1)"), (same, "b (level 0)")] {
        let wrong = against(&found, &crates);
        assert_eq!(wrong.len(), 1);
        let start = format!("a (level 0) depends on {other}");
        assert!(wrong[0].starts_with(&start), "{wrong:?}");
    }
}

#[test]
fn a_crate_without_a_level_and_a_level_without_a_crate_are_named() {
    let missing = against(
        &levels(TEXT),
        &crates(&[("a", &[]), ("c", &[]), ("d", &[])]),
    );
    assert_eq!(
        missing,
        [
            "b is no crate of the workspace",
            "d must be described under one level"
        ]
    );
}

#[test]
fn dependencies_of_tests_do_not_count() {
    let needed = |name: &str, kind: Option<&str>| json!({"name": name, "kind": kind, "path": "/"});
    let metadata = json!({"packages": [
        {"name": "undertick-c", "dependencies": [
            needed("undertick-a", None),
            needed("undertick-b", Some("build")),
            needed("undertick-d", Some("dev")),
            {"name": "serde", "kind": null, "path": null},
        ]},
        {"name": "undertick", "dependencies": []},
        {"name": "serde", "source": "registry", "dependencies": []},
        {"name": "xtask", "dependencies": [needed("undertick", None)]},
    ]});
    let expected = crates(&[("c", &["a", "b"]), ("undertick", &[])]);
    assert_eq!(dependencies(&metadata).unwrap(), expected);
}
