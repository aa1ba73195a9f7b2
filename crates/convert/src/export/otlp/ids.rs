//! Identifiers of traces and spans that follow from the recording alone, so that a second export has
//! the same ones.

use undertick_format::manifest::Manifest;

/// Identifiers of a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SpanIds {
    pub(super) trace: u128,
    pub(super) span: u64,
    /// 0 if the span has no parent.
    pub(super) parent: u64,
    /// The program chose them; otherwise they are derived.
    pub(super) are_given: bool,
}

/// Derives identifiers for the spans of one recording.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ids(u64);

impl Ids {
    /// Returns the identifiers of a recording, which follow from its session, host, command and begin.
    pub(super) fn new(manifest: &Manifest) -> Self {
        let mut seed = Fnv::default();
        seed.take(manifest.session.as_deref().unwrap_or_default().as_bytes());
        seed.take(manifest.host.name.as_bytes());
        for word in &manifest.command {
            seed.take(word.as_bytes());
        }
        seed.take(&manifest.started_unix_ns.to_le_bytes());
        Self(mixed(seed.0))
    }

    /// Returns the identifier of the trace whose outermost span begins at that row of a ring.
    pub(super) fn trace(self, ring: i32, row: u64) -> u128 {
        let half = |which| u128::from(self.derived(ring, row, which));
        half(1) << 64 | half(2)
    }

    /// Returns the identifier of the span that begins at that row of a ring.
    pub(super) fn span(self, ring: i32, row: u64) -> u64 {
        self.derived(ring, row, 0)
    }

    /// A number that is not 0, which OTLP forbids.
    fn derived(self, ring: i32, row: u64, which: u64) -> u64 {
        let of_ring = mixed(self.0 ^ u64::from(ring.cast_unsigned()) ^ which << 32);
        mixed(of_ring.wrapping_add(row)).max(1)
    }
}

/// The hash FNV-1a of 64 bits, which no version of a library changes.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Adds a text, with its length, so that two texts are not taken for one.
    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&(bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// The finalizer of splitmix64 (Steele, Lea and Flood 2014): a bijection in which each bit of the
/// number changes half of the result's.
fn mixed(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
