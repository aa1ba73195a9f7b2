//! Which member has added which event, and which of them was notified. Each means
//! uses it, so that a notify reaches exactly those who have added the event, and
//! once.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::here::arena::Arena;

/// The events of all members.
#[derive(Clone, Copy, Debug)]
pub(super) struct Events {
    numbers: &'static [u32],
    rows: &'static [&'static [State]],
}

/// An event of a member. The member itself adds it and takes it off; only a
/// notify makes of an event added one notified, and only the one that did so goes
/// on to wake the member.
#[derive(Debug, Default)]
pub(super) struct State(AtomicU32);

const OFF: u32 = 0;
const ADDED: u32 = 1;
const NOTIFIED: u32 = 2;

/// A row's first word, on cache lines of its own.
#[repr(C, align(128))]
struct RowStart;

impl Events {
    pub(super) fn create(members: usize, numbers: &[u32], arena: &Arena) -> Self {
        let rows = (0..members)
            .map(|_| {
                arena.place(RowStart);
                let row = numbers.iter().map(|_| State::default()).collect();
                let row = arena.place_all(row);
                arena.place(RowStart);
                row
            })
            .collect();
        Self {
            numbers: arena.place_all(numbers.to_vec()),
            rows: arena.place_all(rows),
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

    /// The events of a member.
    pub(super) fn row(&self, member: usize) -> &'static [State] {
        self.rows[member]
    }

    pub(super) fn of(&self, member: usize, event: usize) -> &'static State {
        &self.rows[member][event]
    }
}

impl State {
    /// `false`: it is added already.
    #[inline]
    pub(super) fn add(&self) -> bool {
        self.turn(OFF, ADDED)
    }

    /// `false`: there is nobody to wake.
    #[inline]
    pub(super) fn notify(&self) -> bool {
        self.turn(ADDED, NOTIFIED)
    }

    fn turn(&self, from: u32, to: u32) -> bool {
        // Acquire and Release: what was written before a notify is seen by who
        // waits for it.
        self.0
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Takes it off; said whether it was notified. `None`: it was not added.
    #[inline]
    pub(super) fn take_off(&self) -> Option<bool> {
        // Mostly there is nothing to do, and no need to write.
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
