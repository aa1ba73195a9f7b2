//! Tallies the samples that wait.

use super::{MatchContext, Nearest};
use crate::cells::Family;
use crate::tally::Dropping;
use crate::waiting::{Columns, Waiting};

impl MatchContext {
    /// Whether samples may wait: nothing needs them in the order in which they end, or asks for
    /// what only the general path finds.
    pub(crate) fn lets_wait(&self) -> bool {
        !self.scanning
            && self.spans.is_none()
            && self.watch.is_none()
            && self.nearest == Nearest::None
            && !self.pairs.gathering
            && self.dropping != Some(Dropping::OverLimit)
    }

    /// Tallies all samples that wait.
    pub(crate) fn tally_all_waiting(&mut self) {
        while let Some(interval) = self.waiting.some.pop() {
            self.waiting.by_interval[interval as usize].is_some = false;
            self.tally_waiting(interval);
        }
    }

    /// Tallies the samples of one interval that wait.
    #[inline(never)]
    pub(crate) fn tally_waiting(&mut self, interval: u32) {
        let place = interval as usize;
        let waiting = &mut self.waiting.by_interval[place];
        let n = std::mem::take(&mut waiting.n);
        let Some(samples) = waiting.samples.take() else {
            return;
        };
        self.tally(interval, samples.first(n));
        self.waiting.by_interval[place].samples = Some(samples);
    }

    /// Tallies samples of an interval whose parent is that of its samples before.
    pub(crate) fn tally(&mut self, interval: u32, samples: Columns<'_>) {
        let place = interval as usize;
        let parent = self.tallies[place].parent;
        if !samples.ends.is_empty() && !self.tally_together(place, samples) {
            let ends = self.tallies[place].fast_sample_ends();
            for sample in samples.each() {
                self.take(interval, &sample.sample(ends), sample.end, parent);
            }
        }
    }

    /// Tallies these together if possible; returns false, having changed nothing, if not.
    fn tally_together(&mut self, place: usize, samples: Columns<'_>) -> bool {
        if self.evidence.is_there() && self.is_hit(samples) {
            return false;
        }
        self.catch_up();
        let tally = &mut self.tallies[place];
        let Waiting { ticks, values, .. } = &mut self.waiting;
        if samples.ticks(ticks).is_none() {
            return false;
        }
        let Some(values) = tally.add_fast_samples(samples, ticks, &self.costs, values) else {
            return false;
        };
        (self.slices).keep_all(tally.row, samples.ends, values);
        if tally.family == Some(Family::Span) {
            self.tree.add_all(samples.paths, place as u32, values);
        }
        if let Some(perturbation) = &mut self.perturbation
            && tally.can_be_slowed()
        {
            for (s, &ticks) in samples.each().zip(&*ticks) {
                perturbation.take(place as u32, s.start, ticks, s.inside.records());
            }
        }
        true
    }

    /// See [`crate::tree::Tree::catch_up`].
    #[inline]
    pub(super) fn catch_up(&mut self) {
        let tallies = &self.tallies;
        self.tree.catch_up(|of| tallies[of as usize].samples());
    }

    /// Whether the kernel's rows contain anything between the first start and the last end.
    fn is_hit(&self, samples: Columns<'_>) -> bool {
        let from = samples.starts.iter().min().copied().unwrap_or(i64::MAX);
        let until = samples.ends.iter().max().copied().unwrap_or(i64::MIN);
        self.evidence.is_anything(from, until)
    }
}
