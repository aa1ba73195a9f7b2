//! Ring and collector, explored exhaustively by loom (`RUSTFLAGS="--cfg loom"`), and run with real
//! threads under Miri and ThreadSanitizer. The memory belongs to the test; the protocol is the one
//! that runs on mapped memory.

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

/// Writes `events`; concurrently drains `looks` times and then to the end.
fn run<const WEAK: u8>(policy: Overflow, segments: u32, events: u64, looks: usize, wide: bool) {
    let shared = Shared::new(segments);
    let theirs = Arc::clone(&shared);
    let writer = thread::spawn(move || {
        let mut writer = Writer::new(Model::<WEAK>::new(theirs), policy, 2);
        let mut supply = Supply(segments);
        let kept = (0..events)
            .filter(|&i| write(&mut writer, i, wide, &mut supply).is_ok())
            .count() as u64;
        (kept, writer.dropped())
    });
    let mut reader = Reader::new(Model::<WEAK>::new(shared));
    let mut seen = Seen::default();
    for _ in 0..looks {
        if !drain(&mut reader, &mut seen, wide) {
            thread::yield_now();
        }
    }
    // With Block the writer waits for the reader, so drain until all events are there.
    while policy == Overflow::Block && (seen.events.len() as u64) < events {
        if !drain(&mut reader, &mut seen, wide) {
            thread::yield_now();
        }
    }
    let (kept, dropped) = writer.join().unwrap();
    while drain(&mut reader, &mut seen, wide) {}
    let received = seen.events.len() as u64;
    assert_eq!(kept + dropped, events);
    assert_eq!(
        received + reader.overwritten(),
        kept,
        "received + overwritten = kept"
    );
    assert!(seen.gaps <= dropped);
    if policy != Overflow::Overwrite {
        assert_eq!(reader.overwritten(), 0);
    }
}

#[cfg(not(loom))]
mod threads {
    use super::*;

    /// Fewer under Miri, which is a thousand times slower.
    const EVENTS: u64 = if cfg!(miri) { 60 } else { 50_000 };

    #[test]
    fn every_policy_accounts_for_every_event() {
        for policy in [
            Overflow::Grow,
            Overflow::Drop,
            Overflow::Overwrite,
            Overflow::Block,
        ] {
            for wide in [false, true] {
                for segments in [2, 3, 4] {
                    run::<SOUND>(policy, segments, EVENTS, EVENTS as usize, wide);
                }
            }
        }
    }

    #[test]
    fn a_gap_record_tells_how_many_were_dropped_and_where() {
        let shared = Shared::new(2);
        let mut writer = Writer::new(Model::<SOUND>::new(Arc::clone(&shared)), Overflow::Drop, 2);
        let mut reader = Reader::new(Model::<SOUND>::new(shared));
        let mut supply = Supply(2);
        let kept: Vec<bool> = (0..7)
            .map(|i| write(&mut writer, i, false, &mut supply).is_ok())
            .collect();
        assert_eq!(kept, [true, true, true, true, false, false, false]);
        let mut seen = Seen::default();
        while drain(&mut reader, &mut seen, false) {}
        // There is room again: the gap record takes the first slot, the event the second.
        write(&mut writer, 7, false, &mut supply).unwrap();
        while drain(&mut reader, &mut seen, false) {}
        assert_eq!(seen.events, [0, 1, 2, 3, 7]);
        assert_eq!((seen.gaps, writer.dropped()), (3, 3));
    }

    /// Segments of four pieces of two records; the bytes of each that have pages; and the segment
    /// that was entered last.
    struct Pieces(Model<SOUND>, Arc<Vec<AtomicU64>>, u32);

    impl Memory for Pieces {
        const SEGMENT_BYTES: u64 = 4 * SEGMENT_BYTES;
        const PIECE_BYTES: u64 = SEGMENT_BYTES;

