//! Event numbers of callsites, found by the address of their metadata.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tracing_core::Metadata;

/// Maximum number of callsites that can be recorded.
pub const MOST_CALLSITES: usize = 1 << 13;
/// Number of slots: twice as many as callsites, so that a search is short.
const PLACES: usize = 2 * MOST_CALLSITES;

/// The event numbers of a callsite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Number of the event itself, or of the span's begin and end.
    pub event: u16,
    /// Number of the event that says that a span was created.
    pub new: u16,
    /// Number of the event that says that a span was closed.
    pub closed: u16,
}

impl Numbers {
    /// Requests the numbers of a callsite's names. A span has its own name; an event has only its
    /// target and line.
    fn request(metadata: &Metadata<'_>) -> Self {
        if metadata.is_span() {
            let name = metadata.name();
            Self {
                event: undertick::number(name),
                new: undertick::number(&format!("{name} new")),
                closed: undertick::number(&format!("{name} closed")),
            }
        } else {
            let line = metadata.line().unwrap_or(0);
            let event = undertick::number(&format!("{}:{line}", metadata.target()));
            Self {
                event,
                new: event,
                closed: event,
            }
        }
    }

    fn packed(self) -> u64 {
        u64::from(self.event) | u64::from(self.new) << 16 | u64::from(self.closed) << 32
    }

    /// The numbers in a word; `None` while another thread is requesting them.
    fn unpacked(word: u64) -> Option<Self> {
        (word != 0).then_some(Self {
            event: word as u16,
            new: (word >> 16) as u16,
            closed: (word >> 32) as u16,
        })
    }
}

/// A table of callsites and their numbers. Slots are taken and never given back.
pub struct Callsites {
    /// Addresses of metadata, which live for ever; 0 marks a free slot.
    addresses: Box<[AtomicUsize]>,
    /// [`Numbers::packed`]; 0 while the numbers are being requested.
    numbers: Box<[AtomicU64]>,
    taken: AtomicUsize,
}

impl std::fmt::Debug for Callsites {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let taken = self.taken.load(Ordering::Relaxed);
        f.debug_struct("Callsites").field("taken", &taken).finish()
    }
}

impl Callsites {
    pub fn new() -> Self {
        Self {
            addresses: (0..PLACES).map(|_| AtomicUsize::new(0)).collect(),
            numbers: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
            taken: AtomicUsize::new(0),
        }
    }

    /// The numbers of a callsite, which are requested if it is new. `None` if there is no slot for
    /// it, or another thread is requesting them.
    #[inline]
    pub fn numbers(&self, metadata: &'static Metadata<'static>) -> Option<Numbers> {
        let address = std::ptr::from_ref(metadata) as usize;
        let mut place = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        // At most half of the slots are taken, so the search soon meets a free one.
        loop {
            place %= PLACES;
            match self.addresses[place].load(Ordering::Relaxed) {
                found if found == address => {
                    return Numbers::unpacked(self.numbers[place].load(Ordering::Relaxed));
                }
                0 => return self.add(place, address, metadata),
                _ => place += 1,
            }
        }
    }

    #[cold]
    fn add(
        &self,
        place: usize,
        address: usize,
        metadata: &'static Metadata<'static>,
    ) -> Option<Numbers> {
        if self.taken.fetch_add(1, Ordering::Relaxed) >= MOST_CALLSITES {
            self.taken.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let free = &self.addresses[place];
        if (free.compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed)).is_err() {
            // Another thread took the slot, perhaps for this callsite.
            self.taken.fetch_sub(1, Ordering::Relaxed);
            return self.numbers(metadata);
        }
        let numbers = Numbers::request(metadata);
        self.numbers[place].store(numbers.packed(), Ordering::Relaxed);
        Some(numbers)
    }
}

#[cfg(test)]
mod tests;
