//! Looks at single calls, in the pass that does nothing else.

use super::MatchContext;
use crate::evidence::SampleCauses;
use crate::sample::Sample;
use crate::tally::Dropping;

impl MatchContext {
    /// Looks at a call that ended at `ts`, if it is wanted.
    pub(super) fn watch_call(&mut self, interval: u32, sample: &Sample, ts: i64) {
        let Some(mut watch) = self.watch.take() else {
            return;
        };
        let names = || {
            let intervals = self.tree.intervals(sample.path);
            let name = |at: u32| self.tallies[at as usize].name.clone();
            intervals.into_iter().map(name).collect()
        };
        if let Some(place) = watch.wants(sample.path, sample.start, names) {
            let fell = match self.evidence.is_there() {
                true => self.evidence.causes_in(sample.start, ts),
                false => SampleCauses::NOTHING,
            };
            let dropping = self.dropping.unwrap_or(Dropping::Nothing);
            let tally = &mut self.tallies[interval as usize];
            let (ticks, kept) = tally.add(sample, &fell, &self.costs, dropping);
            if kept {
                watch.take(place, sample, ticks, &fell, |since| {
                    self.evidence.causes_in(since, sample.start).was_off()
                });
            }
        }
        self.watch = Some(watch);
    }
}
