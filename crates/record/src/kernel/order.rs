//! Sorts the records of several buffers by time, with bounded memory.
//!
//! Each round of the recorder begins with a reading of the time, and then reads every buffer to
//! its end. So the records of a later round happened after that time, except records that were in
//! the making: [`Order::slack`] allows for those.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Sorts items by time, where each comes late by a limited amount.
#[derive(Debug)]
pub(super) struct Order<T> {
    heap: BinaryHeap<Reverse<Timed<T>>>,
    /// Ticks by which an item may be late.
    slack: i64,
    /// Time of the previous round.
    round: i64,
    /// Time of the last item that was output.
    out: i64,
    entered: u64,
    /// Items that came later than that; they are left out.
    pub(super) too_late: u64,
}

#[derive(Debug)]
struct Timed<T> {
    ticks: i64,
    /// Items of equal time are output in the order in which they came.
    entered: u64,
    item: T,
}

impl<T> PartialEq for Timed<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.ticks, self.entered) == (other.ticks, other.entered)
    }
}

impl<T> Eq for Timed<T> {}

impl<T> PartialOrd for Timed<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Timed<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.ticks, self.entered).cmp(&(other.ticks, other.entered))
    }
}

impl<T> Order<T> {
    pub(super) const fn new(slack: i64) -> Self {
        Self {
            heap: BinaryHeap::new(),
            slack,
            round: i64::MIN,
            out: i64::MIN,
            entered: 0,
            too_late: 0,
        }
    }

    pub(super) fn push(&mut self, ticks: i64, item: T) {
        if ticks < self.out {
            self.too_late += 1;
            return;
        }
        self.entered += 1;
        self.heap.push(Reverse(Timed {
            ticks,
            entered: self.entered,
            item,
        }));
    }

    /// Begins a round at `ticks`. Items before the start of the round that ended are output,
    /// oldest first.
    pub(super) fn round(&mut self, ticks: i64, take: impl FnMut(i64, T)) {
        let complete = std::mem::replace(&mut self.round, ticks);
        self.before(complete.saturating_sub(self.slack), take);
    }

    /// Outputs everything before `ticks`.
    pub(super) fn before(&mut self, ticks: i64, mut take: impl FnMut(i64, T)) {
        while self.heap.peek().is_some_and(|top| top.0.ticks < ticks) {
            if let Some(Reverse(top)) = self.heap.pop() {
                self.out = top.ticks;
                take(top.ticks, top.item);
            }
        }
    }

    /// Outputs the rest.
    pub(super) fn rest(&mut self, mut take: impl FnMut(i64, T)) {
        while let Some(Reverse(top)) = self.heap.pop() {
            self.out = top.ticks;
            take(top.ticks, top.item);
        }
    }
}

#[cfg(test)]
mod tests;
