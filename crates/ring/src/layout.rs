//! Offsets and constants of the files that program and collector share. All numbers are
//! little-endian. `docs/format.md` describes this module in prose.

/// Version of control page, ring and names log. Readers refuse any other.
pub const VERSION: u32 = 2;

/// First event number of recorded functions; their numbers go up to 65535.
pub const FIRST_FUNCTION: u16 = 0x8000;

/// Environment variable that carries the session directory to the program.
pub const SESSION_ENV: &str = "UNDERTICK_SESSION";
/// Name of the control file in the session directory.
pub const CONTROL_FILE: &str = "control";
/// Name of the log of event and thread names.
pub const NAMES_FILE: &str = "names";
/// Name of the file that contains all rings of a session.
pub const POOL_FILE: &str = "pool";

/// Bytes of a segment, a power of two. 128 KiB are 8192 records: about 100 us at full speed,
/// so that the slow path (20..50 ns) is far below 1 % of the cost.
pub const SEGMENT_BYTES: u64 = 128 * 1024;
/// A part of a segment: the memory for which a writer gets pages at a time, where they are not
/// prepared. 16 KiB take 10 us.
pub const PIECE_BYTES: u64 = 16 * 1024;
/// Bytes of a record.
pub const RECORD_BYTES: u64 = 16;
/// Maximum number of segments of one ring: 8192 x 128 KiB = 1 GiB.
pub const MAX_SEGMENTS: u32 = 8192;

/// Offsets in the control file.
pub mod control {
    /// `b"UTCTRL01"`.
    pub const MAGIC: u64 = u64::from_le_bytes(*b"UTCTRL01");
    /// Bytes of the control file.
    pub const BYTES: u64 = 12288;
    /// u64, [`MAGIC`].
    pub const OFF_MAGIC: usize = 0;
    /// u32, [`super::VERSION`].
    pub const OFF_VERSION: usize = 8;
    /// u32, [`super::SEGMENT_BYTES`].
    pub const OFF_SEGMENT_BYTES: usize = 12;
    /// u32: 1 hardware counter, 2 `CLOCK_MONOTONIC_RAW`, 3 `CLOCK_MONOTONIC`.
    pub const OFF_CLOCK: usize = 16;
    /// u32: see [`crate::Overflow`].
    pub const OFF_OVERFLOW: usize = 20;
    /// u32: number of segments of a ring before it may grow.
    pub const OFF_RING_SEGMENTS: usize = 24;
    /// u32: number of segments of the pool, shared by all rings.
    pub const OFF_BUDGET_SEGMENTS: usize = 28;
    /// u32: which events are to be recorded now: [`NONE`], or in its lowest two bits ([`MODE`])
    /// [`ALL`] or [`SOME`] and above them the number of the session, 0 in a program that was
    /// started in one. Written by the collector.
    pub const OFF_ON: usize = 32;
    /// The bits of [`OFF_ON`] that are not the session's number.
    pub const MODE: u32 = 3;
    /// Bit position of the session's number.
    pub const SERIAL_SHIFT: u32 = 2;
    /// No event is recorded.
    pub const NONE: u32 = 0;
    /// All events are recorded.
    pub const ALL: u32 = 1;
    /// The events whose bit at [`OFF_SWITCHED`] is 0 are recorded.
    pub const SOME: u32 = 2;
    /// u32: 1 while a collector drains. Written by the collector.
    pub const OFF_COLLECTOR_ALIVE: usize = 36;
    /// u32: one in how many sampled spans is recorded, for events that are not
    /// in the table of rates; 0: [`super::cell::DEFAULT_ONE_IN`].
    pub const OFF_ONE_IN: usize = 40;
    /// u32: number of heads of the pool, the maximum number of rings at a time.
    pub const OFF_HEADS: usize = 44;
    /// u64: events lost because their thread could not get a ring.
    pub const OFF_LOST_NO_RING: usize = 72;
    /// u32: names that did not fit into the log of names.
    pub const OFF_NAMES_LOST: usize = 80;
    /// [`RATES`] u64: rates of sampled spans by event; see [`rate_entry`]. An event's entry is the
    /// first one with its number from place `event % RATES` on; an empty one ends the search.
    /// Written by both sides, never emptied.
    pub const OFF_RATES: usize = 1024;
    /// Entries of the table of rates.
    pub const RATES: usize = 128;
    /// A bit for each event, bit `event % 8` of byte `event / 8`: 1 for those that
    /// are not recorded while [`OFF_ON`] is [`SOME`]. Written by the collector.
    pub const OFF_SWITCHED: usize = 4096;
    /// Bit of an entry that `undertick` itself made: a request of the program does not change it.
    pub const RATE_FROM_OUTSIDE: u64 = 1 << 62;

