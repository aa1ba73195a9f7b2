//! POSIX message queues.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Lengths;
use crate::linux::Act;
use crate::linux::access::Desk;
use crate::linux::fail::{again_if_interrupted, fail_last};
use crate::linux::stream;
use crate::linux::wait::Sign;

/// A queue whose name is already removed: it disappears with the last process.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    queue: Arc<OwnedFd>,
    /// Maximum bytes of a message; longer ones are sent in pieces.
    piece: usize,
}

/// Capacity of a queue, bytes; the same as a pipe's. All queues of a user together may hold 800 KiB
/// (`RLIMIT_MSGQUEUE`).
const HOLDS: usize = 1 << 16;
/// Maximum number of messages in a queue (the kernel's `msg_max`).
const MESSAGES: usize = 10;

impl Queue {
    pub(super) fn create(most_bytes: usize) -> io::Result<Self> {
        // A piece must have room for the length that precedes a message.
        let piece = most_bytes.clamp(8, limit("msgsize_max", 8192).max(8));
        let messages = (HOLDS / piece).clamp(2, MESSAGES.min(limit("msg_max", MESSAGES)).max(2));
        let queue = open(piece, messages).or_else(|_| open(piece, 1));
        Ok(Self {
            queue: Arc::new(queue.map_err(|error| explain(&error))?),
            piece,
        })
    }

    fn is_one_piece(&self, lengths: Lengths) -> bool {
        lengths.most_bytes(0) <= self.piece
    }

    pub(super) fn sender(&self, words: usize, lengths: Lengths, desk: &Desk) -> Act {
        let (queue, desk, piece) = (Arc::clone(&self.queue), desk.clone(), self.piece);
        if self.is_one_piece(lengths) {
            return Box::new(move || {
                desk.with_own(|own| send(queue.as_raw_fd(), stream::bytes_of(&own[..words])));
            });
        }
        Box::new(move || {
            if !lengths.same {
                send(queue.as_raw_fd(), &(words as u64).to_ne_bytes());
            }
            desk.with_own(|own| {
                for part in stream::bytes_of(&own[..words]).chunks(piece) {
                    send(queue.as_raw_fd(), part);
                }
            });
        })
    }

    pub(super) fn receiver(&self, lengths: Lengths, sign: Sign, desk: &Desk) -> Act {
        let (queue, desk, piece) = (Arc::clone(&self.queue), desk.clone(), self.piece);
        // The kernel requires room for its longest message, even for the last piece.
        let mut received = desk.received(lengths.most + piece.div_ceil(8));
        if self.is_one_piece(lengths) {
            return Box::new(move || {
                sign.raise();
                let bytes = receive(queue.as_raw_fd(), received.bytes_mut());
                sign.lower();
                desk.came(received.message(bytes / 8));
            });
        }
        let mut length = desk.received(piece.div_ceil(8));
        Box::new(move || {
            sign.raise();
            let mut words = lengths.most;
            if !lengths.same {
                receive(queue.as_raw_fd(), length.bytes_mut());
                let mut length_bytes = [0; 8];
                length_bytes.copy_from_slice(&length.bytes_mut()[..8]);
                words = u64::from_ne_bytes(length_bytes) as usize;
            }
            let mut bytes = 0;
            while bytes < words * 8 {
                bytes += receive(queue.as_raw_fd(), &mut received.bytes_mut()[bytes..]);
            }
            sign.lower();
            desk.came(received.message(words));
        })
    }
}

/// Reads a limit of the kernel.
fn limit(name: &str, otherwise: usize) -> usize {
    let path = format!("/proc/sys/fs/mqueue/{name}");
    let text = std::fs::read_to_string(path).ok();
    text.and_then(|text| text.trim().parse().ok())
        .unwrap_or(otherwise)
}

fn open(piece: usize, messages: usize) -> io::Result<OwnedFd> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "/undertick-{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    let name = CString::new(name)?;
    // SAFETY: all zeros is valid.
    let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
    attributes.mq_maxmsg = messages as _;
    attributes.mq_msgsize = piece as _;
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: name and attributes are live; with O_CREAT there are four arguments.
    let queue = unsafe { libc::mq_open(name.as_ptr(), flags, 0o600, &raw mut attributes) };
    if queue < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the name is live; the queue stays as long as it is open. A queue is
    // a file descriptor under Linux, new and nobody else's.
    unsafe {
        libc::mq_unlink(name.as_ptr());
        Ok(OwnedFd::from_raw_fd(queue))
    }
}

fn explain(error: &io::Error) -> io::Error {
    let mend = match error.raw_os_error() {
        Some(libc::ENOSYS) => "; this kernel has none".to_owned(),
        Some(libc::EMFILE | libc::ENOSPC | libc::ENOMEM) => format!(
            "; all queues of a user share the bytes that `ulimit -q` says, and there are at \
             most {} queues: take fewer replicas or shorter messages",
            limit("queues_max", 256)
        ),
        _ => String::new(),
    };
    io::Error::new(error.kind(), format!("POSIX message queue: {error}{mend}"))
}

#[inline(always)]
fn send(queue: RawFd, bytes: &[u8]) {
    // SAFETY: the bytes are live.
    let sent = again_if_interrupted(|| unsafe {
        libc::mq_send(queue, bytes.as_ptr().cast(), bytes.len(), 0) as isize
    });
    if sent.is_none() {
        fail_last("mq_send");
    }
}

#[inline(always)]
fn receive(queue: RawFd, bytes: &mut [u8]) -> usize {
    // SAFETY: the bytes are live and may be written; no priority is asked for.
    let received = again_if_interrupted(|| unsafe {
        let priority = std::ptr::null_mut();
        libc::mq_receive(queue, bytes.as_mut_ptr().cast(), bytes.len(), priority)
    });
    received.unwrap_or_else(|| fail_last("mq_receive"))
}
