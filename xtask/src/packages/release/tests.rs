use super::{of_changelog, of_manifest};

#[test]
fn a_changelog_names_the_version_and_its_day() {
    let with =
        |heading: &str| format!("# Changelog\n\n{heading}\n\n### Added\n\n## 0.0.9 - 2024-01-02\n");
    assert_eq!(of_changelog(&with("## 1.2.3 - 2026-11-28"), "1.2.3"), None);
    for heading in [
        "## Unreleased",
        "## 1.2.3",
        "## 1.2.30 - 2026-11-28",
        "## 1.2.3 - today",
        "## 1.2.3 - 2026-11-2x",
    ] {
        assert!(of_changelog(&with(heading), "1.2.3").is_some(), "{heading}");
    }
}

#[test]
fn crates_of_another_version_are_named() {
    let manifest = "[workspace.dependencies]\na = { path = \"crates/a\", version = \"1.2.3\" }\n\
        b = { path = \"crates/b\", version = \"1.2.2\" }\nserde = { version = \"1.0\" }\n";
    assert_eq!(
        of_manifest(manifest, "1.2.3"),
        ["Cargo.toml asks for b 1.2.2, not 1.2.3"]
    );
}