    /// Returns the entry that requests one in `one_in` spans of `event`; 0: as if there were no
    /// entry.
    #[must_use]
    pub const fn rate_entry(event: u16, one_in: u32) -> u64 {
        let most = super::cell::MOST_ONE_IN;
        let one_in = if one_in < most { one_in } else { most };
        1 << 63 | (event as u64) << 32 | one_in as u64
    }

    /// Returns event and rate of an entry; `None`: it is empty.
    #[must_use]
    pub const fn event_and_rate(entry: u64) -> Option<(u16, u32)> {
        if entry == 0 {
            return None;
        }
        Some(((entry >> 32) as u16, entry as u32 & 0xffff))
    }
}

/// The file that contains all rings of a session: a page for the file itself, four queues, a byte
/// for each segment that says whether its pages are written, heads, segments. The layout follows
/// from the numbers of heads and segments, which the control page gives.
pub mod pool {
    use super::{SEGMENT_BYTES, ring};

    /// `b"UTPOOL01"`.
    pub const MAGIC: u64 = u64::from_le_bytes(*b"UTPOOL01");
    /// u64, [`MAGIC`]; stored last, with release, when the rest is in place.
    pub const OFF_MAGIC: usize = 0;
    /// u32, [`super::VERSION`].
    pub const OFF_VERSION: usize = 8;
    /// u32: number of the next ring. Incremented by writers.
    pub const OFF_NEXT_RING: usize = 12;
    /// u32, as in the control page.
    pub const OFF_HEADS: usize = 16;
    /// See [`OFF_HEADS`].
    pub const OFF_SEGMENTS: usize = 20;
    /// Offset of the queues, [`QUEUE_BYTES`] each, in the order of [`Queue`].
    pub const OFF_QUEUES: usize = 128;
    /// A cache line for either side.
    pub const QUEUE_BYTES: usize = 128;
    /// u64 of a queue: number of entries taken. Incremented by writers.
    pub const OFF_TAKEN: usize = 0;
    /// u64 of a queue: number of entries put in, released. Written by the collector.
    pub const OFF_PUT: usize = 64;
    /// Maximum number of rings of a session at a time.
    pub const MOST_HEADS: u32 = 8192;
    /// Maximum number of segments of a session: 64 GiB.
    pub const MOST_SEGMENTS: u32 = 1 << 19;

