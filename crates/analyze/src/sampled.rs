//! Executions of sampled spans that no record reports.

use std::collections::HashMap;

use undertick_format::manifest::Manifest;

use crate::cells::TOO_MANY;
use crate::match_context::MatchContext;
use crate::rules::Action;
use crate::shard::RingAccount;
use crate::table::Table;

/// Adds the executions that no record reports, from the rings' cells: those after the last
/// recorded one, and those whose records were lost.
pub(crate) fn settle(
    context: &mut MatchContext,
    rings: &[RingAccount],
    manifest: &Manifest,
    table: Option<&Table>,
) {
    let found: HashMap<i32, &RingAccount> = rings.iter().map(|ring| (ring.id, ring)).collect();
    let pids: HashMap<i32, i32> = (manifest.rings.iter())
        .map(|ring| (ring.ring, ring.pid))
        .collect();
    for count in &manifest.sampled {
        let ring = found.get(&count.ring).copied();
        let told = ring.map_or(0, |ring| ring.begun.executions(count.event));
        let more = count.executions.saturating_sub(told);
        let written = pids.get(&count.ring).copied();
        let Some(pid) = ring.map(|r| r.pid).or(written) else {
            continue;
        };
        if more == 0 {
            continue;
        }
        let set = context.names.set_of(pid);
        let Some(table) = table else {
            if let Some(interval) = context.span(set, count.event) {
                context.tallies[interval as usize].strata.executions += more;
            }
            context.count_untold(set, count.event, more);
            continue;
        };
        let list = context.actions_of(table, set, count.event);
        for k in 0..context.actions[list].len() {
            match context.actions[list][k] {
                Action::Start(rule) if (rule as usize) < context.tallies.len() => {
                    context.tallies[rule as usize].strata.executions += more;
                }
                Action::Count(frequency) => {
                    context.frequencies[frequency as usize].untold += more;
                }
                _ => {}
            }
        }
    }
}

impl MatchContext {
    /// Counts occurrences of an event for which no row gives a time.
    fn count_untold(&mut self, set: usize, event: u16, more: u64) {
        let place = self.count_place(set, event);
        if let Some(place) = place.filter(|&place| place < TOO_MANY) {
            self.frequencies[place as usize].untold += more;
        }
    }
}
