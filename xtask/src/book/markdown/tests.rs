use super::*;

#[test]
fn blocks_links_and_anchors() {
    let text = "# One `two`, three\n\n[a](b.md#c) ![p](p.png)\n\n```c title\nx\n```\n\n    y\n\n## Same\n\n## Same\n\n`[no](link)`\n";
    let document = Document::parse(text);
    let block = |language: &str, text: &str, line| Block {
        language: language.to_owned(),
        text: text.to_owned(),
        line,
    };
    assert_eq!(document.blocks, [block("c", "x\n", 5), block("", "y\n", 9)]);
    let links: Vec<&str> = document.links.iter().map(|l| l.to.as_str()).collect();
    assert_eq!(links, ["b.md#c", "p.png"]);
    assert_eq!(document.anchors, ["one-two-three", "same", "same-1"]);
}