        fn max_segments(&self) -> u32 {
            self.1.len() as u32
        }
        fn segments(&self) -> u32 {
            self.max_segments()
        }
        fn enter(&mut self, segment: u32) {
            self.2 = segment;
        }
        fn store_record(&self, at: u64, words: [u64; 2]) {
            let there = self.1[self.2 as usize].load(Ordering::Relaxed);
            assert!(at < there, "byte {at} of {there}");
            let of_all = u64::from(self.2) * Self::SEGMENT_BYTES + at;
            let words_at = of_all as usize / 8;
            self.0.0.words[words_at].store(words[0], Ordering::Relaxed);
            self.0.0.words[words_at + 1].store(words[1], Ordering::Relaxed);
        }
        fn load_record(&self, at: u64) -> [u64; 2] {
            self.0.load_record(at)
        }
        fn load_head(&self, order: Ordering) -> u64 {
            self.0.load_head(order)
        }
        fn store_head(&self, bytes: u64, order: Ordering) {
            self.0.store_head(bytes, order);
        }
        fn load_tail(&self, order: Ordering) -> u64 {
            self.0.load_tail(order)
        }
        fn store_tail(&self, bytes: u64, order: Ordering) {
            self.0.store_tail(bytes, order);
        }
        fn load_oldest(&self) -> u64 {
            self.0.load_oldest()
        }
        fn store_oldest(&self, segment_use: u64) {
            self.0.store_oldest(segment_use);
        }
        fn load_use(&self, index: u32) -> u64 {
            self.0.load_use(index)
        }
        fn store_use(&self, index: u32, entry: u64) {
            self.0.store_use(index, entry);
        }
        fn fence(&self, order: Ordering) {
            self.0.fence(order);
        }
    }

    /// Gives one piece at a time, of segment 1 two; nothing while `is_full`, and no entry of the
    /// table from `entries` on.
    struct Pages {
        pages: Arc<Vec<AtomicU64>>,
        is_full: bool,
        entries: u32,
        taken: u32,
    }

    impl Source for Pages {
        fn take_segment(&mut self) -> Option<(u32, u64)> {
            let segment = self.taken;
            let there = self.more_pages(segment, 0);
            self.taken += u32::from(there > 0);
            (there > 0).then_some((segment, there))
        }
        fn more_pages(&mut self, segment: u32, from: u64) -> u64 {
            let there = &self.pages[segment as usize];
            assert_eq!(there.load(Ordering::Relaxed), from);
            let more = u64::from(!self.is_full) * (1 + u64::from(segment == 1));
            there.fetch_add(more * SEGMENT_BYTES, Ordering::Relaxed);
            from + more * SEGMENT_BYTES
        }
        fn has_entry(&mut self, index: u32) -> bool {
            index < self.entries
        }
        fn wait(&mut self) -> bool {
            false
        }
    }