    /// The kind of numbers in a queue.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Queue {
        /// Heads whose first pages are written.
        HeadsReady = 0,
        /// Heads that may have no pages.
        Heads = 1,
        /// Segments whose pages are written.
        SegmentsReady = 2,
        /// Segments that may have no pages.
        Segments = 3,
    }

    /// The layout of a pool, given the numbers of heads and segments.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Shape {
        /// Number of heads.
        pub heads: u32,
        /// Number of segments.
        pub segments: u32,
    }

    impl Shape {
        /// Returns the shape, if such a pool is possible.
        #[must_use]
        pub const fn new(heads: u32, segments: u32) -> Option<Self> {
            let fits =
                heads > 0 && heads <= MOST_HEADS && segments > 0 && segments <= MOST_SEGMENTS;
            if fits {
                Some(Self { heads, segments })
            } else {
                None
            }
        }

        /// Returns the capacity of a queue: all numbers of its kind.
        #[must_use]
        pub const fn room(self, queue: Queue) -> u32 {
            match queue {
                Queue::HeadsReady | Queue::Heads => self.heads,
                Queue::SegmentsReady | Queue::Segments => self.segments,
            }
        }

        /// Returns the offset of the numbers in a queue, u32 each.
        #[must_use]
        pub const fn entries_at(self, queue: Queue) -> usize {
            let (heads, segments) = (self.heads as usize, self.segments as usize);
            4096 + 4 * match queue {
                Queue::HeadsReady => 0,
                Queue::Heads => heads,
                Queue::SegmentsReady => 2 * heads,
                Queue::Segments => 2 * heads + segments,
            }
        }

        /// Returns the offset of the bytes that say for each segment whether all its pages are
        /// written. Written by the collector, released.
        #[must_use]
        pub const fn written_at(self) -> usize {
            4096 + 8 * (self.heads as usize + self.segments as usize)
        }

        /// Returns the offset of the heads, [`ring::HEAD_BYTES`] each.
        #[must_use]
        pub const fn heads_at(self) -> u64 {
            let end = self.written_at() as u64 + self.segments as u64;
            end.next_multiple_of(SEGMENT_BYTES)
        }

        /// Returns the offset of the segments.
        #[must_use]
        pub const fn segments_at(self) -> u64 {
            let end = self.heads_at() + self.heads as u64 * ring::HEAD_BYTES;
            end.next_multiple_of(SEGMENT_BYTES)
        }

        /// Returns the size of the file, bytes.
        #[must_use]
        pub const fn bytes(self) -> u64 {
            self.segments_at() + self.segments as u64 * SEGMENT_BYTES
        }
    }
}

/// Offsets in the head of a ring.
pub mod ring {
    /// `b"UTRING01"`.
    pub const MAGIC: u64 = u64::from_le_bytes(*b"UTRING01");
    /// u64, [`MAGIC`]; stored last, with release, when the rest is in place.
    pub const OFF_MAGIC: usize = 0;
    /// u32, [`super::VERSION`].
    pub const OFF_VERSION: usize = 8;
    /// u32, [`super::SEGMENT_BYTES`].
    pub const OFF_SEGMENT_BYTES: usize = 12;
    /// u32: ring number.
    pub const OFF_RING: usize = 16;
    /// u32: maximum number of segments of the ring, at most `MAX_SEGMENTS`.
    pub const OFF_MAX_SEGMENTS: usize = 20;
    /// i32: process of the writer.
    pub const OFF_PID: usize = 24;
    /// i32: thread of the writer.
    pub const OFF_TID: usize = 28;
    /// u32: 0 C/C++, 1 Rust (also Python, which calls the Rust recorder), [`INTERPOSED`], 3 Go.
    pub const OFF_WRITER: usize = 32;
    /// u32: 0 the thread's ring, 1 the ring of signal handlers that
    /// interrupted a write of the thread.
    pub const OFF_NESTED: usize = 36;
    /// u32: 1 open, 2 closed by its thread. Written by the writer.
    pub const OFF_STATE: usize = 40;
    /// u32: inode of the writer's pid namespace, low half; 0 unknown.
    pub const OFF_PID_NAMESPACE: usize = 44;
    /// Value of [`OFF_WRITER`] for a library that records what its thread waits for and allocates, and
    /// no spans.
    pub const INTERPOSED: u32 = 2;
    /// u32: [`SPANS_WAIT`], or 0 in rings of recorders that knew only plain readings.
    pub const OFF_SPAN_READINGS: usize = 48;
    /// u64: bytes published. Written by the writer, released.
    pub const OFF_HEAD: usize = 64;
    /// u64: events dropped. Written by the writer.
    pub const OFF_DROPPED: usize = 72;
    /// u64: first segment use that is still whole. Written by the writer.
    pub const OFF_OLDEST: usize = 80;
    /// u32: 0 no cells of sampled spans yet, [`super::cell::CELLS`] if there are that many, any
    /// other value if there can be none. Written by the writer.
    pub const OFF_CELLS: usize = 92;
    /// u32: number of samples of the read cost, of [`READS`] readings each. Written by the writer,
    /// like the following three.
    pub const OFF_READ_COST_SAMPLES: usize = 96;
    /// u32: ticks of the shortest sample.
    pub const OFF_READ_COST_LEAST: usize = 100;
    /// u64: sum of the ticks of all samples.
    pub const OFF_READ_COST_TICKS: usize = 104;
    /// u64: sum of the squares of their ticks.
    pub const OFF_READ_COST_SQUARES: usize = 112;
    /// u64: bytes drained. Written by the collector, released.
    pub const OFF_TAIL: usize = 128;
    /// u32: 1 when the whole table of uses has pages. Written by the collector, released.
    pub const OFF_HAS_TABLE: usize = 136;
    /// `max_segments` u64: entry `k % max_segments` says which segment holds bytes
    /// `k * SEGMENT_BYTES ..` (low 32 bits, see [`use_of`]) and how many continuation records were
    /// written before it, modulo 2^32 (high 32 bits).
    pub const OFF_USES: usize = 4096;
    /// Bytes of a head: this page, the longest table of uses, the cells.
    pub const HEAD_BYTES: u64 = OFF_CELL_TABLE as u64 + 8192;
    /// Bytes of a head whose pages the collector prepares before it is taken.
    pub const READY_BYTES: u64 = 8192;

