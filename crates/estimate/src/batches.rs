//! Sums over consecutive batches, in bounded memory.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Maximum number of batches kept. 256..=512 fine batches resolve a lag-1 correlation of 0.1 (two
/// standard errors); they are merged further before they carry a confidence interval.
pub(crate) const MOST: usize = 512;

/// Sums of non-overlapping batches of equal size. When the store is full, neighbours are added and
/// the size doubles. Any number of values thus leaves 256..=511 batches and an unfinished one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Batches<T> {
    sums: Vec<T>,
    size: u64,
    partial: T,
    filled: u64,
}

impl<T: Copy + Default + AddAssign> Default for Batches<T> {
    fn default() -> Self {
        Self {
            sums: Vec::new(),
            size: 1,
            partial: T::default(),
            filled: 0,
        }
    }
}

impl<T: Copy + Default + AddAssign> Batches<T> {
    /// Returns an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds values in their order; `sum` adds up a stretch of them. Returns whether the batch size
    /// doubled.
    pub fn extend<V>(&mut self, mut values: &[V], sum: impl Fn(&[V]) -> T) -> bool {
        let before = self.size;
        while !values.is_empty() {
            let room = usize::try_from(self.size - self.filled).unwrap_or(usize::MAX);
            let (now, later) = values.split_at(room.min(values.len()));
            self.partial += sum(now);
            self.filled += now.len() as u64;
            if self.filled == self.size {
                self.close();
            }
            values = later;
        }
        self.size != before
    }

    fn close(&mut self) {
        self.sums.push(std::mem::take(&mut self.partial));
        self.filled = 0;
        if self.sums.len() == MOST {
            for i in 0..MOST / 2 {
                let mut pair = self.sums[2 * i];
                pair += self.sums[2 * i + 1];
                self.sums[i] = pair;
            }
            self.sums.truncate(MOST / 2);
            self.size *= 2;
        }
    }

    /// Returns the sums of the full batches, oldest first.
    #[must_use]
    pub fn sums(&self) -> &[T] {
        &self.sums
    }

    /// Returns the number of values per full batch.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the number of values in the full batches.
    pub(crate) fn batched(&self) -> u64 {
        self.sums.len() as u64 * self.size
    }

    /// Applies `change` to every sum, the unfinished one included, with the
    /// number of values behind it.
    pub(crate) fn adjust(&mut self, change: impl Fn(&mut T, u64)) {
        for sum in &mut self.sums {
            change(sum, self.size);
        }
        change(&mut self.partial, self.filled);
    }
}

/// Returns the batch size for `n` values: the smallest that leaves fewer than 512 batches.
pub(crate) fn batch_size(n: usize) -> usize {
    let mut size = 1;
    while n / size >= MOST {
        size *= 2;
    }
    size
}

#[cfg(test)]
mod tests;
