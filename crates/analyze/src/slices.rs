//! Counts and durations in slices of time, all of equal length.

/// Slices kept; their length doubles when the trace outgrows them.
const MOST: i64 = 512;
/// Length of a slice at first: 2^10 ticks.
const FIRST_SHIFT: u32 = 10;

/// Rows of counts and of durations over common slices of 2^shift ticks.
#[derive(Clone, Debug)]
pub(crate) struct Slices {
    shift: u32,
    /// Number of the slice in column 0: floor(ts / 2^shift).
    base: i64,
    /// First and last slice that time has reached.
    used: Option<(i64, i64)>,
    counts: Vec<[u64; MOST as usize]>,
    durations: Vec<[f64; MOST as usize]>,
}

impl Default for Slices {
    fn default() -> Self {
        Self {
            shift: FIRST_SHIFT,
            base: 0,
            used: None,
            counts: Vec::new(),
            durations: Vec::new(),
        }
    }
}

impl Slices {
    /// A new row of counts.
    pub(crate) fn count_row(&mut self) -> u32 {
        self.counts.push([0; MOST as usize]);
        self.counts.len() as u32 - 1
    }

    /// A new row of durations.
    pub(crate) fn duration_row(&mut self) -> u32 {
        self.durations.push([0.0; MOST as usize]);
        self.durations.len() as u32 - 1
    }

    /// Notes that time reached from `lo` to `hi`; later calls for readings in
    /// between find their slice.
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
            for row in &mut self.counts {
                let mut moved = [0; MOST as usize];
                occupied.clone().for_each(|i| moved[column(i)] += row[i]);
                *row = moved;
            }
            for row in &mut self.durations {
                let mut moved = [0.0; MOST as usize];
                occupied.clone().for_each(|i| moved[column(i)] += row[i]);
                *row = moved;
            }
            self.base = base;
            self.shift += coarser;
        }
        self.used = Some((lo, hi));
    }

    #[inline]
    fn column(&self, ts: i64) -> usize {
        // Readings outside what was reached cannot occur; were one to, it
        // would count in the nearest slice, not out of bounds.
        ((ts >> self.shift).wrapping_sub(self.base)).clamp(0, MOST - 1) as usize
    }

    /// Counts an event at `ts`.
    #[inline]
    pub(crate) fn count(&mut self, row: u32, ts: i64) {
        let column = self.column(ts);
        self.counts[row as usize][column] += 1;
    }

    /// Counts more of an event at `ts`.
    pub(crate) fn count_more(&mut self, row: u32, ts: i64, more: u64) {
        let column = self.column(ts);
        self.counts[row as usize][column] += more;
    }

    /// Adds a duration that ended at `ts`.
    #[inline]
    pub(crate) fn add(&mut self, row: u32, ts: i64, ticks: i64) {
        let column = self.column(ts);
        self.durations[row as usize][column] += ticks as f64;
    }

    /// Counts in the slices that time covered whole.
    pub(crate) fn whole_counts(&self, row: u32) -> Vec<f64> {
        let Some((first, last)) = self.used else {
            return Vec::new();
        };
        ((first + 1)..last)
            .map(|s| self.counts[row as usize][(s - self.base) as usize] as f64)
            .collect()
    }

    /// All counts of a row.
    pub(crate) fn total(&self, row: u32) -> u64 {
        self.counts[row as usize].iter().sum()
    }

    /// Durations in all slices that time reached.
    pub(crate) fn durations(&self, row: u32) -> Vec<f64> {
        let Some((first, last)) = self.used else {
            return Vec::new();
        };
        (first..=last)
            .map(|s| self.durations[row as usize][(s - self.base) as usize])
            .collect()
    }

    /// Empties every row, and forgets the time.
    pub(crate) fn clear(&mut self) {
        *self = Self {
            counts: vec![[0; MOST as usize]; self.counts.len()],
            durations: vec![[0.0; MOST as usize]; self.durations.len()],
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events at every 100 ticks, in whatever order of stretches: none lost,
    /// and each whole slice holds its share within one.
    #[test]
    fn keeps_every_count_while_growing_both_ways() {
        for order in [[0_i64, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
            let mut s = Slices::default();
            let row = s.count_row();
            let longs = s.duration_row();
            for part in order {
                let stretch = (part * 50_000..(part + 1) * 50_000).map(|i| (i - 120_000) * 100);
                for ts in stretch {
                    s.reach(ts, ts);
                    s.count(row, ts);
                    s.add(longs, ts, 3);
                }
            }
            assert_eq!(s.total(row), 200_000);
            let per_slice = f64::from(1 << s.shift) / 100.0;
            let whole = s.whole_counts(row);
            assert!((256..=512).contains(&(whole.len() + 2)), "{}", whole.len());
            assert!(whole.iter().all(|c| (c - per_slice).abs() <= 1.0));
            assert_eq!(s.durations(longs).iter().sum::<f64>(), 600_000.0);
        }
    }

    #[test]
    fn survives_the_ends_of_time() {
        let mut s = Slices::default();
        let row = s.count_row();
        for ts in [0, i64::MAX, i64::MIN, -1, 5] {
            s.reach(ts, ts);
            s.count(row, ts);
        }
        assert_eq!(s.total(row), 5);
        s.clear();
        assert_eq!(s.total(row), 0);
    }
}