    /// Returns the entry of a use; 0: there is none.
    #[must_use]
    pub const fn use_of(segment: u32, continuations: u32) -> u64 {
        (segment as u64 + 1) | (continuations as u64) << 32
    }

    /// Returns the segment that an entry names; `u32::MAX`: none.
    #[must_use]
    pub const fn segment_of(entry: u64) -> u32 {
        (entry as u32).wrapping_sub(1)
    }
    /// Offset of the cells of sampled spans, if [`OFF_CELLS`] says that there are any: see
    /// [`super::cell`]. They follow the longest table of uses.
    pub const OFF_CELL_TABLE: usize = 69632;
    /// Begins, ends and nexts read the clock when all earlier instructions have been executed,
    /// except those with [`crate::Record::UNORDERED`].
    pub const SPANS_WAIT: u32 = 1;
    /// Number of readings in a sample of the read cost.
    pub const READS: u32 = 8;
    /// State: the thread may still write.
    pub const STATE_OPEN: u32 = 1;
    /// State: the thread has finished.
    pub const STATE_CLOSED: u32 = 2;
}

/// A ring's data on the sampled spans of one event: a cell of 32 bytes. The cell of an event is at
/// place `event % CELLS` unless another event has it.
pub mod cell {
    /// Number of cells of a ring.
    pub const CELLS: usize = 256;
    /// Bytes of a cell.
    pub const BYTES: usize = 32;
    /// u64: counts down in its low half; the begin that makes this half negative is recorded. See
    /// [`executions`].
    pub const OFF_LEFT: usize = 0;
    /// u32: event, [`CLAIMED`], [`OPEN`], [`BUSY`]; 0 if the cell is free.
    pub const OFF_STATE: usize = 8;
    /// u16: rate of the current gap.
    pub const OFF_ONE_IN: usize = 12;
    /// u16: rate of the gap that the last recorded span ended.
    pub const OFF_TIMED: usize = 14;
    /// u64: number of executions up to the last recorded one.
    pub const OFF_LAST: usize = 16;
    /// u32: which open spans are recorded, the innermost in bit 0. Levels below the outermost
    /// recorded one are not included.
    pub const OFF_OPEN: usize = 24;
    /// u32: number of levels above those in [`OFF_OPEN`]; none of them is recorded.
    pub const OFF_DEEPER: usize = 28;
    /// State: an event has it.
    pub const CLAIMED: u32 = 0x1_0000;
    /// State: a recorded span is open.
    pub const OPEN: u32 = 0x2_0000;
    /// State: the cell is being changed.
    pub const BUSY: u32 = 0x4_0000;
    /// Default rate: one in this many is recorded.
    pub const DEFAULT_ONE_IN: u32 = 16;
    /// The largest rate.
    pub const MOST_ONE_IN: u32 = 65_535;

