//! Counts and durations in slices of time, all of equal length.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Most slices; their length doubles when the trace outgrows them.
const MOST: i64 = 512;
/// Length of a slice at first: 2^10 ticks.
const FIRST_SHIFT: u32 = 10;

/// This many ticks may be added 2^16 times.
const SHORT: i64 = 1 << 46;

/// Rows of counts and of durations over common slices of 2^shift ticks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Slices {
    shift: u32,
    /// Number of the slice in column 0: floor(ts / 2^shift).
    base: i64,
    /// First and last slice that have been reached.
    used: Option<(i64, i64)>,
    counts: Rows<u64>,
    /// Counts and sums of the kept samples.
    kept: Rows<Kept>,
    /// Durations of samples that were not kept; same rows.
    others: Rows<f64>,
}

/// Number of samples that ended in a slice, and their sum: together, because every sample changes
/// both.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Kept {
    n: u64,
    sum: f64,
}

impl AddAssign for Kept {
    fn add_assign(&mut self, other: Self) {
        self.n += other.n;
        self.sum += other.sum;
    }
}

/// Rows with a value for each slice. The values of one slice are adjacent: events come in order
/// of time, so counting works in a few cache lines. Otherwise it would use one line of each row,
/// 4 KiB apart and so in the same set of the cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Rows<T> {
    rows: usize,
    /// Number of rows for which there is room.
    stride: usize,
    cells: Vec<T>,
}

/// Number of rows for which there is room at first: a cache line of counts.
const FIRST_ROWS: usize = 8;

impl<T: Copy + Default + AddAssign> Rows<T> {
    fn new(rows: usize) -> Self {
        let stride = rows.next_multiple_of(FIRST_ROWS);
        Self {
            rows,
            stride,
            cells: vec![T::default(); stride * MOST as usize],
        }
    }

    fn len(&self) -> usize {
        self.rows
    }

    fn push(&mut self) {
        if self.rows == self.stride {
            let mut wider = Self::new((2 * self.rows).max(FIRST_ROWS));
            wider.rows = self.rows;
            for column in 0..MOST as usize {
                let (from, to) = (column * self.stride, column * wider.stride);
                wider.cells[to..][..self.rows].copy_from_slice(&self.cells[from..][..self.rows]);
            }
            *self = wider;
        }
        self.rows += 1;
    }

    fn row(&self, row: u32) -> impl Iterator<Item = T> + '_ {
        let cells = self.cells.get(row as usize..).unwrap_or_default();
        cells.iter().step_by(self.stride.max(1)).copied()
    }

    #[inline]
    fn at(&mut self, row: u32, column: usize) -> &mut T {
        &mut self.cells[column * self.stride + row as usize]
    }

    fn get(&self, row: u32, column: usize) -> T {
        self.cells[column * self.stride + row as usize]
    }

    /// Moves every value from one column to another.
    fn moved(&mut self, columns: &[(usize, usize)]) {
        let mut moved = Self {
            cells: vec![T::default(); self.cells.len()],
            ..*self
        };
        for row in 0..self.len() as u32 {
            moved.add(row, self, row, columns);
        }
        *self = moved;
    }

    /// Adds row `of` of another to `row`.
    fn add(&mut self, row: u32, other: &Self, of: u32, columns: &[(usize, usize)]) {
        for &(from, to) in columns {
            *self.at(row, to) += other.get(of, from);
        }
    }
}

impl Default for Slices {
    fn default() -> Self {
        Self {
            shift: FIRST_SHIFT,
            base: 0,
            used: None,
            counts: Rows::new(0),
            kept: Rows::new(0),
            others: Rows::new(0),
        }
    }
}

/// Only counts events, without a search for the slices.
pub(crate) struct Counting<'a> {
    counts: &'a mut Rows<u64>,
    shift: u32,
    base: i64,
}

impl Counting<'_> {
    /// Counts an event at `ts`.
    #[inline]
    pub(crate) fn count(&mut self, row: u32, ts: i64) {
        *self.counts.at(row, column(ts, self.shift, self.base)) += 1;
    }
}

/// The column of the slice in which a reading lies.
#[inline]
fn column(ts: i64, shift: u32, base: i64) -> usize {
    // Readings outside the reached range cannot occur. If one did, it would count in the nearest
    // slice, not out of bounds.
    ((ts >> shift).wrapping_sub(base)).clamp(0, MOST - 1) as usize
}

impl Slices {
    /// Adds a row of counts.
    pub(crate) fn count_row(&mut self) -> u32 {
        self.counts.push();
        self.counts.len() as u32 - 1
    }

    /// Adds a row of durations.
    pub(crate) fn duration_row(&mut self) -> u32 {
        self.kept.push();
        self.others.push();
        self.kept.len() as u32 - 1
    }

