//! Event numbers of callsites, found by the address of their metadata.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use tracing_core::Metadata;

/// Callsites that can be recorded.
pub const MOST_CALLSITES: usize = 1 << 13;
/// Twice as many places, so that a search is short.
const PLACES: usize = 2 * MOST_CALLSITES;
/// Added to the number of a span for the event that it was made.
pub const NEW: u16 = 1;
/// Added to it for the event that it was closed.
pub const CLOSED: u16 = 2;
/// Event numbers of a span.
const OF_SPAN: u32 = 3;
/// No number: 65536 and above.
const NONE: u32 = 1 << 16;
/// The number is being given.
const UNKNOWN: u32 = u32::MAX;

/// Who has which number. Places are taken and never given back.
pub struct Callsites {
    /// Addresses of metadata, which live for ever; 0 is free.
    addresses: Box<[AtomicUsize]>,
    /// Stored with release after the address was taken; read with acquire.
    events: Box<[AtomicU32]>,
    next: AtomicU32,
    taken: AtomicUsize,
}

impl std::fmt::Debug for Callsites {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let taken = self.taken.load(Ordering::Relaxed);
        f.debug_struct("Callsites").field("taken", &taken).finish()
    }
}

impl Callsites {
    pub fn new(first: u16) -> Self {
        Self {
            addresses: (0..PLACES).map(|_| AtomicUsize::new(0)).collect(),
            events: (0..PLACES).map(|_| AtomicU32::new(UNKNOWN)).collect(),
            next: AtomicU32::new(u32::from(first)),
            taken: AtomicUsize::new(0),
        }
    }

    /// The number of a callsite; one that has none yet gets it, with its names. `None` if
    /// there are no more.
    #[inline]
    pub fn event(&self, metadata: &'static Metadata<'static>) -> Option<u16> {
        let address = std::ptr::from_ref(metadata).addr();
        let mut place = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        // At most half of the places are taken, so a free one comes soon.
        loop {
            place %= PLACES;
            match self.addresses[place].load(Ordering::Relaxed) {
                found if found == address => {
                    // UNKNOWN while another thread gives it: not recorded until then.
                    return u16::try_from(self.events[place].load(Ordering::Acquire)).ok();
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
    ) -> Option<u16> {
        if self.taken.fetch_add(1, Ordering::Relaxed) >= MOST_CALLSITES {
            self.taken.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let free = &self.addresses[place];
        if (free.compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed)).is_err() {
            // Somebody took it meanwhile: perhaps for this callsite.
            self.taken.fetch_sub(1, Ordering::Relaxed);
            return self.event(metadata);
        }
        let numbers = if metadata.is_span() { OF_SPAN } else { 1 };
        let given = (self.next)
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                (next + numbers <= NONE).then_some(next + numbers)
            })
            .ok()
            .and_then(|event| u16::try_from(event).ok());
        if let Some(event) = given {
            name(event, metadata);
        }
        self.events[place].store(given.map_or(NONE, u32::from), Ordering::Release);
        given
    }
}

/// A span by its own name, an event by its target and place, as it has no other.
fn name(event: u16, metadata: &Metadata<'_>) {
    if metadata.is_span() {
        let name = metadata.name();
        undertick::name(event, name);
        undertick::name(event + NEW, &format!("{name} new"));
        undertick::name(event + CLOSED, &format!("{name} closed"));
    } else {
        let line = metadata.line().unwrap_or(0);
        undertick::name(event, &format!("{}:{line}", metadata.target()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_core::callsite::Callsite as _;

    /// Metadata of an event and of a span.
    fn metadata() -> [&'static Metadata<'static>; 2] {
        let event = tracing::callsite! { name: "e", kind: tracing_core::Kind::EVENT, fields: };
        let span = tracing::callsite! { name: "s", kind: tracing_core::Kind::SPAN, fields: };
        [event.metadata(), span.metadata()]
    }

    #[test]
    fn a_callsite_keeps_its_number_and_a_span_has_three() {
        let [event, span] = metadata();
        let callsites = Callsites::new(100);
        assert_eq!(callsites.event(span), Some(100));
        assert_eq!(callsites.event(event), Some(103));
        assert_eq!(callsites.event(span), Some(100));
        assert_eq!(callsites.next.load(Ordering::Relaxed), 104);
    }

    #[test]
    fn numbers_end_at_65535() {
        let [event, span] = metadata();
        let callsites = Callsites::new(65534);
        assert_eq!(callsites.event(span), None);
        assert_eq!(callsites.event(event), Some(65534));
    }
}
