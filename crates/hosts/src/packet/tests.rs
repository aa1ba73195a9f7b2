use super::*;

#[test]
fn packets_are_as_documented() {
    let packet = Packet {
        kind: PacketKind::Answer,
        session: 0x0102,
        number: 3,
        stamps: [-1, 5, i64::MIN],
    };
    let bytes = packet.to_bytes();
    assert_eq!(&bytes[..9], b"UTSYNC01\x04");
    assert_eq!((bytes[16], bytes[17], bytes[32]), (2, 1, 3));
    assert_eq!(
        (bytes[40], bytes[47], bytes[48], bytes[63]),
        (255, 255, 5, 128)
    );
    assert_eq!(Packet::from_bytes(&bytes), Some(packet));
    assert_eq!(
        Packet::from_bytes(&[&bytes[..], b"{}"].concat()),
        Some(packet)
    );
}

#[test]
fn other_bytes_are_no_packet() {
    let packet = Packet {
        kind: PacketKind::Hello,
        session: 1,
        number: 0,
        stamps: [0; 3],
    };
    let good = packet.to_bytes();
    assert_eq!(Packet::from_bytes(&good[..63]), None);
    assert_eq!(Packet::from_bytes(&[]), None);
    for at in 0..=8 {
        let mut bad = good;
        bad[at] = 77;
        assert_eq!(Packet::from_bytes(&bad), None, "{at}");
    }
}