    /// No record is stored where there are no pages, nor the second record of a wide event, for
    /// which the first one is padded to the next piece. Without pages events are dropped, and
    /// writing continues at the same place when there are some again. Segments that are taken again
    /// have all of their pages.
    #[test]
    fn pages_come_by_pieces() {
        for wide in [false, true] {
            let pages: Arc<Vec<_>> = Arc::new((0..3).map(|_| AtomicU64::new(0)).collect());
            let model = || Model::<SOUND>::new(Shared::new(3 * 4));
            let memory = model();
            let theirs = Model::<SOUND>::new(Arc::clone(&memory.0));
            let mut writer = Writer::new(Pieces(memory, Arc::clone(&pages), 0), Overflow::Drop, 2);
            let mut reader = Reader::new(Pieces(theirs, Arc::clone(&pages), 0));
            let mut supply = Pages {
                pages,
                is_full: false,
                entries: 3,
                taken: 0,
            };
            let mut seen = Seen::default();
            let mut dropped = Vec::new();
            for i in 0..60 {
                // No pages from the middle of the first segment on, and again much later.
                supply.is_full = (3..7).contains(&i) || i == 40;
                supply.entries = if (45..55).contains(&i) { 0 } else { 3 };
                let put = match wide && i % 2 == 1 {
                    true => writer.put_wide(event(i), i * 3, &mut supply),
                    false => {
                        let room = match writer.needs_room() {
                            true => writer.find_room(&mut supply),
                            false => Ok(()),
                        };
                        room.map(|()| writer.put(event(i).to_words()))
                    }
                };
                if put.is_err() {
                    writer.finish_dropped();
                    dropped.push(i);
                }
                if i % 4 == 3 {
                    while let Some(chunk) = reader.chunk().unwrap() {
                        let records: Vec<Record> = (0..chunk.bytes / 16)
                            .map(|r| chunk.at + r * 16)
                            .map(|at| Record::from_words(reader.memory().load_record(at)))
                            .collect();
                        let continuations = seen.take_any(&records);
                        reader.release(&chunk, continuations);
                    }
                }
            }
            assert!(dropped.iter().any(|i| *i < 7) && dropped.iter().any(|i| *i > 40));
            assert!(
                dropped
                    .iter()
                    .all(|i| (3..7).contains(i) || *i == 40 || (45..55).contains(i))
            );
            assert_eq!(seen.events.len() + dropped.len(), 60, "wide: {wide}");
            assert_eq!(seen.gaps, dropped.len() as u64);
        }
    }

    /// Each wide event fills a segment: two records, one of them a continuation.
    #[test]
    fn a_reader_goes_on_where_another_one_was() {
        let shared = Shared::new(5);
        let model = || Model::<SOUND>::new(Arc::clone(&shared));
        let mut writer = Writer::new(model(), Overflow::Drop, 2);
        let mut supply = Supply(5);
        for i in 0..3 {
            write(&mut writer, i, true, &mut supply).unwrap();
        }
        let mut first = Reader::new(model());
        let chunk = first.chunk().unwrap().unwrap();
        first.pass(&chunk, 1);
        // Nothing has been given back to the writer yet.
        assert_eq!(
            (first.position(), shared.tail.load(Ordering::Relaxed)),
            (32, 0)
        );
        let mut second = Reader::resume(model(), 32, 1);
        let mut seen = Seen::default();
        while drain(&mut second, &mut seen, true) {}
        assert_eq!((seen.events, second.overwritten()), (vec![1, 2], 0));
        assert_eq!(shared.tail.load(Ordering::Relaxed), 96);
        // This reader stored nothing of what it gave back; the last segment is complete.
        let mut third = Reader::resume(model(), 0, 0);
        let mut seen = Seen::default();
        while drain(&mut third, &mut seen, true) {}
        assert_eq!((seen.events, third.overwritten()), (vec![2], 2));
        for i in 3..5 {
            write(&mut writer, i, true, &mut supply).unwrap();
        }
        // The writer continued, so the records behind the tail are there.
        let mut fourth = Reader::resume(model(), 32, 1);
        let mut seen = Seen::default();
        while drain(&mut fourth, &mut seen, true) {}
        assert_eq!((seen.events, fourth.overwritten()), (vec![3, 4], 2));
    }

    #[test]
    fn overwriting_keeps_the_last_and_counts_the_rest_also_of_wide_events() {
        let shared = Shared::new(3);
        let mut writer = Writer::new(
            Model::<SOUND>::new(Arc::clone(&shared)),
            Overflow::Overwrite,
            2,
        );
        let mut reader = Reader::new(Model::<SOUND>::new(shared));
        let mut supply = Supply(3);
        for i in 0..10 {
            write(&mut writer, i, true, &mut supply).unwrap();
        }
        let mut seen = Seen::default();
        while drain(&mut reader, &mut seen, true) {}
        // Three segments of one wide event each.
        assert_eq!(seen.events, [7, 8, 9]);
        assert_eq!(reader.overwritten(), 7);
    }

