use super::*;

#[test]
fn markup_becomes_text() {
    assert_eq!(
        Text("<a href='x' title=\"y\">&amp;\x07").to_string(),
        "&lt;a href=&#39;x&#39; title=&quot;y&quot;&gt;&amp;amp;\\u{7}"
    );
    assert_eq!(Lines("a\nb<").to_string(), "a\nb&lt;");
}

#[test]
fn escaped_json_says_the_same() {
    let value = serde_json::json!({"name": "</script><!--&\u{2028}\u{202e}\u{e0041}\u{7f}"});
    let escaped = json(&value.to_string());
    assert!(!escaped.contains(['<', '>', '&', '\u{2028}', '\u{202e}', '\u{e0041}', '\u{7f}']));
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&escaped).unwrap(),
        value
    );
}
