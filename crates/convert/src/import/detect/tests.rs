use super::*;

#[test]
fn first_bytes() {
    assert_eq!(of_start(b"\n [{"), Some(Source::Chrome));
    assert_eq!(of_start(b"{\"a\":1"), Some(Source::Chrome));
    // Trace.packet, 4 bytes: timestamp 1, sequence 1.
    assert_eq!(
        of_start(&[0x0a, 4, 0x40, 1, 0x50, 1]),
        Some(Source::Perfetto)
    );
    for text in [
        &b"{\"resourceSpans\":["[..],
        b"\n{ \"resourceSpans\" : [",
        // A request of 8 bytes: resource_spans of 6, a scope of 4; by a varint, and by four bytes.
        &[8, 0x0a, 6, 0x12, 4, 0x12, 2, 0x2a, 0],
        &[0, 0, 0, 8, 0x0a, 6, 0x12, 4, 0x12, 2, 0x2a, 0],
    ] {
        assert_eq!(of_start(text), Some(Source::Otlp), "{text:?}");
    }
    assert_eq!(
        of_start(b"# captured\n\n sh 12 [000] 1.5: cycles: 7f\n"),
        Some(Source::PerfScript)
    );
    for other in [&b""[..], b"hello", b"\n\n", &[0x0a, 200], b"\nhello: 1.5\n"] {
        assert_eq!(of_start(other), None, "{other:?}");
    }
}
