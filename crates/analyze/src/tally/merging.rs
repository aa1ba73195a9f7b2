//! Merges the data of one interval from several workers.

use super::{Parent, Tally};

impl Tally {
    /// Merges what another worker saw of the same interval; its parent must be given as an index
    /// here.
    pub(crate) fn merge(&mut self, other: Self) {
        self.kind = other.kind;
        self.is_switched |= other.is_switched;
        for (ours, theirs) in [
            (&mut self.unmatched_starts, other.unmatched_starts),
            (&mut self.unmatched_ends, other.unmatched_ends),
            (&mut self.unmatched_by_loss, other.unmatched_by_loss),
            (&mut self.outside, other.outside),
            (&mut self.negative, other.negative),
            (&mut self.unknown, other.unknown),
            (&mut self.culled_descheduled, other.culled_descheduled),
            (&mut self.culled_ratio, other.culled_ratio),
            (&mut self.culled_own.1, other.culled_own.1),
        ] {
            *ours += theirs;
        }
        for (ours, theirs) in self.culled_evidence.iter_mut().zip(other.culled_evidence) {
            *ours += theirs;
        }
        for (ours, theirs) in self.evidence.iter_mut().zip(other.evidence) {
            ours.samples += theirs.samples;
            ours.ticks += theirs.ticks;
        }
        self.doubt.merge(other.doubt);
        self.flagged.merge(&other.flagged);
        self.own.merge(&other.own);
        self.culled_own.0 += other.culled_own.0;
        self.dropped_sum += other.dropped_sum;
        self.taken_off.samples += other.taken_off.samples;
        self.taken_off.ticks += other.taken_off.ticks;
        self.least = self.least.into_iter().chain(other.least).min();
        // Done before `kept` is merged, of which they may be copies.
        self.merge_alternatives(&other);
        self.strata.merge(other.strata, &self.kept, &other.kept);
        self.kept.merge(other.kept);
        self.begins.merge(other.begins);
        if let Some(theirs) = other.dropped {
            let ours = self.dropped.get_or_insert_default();
            ours.own.merge(theirs.own);
            ours.as_read.merge(theirs.as_read);
            ours.flagged.merge(&theirs.flagged);
        }
        self.kept_costs = self.kept_costs.and(&other.kept_costs);
        self.culled_costs = self.culled_costs.and(&other.culled_costs);
        self.improvement.merge(&other.improvement);
        self.parent = match (self.parent, other.parent) {
            (Parent::Unseen, parent) | (parent, Parent::Unseen) => parent,
            (ours, theirs) if ours == theirs => ours,
            _ => Parent::Various,
        };
    }

    /// Merges the series with the dropped samples, and those of samples as read, where either
    /// side stores them separately.
    fn merge_alternatives(&mut self, other: &Self) {
        if self.all.is_some() || other.all.is_some() {
            let mut all = self.all.take().map_or_else(|| self.kept.clone(), |s| *s);
            all.merge((other.all.as_deref()).unwrap_or(&other.kept).clone());
            self.all = Some(Box::new(all));
        }
        let one_cost = match (self.cost, other.cost) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        };
        if self.uncompensated.is_none() && other.uncompensated.is_none() && one_cost {
            self.cost = self.cost.or(other.cost);
            return;
        }
        let mut raw = self.as_read();
        raw.merge(other.as_read());
        self.uncompensated = Some(Box::new(raw));
    }
}
