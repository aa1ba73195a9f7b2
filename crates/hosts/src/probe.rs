//! Asks another host over UDP what its clock shows, and answers such questions.

use std::hash::{BuildHasher as _, RandomState};
use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use undertick_clock::Source;
use undertick_format::TraceError;
use undertick_format::identity::ClockIdentity;
use undertick_units::TickRate;

use super::exchanges::{Side, SyncFile};
use super::packet::{HELLO_BYTES, PACKET_BYTES, Packet, PacketKind};

/// The default port.
pub const PORT: u16 = 7367;
/// How often the answering side checks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);
/// How long to wait for the answer to a hello before the next one is sent.
const HELLO_WAIT: Duration = Duration::from_millis(250);
/// Hellos before giving up: two seconds.
const HELLOS: u32 = 8;
/// How long to wait for the last answers.
const LAST_WAIT: Duration = Duration::from_millis(200);

/// Describes this host as a side of exchanges.
#[must_use]
pub fn here(source: Source, rate: TickRate) -> Side {
    let uname = rustix::system::uname();
    Side {
        name: uname.nodename().to_string_lossy().into_owned(),
        clock: ClockIdentity::here(source.clock()),
        ticks_per_second_numerator: rate.numerator(),
        ticks_per_second_denominator: rate.denominator(),
    }
}

fn failed(address: impl std::fmt::Display, what: &str) -> TraceError {
    TraceError::Recording(format!("{address}: {what}"))
}

/// A socket that answers questions.
#[derive(Debug)]
pub struct Listener {
    socket: UdpSocket,
    source: Source,
    welcome: Vec<u8>,
    /// Questions answered.
    pub answered: u64,
    /// Packets that are not of this protocol.
    pub strange: u64,
}

impl Listener {
    /// Binds to the address.
    ///
    /// # Errors
    /// The address is taken, or not one of this host.
    pub fn bind(address: &str, source: Source, side: &Side) -> Result<Self, TraceError> {
        let socket = UdpSocket::bind(address).map_err(|e| match e.kind() {
            ErrorKind::AddrInUse => failed(
                address,
                "this port is taken: another `undertick sync --listen`? give another one",
            ),
            ErrorKind::AddrNotAvailable => failed(address, "no address of this host"),
            _ => failed(address, &format!("cannot listen: {e}")),
        })?;
        (socket.set_read_timeout(Some(LOOK)))
            .map_err(|e| failed(address, &format!("cannot listen: {e}")))?;
        let welcome = serde_json::to_vec(side).map_err(|e| failed(address, &e.to_string()))?;
        if PACKET_BYTES + welcome.len() > HELLO_BYTES {
            return Err(failed(address, "the name of this host is too long"));
        }
        Ok(Self {
            socket,
            source,
            welcome,
            answered: 0,
            strange: 0,
        })
    }

    /// Returns the address on which it listens.
    ///
    /// # Errors
    /// The system does not report it.
    pub fn address(&self) -> Result<SocketAddr, TraceError> {
        (self.socket.local_addr()).map_err(|e| failed("listening", &e.to_string()))
    }

    /// Answers until `stop` says so, which is asked ten times a second at least. It stores
    /// nothing about the hosts that ask.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn answer(&mut self, mut stop: impl FnMut() -> bool) -> Result<(), TraceError> {
        let mut bytes = [0; HELLO_BYTES + 1];
        while !stop() {
            let (length, from) = match self.socket.recv_from(&mut bytes) {
                Ok(received) => received,
                Err(e) if is_transient(&e) => continue,
                Err(e) => return Err(failed("listening", &format!("cannot receive: {e}"))),
            };
            let received = self.source.read_ticks_ordered() as i64;
            let Some(packet) = Packet::from_bytes(&bytes[..length]) else {
                self.strange += 1;
                continue;
            };
            match packet.kind {
                // A shorter hello could be forged to make us flood others.
                PacketKind::Hello if length == HELLO_BYTES => {
                    let kind = PacketKind::Welcome;
                    let mut reply = Packet { kind, ..packet }.to_bytes().to_vec();
                    reply.extend_from_slice(&self.welcome);
                    let _ = self.socket.send_to(&reply, from);
                }
                PacketKind::Question if length == PACKET_BYTES => {
                    let [sent, ..] = packet.stamps;
                    let mut reply = Packet {
                        kind: PacketKind::Answer,
                        stamps: [sent, received, 0],
                        ..packet
                    };
                    reply.stamps[2] = self.source.read_ticks_ordered() as i64;
                    // An answer that cannot be sent counts as lost.
                    self.answered +=
                        u64::from(self.socket.send_to(&reply.to_bytes(), from).is_ok());
                }
                _ => self.strange += 1,
            }
        }
        Ok(())
    }
}

