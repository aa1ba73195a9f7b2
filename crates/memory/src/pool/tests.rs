use std::sync::atomic::AtomicU64;

use undertick_ring::layout::pool::{self, Shape};

use super::*;
use crate::ring_map::RingMap;
use crate::session_dir::SessionDir;

const SHAPE: Shape = Shape {
    heads: 6,
    segments: 80,
};

fn pool() -> (tempfile::TempDir, SessionDir, Pool) {
    pool_of(SHAPE)
}

fn pool_of(shape: Shape) -> (tempfile::TempDir, SessionDir, Pool) {
    let parent = tempfile::tempdir().unwrap();
    let dir = SessionDir::make(parent.path()).unwrap();
    let pool = Pool::fill(Arc::new(PoolMap::make(&dir, shape).unwrap()));
    pool.map().open_to_programs();
    (parent, dir, pool)
}

/// Takes one as a thread does: ready ones first.
fn taken(pool: &Pool, queues: [Queue; 2]) -> Option<u32> {
    queues
        .into_iter()
        .find_map(|queue| take(&pool.map().line(queue)))
}

/// Makes a ring of `segments` segments; returns its head and the segments.
fn ring(pool: &Pool, segments: u32) -> (u32, Vec<u32>) {
    let head = taken(pool, [Queue::HeadsReady, Queue::Heads]).unwrap();
    let memory = pool.map().ring(head, 8192);
    let put = |offset, value| memory.field_u32(offset).store(value, Ordering::Relaxed);
    put(ring::OFF_VERSION, layout::VERSION);
    put(ring::OFF_MAX_SEGMENTS, 8192);
    put(ring::OFF_RING, 100 + head);
    let numbers: Vec<u32> = (0..segments)
        .map(|index| {
            let segment = taken(pool, [Queue::SegmentsReady, Queue::Segments]).unwrap();
            memory.store_use(index, ring::use_of(segment, 0));
            segment
        })
        .collect();
    let written = u64::from(segments) * SEGMENT_BYTES - 16;
    memory.store_head(written, Ordering::Release);
    memory
        .field_u64(ring::OFF_MAGIC)
        .store(ring::MAGIC, Ordering::Release);
    (head, numbers)
}

fn free(pool: &Pool) -> (usize, usize) {
    (pool.heads.free(), pool.segments.free())
}

/// Returns a word of the file, as a program writes it.
fn word(pool: &Pool, at: usize) -> &AtomicU64 {
    // SAFETY: within the pool, aligned.
    unsafe {
        AtomicU64::from_ptr(
            pool.map()
                .ring(0, 1)
                .head()
                .wrapping_sub(heads_at())
                .wrapping_add(at)
                .cast(),
        )
    }
}

fn heads_at() -> usize {
    SHAPE.heads_at() as usize
}

/// Each is handed out once, ready ones first and with pages, and comes back as new.
#[test]
fn what_is_given_back_is_handed_out_again() {
    let (_parent, _dir, mut pool) = pool();
    assert_eq!(free(&pool), (6, 80));
    assert_eq!(pool.segments.queued[WRITTEN].len(), 20);
    assert_eq!(pool.heads.queued[WRITTEN].len(), 6);
    let (head, segments) = ring(&pool, 30);
    let written = |pool: &Pool, at: u32| pool.map().written(at).load(Ordering::Relaxed);
    assert!(segments[..20].iter().all(|&at| written(&pool, at) == 1));
    assert!(segments[20..].iter().all(|&at| written(&pool, at) == 0));
    pool.look();
    assert_eq!((free(&pool), pool.segments()), ((5, 50), (30, 80)));
    assert_eq!(pool.new_heads(), [head]);
    // A segment that was taken without pages gets them, unless segments are taken too fast.
    pool.prepare(100);
    assert_eq!(written(&pool, segments[29]), 0);
    pool.prepare(100);
    assert!(segments.iter().all(|&at| written(&pool, at) == 1));

    let map = RingMap::at(pool.map(), head).unwrap().unwrap();
    assert!(pool.is_of(segments[3], head) && !pool.is_of(segments[3], head + 1));
    let memory = map.memory();
    let cells = memory.field_u32(ring::OFF_CELL_TABLE + 32);
    map.memory()
        .field_u32(ring::OFF_CELLS)
        .store(256, Ordering::Relaxed);
    cells.store(7, Ordering::Relaxed);
    pool.give_back(head, &map.memory());
    assert_eq!(free(&pool), (6, 80));
    assert!(RingMap::at(pool.map(), head).unwrap().is_none());
    assert_eq!(cells.load(Ordering::Relaxed), 0);
    let mut all: Vec<u32> = Vec::new();
    let queues = [Queue::SegmentsReady, Queue::Segments];
    all.extend(std::iter::from_fn(|| taken(&pool, queues)));
    all.sort_unstable();
    assert_eq!(all, (0..80).collect::<Vec<_>>());
}

