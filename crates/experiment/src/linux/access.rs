//! The words that a process prepares before it sends, and reads after it has received.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::ptr::{NonNull, null};
use std::rc::Rc;

use super::Act;
use super::stream;

/// State shared by the acts of one process: its own words, and the location of the last message. A
/// message in shared memory stays where it is, so reading it reads that memory.
#[derive(Clone, Debug)]
pub(crate) struct Desk(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    own: RefCell<Vec<u64>>,
    /// Buffers for messages that are copied out of the kernel; they live as long as the desk.
    received: RefCell<Vec<NonNull<[u64]>>>,
    last: Cell<Message>,
}

/// The location of a message; it is valid until the next one is received over its channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) at: *const u64,
    pub(super) words: usize,
}

/// Buffer for a message that is copied out of the kernel.
#[derive(Clone, Debug)]
pub(super) struct Received {
    at: NonNull<[u64]>,
    /// Keeps the buffer alive.
    _desk: Desk,
}

impl Drop for Inner {
    fn drop(&mut self) {
        for received in self.received.get_mut() {
            // SAFETY: from a `Box`, in `Desk::received`; everybody who uses it
            // has the desk too.
            drop(unsafe { Box::from_raw(received.as_ptr()) });
        }
    }
}

impl Default for Desk {
    fn default() -> Self {
        Self(Rc::new(Inner {
            own: RefCell::new(vec![0]),
            received: RefCell::default(),
            last: Cell::new(Message {
                at: null(),
                words: 0,
            }),
        }))
    }
}

impl Desk {
    /// Makes a desk without a message.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Writes this many of the desk's own words.
    pub(crate) fn prepare(&self, words: u64) -> Act {
        let words = self.with_room(words);
        let desk = self.clone();
        let mut round = 0_u64;
        Box::new(move || {
            round = round.wrapping_add(1);
            for (index, word) in desk.0.own.borrow_mut()[..words].iter_mut().enumerate() {
                // SAFETY: a live word. Volatile: each is written, each time.
                unsafe { std::ptr::write_volatile(word, round.wrapping_add(index as u64)) };
            }
        })
    }

    /// Reads this many words of the last message; words beyond its end are read from the desk's
    /// own.
    pub(crate) fn access(&self, words: u64) -> Act {
        let words = self.with_room(words);
        let desk = self.clone();
        Box::new(move || {
            let last = desk.0.last.get();
            let of_last = words.min(last.words);
            // SAFETY: a message stays where it is until the next one is received,
            // which is another step.
            let mut sum = unsafe { sum(last.at, of_last) };
            let own = desk.0.own.borrow();
            // SAFETY: there is room for `words`.
            sum = sum.wrapping_add(unsafe { self::sum(own.as_ptr(), words - of_last) });
            black_box(sum);
        })
    }

    /// Makes room for this many own words, at least one.
    pub(super) fn with_room(&self, words: u64) -> usize {
        let words = words as usize;
        let mut own = self.0.own.borrow_mut();
        if own.len() < words {
            own.resize(words, 0);
        }
        words
    }

    /// Calls `look` with the desk's own words.
    #[inline(always)]
    pub(super) fn with_own<R>(&self, look: impl FnOnce(&[u64]) -> R) -> R {
        look(&self.0.own.borrow())
    }

    /// Records the arrival of a message.
    #[inline(always)]
    pub(super) fn came(&self, message: Message) {
        self.0.last.set(message);
    }

    /// Makes a buffer for messages of at most this many words.
    pub(super) fn received(&self, words: usize) -> Received {
        let words = vec![0; words.max(1)].into_boxed_slice();
        let at = NonNull::from(Box::leak(words));
        self.0.received.borrow_mut().push(at);
        Received {
            at,
            _desk: self.clone(),
        }
    }
}

impl Received {
    /// The bytes of the buffer, to be filled.
    #[inline(always)]
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: alive with the desk. One thread; the desk reads it only inside
        // of other steps.
        stream::bytes_of_mut(unsafe { self.at.as_mut() })
    }

    /// The message in the first words of the buffer.
    #[inline(always)]
    pub(super) fn message(&self, words: usize) -> Message {
        Message {
            at: self.at.as_ptr().cast_const().cast(),
            words: words.min(self.at.len()),
        }
    }
}

/// The sum of words, each of which is read.
///
/// # Safety
/// There must be that many words.
#[inline(always)]
unsafe fn sum(at: *const u64, words: usize) -> u64 {
    let mut sum = 0_u64;
    for index in 0..words {
        // SAFETY: by the caller.
        sum = sum.wrapping_add(unsafe { at.add(index).read_volatile() });
    }
    sum
}

#[cfg(test)]
impl Desk {
    /// Sets the desk's own words.
    pub(super) fn set_own(&self, words: &[u64]) {
        self.with_room(words.len() as u64);
        self.0.own.borrow_mut()[..words.len()].copy_from_slice(words);
    }

    /// A copy of the last message.
    pub(super) fn last(&self) -> Vec<u64> {
        let last = self.0.last.get();
        // SAFETY: as in `access`.
        (0..last.words)
            .map(|index| unsafe { last.at.add(index).read() })
            .collect()
    }
}

#[cfg(test)]
mod tests;