    /// Extends the range to `lo` to `hi`; later calls for readings in between find their slice.
    pub(crate) fn reach(&mut self, lo: i64, hi: i64) {
        for ts in [lo, hi] {
            let slice = ts >> self.shift;
            match self.used {
                Some((first, last)) if (first..=last).contains(&slice) => {}
                _ => self.extend(ts),
            }
        }
    }

    fn extend(&mut self, ts: i64) {
        let Some((first, last)) = self.used else {
            let slice = ts >> self.shift;
            self.base = slice;
            self.used = Some((slice, slice));
            return;
        };
        let slice = ts >> self.shift;
        let down = slice < first;
        let (mut lo, mut hi) = (first.min(slice), last.max(slice));
        let mut coarser = 0;
        // At most 2^63 / 2^10 slices at first; i128 as hi - lo may not fit.
        while i128::from(hi) - i128::from(lo) >= i128::from(MOST) {
            lo >>= 1;
            hi >>= 1;
            coarser += 1;
        }
        // Leave the free columns on the side that grows.
        let base = if down { hi - (MOST - 1) } else { lo };
        if coarser > 0 || lo < self.base || hi >= self.base.saturating_add(MOST) {
            let old = self.base;
            let column = |i: usize| (((old + i as i64) >> coarser) - base) as usize;
            let occupied = (first - old) as usize..=(last - old) as usize;
            let columns: Vec<(usize, usize)> = occupied.map(|i| (i, column(i))).collect();
            self.moved(&columns);
            self.base = base;
            self.shift += coarser;
        }
        self.used = Some((lo, hi));
    }

    /// Whether both readings lie in one slice.
    pub(crate) fn is_one(&self, lo: i64, hi: i64) -> bool {
        self.column(lo) == self.column(hi)
    }

    /// The number of readings from the first on that lie in its slice.
    pub(crate) fn alike(&self, readings: &[i64]) -> usize {
        let column = readings.first().map(|&ts| self.column(ts));
        let alike = readings
            .iter()
            .take_while(|&&ts| Some(self.column(ts)) == column);
        alike.count()
    }

    #[inline]
    fn column(&self, ts: i64) -> usize {
        column(ts, self.shift, self.base)
    }