/// At first more are ready than are made ready later: none has come back yet.
#[test]
fn more_are_ready_at_first() {
    let (_parent, _dir, mut pool) = pool_of(Shape {
        heads: 300,
        segments: 1100,
    });
    let ready = |pool: &Pool| [&pool.heads, &pool.segments].map(|of| of.queued[WRITTEN].len());
    assert_eq!(ready(&pool), [256, 256]);
    for _ in 0..200 {
        ring(&pool, 1);
    }
    pool.look();
    assert_eq!(ready(&pool), [56, 56]);
    pool.prepare(100);
    assert_eq!(ready(&pool), [64, 64]);
}

/// A ring names a segment each time that it reuses it. The segment is returned once, although other
/// threads take returned segments while the rest is read.
#[test]
fn what_a_ring_has_used_twice_comes_back_once() {
    let (_parent, _dir, mut pool) = pool();
    let (head, segments) = ring(&pool, 40);
    pool.look();
    let memory = pool.map().ring(head, 8192);
    let again = |memory: &Mapped| {
        for (index, &segment) in segments.iter().chain(&segments).enumerate() {
            memory.store_use(index as u32, ring::use_of(segment, 0));
        }
        memory.store_head(80 * SEGMENT_BYTES - 16, Ordering::Relaxed);
    };
    for _ in 0..200 {
        // All free segments are taken first, so that returned ones are handed out at once.
        let queues = [Queue::SegmentsReady, Queue::Segments];
        while taken(&pool, queues).is_some() {}
        pool.look();
        for &segment in &segments {
            pool.segments.states[segment as usize] = SlotState::OfRing(head);
        }
        again(&memory);
        let is_over = AtomicU64::new(0);
        let (map, is_over) = (Arc::clone(pool.map()), &is_over);
        let mut all = std::thread::scope(|scope| {
            let taker = scope.spawn(move || {
                let mut all = Vec::new();
                loop {
                    let was_over = is_over.load(Ordering::Acquire) != 0;
                    let one = queues.iter().find_map(|queue| take(&map.line(*queue)));
                    match one {
                        Some(segment) => all.push(segment),
                        None if was_over => return all,
                        None => {}
                    }
                }
            });
            pool.give_back(head, &memory);
            is_over.store(1, Ordering::Release);
            taker.join().unwrap()
        });
        all.sort_unstable();
        let mut expected = segments.clone();
        expected.sort_unstable();
        assert_eq!(all, expected);
    }
}

/// A program writes arbitrary data into the queues and its table. Nothing is handed out that
/// another program owns, and that program loses nothing.
#[test]
fn nothing_in_the_pool_is_believed() {
    let (_parent, _dir, mut pool) = pool();
    let (victim, theirs) = ring(&pool, 3);
    let (hostile, own) = ring(&pool, 2);
    pool.look();
    assert!(theirs.iter().all(|&segment| pool.is_of(segment, victim)));
    // The victim's segment, a free one, and one that does not exist.
    let memory = pool.map().ring(hostile, 8192);
    for (index, segment) in [(0, theirs[1]), (2, 60), (3, 4000), (4, u32::MAX - 1)] {
        memory.store_use(index, ring::use_of(segment, 0));
        assert!(!pool.is_of(segment, hostile), "{segment}");
    }
    memory.store_head(64 * SEGMENT_BYTES, Ordering::Relaxed);
    pool.give_back(hostile, &memory);
    // The segments that it no longer names are lost; the rest is unchanged.
    assert_eq!(free(&pool), (5, 80 - 4));
    assert!(theirs.iter().all(|&segment| pool.is_of(segment, victim)));
    assert!(
        !pool
            .segments
            .queued
            .iter()
            .flatten()
            .any(|at| *at == own[0])
    );
    // The queue again contains numbers that were handed out already.
    let entries = SHAPE.entries_at(Queue::SegmentsReady);
    for place in 0..40 {
        let both = u64::from(theirs[0]) << 32 | u64::from(theirs[0]);
        word(&pool, entries + 8 * place).store(both, Ordering::Relaxed);
    }
    pool.look();
    assert!(pool.is_of(theirs[0], victim));
    pool.give_back(victim, &pool.map().ring(victim, 8192));
    assert_eq!(free(&pool), (6, 79));
    // With impossible counts nothing more is put in, and nothing waits.
    for (at, value) in [(pool::OFF_TAKEN, u64::MAX), (pool::OFF_PUT, 3)] {
        word(&pool, pool::OFF_QUEUES + 2 * pool::QUEUE_BYTES + at).store(value, Ordering::Relaxed);
    }
    pool.look();
    pool.prepare(10);
}

/// A recorder that resumes after one that was killed finds the free segments in the queues, and the
/// others in the rings.
#[test]
fn a_killed_recorder_leaves_its_queues() {
    let (_parent, dir, mut pool) = pool();
    let (head, segments) = ring(&pool, 22);
    pool.look();
    drop(pool);
    let mut pool = Pool::recover(Arc::new(PoolMap::open(&dir, true).unwrap()));
    assert_eq!(free(&pool), (5, 58));
    assert_eq!(pool.new_heads(), [head]);
    assert_eq!(pool.unwritten, &segments[20..]);
    let memory = pool.map().ring(head, 8192);
    pool.give_back(head, &memory);
    assert_eq!(free(&pool), (6, 80));
}
