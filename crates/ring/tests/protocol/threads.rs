//! The protocol with real threads, and step by step in one thread.

use std::time::{Duration, Instant};

use super::*;

/// On a busy machine, where writer and reader take turns of milliseconds, fewer are written.
const LONGEST: Duration = Duration::from_secs(3);
const FEWEST: u64 = 10;
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
                let begun = Instant::now();
                let goes_on = move || begun.elapsed() < LONGEST;
                let tried =
                    run::<SOUND>(policy, segments, (EVENTS, wide), EVENTS as usize, goes_on);
                assert!(tried == EVENTS || tried >= FEWEST && !goes_on(), "{tried}");
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
