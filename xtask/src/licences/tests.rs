use super::allowed;

#[test]
fn expressions() {
    assert!(
        allowed("MIT OR GPL-3.0")
            && allowed("MIT/Apache-2.0")
            && allowed("(MIT OR Apache-2.0) AND Unicode-3.0")
    );
    assert!(
        !allowed("GPL-3.0")
            && !allowed("MIT AND GPL-3.0")
            && !allowed("(MIT OR Apache-2.0) AND GPL-3.0")
    );
    assert!(!allowed("none stated"));
}
