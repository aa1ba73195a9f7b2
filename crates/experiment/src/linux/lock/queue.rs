//! Mellor-Crummey and Scott's queue lock: each waiter spins on its own word.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::Exclusive;
use super::spin::spin_while;
use crate::linux::shared_memory::SharedMemory;

/// The lock: the last entry of the queue, and a node for each user.
#[derive(Debug)]
pub(crate) struct QueueLock {
    last: &'static AtomicPtr<Node>,
    nodes: &'static [&'static Node],
}

/// The node of a user in the queue.
#[derive(Debug)]
pub(crate) struct Node {
    /// The next user in the queue.
    next: AtomicPtr<Self>,
    /// 1 until the user before passes the lock on.
    waits: AtomicU32,
}

/// A user of the lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueUser {
    last: &'static AtomicPtr<Node>,
    mine: &'static Node,
}

impl QueueLock {
    /// Creates a free lock.
    pub(super) fn create(memory: &SharedMemory, most_users: usize) -> &'static Self {
        let node = || Node {
            next: AtomicPtr::new(null_mut()),
            waits: AtomicU32::new(0),
        };
        let nodes = (0..most_users)
            .map(|_| memory.place_apart(node()))
            .collect();
        memory.place(Self {
            last: memory.place_apart(AtomicPtr::new(null_mut())),
            nodes: memory.place_all(nodes),
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

/// Returns the node to which a pointer of the queue points.
///
/// # Safety
/// The pointer must not be null.
unsafe fn node(at: *mut Node) -> &'static Node {
    // SAFETY: pointers of the queue are null or to nodes, which stay for ever.
    unsafe { &*at }
}

impl Exclusive for QueueUser {
    #[inline(always)]
    fn lock(self) {
        self.mine.next.store(null_mut(), Ordering::Relaxed);
        // Release: the next user must see the empty `next`. Acquire: sees what was written under
        // the lock before, if it is free now.
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
            // Release: a user that finds the queue empty sees what was written before.
            let freed = self.last.compare_exchange(
                self.me(),
                null_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if freed.is_ok() {
                return;
            }
            // Another user has joined, and is about to set `next`.
            spin_while(|| self.mine.next.load(Ordering::Acquire).is_null());
            next = self.mine.next.load(Ordering::Acquire);
        }
        // SAFETY: not null, see above.
        unsafe { node(next) }.waits.store(0, Ordering::Release);
    }
}
