//! Looks at single calls, in the pass that does nothing else.

use super::MatchContext;
use crate::innermost::Waiting;
use crate::sample::Sample;
use crate::tally::Dropping;
use crate::tree::{Path, WithRole};
use crate::watch::{Begun, Ended};
use undertick_evidence::SampleCauses;

impl MatchContext {
    /// A span of this ring ends that is perhaps looked at.
    pub(crate) fn watch_end(&mut self, ring: i32, begun: Option<Begun>) {
        if let Some(watch) = &mut self.watch {
            watch.ring = ring;
            watch.ending = begun;
        }
    }

    /// A span of a thread ends, from `start` to `end`: it takes the thread's samples in it.
    pub(crate) fn join_end(
        &mut self,
        waiting: &mut Waiting,
        tid: i32,
        path: Path,
        (start, end): (i64, i64),
    ) {
        if let Some(join) = self.watch.as_mut().and_then(|watch| watch.join.as_mut()) {
            join.end(waiting, tid, path, (start, end));
        }
    }

    /// The names of a path, and its role's.
    pub(crate) fn path_names(&self, path: Path) -> WithRole {
        let (role, intervals) = self.tree.names(path);
        let role = role.map(|role| self.roles.names()[role as usize].clone());
        let name = |at: u32| self.tallies[at as usize].name.clone();
        (role, intervals.into_iter().map(name).collect())
    }

    /// The time of a sample on the CPU, compensated, where calls are to be explained.
    pub(crate) fn explained_ticks(&mut self, sample: &Sample, ts: i64) -> Option<i64> {
        self.watch.as_ref().filter(|watch| watch.explains())?;
        let taken = match self.evidence.is_there() {
            true => self.evidence.causes_in(sample.start, ts).taken(),
            false => 0,
        };
        Some(self.elapsed(sample).saturating_sub(taken))
    }

    /// From a sample's begin to its end, compensated.
    fn elapsed(&self, sample: &Sample) -> i64 {
        let cost = self.costs.subtracted_from(sample).ticks;
        sample.ticks.saturating_sub(cost)
    }

    /// Looks at a call that ended at `ts`, if it is wanted.
    pub(super) fn watch_call(&mut self, interval: u32, sample: &Sample, ts: i64) {
        let Some(mut watch) = self.watch.take() else {
            return;
        };
        let place = watch.place(sample.path, || self.path_names(sample.path));
        let elapsed = match watch.explains() && place.is_some() {
            true => self.elapsed(sample),
            false => sample.ticks,
        };
        let place = place.filter(|&place| watch.wants(place, sample.start, elapsed));
        if let Some(place) = place {
            let fell = match self.evidence.is_there() {
                true => self.evidence.causes_in(sample.start, ts),
                false => SampleCauses::NOTHING,
            };
            let dropping = self.dropping.unwrap_or(Dropping::Nothing);
            let tally = &mut self.tallies[interval as usize];
            let (ticks, is_kept) = tally.add(sample, &fell, &self.costs, dropping);
            if is_kept || watch.explains() {
                let ended = Ended {
                    sample,
                    ticks,
                    elapsed,
                    end: ts,
                    fell: &fell,
                    is_kept,
                };
                watch.take(place, &ended, |since| {
                    self.evidence.causes_in(since, sample.start).was_off()
                });
            }
        }
        self.watch = Some(watch);
    }
}
