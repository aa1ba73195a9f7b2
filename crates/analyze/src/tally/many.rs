//! Adds many samples of the fast path at a time.

use super::Tally;
use crate::cells::Family;
use crate::cost::{CostTable, FastPathCosts};
use crate::reading::{Ends, Inner};
use crate::waiting::Columns;

impl Tally {
    /// How the ends of its [`FastSample`]s were read.
    pub(crate) fn fast_sample_ends(&self) -> Ends {
        match self.family {
            Some(Family::Period) => Ends::Unordered,
            _ => Ends::Plain,
        }
    }

    /// Adds samples without any cause in them; each has its ticks and its number of readings
    /// inside. This works only if the cost subtracted from them leaves the stored form unchanged;
    /// otherwise nothing is done. Returns them compensated.
    pub(crate) fn add_fast_samples<'a>(
        &mut self,
        samples: Columns<'_>,
        ticks: &'a [i64],
        costs: &CostTable,
        room: &'a mut Vec<i64>,
    ) -> Option<&'a [i64]> {
        let inside = samples.inside;
        let costs = match self.is_compensated() {
            true => costs.fast_path_costs(self.fast_sample_ends()),
            false => FastPathCosts::NONE,
        };
        let filled: u32 = inside.iter().map(|&i| u32::from(i != Inner::NONE)).sum();
        let without = costs.cost(Inner::NONE);
        // Before its first sample an interval has none, and the general path takes that sample.
        let constant = self.cost_so_far()?;
        let mut is_constant = true;
        let mut rounded = without * i64::from(filled);
        let values = if filled == 0 || costs.are_constant() {
            is_constant = without == constant;
            match without {
                0 => ticks,
                _ => {
                    room.clear();
                    room.extend(ticks.iter().map(|ticks| ticks.saturating_sub(without)));
                    &room[..]
                }
            }
        } else {
            rounded = 0;
            room.clear();
            room.extend(ticks.iter().zip(inside).map(|(ticks, &inside)| {
                let cost = costs.cost(inside);
                is_constant &= cost == constant;
                rounded += cost * i64::from(inside != Inner::NONE);
                ticks.saturating_sub(cost)
            }));
            &room[..]
        };
        if !is_constant && !self.has_uncompensated() {
            return None;
        }
        self.negative += ticks.iter().map(|&ticks| u64::from(ticks < 0)).sum::<u64>();
        let ends = self.fast_sample_ends();
        self.kept_costs.add_fast_samples(ends, inside, rounded);
        self.keep(values, ticks, samples.starts);
        Some(values)
    }
}
