use super::*;

#[test]
fn links_of_a_file() {
    let mut all = BTreeMap::new();
    all.insert("docs/format.md".to_owned(), Document::parse("# A head\n"));
    let check = |to: &str| leads_somewhere(&all, "docs/book/clocks.md", to).is_ok();
    assert!(check("../format.md"));
    assert!(check("../format.md#a-head"));
    assert!(!check("../format.md#another"));
    assert!(!check("format.md"));
    assert!(check("../../README.md"));
    assert!(check("https://example.org/x.md"));
}
