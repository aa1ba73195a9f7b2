//! Measures the time that an interrupt takes from a program beyond what the kernel reports.
//!
//! The readings of the workload follow each other closely. The last reading before an interrupt and
//! the first one after it enclose all the time that it took. On a guest of a hypervisor 11 us
//! passed before the kernel's own begin of a timer interrupt, for which it reported 9 us.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type};
use undertick_estimate::binomial_ranks;
use undertick_format::manifest::InterruptCost;
use undertick_format::read::Trace;
use undertick_format::schema::Kind;
use undertick_units::{Estimate, Interval};

use super::NotCalibrated;
use super::samples::{LEVEL, column};

/// Minimum number of interrupts for an estimate.
const FEWEST: usize = 12;
/// No interrupt takes longer than this, ns: a longer time has another cause, which no row records.
const MOST_NS: f64 = 1e6;

/// Kernel rows and readings of one thread, ordered by time, ticks.
#[derive(Debug, Default)]
struct Rows {
    /// Begin, end, number; rows that are no interrupts have the number [`OTHER`].
    kernel: Vec<(i64, i64, i32)>,
    readings: Vec<i64>,
}

/// Number given to a row that is no interrupt.
const OTHER: i32 = -1;

/// For the most frequent interrupt, the time that three in four exceed, so that hardly more is
/// taken off than was taken, and the distance between the quartiles. `None`: too few interrupts, or
/// no kernel rows.
pub(super) fn beside(trace: &Trace) -> Result<Option<InterruptCost>, NotCalibrated> {
    let mut rows = Rows::default();
    for batch in trace.batches() {
        let batch = batch?;
        let column = |name: &str| column(&batch, name);
        let (ts, payload, event) = (column("ts"), column("payload"), column("event"));
        let (kind, mode) = (column("kind"), column("mode"));
        let ts = ts.as_primitive::<Int64Type>().values();
        let payload = payload.as_primitive::<Int64Type>().values();
        let event = event.as_primitive::<Int32Type>().values();
        let kind = kind.as_primitive::<Int8Type>().values();
        let mode = mode.as_primitive::<Int8Type>().values();
        for i in 0..batch.num_rows() {
            if mode[i] == 0 {
                rows.readings.push(ts[i]);
                continue;
            }
            match Kind::from_code(kind[i]) {
                Some(Kind::Interrupt) => {
                    let end = ts[i].saturating_add(payload[i].max(0));
                    rows.kernel.push((ts[i], end, event[i]));
                }
                Some(Kind::SoftInterrupt | Kind::SwitchOut | Kind::SwitchIn | Kind::Fault) => {
                    rows.kernel.push((ts[i], ts[i], OTHER));
                }
                _ => {}
            }
        }
    }
    Ok(rows.cost(trace.manifest.clock.ns_per_tick()))
}

impl Rows {
    fn cost(&self, ns_per_tick: f64) -> Option<InterruptCost> {
        let mut count = BTreeMap::<i32, usize>::new();
        for &(.., event) in self.kernel.iter().filter(|row| row.2 != OTHER) {
            *count.entry(event).or_default() += 1;
        }
        let (event, _) = count.into_iter().max_by_key(|&(_, n)| n)?;
        let around: Vec<[f64; 2]> = (self.kernel.iter().enumerate())
            .filter(|(_, row)| row.2 == event)
            .filter_map(|(at, _)| self.around(at))
            .map(|around| around.map(|ticks| ticks as f64 * ns_per_tick))
            .filter(|around| around.iter().sum::<f64>() < MOST_NS)
            .collect();
        if around.len() < FEWEST {
            return None;
        }
        let sorted = |of: fn(&[f64; 2]) -> f64| {
            let mut sorted: Vec<f64> = around.iter().map(of).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            sorted
        };
        let both = sorted(|around| around[0] + around[1]);
        let quarter = both.len() / 4;
        Some(InterruptCost {
            event,
            before_ns: quartile(&sorted(|around| around[0])),
            after_ns: quartile(&sorted(|around| around[1])),
            spread_ns: both[both.len() - 1 - quarter] - both[quarter],
        })
    }

    /// Ticks from the reading before an interrupt to its begin, and from its end to the reading
    /// after it; `None` if there is another kernel row between the two readings.
    fn around(&self, at: usize) -> Option<[i64; 2]> {
        let (begin, end, _) = self.kernel[at];
        let next = self.readings.partition_point(|&reading| reading < end);
        let last = self.readings.partition_point(|&reading| reading <= begin);
        let (before, after) = (
            *self.readings.get(last.checked_sub(1)?)?,
            *self.readings.get(next)?,
        );
        let is_alone = (at.checked_sub(1)).is_none_or(|other| self.kernel[other].1 < before)
            && (self.kernel.get(at + 1)).is_none_or(|other| other.0 > after);
        is_alone.then_some([begin - before, after - end])
    }
}

/// The lower quartile of sorted values, ns, with an interval by order statistics.
fn quartile(sorted: &[f64]) -> Estimate {
    let n = sorted.len();
    let ranks = binomial_ranks(n as u64, 0.25, LEVEL);
    let at = |rank: Option<u64>| rank.map(|rank| sorted[rank as usize - 1]);
    Estimate {
        value: sorted[n / 4],
        interval: Interval {
            lo: at(ranks.lo),
            hi: at(ranks.hi),
        },
        level: LEVEL,
        unit: "ns".into(),
        method: "lower quartile, order statistics".into(),
        n: n as u64,
        n_effective: n as f64,
        notes: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
