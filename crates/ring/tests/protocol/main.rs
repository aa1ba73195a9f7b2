//! Ring and collector, explored exhaustively by loom (`RUSTFLAGS="--cfg loom"`), and run with real
//! threads under Miri and ThreadSanitizer. The memory belongs to the test; the protocol is the one
//! that runs on mapped memory.

#[cfg(loom)]
mod model;
#[cfg(not(loom))]
mod threads;

use undertick_ring::{DeschedFlag, Full, Kind, Memory, Overflow, Reader, Record, Source, Writer};

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(loom)]
use loom::{sync::Arc, thread};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::{sync::Arc, thread};

/// Two records to a segment: the smallest that can hold a wide event.
const SEGMENT_BYTES: u64 = 32;

struct Shared {
    head: AtomicU64,
    tail: AtomicU64,
    oldest: AtomicU64,
    uses: Vec<AtomicU64>,
    words: Vec<AtomicU64>,
    /// Loom cannot reorder a load behind a later store, so a tail published
    /// too early shows only as a data race on memory that is not atomic.
    #[cfg(loom)]
    cells: Vec<loom::cell::UnsafeCell<[u64; 2]>>,
}

// The cells are what the model checks.
#[cfg(loom)]
unsafe impl Sync for Shared {}

impl Shared {
    fn new(segments: u32) -> Arc<Self> {
        let zeros = |n: u64| (0..n).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self {
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            oldest: AtomicU64::new(0),
            uses: zeros(u64::from(segments)),
            words: zeros(u64::from(segments) * SEGMENT_BYTES / 8),
            #[cfg(loom)]
            cells: (0..segments * 2)
                .map(|_| loom::cell::UnsafeCell::new([0; 2]))
                .collect(),
        })
    }
}

/// Selects the ordering to weaken. Loom has no fence weaker than acquire or release, so a weakened
/// fence is no fence.
const SOUND: u8 = 0;
#[cfg(loom)]
const WEAK_PUBLISH_HEAD: u8 = 1;
#[cfg(loom)]
const WEAK_OBSERVE_HEAD: u8 = 2;
#[cfg(loom)]
const WEAK_PUBLISH_TAIL: u8 = 3;
#[cfg(loom)]
const WEAK_OBSERVE_TAIL: u8 = 4;
#[cfg(loom)]
const WEAK_FENCE_OVERWRITE: u8 = 5;
#[cfg(loom)]
const WEAK_FENCE_VALIDATE: u8 = 6;

/// Sound, with records in cells whose races loom reports. It is not for overwrite, where writer and
/// reader may access the same record and the reader detects it afterwards.
#[cfg(loom)]
const SOUND_CELLS: u8 = 7;

const fn unless(weak: bool, order: Ordering) -> Ordering {
    if weak { Ordering::Relaxed } else { order }
}

/// The memory, and the start of the segment that was entered last.
struct Model<const WEAK: u8>(Arc<Shared>, u64);

impl<const WEAK: u8> Model<WEAK> {
    fn new(shared: Arc<Shared>) -> Self {
        Self(shared, 0)
    }
}

impl<const WEAK: u8> Memory for Model<WEAK> {
    const SEGMENT_BYTES: u64 = SEGMENT_BYTES;
    const PUBLISH_HEAD: Ordering = unless(WEAK == 1, Ordering::Release);
    const OBSERVE_HEAD: Ordering = unless(WEAK == 2, Ordering::Acquire);
    const PUBLISH_TAIL: Ordering = unless(WEAK == 3, Ordering::Release);
    const OBSERVE_TAIL: Ordering = unless(WEAK == 4, Ordering::Acquire);
    const FENCE_OVERWRITE: Ordering = unless(WEAK == 5, Ordering::Release);
    const FENCE_VALIDATE: Ordering = unless(WEAK == 6, Ordering::Acquire);

