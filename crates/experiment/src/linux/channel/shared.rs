//! Messages in shared memory; waits use an `eventfd(2)` or a `futex(2)`.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::linux::Act;
use crate::linux::access::{Desk, Message};
use crate::linux::counter::Counter;
use crate::linux::shared_memory::SharedMemory;
use crate::linux::wait::{Sign, sleep_while, wake};

/// Slots for messages: one that the receiver still reads, and one to write.
const SLOTS: u32 = 2;

/// A channel in shared memory.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    all: &'static Slots,
    /// Without these, processes wait on the counts themselves, by futex.
    counters: Option<Counters>,
}

#[derive(Clone, Debug)]
struct Counters {
    /// Signals messages that have not been received.
    messages: Counter,
    /// Signals a free slot to a waiting sender.
    room: Counter,
}

#[derive(Debug)]
struct Slots {
    /// Messages sent; written by the sender.
    sent: &'static Count,
    /// Total number of messages that may be sent; written by the receiver when it frees a slot.
    room: &'static Count,
    /// Used by the receiver only.
    receiver: &'static Receiver,
    slots: [Slot; SLOTS as usize],
}

#[derive(Debug, Default)]
struct Receiver {
    /// Number of messages received.
    received: AtomicU32,
    /// 1: the receiver has a message whose slot is not yet freed.
    has_one: AtomicU32,
}

#[derive(Debug)]
struct Slot {
    words: AtomicUsize,
    /// Address of the words.
    at: AtomicUsize,
}

/// An increasing count with one writer and one waiter.
#[derive(Debug)]
struct Count {
    count: AtomicU32,
    somebody_waits: AtomicU32,
}

impl Count {
    fn new(count: u32) -> Self {
        Self {
            count: AtomicU32::new(count),
            somebody_waits: AtomicU32::new(0),
        }
    }

    /// Increments the count; only its one writer may do so.
    #[inline(always)]
    fn step(&self) {
        let count = self.count.load(Ordering::Relaxed);
        // Ordered with `somebody_waits`: either the writer sees the waiter or the waiter sees the
        // count. Also Release, for the message.
        self.count.store(count.wrapping_add(1), Ordering::SeqCst);
    }

    /// Whether to wake the waiter; call it after `step`. The writer does not clear the flag,
    /// because it might already belong to the next wait.
    #[inline(always)]
    fn wake_is_due(&self) -> bool {
        self.somebody_waits.load(Ordering::SeqCst) != 0
    }

    #[inline(always)]
    fn is(&self, count: u32) -> bool {
        self.count.load(Ordering::Acquire) == count
    }

    /// Waits until the value differs from `count`. `sleep` may return early.
    #[inline(always)]
    fn wait_while(&self, count: u32, sign: Sign, sleep: impl Fn()) {
        if !self.is(count) {
            return;
        }
        sign.raise();
        self.somebody_waits.store(1, Ordering::SeqCst);
        while self.count.load(Ordering::SeqCst) == count {
            sleep();
        }
        self.somebody_waits.store(0, Ordering::Relaxed);
        sign.lower();
    }
}

impl Shared {
    pub(super) fn with_futex(most_words: usize, memory: &SharedMemory) -> io::Result<Self> {
        Ok(Self {
            all: Slots::create(most_words, memory)?,
            counters: None,
        })
    }

    pub(super) fn with_eventfd(most_words: usize, memory: &SharedMemory) -> io::Result<Self> {
        Ok(Self {
            all: Slots::create(most_words, memory)?,
            counters: Some(Counters {
                messages: Counter::create_semaphore()?,
                room: Counter::create()?,
            }),
        })
    }