    /// Returns how often the event's spans have begun in this ring. It is right between any two
    /// instructions of the writer, so also for a killed one, up to 2^32 after `last`.
    #[must_use]
    pub const fn executions(left: u64, last: u64) -> u64 {
        let (low, high) = (left as u32, (left >> 32) as u32);
        last.wrapping_add(high.wrapping_sub(low).wrapping_sub(last as u32) as u64)
    }
}

/// The attach page: the data after the control page in the file of a program that was started
/// without a session, through which recorders attach later.
pub mod attach_page {
    /// Name of the file, which is in no directory.
    pub const NAME: &str = "undertick-door";
    /// Environment variable: `0` for programs without an attach page.
    pub const WISH_ENV: &str = "UNDERTICK_ATTACH";
    /// `b"UTDOOR01"`.
    pub const MAGIC: u64 = u64::from_le_bytes(*b"UTDOOR01");
    /// Bytes after the control page.
    pub const BYTES: u64 = 65_536;
    /// u64, [`MAGIC`]; stored last, with release. Written by the program.
    pub const OFF_MAGIC: usize = 0;
    /// u32, [`super::VERSION`]. Written by the program.
    pub const OFF_VERSION: usize = 8;
    /// u32: number of the last session. Written by the recorder.
    pub const OFF_SERIAL: usize = 12;
    /// i32: process of the recorder that holds the attach page (by `flock`).
    pub const OFF_HOLDER: usize = 16;
    /// u32: bytes of names used, in multiples of 8. Written by the program.
    pub const OFF_NAMES_USED: usize = 20;
    /// u32: number of names that did not fit. Written by the program.
    pub const OFF_NAMES_LOST: usize = 24;
    /// Directory of the session, terminated by a zero; empty: there is none. Written by the
    /// recorder.
    pub const OFF_DIR: usize = 64;
    /// Maximum length of the directory with its zero, bytes.
    pub const MAX_DIR_BYTES: usize = 200;
    /// Names, as in the names log, each at a multiple of 8.
    pub const OFF_NAMES: usize = 512;
    /// Room for names, bytes.
    pub const NAMES_BYTES: usize = BYTES as usize - OFF_NAMES;
}

/// The names log: records of 16 bytes and a text, each appended by one write.
pub mod names {
    /// u16 `MAGIC`, u16 what, u16 event, u16 bytes of text, i32 pid, i32 tid.
    pub const HEADER_BYTES: usize = 16;
    /// `b"UN"`.
    pub const MAGIC: u16 = u16::from_le_bytes(*b"UN");
    /// The text names an event of the process.
    pub const EVENT: u16 = 1;
    /// The text names the thread.
    pub const THREAD: u16 = 2;
    /// `what`: where a lock lies. The text has its address, its offset in a file (both hexadecimal) and
    /// the path of the file, with spaces between them.
    pub const LOCK: u16 = 3;
    /// Longest text kept, bytes; longer ones are cut by the writer.
    pub const MAX_TEXT_BYTES: usize = 255;
    /// The first event number assigned to a name: nearly always the same one for the same name, in
    /// each process.
    pub const FIRST_NUMBER: u16 = 0x4000;
    /// The number of all names for which none is left; the numbers before it belong to names.
    pub const OTHERS: u16 = 0x7fff;
}