/// Whether nothing came in time, a signal came, or an earlier packet found no receiver.
fn is_transient(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock
            | ErrorKind::TimedOut
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
    )
}

/// Settings for asking.
#[derive(Clone, Copy, Debug)]
pub struct Asking {
    /// How long to ask.
    pub length: Duration,
    /// Mean interval between two questions; each wait is half to one and a half of it.
    pub every: Duration,
}

/// Asks the host at `address` (`HOST` or `HOST:PORT`). `stop` ends it early with the exchanges so
/// far; `progress` receives the share done, 0 to 1.
///
/// # Errors
/// There is no such host, nothing listens there, nothing answers, or no question was answered.
pub fn ask(
    address: &str,
    (source, side): (Source, Side),
    asking: Asking,
    mut stop: impl FnMut() -> bool,
    progress: &mut dyn FnMut(f64),
) -> Result<SyncFile, TraceError> {
    let socket = connect(address)?;
    let mut random = random();
    let session: u128 = random.random();
    let there = hello(&socket, address, session, &mut stop)?;
    let mut file = SyncFile::new(side, there, address.to_owned());
    let mut seen = std::collections::HashSet::new();
    let begin = Instant::now();
    let mut next = begin;
    let end = begin + asking.length;
    while next < end && !stop() {
        // A question that cannot be sent counts as lost.
        let question = Packet {
            kind: PacketKind::Question,
            session,
            number: file.sent,
            stamps: [source.read_ticks_ordered() as i64, 0, 0],
        };
        let _ = socket.send(&question.to_bytes());
        file.sent += 1;
        next = Instant::now() + asking.every.mul_f64(0.5 + random.random::<f64>());
        let until = next.min(end);
        take_answers(&socket, source, session, until, &mut seen, &mut file)?;
        progress((begin.elapsed().as_secs_f64() / asking.length.as_secs_f64()).min(1.0));
    }
    if (file.exchanges.len() as u64) < file.sent {
        let until = Instant::now() + LAST_WAIT;
        take_answers(&socket, source, session, until, &mut seen, &mut file)?;
    }
    if file.exchanges.is_empty() {
        return Err(failed(
            address,
            "no question was answered: the host said hello and then nothing came back; is its \
             `undertick sync --listen` still running?",
        ));
    }
    Ok(file)
}

/// A generator whose numbers strangers cannot guess: the standard library's hash keys come from
/// the system.
fn random() -> ChaCha8Rng {
    let mut seed = [0; 32];
    for bytes in seed.chunks_exact_mut(8) {
        let word = RandomState::new().hash_one(0);
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    ChaCha8Rng::from_seed(seed)
}

fn connect(address: &str) -> Result<UdpSocket, TraceError> {
    let found = (address.to_socket_addrs())
        .or_else(|_| (address.trim_matches(['[', ']']), PORT).to_socket_addrs());
    let Some(to) = found.ok().and_then(|mut all| all.next()) else {
        let mend = "no such host: give HOST or HOST:PORT, a name or an address";
        return Err(TraceError::Usage(format!("{address}: {mend}")));
    };
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any);
    let connected = socket.and_then(|socket| {
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    });
    connected.map_err(|e| failed(address, &format!("cannot be reached: {e}")))
}

