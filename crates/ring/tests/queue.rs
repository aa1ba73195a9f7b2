//! Threads that take numbers, and the collector that puts them back: explored by loom
//! (`RUSTFLAGS="--cfg loom"`), and run with real threads under Miri and ThreadSanitizer. The memory
//! belongs to the test; the protocol is the one that runs on mapped memory.

use undertick_ring::pool::{self, Line};

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
use loom::{sync::Arc, thread};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
use std::{sync::Arc, thread};

/// The memory of a number, to which only its holder writes. It is not atomic, so that loom,
/// ThreadSanitizer and Miri see a race.
#[cfg(loom)]
struct Held(loom::cell::UnsafeCell<u64>);
#[cfg(not(loom))]
struct Held(std::cell::UnsafeCell<u64>);

impl Held {
    fn new() -> Self {
        #[cfg(loom)]
        return Self(loom::cell::UnsafeCell::new(0));
        #[cfg(not(loom))]
        return Self(std::cell::UnsafeCell::new(0));
    }

    /// Returns the content, and replaces it.
    fn replace(&self, with: u64) -> u64 {
        // SAFETY: whoever holds the number is alone there, which is what is tried.
        #[cfg(loom)]
        return self
            .0
            .with_mut(|held| unsafe { std::mem::replace(&mut *held, with) });
        // SAFETY: as above.
        #[cfg(not(loom))]
        return unsafe { std::mem::replace(&mut *self.0.get(), with) };
    }
}

struct Shared {
    taken: AtomicU64,
    put: AtomicU64,
    numbers: Vec<AtomicU32>,
    held: Vec<Held>,
    /// By number: whether its holder is done with it.
    given_back: Vec<AtomicBool>,
}

// SAFETY: what is held is what the test tries.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Shared {
    fn new(room: u32) -> Arc<Self> {
        Arc::new(Self {
            taken: AtomicU64::new(0),
            put: AtomicU64::new(0),
            numbers: (0..room).map(|_| AtomicU32::new(u32::MAX)).collect(),
            held: (0..room).map(|_| Held::new()).collect(),
            given_back: (0..room).map(|_| AtomicBool::new(false)).collect(),
        })
    }
}

const SOUND: u8 = 0;
#[cfg(loom)]
const WEAK_PUBLISH_PUT: u8 = 1;
#[cfg(loom)]
const WEAK_OBSERVE_PUT: u8 = 2;

const fn unless(weak: bool, order: Ordering) -> Ordering {
    if weak { Ordering::Relaxed } else { order }
}

struct Model<const WEAK: u8>(Arc<Shared>);

impl<const WEAK: u8> Line for Model<WEAK> {
    const PUBLISH_PUT: Ordering = unless(WEAK == 1, Ordering::Release);
    const OBSERVE_PUT: Ordering = unless(WEAK == 2, Ordering::Acquire);

    fn room(&self) -> u32 {
        self.0.numbers.len() as u32
    }
    fn load_taken(&self, order: Ordering) -> u64 {
        self.0.taken.load(order)
    }
    fn count_taken(&self, taken: u64, order: Ordering) -> bool {
        (self.0.taken)
            .compare_exchange(taken, taken + 1, order, Ordering::Relaxed)
            .is_ok()
    }
    fn load_put(&self, order: Ordering) -> u64 {
        self.0.put.load(order)
    }
    fn store_put(&self, put: u64, order: Ordering) {
        self.0.put.store(put, order);
    }
    fn load_number(&self, place: u32) -> u32 {
        self.0.numbers[place as usize].load(Ordering::Relaxed)
    }
    fn store_number(&self, place: u32, number: u32) {
        self.0.numbers[place as usize].store(number, Ordering::Relaxed);
    }
}

/// The collector's mark in the memory of a number.
const FREE: u64 = 7;

/// Takes numbers until `wanted` were taken, after `tries` tries, or until `goes_on` is false; returns how
/// many were taken.
fn take_some<const WEAK: u8>(
    shared: &Arc<Shared>,
    wanted: u32,
    tries: u32,
    goes_on: impl Fn() -> bool,
) -> u32 {
    let line = Model::<WEAK>(Arc::clone(shared));
    let mut had = 0;
    for _ in 0..tries {
        if !goes_on() {
            break;
        }
        let Some(number) = pool::take(&line) else {
            thread::yield_now();
            continue;
        };
        let held = &shared.held[number as usize];
        assert_eq!(held.replace(1), FREE, "number {number} was not free");
        shared.given_back[number as usize].store(true, Ordering::Release);
        had += 1;
        if had == wanted {
            break;
        }
    }
    had
}