    pub(super) fn sender(&self, words: usize, desk: &Desk) -> Act {
        let (all, desk) = (self.all, desk.clone());
        match self.counters.clone() {
            None => Box::new(move || {
                let mine = all.sent.count.load(Ordering::Relaxed);
                let sleep = || sleep_while(&all.room.count, mine);
                all.room.wait_while(mine, Sign::UNSEEN, sleep);
                desk.with_own(|own| all.write(mine, &own[..words]));
                all.sent.step();
                if all.sent.wake_is_due() {
                    wake(&all.sent.count, 1);
                }
            }),
            Some(counters) => Box::new(move || {
                let mine = all.sent.count.load(Ordering::Relaxed);
                // A count left over from a wait that did not sleep ends this one early.
                let sleep = || counters.room.take();
                all.room.wait_while(mine, Sign::UNSEEN, sleep);
                desk.with_own(|own| all.write(mine, &own[..words]));
                all.sent.step();
                counters.messages.add_one();
            }),
        }
    }

    pub(super) fn receiver(&self, sign: Sign, desk: &Desk) -> Act {
        let (all, desk) = (self.all, desk.clone());
        match self.counters.clone() {
            None => Box::new(move || {
                if all.give_back() && all.room.wake_is_due() {
                    wake(&all.room.count, 1);
                }
                let mine = all.receiver.received.load(Ordering::Relaxed);
                let sleep = || sleep_while(&all.sent.count, mine);
                all.sent.wait_while(mine, sign, sleep);
                desk.came(all.take(mine));
            }),
            Some(counters) => Box::new(move || {
                if all.give_back() && all.room.wake_is_due() {
                    counters.room.add_one();
                }
                let mine = all.receiver.received.load(Ordering::Relaxed);
                sign.raise();
                counters.messages.take();
                sign.lower();
                desk.came(all.take(mine));
            }),
        }
    }
}

impl Slots {
    fn create(most_words: usize, memory: &SharedMemory) -> io::Result<&'static Self> {
        let slot = || {
            let at = memory.bytes(most_words * 8)?;
            Ok::<_, io::Error>(Slot {
                words: AtomicUsize::new(0),
                at: AtomicUsize::new(at.as_ptr().expose_provenance()),
            })
        };
        Ok(memory.place_apart(Self {
            sent: memory.place_apart(Count::new(0)),
            room: memory.place_apart(Count::new(SLOTS)),
            receiver: memory.place_apart(Receiver::default()),
            slots: [slot()?, slot()?],
        }))
    }

    fn slot(&self, message: u32) -> &Slot {
        &self.slots[(message % SLOTS) as usize]
    }

    /// Called by the sender, after it has found room.
    #[inline(always)]
    fn write(&self, message: u32, words: &[u64]) {
        let slot = self.slot(message);
        let at = slot.at.load(Ordering::Relaxed);
        let to = std::ptr::with_exposed_provenance_mut::<u64>(at);
        // SAFETY: `Channel` lets no longer messages through than there is room
        // for; the receiver has freed the slot.
        unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), to, words.len()) };
        slot.words.store(words.len(), Ordering::Relaxed);
    }

    /// Called by the receiver, after it has found that the message is there.
    #[inline(always)]
    fn take(&self, message: u32) -> Message {
        // Acquire: partner of the store in `Count::step`. With an eventfd the
        // kernel has ordered the two already.
        debug_assert!(!self.sent.is(message));
        let slot = self.slot(message);
        self.receiver
            .received
            .store(message.wrapping_add(1), Ordering::Relaxed);
        self.receiver.has_one.store(1, Ordering::Relaxed);
        Message {
            at: std::ptr::with_exposed_provenance(slot.at.load(Ordering::Relaxed)),
            words: slot.words.load(Ordering::Relaxed),
        }
    }

    /// Called by the receiver, when it asks for the next message. Returns `false` if it has none.
    #[inline(always)]
    fn give_back(&self) -> bool {
        if self.receiver.has_one.load(Ordering::Relaxed) == 0 {
            return false;
        }
        self.receiver.has_one.store(0, Ordering::Relaxed);
        self.room.step();
        true
    }
}
