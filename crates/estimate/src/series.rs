//! One pass over a series of clock differences, in bounded memory.

use serde::{Deserialize, Serialize};

use crate::batches::Batches;
use crate::histogram::SignedHistogram;
use crate::marks::Mark;
use crate::moments::Moments;
use crate::sample::Sample;
use crate::strata::{LEAST, Strata};
use crate::stretches::Stretches;

/// Number of values handled at a time: enough for tight loops, 4 KiB.
const CHUNK: usize = 512;

/// A summary of a series of ticks: moments, histogram, batch sums, and pieces of the series as they
/// arrived. For each of [`QUANTILES`](crate::QUANTILES) it also has the number of values not above a
/// threshold near it, per batch.
///
/// Memory: about 56 KiB and that of the histogram, however long the series.
///
/// One series may continue where another ended ([`Series::next_thread`], [`Series::merge`]):
/// moments and histogram are those of all values, exactly. The uncertainty of the mean is then
/// combined from what each showed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    pending: Vec<i64>,
    pub(crate) moments: Moments,
    pub(crate) histogram: SignedHistogram,
    pub(crate) sums: Batches<i128>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) stretches: Stretches,
    /// Series before this one; `sums` and `marks` belong to this one only.
    pub(crate) closed: Option<Box<Strata>>,
}

/// Values that lie close together, as offsets from the smallest of them: in 32 bits four are
/// handled at a time.
struct Offsets {
    least: i64,
    values: Vec<i32>,
}

impl Offsets {
    fn from_values(values: &[i64], moments: &Moments) -> Option<Self> {
        let (least, most) = (moments.min()?, moments.max()?);
        i32::try_from(most.checked_sub(least)?).ok()?;
        Some(Self {
            least,
            values: values.iter().map(|&x| (x - least) as i32).collect(),
        })
    }

    /// Returns the sum of the values themselves.
    fn sum(&self, offsets: &[i32]) -> i128 {
        let above: i64 = offsets.iter().map(|&x| i64::from(x)).sum();
        i128::from(self.least) * offsets.len() as i128 + i128::from(above)
    }

    /// Returns a test of whether a value is not above `threshold`.
    fn below(&self, threshold: i64) -> impl Fn(&i32) -> bool + use<> {
        let above = i128::from(threshold) - i128::from(self.least);
        let (none, most) = (above < 0, above.clamp(0, i128::from(i32::MAX)) as i32);
        move |&x| !none & (x <= most)
    }
}

impl Series {
    /// Returns an empty series.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value, in ticks.
    #[inline]
    pub fn push(&mut self, value: i64) {
        if self.pending.len() == self.pending.capacity() {
            self.pending.reserve_exact(if self.pending.is_empty() {
                16
            } else {
                CHUNK - self.pending.len()
            });
        }
        self.pending.push(value);
        if self.pending.len() == CHUNK {
            self.settle();
        }
    }

    /// Adds values, in ticks.
    pub fn extend(&mut self, mut values: &[i64]) {
        while !values.is_empty() {
            let room = CHUNK - self.pending.len();
            let (now, later) = values.split_at(room.min(values.len()));
            self.pending.reserve_exact(now.len());
            self.pending.extend_from_slice(now);
            if self.pending.len() == CHUNK {
                self.settle();
            }
            values = later;
        }
    }

