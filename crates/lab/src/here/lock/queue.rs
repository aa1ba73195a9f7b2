//! Mellor-Crummey and Scott's queue lock: who waits spins on a word of its own.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::Exclusive;
use super::spin::spin_while;
use crate::here::arena::Arena;

/// The lock: the last of the queue, and a place in it for each user.
#[derive(Debug)]
pub(crate) struct QueueLock {
    last: &'static AtomicPtr<Node>,
    nodes: &'static [&'static Node],
}

/// A user's place in the queue.
#[derive(Debug)]
pub(crate) struct Node {
    /// Who comes after.
    next: AtomicPtr<Self>,
    /// 1 until the one before gives the lock on.
    waits: AtomicU32,
}

/// A user.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueUser {
    last: &'static AtomicPtr<Node>,
    mine: &'static Node,
}

impl QueueLock {
    /// A free one.
    pub(super) fn create(arena: &Arena, most_users: usize) -> &'static Self {
        let node = || Node {
            next: AtomicPtr::new(null_mut()),
            waits: AtomicU32::new(0),
        };
        let nodes = (0..most_users).map(|_| arena.place_apart(node())).collect();
        arena.place(Self {
            last: arena.place_apart(AtomicPtr::new(null_mut())),
            nodes: arena.place_all(nodes),
        })
    }
}

impl QueueUser {
    /// # Panics
    /// The lock was made for fewer users.
    pub(super) fn new(lock: &'static QueueLock, user: usize) -> Self {
        Self {
            last: lock.last,
            mine: lock.nodes[user],
        }
    }

    fn me(self) -> *mut Node {
        std::ptr::from_ref(self.mine).cast_mut()
    }
}

/// The node that a pointer of the queue is to.
///
/// # Safety
/// Not null.
unsafe fn node(at: *mut Node) -> &'static Node {
    // SAFETY: pointers of the queue are null or to nodes, which stay for ever.
    unsafe { &*at }
}

impl Exclusive for QueueUser {
    #[inline(always)]
    fn lock(self) {
        self.mine.next.store(null_mut(), Ordering::Relaxed);
        // Release: who comes after must see the empty `next`. Acquire: sees what
        // was written under the lock before, if nobody has it now.
        let before = self.last.swap(self.me(), Ordering::AcqRel);
        if before.is_null() {
            return;
        }
        self.mine.waits.store(1, Ordering::Relaxed);
        // SAFETY: not null. Release: the one before must see `waits` before it
        // clears it.
        unsafe { node(before) }
            .next
            .store(self.me(), Ordering::Release);
        // Acquire: partner of the Release in `unlock`.
        spin_while(|| self.mine.waits.load(Ordering::Acquire) != 0);
    }

    #[inline(always)]
    fn unlock(self) {
        let mut next = self.mine.next.load(Ordering::Acquire);
        if next.is_null() {
            // Release: who finds the queue empty sees what was written before.
            let freed = self.last.compare_exchange(
                self.me(),
                null_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if freed.is_ok() {
                return;
            }
            // Somebody has come, and is about to say who.
            spin_while(|| self.mine.next.load(Ordering::Acquire).is_null());
            next = self.mine.next.load(Ordering::Acquire);
        }
        // SAFETY: not null, see above.
        unsafe { node(next) }.waits.store(0, Ordering::Release);
    }
}
