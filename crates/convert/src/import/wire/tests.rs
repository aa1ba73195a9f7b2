use super::*;

#[test]
fn fields_by_hand() {
    // 1: 300; 2: "ab"; 3: eight bytes; 4: four bytes.
    let bytes = [
        0x08, 0xac, 0x02, 0x12, 2, b'a', b'b', 0x19, 1, 0, 0, 0, 0, 0, 0, 1, 0x25, 2, 0, 0, 0,
    ];
    let found: Vec<(u64, Value<'_>)> = Fields(&bytes).collect();
    let expected = [
        (1, Value::Number(300)),
        (2, Value::Bytes(b"ab")),
        (3, Value::Number(1 << 56 | 1)),
        (4, Value::Number(2)),
    ];
    assert_eq!(found, expected);
    assert_eq!(Value::Bytes(&[1, 0xac, 2]).varints(), [1, 300]);
    // Cut at any position, the whole fields remain, and no more.
    for cut in 0..bytes.len() {
        assert!(Fields(&bytes[..cut]).count() <= 4);
    }
    let endless = [0xff; 11];
    assert_eq!(Fields(&endless).count(), 0);
}
