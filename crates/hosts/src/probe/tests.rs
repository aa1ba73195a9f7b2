use std::sync::atomic::{AtomicBool, Ordering};

use undertick_clock::ClockId;

use super::*;

const SHORT: Asking = Asking {
    length: Duration::from_millis(300),
    every: Duration::from_millis(3),
};

fn raw() -> (Source, Side) {
    let source = Source::open(ClockId::MonotonicRaw).unwrap();
    (source, here(source, TickRate::NANOSECONDS))
}

/// Runs a listener in a thread and calls `ask` with its address.
fn with_listener<T>(ask: impl FnOnce(SocketAddr) -> T) -> (T, Listener) {
    let (source, side) = raw();
    let mut listener = Listener::bind("127.0.0.1:0", source, &side).unwrap();
    let address = listener.address().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let answering = scope.spawn(|| {
            listener.answer(|| stop.load(Ordering::Relaxed)).unwrap();
            listener
        });
        let found = ask(address);
        stop.store(true, Ordering::Relaxed);
        (found, answering.join().unwrap())
    })
}

/// Both sides read one clock, so the four stamps ascend.
#[test]
fn stamps_of_one_clock_ascend() {
    let (file, listener) = with_listener(|address| {
        let address = address.to_string();
        let file = ask(&address, raw(), SHORT, || false, &mut |_| {}).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        // Packets of strangers get no answer.
        let hello = Packet {
            kind: PacketKind::Hello,
            session: 1,
            number: 0,
            stamps: [0; 3],
        };
        for bytes in [&b"hello"[..], &hello.to_bytes(), &[0; 64]] {
            socket.send_to(bytes, &address).unwrap();
        }
        socket
            .set_read_timeout(Some(Duration::from_millis(150)))
            .unwrap();
        assert!(socket.recv(&mut [0; 2000]).is_err());
        file
    });
    assert!(file.exchanges.len() > 20, "{}", file.exchanges.len());
    // The waits are jittered: no two of the first ones are alike.
    let sent = |i: usize| file.exchanges[i][0];
    let waits: Vec<i64> = (1..20).map(|i| sent(i) - sent(i - 1)).collect();
    assert!(
        waits.iter().max() > waits.iter().min().map(|w| w + 100_000).as_ref(),
        "{waits:?}"
    );
    assert!(file.exchanges.iter().all(|stamps| stamps.is_sorted()));
    assert!(file.exchanges.len() as u64 <= file.sent);
    assert_eq!(listener.strange, 3);
    assert!(listener.answered >= file.exchanges.len() as u64);
    assert_eq!(file.there, raw().1);
    assert!(file.there.clock.is_same(&file.here.clock));
}

#[test]
fn stopping_early_keeps_what_there_is() {
    let mut asked = 0;
    let (file, _) = with_listener(|address| {
        let stop = || {
            asked += 1;
            asked > 20
        };
        let long = Asking {
            length: Duration::from_secs(60),
            ..SHORT
        };
        ask(&address.to_string(), raw(), long, stop, &mut |_| {}).unwrap()
    });
    assert!(
        (1..=20).contains(&file.exchanges.len()),
        "{}",
        file.exchanges.len()
    );
}

/// A stranger answers with another session's number, twice, or answers questions that were never
/// asked.
#[test]
fn answers_of_strangers_and_copies_are_not_taken() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    server
        .set_read_timeout(Some(Duration::from_millis(400)))
        .unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = [0; 2000];
            while let Ok((length, from)) = server.recv_from(&mut bytes) {
                let packet = Packet::from_bytes(&bytes[..length]).unwrap();
                let send = |packet: Packet, more: &[u8]| {
                    let bytes = [&packet.to_bytes()[..], more].concat();
                    server.send_to(&bytes, from).unwrap();
                };
                let (other, kind) = (packet.session ^ 1, PacketKind::Welcome);
                if packet.kind == PacketKind::Hello {
                    let session = other;
                    send(
                        Packet {
                            kind,
                            session,
                            ..packet
                        },
                        b"no JSON",
                    );
                    let side = serde_json::to_vec(&raw().1).unwrap();
                    send(Packet { kind, ..packet }, &side);
                    continue;
                }
                let kind = PacketKind::Answer;
                let stamps = [packet.stamps[0], 1, 2];
                send(
                    Packet {
                        kind,
                        session: other,
                        stamps,
                        ..packet
                    },
                    b"",
                );
                send(
                    Packet {
                        kind,
                        number: 1 << 40,
                        stamps,
                        ..packet
                    },
                    b"",
                );
                send(
                    Packet {
                        kind,
                        stamps,
                        ..packet
                    },
                    b"x",
                );
                send(
                    Packet {
                        kind,
                        stamps: [packet.stamps[0], 3, 4],
                        ..packet
                    },
                    b"",
                );
                send(
                    Packet {
                        kind,
                        stamps,
                        ..packet
                    },
                    b"",
                );
            }
        });
        let file = ask(&address, raw(), SHORT, || false, &mut |_| {}).unwrap();
        assert!(file.exchanges.len() > 10);
        assert!(file.exchanges.iter().all(|stamps| stamps[1..3] == [3, 4]));
    });
}

#[test]
fn who_cannot_be_asked_is_said() {
    let refused = |address: &str| {
        let error = ask(address, raw(), SHORT, || false, &mut |_| {}).unwrap_err();
        (error.exit_status(), error.to_string())
    };
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    let (source, side) = raw();
    let taken = Listener::bind(&address, source, &side)
        .unwrap_err()
        .to_string();
    assert!(taken.contains("this port is taken"), "{taken}");
    // Nothing reads what arrives.
    let (status, text) = refused(&address);
    assert!(
        status == 1 && text.contains("no answer: start `undertick sync --listen`"),
        "{text}"
    );
    drop(free);
    let (status, text) = refused(&address);
    assert!(status == 1 && text.contains("nobody listens"), "{text}");
    let (status, text) = refused("no such host");
    assert!(
        status == 2 && text.contains("no such host: give HOST"),
        "{text}"
    );
}