/// Asks which host answers at the address.
fn hello(
    socket: &UdpSocket,
    address: &str,
    session: u128,
    stop: &mut impl FnMut() -> bool,
) -> Result<Side, TraceError> {
    let mut question = [0; HELLO_BYTES];
    let hello = Packet {
        kind: PacketKind::Hello,
        session,
        number: 0,
        stamps: [0; 3],
    };
    question[..PACKET_BYTES].copy_from_slice(&hello.to_bytes());
    let listen = "start `undertick sync --listen` there first";
    let explain = |e: &std::io::Error| match e.kind() {
        ErrorKind::ConnectionRefused => {
            failed(address, &format!("nobody listens at this port: {listen}"))
        }
        _ => failed(address, &format!("cannot be reached: {e}")),
    };
    let mut bytes = [0; HELLO_BYTES];
    for _ in 0..HELLOS {
        if stop() {
            break;
        }
        socket.send(&question).map_err(|e| explain(&e))?;
        let until = Instant::now() + HELLO_WAIT;
        while let Some(length) =
            receive_until(socket, &mut bytes, until).map_err(|e| explain(&e))?
        {
            let packet = Packet::from_bytes(&bytes[..length]);
            if packet.is_some_and(|p| p.kind == PacketKind::Welcome && p.session == session) {
                let side: Result<Side, _> = serde_json::from_slice(&bytes[PACKET_BYTES..length]);
                return side.map_err(|e| {
                    let mend = "use the same version of Undertick on both hosts";
                    failed(address, &format!("does not say who it is ({e}): {mend}"))
                });
            }
        }
    }
    Err(failed(
        address,
        &format!(
            "no answer: {listen}, and let UDP through any firewall between, at port {}",
            socket.peer_addr().map_or(PORT, |a| a.port())
        ),
    ))
}

/// Receives a packet that comes before `until`; `None` if none did.
fn receive_until(
    socket: &UdpSocket,
    bytes: &mut [u8],
    until: Instant,
) -> std::io::Result<Option<usize>> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        // A socket's own timeout counts in the kernel's ticks, some milliseconds each.
        let wait = Timespec::try_from(left).map_err(std::io::Error::other)?;
        let mut ready = [PollFd::new(socket, PollFlags::IN)];
        match poll(&mut ready, Some(&wait)) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            // A signal: the caller checks whether to stop.
            Err(rustix::io::Errno::INTR) => return Ok(None),
            Err(e) => return Err(e.into()),
        }
        match socket.recv(bytes) {
            Ok(length) => return Ok(Some(length)),
            // Another process took it, or its checksum was wrong.
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(e) => return Err(e),
        }
    }
}

fn take_answers(
    socket: &UdpSocket,
    source: Source,
    session: u128,
    until: Instant,
    seen: &mut std::collections::HashSet<u64>,
    file: &mut SyncFile,
) -> Result<(), TraceError> {
    let mut bytes = [0; PACKET_BYTES + 1];
    loop {
        let length = match receive_until(socket, &mut bytes, until) {
            Ok(Some(length)) => length,
            Ok(None) => return Ok(()),
            // The other side stopped listening: the exchanges so far stay.
            Err(e) if is_transient(&e) => continue,
            Err(e) => return Err(failed(&file.address, &format!("cannot receive: {e}"))),
        };
        let back = source.read_ticks_ordered() as i64;
        let Some(packet) = Packet::from_bytes(&bytes[..length]) else {
            continue;
        };
        let is_ours = packet.kind == PacketKind::Answer && packet.session == session;
        // The network may deliver a packet twice.
        if is_ours
            && length == PACKET_BYTES
            && packet.number < file.sent
            && seen.insert(packet.number)
        {
            let [sent, received, answered] = packet.stamps;
            file.exchanges.push([sent, received, answered, back]);
        }
    }
}

#[cfg(test)]
mod tests;
