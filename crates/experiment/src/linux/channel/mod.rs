//! Channels for messages in one direction, from one sender to one receiver.
//!
//! Through the kernel a message is copied twice. Over shared memory the sender copies it in, and
//! the receiver reads it in place. The message stays until the receiver asks for the next one, so
//! there is room for two, and a sender that is further ahead waits.

mod queue;
mod shared;
mod through;

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use self::queue::Queue;
use self::shared::Shared;
use self::through::Stream;
use super::Act;
use super::access::Desk;
use super::fail::because;
use super::shared_memory::SharedMemory;
use super::stream;
use super::wait::Sign;
use crate::script::ChannelKind;

/// A channel, for use by the two processes or threads that inherit it.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    way: Way,
    lengths: Lengths,
}

#[derive(Clone, Debug)]
enum Way {
    Stream(Stream),
    Queue(Queue),
    Shared(Shared),
}

/// The lengths of the messages, words.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    most: usize,
    /// Whether all messages have this length, so that the receiver knows it beforehand.
    same: bool,
}

impl Lengths {
    /// Maximum size of a message, bytes; `least` is the minimum that can be sent.
    fn most_bytes(self, least: usize) -> usize {
        (self.most * 8).max(least)
    }
}

impl Channel {
    /// Creates a channel for messages of these lengths, words: those of all steps that send over
    /// it. Where the lengths differ and the kernel does not preserve message boundaries, each
    /// message is preceded by its length, 8 bytes.
    ///
    /// # Errors
    /// The system refuses: there are too many open files, no message queues, or no more room for
    /// one.
    pub(crate) fn create(
        kind: ChannelKind,
        sends: &[u64],
        memory: &SharedMemory,
    ) -> io::Result<Self> {
        let most = sends.iter().copied().max().unwrap_or(0) as usize;
        let lengths = Lengths {
            most,
            same: sends.iter().all(|words| *words as usize == most),
        };
        let way = match kind {
            ChannelKind::Pipe => {
                let (from, to) = stream::pipe()?;
                Way::Stream(Stream::new(to.into(), from.into()))
            }
            ChannelKind::Unix => {
                let (to, from) =
                    UnixStream::pair().map_err(|error| because("unix socket", &error))?;
                Way::Stream(Stream::new(to.into(), from.into()))
            }
            ChannelKind::Tcp => {
                let (to, from) =
                    loopback().map_err(|error| because("TCP over loopback", &error))?;
                Way::Stream(Stream::new(to, from))
            }
            ChannelKind::Queue => Way::Queue(Queue::create(lengths.most_bytes(0))?),
            ChannelKind::Eventfd => Way::Shared(Shared::with_eventfd(most, memory)?),
            ChannelKind::Futex => Way::Shared(Shared::with_futex(most, memory)?),
        };
        Ok(Self { way, lengths })
    }

    /// Sends this many of the desk's own words, at least the minimum of the channel.
    ///
    /// # Panics
    /// The channel was not made for this length.
    pub(crate) fn sender(&self, words: u64, desk: &Desk) -> Act {
        let words = desk.with_room(words);
        let Lengths { most, same } = self.lengths;
        assert!(
            words <= most && (!same || words == most),
            "a message of {words} words over a channel made without"
        );
        match &self.way {
            Way::Stream(way) => way.sender(words, self.lengths, desk),
            Way::Queue(way) => way.sender(words, self.lengths, desk),
            Way::Shared(way) => way.sender(words, desk),
        }
    }

    /// Waits for a message and receives it; the desk then accesses this message.
    pub(crate) fn receiver(&self, sign: Sign, desk: &Desk) -> Act {
        match &self.way {
            Way::Stream(way) => way.receiver(self.lengths, sign, desk),
            Way::Queue(way) => way.receiver(self.lengths, sign, desk),
            Way::Shared(way) => way.receiver(sign, desk),
        }
    }
}

fn loopback() -> io::Result<(OwnedFd, OwnedFd)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let to = TcpStream::connect(listener.local_addr()?)?;
    // A connection from another program is unlikely but possible.
    let mine = to.local_addr()?;
    let from = loop {
        let (from, peer) = listener.accept()?;
        if peer == mine {
            break from;
        }
    };
    to.set_nodelay(true)?;
    Ok((to.into(), from.into()))
}

#[cfg(test)]
mod tests;