    fn max_segments(&self) -> u32 {
        self.0.uses.len() as u32
    }
    fn segments(&self) -> u32 {
        self.max_segments()
    }
    fn enter(&mut self, segment: u32) {
        self.1 = u64::from(segment) * SEGMENT_BYTES;
    }
    fn store_record(&self, at: u64, words: [u64; 2]) {
        assert!(at < SEGMENT_BYTES);
        let at = self.1 + at;
        #[cfg(loom)]
        if matches!(WEAK, WEAK_PUBLISH_TAIL | WEAK_OBSERVE_TAIL | SOUND_CELLS) {
            // SAFETY: loom checks that nobody else is there.
            return self.0.cells[at as usize / 16].with_mut(|cell| unsafe { *cell = words });
        }
        self.0.words[at as usize / 8].store(words[0], Ordering::Relaxed);
        self.0.words[at as usize / 8 + 1].store(words[1], Ordering::Relaxed);
    }
    fn load_record(&self, at: u64) -> [u64; 2] {
        #[cfg(loom)]
        if matches!(WEAK, WEAK_PUBLISH_TAIL | WEAK_OBSERVE_TAIL | SOUND_CELLS) {
            // SAFETY: loom checks that nobody writes.
            return self.0.cells[at as usize / 16].with(|cell| unsafe { *cell });
        }
        [at, at + 8].map(|at| self.0.words[at as usize / 8].load(Ordering::Relaxed))
    }
    fn load_head(&self, order: Ordering) -> u64 {
        self.0.head.load(order)
    }
    fn store_head(&self, bytes: u64, order: Ordering) {
        self.0.head.store(bytes, order);
    }
    fn load_tail(&self, order: Ordering) -> u64 {
        self.0.tail.load(order)
    }
    fn store_tail(&self, bytes: u64, order: Ordering) {
        self.0.tail.store(bytes, order);
    }
    fn load_oldest(&self) -> u64 {
        self.0.oldest.load(Ordering::Relaxed)
    }
    fn store_oldest(&self, segment_use: u64) {
        self.0.oldest.store(segment_use, Ordering::Relaxed);
    }
    fn load_use(&self, index: u32) -> u64 {
        self.0.uses[index as usize].load(Ordering::Relaxed)
    }
    fn store_use(&self, index: u32, entry: u64) {
        self.0.uses[index as usize].store(entry, Ordering::Relaxed);
    }
    fn fence(&self, order: Ordering) {
        if order != Ordering::Relaxed {
            fence(order);
        }
    }
}

/// Supplies a number of segments, the last one first; a wait yields.
struct Supply(u32);

impl Source for Supply {
    fn take_segment(&mut self) -> Option<(u32, u64)> {
        self.0 = self.0.checked_sub(1)?;
        Some((self.0, SEGMENT_BYTES))
    }
    fn more_pages(&mut self, _: u32, from: u64) -> u64 {
        from
    }
    fn has_entry(&mut self, _: u32) -> bool {
        true
    }
    fn wait(&mut self) -> bool {
        thread::yield_now();
        true
    }
}

/// Event number i; both words depend on i, so that a torn one shows.
fn event(i: u64) -> Record {
    Record {
        ts: i + 1,
        payload: !(i as u32),
        event: i as u16,
        cpu: 1,
        kind: Kind::Instant,
        descheduled: DeschedFlag::No,
    }
}

fn write<const WEAK: u8>(
    writer: &mut Writer<Model<WEAK>>,
    i: u64,
    wide: bool,
    supply: &mut Supply,
) -> Result<(), Full> {
    if wide {
        return writer.put_wide(event(i), i * 3, supply);
    }
    if writer.needs_room() {
        writer.find_room(supply)?;
    }
    writer.put(event(i).to_words());
    Ok(())
}

/// What a reader saw: the events, and the number of lost ones by the gap records.
#[derive(Default)]
struct Seen {
    events: Vec<u64>,
    gaps: u64,
}

impl Seen {
    /// As [`Self::take`], for events some of which are wide: it checks the value of a wide one, not
    /// whether it should be there.
    #[cfg(not(loom))]
    fn take_any(&mut self, records: &[Record]) -> u32 {
        let is_wide = |at: usize| {
            let next = records.get(at + 1);
            next.is_some_and(|n| n.kind == Kind::Continuation && n.payload == Record::WIDE)
        };
        (0..records.len())
            .filter(|&at| {
                records[at].payload != Record::WIDE || records[at].kind != Kind::Continuation
            })
            .map(|at| {
                let end = at + 1 + usize::from(is_wide(at));
                self.take(&records[at..end], is_wide(at))
            })
            .sum()
    }