    pub(crate) fn counting(&mut self) -> Counting<'_> {
        Counting {
            counts: &mut self.counts,
            shift: self.shift,
            base: self.base,
        }
    }

    /// Counts an event at `ts`.
    #[inline]
    pub(crate) fn count(&mut self, row: u32, ts: i64) {
        let column = self.column(ts);
        *self.counts.at(row, column) += 1;
    }

    /// Counts `more` occurrences of an event at `ts`.
    pub(crate) fn count_more(&mut self, row: u32, ts: i64, more: u64) {
        let column = self.column(ts);
        *self.counts.at(row, column) += more;
    }

    /// Adds a kept sample that ended at `ts`.
    #[inline]
    pub(crate) fn keep(&mut self, row: u32, ts: i64, ticks: i64) {
        let column = self.column(ts);
        let kept = self.kept.at(row, column);
        kept.n += 1;
        kept.sum += ticks as f64;
    }

    /// As [`Self::keep`], for many samples.
    pub(crate) fn keep_all(&mut self, row: u32, ends: &[i64], ticks: &[i64]) {
        let Some(&first) = ends.first() else {
            return;
        };
        // Most lie in one slice, and are short: one check for all.
        let apart = ends.iter().fold(0, |apart, &ts| apart | (ts ^ first)) as u64;
        let wide = (ticks.iter()).fold(0, |wide, &ticks| wide | (ticks ^ (ticks >> 63)));
        if apart >> self.shift == 0 && wide < SHORT {
            let (n, sum) = (ticks.len() as u64, ticks.iter().sum::<i64>() as f64);
            let column = self.column(first);
            *self.kept.at(row, column) += Kept { n, sum };
            return;
        }
        let (mut at, mut n, mut sum) = (0, 0, 0_i128);
        for (&ts, &ticks) in ends.iter().zip(ticks) {
            let column = self.column(ts);
            if column != at {
                *self.kept.at(row, at) += Kept { n, sum: sum as f64 };
                (at, n, sum) = (column, 0, 0);
            }
            n += 1;
            sum += i128::from(ticks);
        }
        *self.kept.at(row, at) += Kept { n, sum: sum as f64 };
    }

    /// Adds the duration of a sample that was not kept and ended at `ts`.
    #[inline(never)]
    pub(crate) fn add_other(&mut self, row: u32, ts: i64, ticks: i64) {
        let column = self.column(ts);
        *self.others.at(row, column) += ticks as f64;
    }

    /// Makes the slices at least as long as those of another, and covers its range; returns the
    /// positions of its columns here.
    fn reach_as(&mut self, other: &Self) -> Vec<(usize, usize)> {
        let Some((first, last)) = other.used else {
            return Vec::new();
        };
        let at = |slice: i64| (i128::from(slice) << other.shift) as i64;
        // Exact: a slice of the other begins where one of ours may.
        self.reach(at(first), at(last));
        while self.shift < other.shift {
            self.coarsen();
        }
        let finer = self.shift - other.shift;
        (first..=last)
            .map(|s| {
                (
                    (s - other.base) as usize,
                    ((s >> finer) - self.base) as usize,
                )
            })
            .collect()
    }

    fn moved(&mut self, columns: &[(usize, usize)]) {
        self.counts.moved(columns);
        self.kept.moved(columns);
        self.others.moved(columns);
    }

    /// Doubles the length of the slices.
    fn coarsen(&mut self) {
        let Some((first, last)) = self.used else {
            self.shift += 1;
            return;
        };
        let old = self.base;
        let base = first >> 1;
        let columns: Vec<(usize, usize)> = (first..=last)
            .map(|s| ((s - old) as usize, ((s >> 1) - base) as usize))
            .collect();
        self.moved(&columns);
        self.base = base;
        self.shift += 1;
        self.used = Some((first >> 1, last >> 1));
    }

    /// Merges the rows of another: its row of counts `i` is ours `counts[i]`, and its row of
    /// durations is `durations[i]`. A row with `None` is left out.
    pub(crate) fn merge(
        &mut self,
        other: &Self,
        counts: &[Option<u32>],
        durations: &[Option<u32>],
    ) {
        let columns = self.reach_as(other);
        for (row, here) in (0..).zip(counts) {
            let Some(here) = *here else { continue };
            self.counts.add(here, &other.counts, row, &columns);
        }
        for (row, here) in (0..).zip(durations) {
            let Some(here) = *here else { continue };
            self.kept.add(here, &other.kept, row, &columns);
            self.others.add(here, &other.others, row, &columns);
        }
    }

    /// Counts and sums of the kept samples, in all slices reached.
    pub(crate) fn kept(&self, row: u32) -> (Vec<f64>, Vec<f64>) {
        let Some((first, last)) = self.used else {
            return (Vec::new(), Vec::new());
        };
        let reached = (first - self.base) as usize..=(last - self.base) as usize;
        let kept = reached.map(|column| self.kept.get(row, column));
        kept.map(|kept| (kept.n as f64, kept.sum)).unzip()
    }

    /// Counts in the slices that the range covers completely.
    pub(crate) fn whole_counts(&self, row: u32) -> Vec<f64> {
        let Some((first, last)) = self.used else {
            return Vec::new();
        };
        ((first + 1)..last)
            .map(|s| self.counts.get(row, (s - self.base) as usize) as f64)
            .collect()
    }

    /// All counts of a row.
    pub(crate) fn total(&self, row: u32) -> u64 {
        self.counts.row(row).sum()
    }

    /// Durations in all slices reached.
    pub(crate) fn durations(&self, row: u32) -> Vec<f64> {
        let Some((first, last)) = self.used else {
            return Vec::new();
        };
        (first..=last)
            .map(|s| (s - self.base) as usize)
            .map(|column| self.kept.get(row, column).sum + self.others.get(row, column))
            .collect()
    }

    /// The stretch, ticks, in which samples of these rows took the most time beyond the mean of
    /// the kept ones.
    pub(crate) fn slowest(&self, rows: impl Iterator<Item = u32>) -> Option<(i64, i64)> {
        let (first, last) = self.used?;
        let mut over = vec![0.0; usize::try_from(last - first).ok()? + 1];
        for row in rows {
            let (n, sums) = self.kept(row);
            let mean = sums.iter().sum::<f64>() / n.iter().sum::<f64>().max(1.0);
            for ((over, n), all) in over.iter_mut().zip(n).zip(self.durations(row)) {
                *over += (all - n * mean).max(0.0);
            }
        }
        // The first of equal ones, because they are in order.
        let most = (0..over.len())
            .rev()
            .max_by(|&a, &b| over[a].total_cmp(&over[b]))?;
        let begin = i128::from(first + most as i64) << self.shift;
        Some((begin as i64, (begin + (1 << self.shift)) as i64))
    }

    /// Empties every row and the range.
    pub(crate) fn clear(&mut self) {
        *self = Self {
            counts: Rows::new(self.counts.len()),
            kept: Rows::new(self.kept.len()),
            others: Rows::new(self.others.len()),
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests;
