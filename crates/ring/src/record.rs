/// The kind of a record, in three bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Kind {
    /// A point with a payload.
    Instant = 0,
    /// Start of a span.
    Begin = 1,
    /// End of a span.
    End = 2,
    /// End of stage `event`, start of stage `payload`.
    Next = 3,
    /// Two readings; the payload is their difference, ticks.
    Pair = 4,
    /// Start of a span, serialised reading.
    BeginOrdered = 5,
    /// End of a span, serialised reading.
    EndOrdered = 6,
    /// Not an event: the timestamp field holds a value, the payload its meaning.
    Continuation = 7,
}

impl Kind {
    /// Returns the kind with the low three bits of `code`.
    #[must_use]
    pub const fn from_code(code: u16) -> Self {
        match code & 7 {
            0 => Self::Instant,
            1 => Self::Begin,
            2 => Self::End,
            3 => Self::Next,
            4 => Self::Pair,
            5 => Self::BeginOrdered,
            6 => Self::EndOrdered,
            _ => Self::Continuation,
        }
    }
}

/// Was the thread descheduled since its previous record in this ring?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum DeschedFlag {
    /// It was not.
    No = 0,
    /// It was.
    Yes = 1,
    /// It is unknown: no rseq, or another user of `rseq_cs`.
    Unknown = 2,
}

impl DeschedFlag {
    /// Decodes two bits; the unused fourth pattern is unknown.
    #[must_use]
    pub const fn from_code(code: u16) -> Self {
        match code & 3 {
            0 => Self::No,
            1 => Self::Yes,
            _ => Self::Unknown,
        }
    }
}

/// One 16-byte record: timestamp 64 bits, payload 32, event 16, cpu 16. Of the last, bits 0..11 are
/// the CPU, 11..14 the kind, 14..16 the deschedule flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Clock reading, ticks; the value of a continuation.
    pub ts: u64,
    /// The program's payload; see [`Kind`].
    pub payload: u32,
    /// The program's event number.
    pub event: u16,
    /// CPU, [`Record::CPU_UNKNOWN`] if not known or not below it.
    pub cpu: u16,
    /// Kind of the record.
    pub kind: Kind,
    /// Whether the thread was descheduled since the previous record.
    pub descheduled: DeschedFlag,
}

impl Record {
    /// CPU field: not known, or 2047 and above.
    pub const CPU_UNKNOWN: u16 = 0x7ff;
    /// Payload of a begin or an end: its reading waited for nothing.
    pub const UNORDERED: u32 = 1 << 31;
    /// Continuation: the value is the 64-bit payload of the previous record.
    pub const WIDE: u32 = 1;
    /// Continuation: no value; it fills a slot at the end of a segment.
    pub const PAD: u32 = 2;
    /// Continuation: the value is how many events were dropped before this.
    pub const GAP: u32 = 3;

    /// Returns whether it reports dropped events.
    #[must_use]
    #[inline(always)]
    pub const fn is_gap(&self) -> bool {
        matches!(self.kind, Kind::Continuation) && self.payload == Self::GAP
    }

    /// Returns the two 64-bit words as stored.
    #[must_use]
    #[inline(always)]
    pub const fn to_words(self) -> [u64; 2] {
        let tail = (self.cpu & Self::CPU_UNKNOWN)
            | ((self.kind as u16) << 11)
            | ((self.descheduled as u16) << 14);
        [
            self.ts,
            self.payload as u64 | ((self.event as u64) << 32) | ((tail as u64) << 48),
        ]
    }

    /// Decodes the two words as stored. Every pattern is a record.
    #[must_use]
    #[inline(always)]
    pub const fn from_words(words: [u64; 2]) -> Self {
        let tail = (words[1] >> 48) as u16;
        Self {
            ts: words[0],
            payload: words[1] as u32,
            event: (words[1] >> 32) as u16,
            cpu: tail & Self::CPU_UNKNOWN,
            kind: Kind::from_code(tail >> 11),
            descheduled: DeschedFlag::from_code(tail >> 14),
        }
    }
}

#[cfg(test)]
mod tests;