    /// Returns the number of values so far.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.moments.n() + self.pending.len() as u64
    }

    /// Returns a histogram of all values so far with 2^`BITS` bins per octave.
    #[must_use]
    pub fn coarse_histogram<const BITS: u32>(&self) -> SignedHistogram<BITS> {
        let mut coarse = self.histogram.coarser();
        // They stay pending: where batches begin must not depend on such a look.
        self.pending.iter().for_each(|&value| coarse.record(value));
        coarse
    }

    /// Processes the pending values.
    #[cold]
    #[inline(never)]
    fn settle(&mut self) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
        {
            // SAFETY: this CPU has the instructions.
            unsafe { self.settle_avx2() };
            return;
        }
        self.settle_here();
    }

    /// The same processing in vectors of 32 bytes. Nothing in it depends on the order of additions
    /// of floating-point numbers, which the compiler leaves as it is.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2,lzcnt")]
    fn settle_avx2(&mut self) {
        self.settle_here();
    }

    #[inline(always)] // to be compiled for the instructions of either caller
    fn settle_here(&mut self) {
        let chunk = std::mem::take(&mut self.pending);
        if chunk.is_empty() {
            return;
        }
        let part = Moments::from_values(&chunk);
        self.moments.merge(&part);
        self.stretches.extend(&chunk);
        for &x in &chunk {
            self.histogram.record(x);
        }
        match Offsets::from_values(&chunk, &part) {
            Some(offsets) => {
                self.batch(&offsets.values, |xs| offsets.sum(xs), |t| offsets.below(t))
            }
            None => self.batch(
                &chunk,
                |xs| xs.iter().map(|&x| i128::from(x)).sum(),
                |t| move |&x| x <= t,
            ),
        }
        self.pending = chunk;
        self.pending.clear();
    }

    /// Puts values into batches: their sums, and how many are below each mark.
    #[inline(always)]
    fn batch<V, B: Fn(&V) -> bool>(
        &mut self,
        values: &[V],
        sum: impl Fn(&[V]) -> i128,
        below: impl Fn(i64) -> B,
    ) {
        self.sums.extend(values, sum);
        if self.marks.is_empty() {
            self.marks = Mark::at_all(&self.histogram);
        }
        for mark in &mut self.marks {
            let is_below = below(mark.threshold);
            let count = |xs: &[V]| xs.iter().map(|x| u32::from(is_below(x))).sum::<u32>();
            let doubled = mark.below.extend(values, |xs| u64::from(count(xs)));
            if doubled && mark.is_stale() {
                let [threshold] = self.histogram.quantiles([mark.p]);
                if threshold != mark.threshold {
                    mark.threshold = threshold;
                    mark.below = Batches::new();
                }
            }
        }
    }

    /// Declares that the next values come from another thread. A series that is still short
    /// continues: many short ones are a sample of their kind.
    pub fn next_thread(&mut self) {
        let before = self.closed.as_ref().map_or(0, |strata| strata.n);
        if self.n() - before >= LEAST {
            self.close();
        }
    }

    /// Makes the values since the last close a separate series.
    fn close(&mut self) {
        self.settle();
        let strata = self.closed.get_or_insert_default();
        strata.add(self.moments.n() - strata.n, &self.sums, &self.marks);
        self.sums = Batches::new();
        self.marks.clear();
    }

    /// Adds the values of another series, which come from other threads.
    pub fn merge(&mut self, mut other: Self) {
        other.settle();
        if other.n() == 0 {
            return;
        }
        self.settle();
        if self.n() == 0 {
            *self = other;
            return;
        }
        self.close();
        other.close();
        self.moments.merge(&other.moments);
        self.histogram.merge(&other.histogram);
        self.stretches.merge(other.stretches);
        if let (Some(ours), Some(theirs)) = (&mut self.closed, &other.closed) {
            ours.merge(theirs);
        }
    }

    /// Returns the same series, with `delta` added to each value. Sums stay exact; histogram bins
    /// wider than one value move by their middle.
    #[must_use]
    pub fn shifted(mut self, delta: i64) -> Self {
        self.settle();
        self.sums
            .adjust(|sum, n| *sum += i128::from(delta) * i128::from(n));
        for mark in &mut self.marks {
            mark.threshold = mark.threshold.saturating_add(delta);
        }
        self.stretches.shift(delta);
        Self {
            moments: self.moments.shifted(delta),
            histogram: self.histogram.shifted(delta),
            ..self
        }
    }

    /// Returns the series as a sample, which gives estimates.
    #[must_use]
    pub fn sample(mut self) -> Sample {
        self.settle();
        if self.closed.is_some() {
            self.close();
        }
        Sample::new(self)
    }
}

impl FromIterator<i64> for Series {
    fn from_iter<I: IntoIterator<Item = i64>>(values: I) -> Self {
        let mut series = Self::new();
        values.into_iter().for_each(|x| series.push(x));
        series
    }
}

#[cfg(test)]
mod tests;