/// Puts returned numbers back, once.
fn put_back<const WEAK: u8>(shared: &Arc<Shared>) -> u32 {
    let line = Model::<WEAK>(Arc::clone(shared));
    let mut again = 0;
    for number in 0..shared.numbers.len() {
        if shared.given_back[number].swap(false, Ordering::Acquire) {
            shared.held[number].replace(FREE);
            assert!(pool::put(&line, number as u32), "room for one of its own");
            again += 1;
        }
    }
    again
}

fn fill<const WEAK: u8>(shared: &Arc<Shared>) {
    for number in 0..shared.numbers.len() as u32 {
        shared.held[number as usize].replace(FREE);
        assert!(pool::put(&Model::<WEAK>(Arc::clone(shared)), number));
    }
}

#[cfg(not(loom))]
mod threads {
    use std::time::{Duration, Instant};

    use super::*;

    const WANTED: u32 = if cfg!(miri) { 30 } else { 100_000 };
    /// On a busy machine, where a number changes hands once in ten milliseconds, fewer go round.
    const LONGEST: Duration = Duration::from_secs(10);
    const FEWEST: u32 = 10;

    /// No number has two holders at a time, none is lost, and each taker finds the collector's
    /// mark.
    #[test]
    fn numbers_go_round_and_are_never_had_twice() {
        for room in [1, 3, 64] {
            let shared = Shared::new(room);
            fill::<SOUND>(&shared);
            let begun = Instant::now();
            let takers: Vec<_> = (0..3)
                .map(|_| {
                    let shared = Arc::clone(&shared);
                    let goes_on = move || begun.elapsed() < LONGEST;
                    thread::spawn(move || take_some::<SOUND>(&shared, WANTED, u32::MAX, goes_on))
                })
                .collect();
            let mut put = room;
            while takers.iter().any(|taker| !taker.is_finished()) {
                put += put_back::<SOUND>(&shared);
                thread::yield_now();
            }
            let had: u32 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
            put += put_back::<SOUND>(&shared);
            assert_eq!(put, had + room, "none is lost");
            let is_over = begun.elapsed() >= LONGEST;
            assert!(had == 3 * WANTED || is_over && had >= FEWEST, "{had}");
            let line = Model::<SOUND>(Arc::clone(&shared));
            let mut rest: Vec<u32> = std::iter::from_fn(|| pool::take(&line)).collect();
            rest.sort_unstable();
            assert_eq!(rest, (0..room).collect::<Vec<_>>());
        }
    }

    /// A program has overwritten the counts: nothing is put in, nothing that is missing is taken,
    /// and nothing waits.
    #[test]
    fn counts_that_cannot_be_are_an_empty_queue() {
        let shared = Shared::new(4);
        let line = Model::<SOUND>(Arc::clone(&shared));
        for (taken, put) in [(5, 0), (u64::MAX, 3), (9, 9)] {
            shared.taken.store(taken, Ordering::Relaxed);
            shared.put.store(put, Ordering::Relaxed);
            assert_eq!(pool::take(&line), None);
            assert_eq!(pool::put(&line, 0), taken == put);
        }
        shared.taken.store(0, Ordering::Relaxed);
        shared.put.store(4, Ordering::Relaxed);
        assert!(!pool::put(&line, 0), "full");
    }
}

#[cfg(loom)]
mod model {
    use super::*;

    fn explore<const WEAK: u8>() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(|| {
            let shared = Shared::new(2);
            let theirs: Vec<_> = (0..2).map(|_| Arc::clone(&shared)).collect();
            let takers: Vec<_> = theirs
                .into_iter()
                .map(|shared| thread::spawn(move || take_some::<WEAK>(&shared, 2, 2, || true)))
                .collect();
            fill::<WEAK>(&shared);
            let again = put_back::<WEAK>(&shared);
            let had: u32 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
            let line = Model::<WEAK>(Arc::clone(&shared));
            let rest = std::iter::from_fn(|| pool::take(&line)).count() as u32;
            assert_eq!(had + rest, 2 + again);
        });
    }

    #[test]
    fn two_threads_and_the_collector() {
        explore::<SOUND>();
    }

    #[test]
    #[should_panic]
    fn a_number_put_in_without_release_is_found() {
        explore::<WEAK_PUBLISH_PUT>();
    }

    #[test]
    #[should_panic]
    fn a_number_looked_for_without_acquire_is_found() {
        explore::<WEAK_OBSERVE_PUT>();
    }
}
