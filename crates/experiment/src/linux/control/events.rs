//! Records which member has added which event, and which of them was notified. Each backend uses
//! it, so that a notify reaches exactly those members that have added the event, and reaches them
//! once.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::linux::shared_memory::SharedMemory;

/// The events of all members.
#[derive(Clone, Copy, Debug)]
pub(super) struct Events {
    numbers: &'static [u32],
    rows: &'static [&'static [State]],
}

/// The state of one event of one member. Only the member itself adds and removes it. Only a notify
/// changes an added event to notified, and only the caller that made this change wakes the member.
#[derive(Debug, Default)]
pub(super) struct State(AtomicU32);

const OFF: u32 = 0;
const ADDED: u32 = 1;
const NOTIFIED: u32 = 2;

/// Start of a row, on its own cache lines.
#[repr(C, align(128))]
struct RowStart;

impl Events {
    pub(super) fn create(members: usize, numbers: &[u32], memory: &SharedMemory) -> Self {
        let rows = (0..members)
            .map(|_| {
                memory.place(RowStart);
                let row = numbers.iter().map(|_| State::default()).collect();
                let row = memory.place_all(row);
                memory.place(RowStart);
                row
            })
            .collect();
        Self {
            numbers: memory.place_all(numbers.to_vec()),
            rows: memory.place_all(rows),
        }
    }

    pub(super) fn members(&self) -> usize {
        self.rows.len()
    }

    /// # Panics
    /// There is no such event.
    pub(super) fn index(&self, event: u32) -> usize {
        let found = self.numbers.iter().position(|number| *number == event);
        found.unwrap_or_else(|| panic!("event {event} was not asked for"))
    }

    /// The events of one member.
    pub(super) fn row(&self, member: usize) -> &'static [State] {
        self.rows[member]
    }

    pub(super) fn state(&self, member: usize, event: usize) -> &'static State {
        &self.rows[member][event]
    }
}

impl State {
    /// Returns `false` if it is already added.
    #[inline]
    pub(super) fn add(&self) -> bool {
        self.turn(OFF, ADDED)
    }

    /// Returns `false` if there is no member to wake.
    #[inline]
    pub(super) fn notify(&self) -> bool {
        self.turn(ADDED, NOTIFIED)
    }

    fn turn(&self, from: u32, to: u32) -> bool {
        // Acquire and Release: writes before a notify are visible to the member that waits for it.
        self.0
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Removes the event and returns whether it was notified. `None`: it was not added.
    #[inline]
    pub(super) fn take_off(&self) -> Option<bool> {
        // Usually there is nothing to do, and no need to write.
        if !self.is_added() {
            return None;
        }
        Some(self.0.swap(OFF, Ordering::AcqRel) == NOTIFIED)
    }

    #[inline]
    pub(super) fn is_added(&self) -> bool {
        self.0.load(Ordering::Acquire) != OFF
    }

    #[inline]
    pub(super) fn is_notified(&self) -> bool {
        self.0.load(Ordering::Acquire) == NOTIFIED
    }
}