    /// Takes a chunk's records; panics on one that was never written.
    fn take(&mut self, records: &[Record], wide: bool) -> u32 {
        let mut continuations = 0;
        let mut expect_wide = None;
        for record in records {
            if record.kind == Kind::Continuation {
                continuations += 1;
                match record.payload {
                    Record::WIDE => {
                        assert_eq!(expect_wide.take(), Some(record.ts), "torn wide event")
                    }
                    Record::GAP => self.gaps += record.ts,
                    Record::PAD => {}
                    _ => panic!("a continuation nobody wrote: {record:?}"),
                }
                continue;
            }
            let i = record.ts.wrapping_sub(1);
            assert_eq!(*record, event(i), "torn record");
            if let Some(last) = self.events.last() {
                assert!(i > *last, "out of order: {last} then {i}");
            }
            self.events.push(i);
            if wide {
                expect_wide = Some(i * 3);
            }
        }
        assert_eq!(expect_wide, None, "wide event cut in half");
        continuations
    }
}

/// Drains the ring once; returns whether it held anything.
fn drain<const WEAK: u8>(reader: &mut Reader<Model<WEAK>>, seen: &mut Seen, wide: bool) -> bool {
    let Some(chunk) = reader.chunk().expect("sound ring") else {
        return false;
    };
    let records: Vec<Record> = (0..chunk.bytes / 16)
        .map(|r| Record::from_words(reader.memory().load_record(chunk.at + r * 16)))
        .collect();
    if reader.is_whole(&chunk) {
        let continuations = seen.take(&records, wide);
        reader.release(&chunk, continuations);
    }
    true
}

/// Writes `events`, or as many as it does while `goes_on`; concurrently drains `looks` times and then
/// to the end. Returns the number of events that were written or dropped.
fn run<const WEAK: u8>(
    policy: Overflow,
    segments: u32,
    (events, wide): (u64, bool),
    looks: usize,
    goes_on: impl Fn() -> bool + Copy + Send + 'static,
) -> u64 {
    let shared = Shared::new(segments);
    let theirs = Arc::clone(&shared);
    // No part of the protocol: the number of events is known before, but for what time allows.
    let wanted = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(events));
    let tried = std::sync::Arc::clone(&wanted);
    let writer = thread::spawn(move || {
        let mut writer = Writer::new(Model::<WEAK>::new(theirs), policy, 2);
        let mut supply = Supply(segments);
        let kept = (0..events)
            .take_while(|i| {
                let is_next = goes_on();
                if !is_next {
                    tried.store(*i, std::sync::atomic::Ordering::SeqCst);
                }
                is_next
            })
            .filter(|&i| write(&mut writer, i, wide, &mut supply).is_ok())
            .count() as u64;
        (kept, writer.dropped())
    });
    let wanted = || wanted.load(std::sync::atomic::Ordering::SeqCst);
    let mut reader = Reader::new(Model::<WEAK>::new(shared));
    let mut seen = Seen::default();
    for _ in 0..looks {
        if !goes_on() {
            break;
        }
        if !drain(&mut reader, &mut seen, wide) {
            thread::yield_now();
        }
    }
    // With Block the writer waits for the reader, so drain until all events are there.
    while policy == Overflow::Block && (seen.events.len() as u64) < wanted() {
        if !drain(&mut reader, &mut seen, wide) {
            thread::yield_now();
        }
    }
    let (kept, dropped) = writer.join().unwrap();
    while drain(&mut reader, &mut seen, wide) {}
    let received = seen.events.len() as u64;
    assert_eq!(kept + dropped, wanted());
    assert_eq!(
        received + reader.overwritten(),
        kept,
        "received + overwritten = kept"
    );
    assert!(seen.gaps <= dropped);
    if policy != Overflow::Overwrite {
        assert_eq!(reader.overwritten(), 0);
    }
    wanted()
}