    #[test]
    fn a_hostile_ring_is_refused() {
        for (head, oldest, segment) in [
            (24, 0, 0),
            (!15, 0, 0),
            (32 * 3, 0, 0),
            (16, 0, 9),
            (16, 0, 0),
            (32, u64::MAX, 2),
        ] {
            let shared = Shared::new(2);
            shared.head.store(head, Ordering::Relaxed);
            shared.oldest.store(oldest, Ordering::Relaxed);
            for entry in &shared.uses {
                entry.store(segment, Ordering::Relaxed);
            }
            let mut reader = Reader::new(Model::<SOUND>::new(shared));
            let looks: Vec<_> = (0..3).map(|_| reader.chunk()).collect();
            assert!(
                looks.iter().all(|look| !matches!(look, Ok(Some(_)))),
                "head {head} oldest {oldest} segment {segment}: {looks:?}"
            );
        }
    }

    #[test]
    fn a_head_that_goes_back_is_refused() {
        let shared = Shared::new(2);
        let mut writer = Writer::new(Model::<SOUND>::new(Arc::clone(&shared)), Overflow::Drop, 2);
        let mut supply = Supply(2);
        for i in 0..2 {
            write(&mut writer, i, false, &mut supply).unwrap();
        }
        let mut reader = Reader::new(Model::<SOUND>::new(Arc::clone(&shared)));
        let mut seen = Seen::default();
        while drain(&mut reader, &mut seen, false) {}
        shared.head.store(16, Ordering::Relaxed);
        assert!(reader.chunk().is_err());
    }
}

#[cfg(loom)]
mod model {
    use super::*;

    fn explore(body: fn()) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(body);
    }

    #[test]
    fn drop_with_two_segments() {
        explore(|| run::<SOUND_CELLS>(Overflow::Drop, 2, 6, 3, false));
    }

    #[test]
    fn drop_of_wide_events() {
        explore(|| run::<SOUND>(Overflow::Drop, 2, 3, 2, true));
    }

    #[test]
    fn grow_to_two_segments() {
        explore(|| run::<SOUND>(Overflow::Grow, 2, 5, 2, false));
    }

    #[test]
    fn overwrite_with_two_segments() {
        explore(|| run::<SOUND>(Overflow::Overwrite, 2, 6, 2, false));
    }

    #[test]
    fn block_with_two_segments() {
        explore(|| run::<SOUND_CELLS>(Overflow::Block, 2, 5, 0, false));
    }

    #[test]
    #[should_panic(expected = "sound ring: Use")] // one that is not there yet
    fn a_head_published_without_release_is_found() {
        explore(|| run::<WEAK_PUBLISH_HEAD>(Overflow::Drop, 2, 2, 2, false));
    }

    #[test]
    #[should_panic(expected = "sound ring: Use")] // one that is not there yet
    fn a_head_observed_without_acquire_is_found() {
        explore(|| run::<WEAK_OBSERVE_HEAD>(Overflow::Drop, 2, 2, 2, false));
    }

    #[test]
    #[should_panic]
    fn a_tail_published_without_release_is_found() {
        explore(|| run::<WEAK_PUBLISH_TAIL>(Overflow::Drop, 2, 6, 3, false));
    }

    #[test]
    #[should_panic]
    fn a_tail_observed_without_acquire_is_found() {
        explore(|| run::<WEAK_OBSERVE_TAIL>(Overflow::Drop, 2, 6, 3, false));
    }

    #[test]
    #[should_panic]
    fn an_overwrite_without_its_fence_is_found() {
        explore(|| run::<WEAK_FENCE_OVERWRITE>(Overflow::Overwrite, 2, 6, 2, false));
    }

    #[test]
    #[should_panic]
    fn a_validation_without_its_fence_is_found() {
        explore(|| run::<WEAK_FENCE_VALIDATE>(Overflow::Overwrite, 2, 6, 2, false));
    }
}
