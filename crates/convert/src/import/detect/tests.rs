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
    assert_eq!(
        of_start(b"# captured\n\n sh 12 [000] 1.5: cycles: 7f\n"),
        Some(Source::PerfScript)
    );
    for other in [&b""[..], b"hello", b"\n\n", &[0x0a, 200], b"\nhello: 1.5\n"] {
        assert_eq!(of_start(other), None, "{other:?}");
    }
}
