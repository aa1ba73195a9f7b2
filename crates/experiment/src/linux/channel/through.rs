//! Pipes and sockets: byte streams.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use super::Lengths;
use crate::linux::Act;
use crate::linux::access::Desk;
use crate::linux::stream;
use crate::linux::wait::Sign;

/// Both ends. Every process keeps both, so that neither is closed while the other is in use.
#[derive(Clone, Debug)]
pub(super) struct Stream(Arc<(OwnedFd, OwnedFd)>);

/// Minimum size of a message, bytes.
const LEAST: usize = 1;

impl Stream {
    pub(super) fn new(to: OwnedFd, from: OwnedFd) -> Self {
        Self(Arc::new((to, from)))
    }

    pub(super) fn sender(&self, words: usize, lengths: Lengths, desk: &Desk) -> Act {
        let (ends, desk) = (Arc::clone(&self.0), desk.clone());
        if lengths.same {
            let bytes = lengths.most_bytes(LEAST);
            return Box::new(move || {
                desk.with_own(|own| {
                    stream::write_all(ends.0.as_raw_fd(), &stream::bytes_of(own)[..bytes]);
                });
            });
        }
        Box::new(move || {
            desk.with_own(|own| {
                let length = (words as u64).to_ne_bytes();
                let bytes = stream::bytes_of(&own[..words]);
                stream::write_both(ends.0.as_raw_fd(), &length, bytes);
            });
        })
    }

    pub(super) fn receiver(&self, lengths: Lengths, sign: Sign, desk: &Desk) -> Act {
        let (ends, desk) = (Arc::clone(&self.0), desk.clone());
        let mut received = desk.received(lengths.most);
        if lengths.same {
            let bytes = lengths.most_bytes(LEAST);
            return Box::new(move || {
                sign.raise();
                stream::read_all(ends.1.as_raw_fd(), &mut received.bytes_mut()[..bytes]);
                sign.lower();
                desk.came(received.message(lengths.most));
            });
        }
        Box::new(move || {
            let mut length = [0; 8];
            sign.raise();
            stream::read_all(ends.1.as_raw_fd(), &mut length);
            let words = u64::from_ne_bytes(length) as usize;
            stream::read_all(ends.1.as_raw_fd(), &mut received.bytes_mut()[..words * 8]);
            sign.lower();
            desk.came(received.message(words));
        })
    }
}
