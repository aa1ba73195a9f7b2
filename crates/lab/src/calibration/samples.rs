//! The spans of the workload, read from its trace. The calibration reads them itself, because the
//! analysis subtracts the costs that are to be found here.

use std::collections::{BTreeMap, HashMap};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, RecordBatch};
use undertick_estimate::compensation::Paired;
use undertick_estimate::spread_of_mean;
use undertick_trace::read::Trace;
use undertick_trace::schema::Kind;
use undertick_units::{Estimate, Interval};

use super::NotCalibrated;

pub(super) const LEVEL: f64 = 0.95;
/// Spans of which any part is this many times the median are dropped: they contain interrupts,
/// which no flag shows. The cost of a span beside work stays below this limit.
const RATIO: f64 = 4.0;

/// Spans by event and by the number of sampled spans recorded inside, in the order of the trace,
/// with the pairs that they carry, ticks.
pub(super) struct Samples {
    by_event: BTreeMap<(i32, u32), Vec<Paired>>,
    pub(super) ns_per_tick: f64,
    pub(super) granularity_ticks: f64,
}

impl Samples {
    /// Reads the spans during which the thread was not descheduled and that are not far above the
    /// median of their event.
    pub(super) fn read(trace: &Trace) -> Result<Self, NotCalibrated> {
        let mut by_event: BTreeMap<(i32, u32), Vec<Paired>> = BTreeMap::new();
        let mut open: HashMap<i32, (i64, i64, u32)> = HashMap::new();
        let mut sampled = 0;
        for batch in trace.batches() {
            let batch = batch?;
            let column = |name: &str| column(&batch, name);
            let (ts, payload) = (column("ts"), column("payload"));
            let (kind, flag, event) = (column("kind"), column("descheduled"), column("event"));
            let (ts, payload) = (
                ts.as_primitive::<Int64Type>().values(),
                payload.as_primitive::<Int64Type>().values(),
            );
            let (kind, flag) = (
                kind.as_primitive::<Int8Type>().values(),
                flag.as_primitive::<Int8Type>().values(),
            );
            let event = event.as_primitive::<Int32Type>().values();
            for i in 0..batch.num_rows() {
                if [Kind::Begin as i8, Kind::BeginOrdered as i8].contains(&kind[i]) {
                    // A plain span gives the number of executions that a sampled one stands for.
                    sampled += u32::from(kind[i] == Kind::Begin as i8 && payload[i] > 0);
                    open.insert(event[i], (ts[i], payload[i], sampled));
                    continue;
                }
                if ![Kind::End as i8, Kind::EndOrdered as i8].contains(&kind[i]) {
                    continue;
                }
                if let Some((start, t1, before)) = open.remove(&event[i])
                    && flag[i] != 1
                {
                    let inside = sampled - before;
                    by_event
                        .entry((event[i], inside))
                        .or_default()
                        .push(Paired {
                            t1: t1 as f64,
                            tm: (ts[i] - start) as f64,
                            t4: payload[i] as f64,
                        });
                }
            }
        }
        by_event.values_mut().for_each(cut);
        let clock = &trace.manifest.clock;
        Ok(Self {
            by_event,
            ns_per_tick: clock.ns_per_tick(),
            granularity_ticks: clock.granularity_ticks,
        })
    }

    /// The spans of an event with no sampled span recorded inside.
    pub(super) fn get(&self, event: u32) -> &[Paired] {
        self.holding(event, 0)
    }

    /// The spans of an event with `inside` sampled spans recorded inside.
    fn holding(&self, event: u32, inside: u32) -> &[Paired] {
        (self.by_event.get(&(event as i32, inside))).map_or(&[], Vec::as_slice)
    }

    /// The mean duration of an event's spans, ns.
    pub(super) fn mean(&self, event: u32) -> Result<Estimate, NotCalibrated> {
        self.mean_of(self.get(event).iter().map(|s| s.tm))
            .ok_or_else(|| too_few(event))
    }

    /// The mean of durations in ticks, ns.
    pub(super) fn mean_of(&self, ticks: impl Iterator<Item = f64>) -> Option<Estimate> {
        let values: Vec<f64> = ticks.map(|ticks| ticks * self.ns_per_tick).collect();
        let spread = spread_of_mean(&values)?;
        let value = values.iter().sum::<f64>() / values.len() as f64;
        let half = spread.half_width(LEVEL);
        Some(Estimate {
            value,
            interval: Interval::new(value - half, value + half),
            level: LEVEL,
            unit: "ns".into(),
            method: "mean, batch means".into(),
            n: values.len() as u64,
            n_effective: values.len() as f64,
            notes: Vec::new(),
        })
    }

    /// The median duration of an event's spans, ns: see [`median_of`].
    pub(super) fn median(&self, event: u32) -> Result<Estimate, NotCalibrated> {
        self.median_holding(event, 0)
    }

    /// The median duration of the spans with `inside` sampled spans recorded inside.
    pub(super) fn median_holding(
        &self,
        event: u32,
        inside: u32,
    ) -> Result<Estimate, NotCalibrated> {
        let spans = self.holding(event, inside);
        let ticks: Vec<f64> = spans.iter().map(|s| s.tm).collect();
        let (value, lo, hi) =
            median_of(&ticks, self.granularity_ticks).ok_or_else(|| too_few(event))?;
        let ns = |ticks: f64| ticks * self.ns_per_tick;
        Ok(Estimate {
            value: ns(value),
            interval: Interval::new(ns(lo), ns(hi)),
            level: LEVEL,
            unit: "ns".into(),
            method: format!("median, order statistics of {BATCHES} batches"),
            n: ticks.len() as u64,
            n_effective: BATCHES as f64,
            notes: Vec::new(),
        })
    }
}

/// Number of batches for the interval of a median. The median of a batch lies above or below that
/// of all with probability one half, even where the speed of the core drifts. The second and the
/// last but one contain it with 1 - 2 (1 + 9) / 2^9 = 96 %.
const BATCHES: usize = 9;

/// The median of values in their order, with an interval. Half a step of the clock is added on
/// either side, because a median is known to a step only. `None`: fewer than three in a batch.
fn median_of(ticks: &[f64], step: f64) -> Option<(f64, f64, f64)> {
    let each = ticks.len() / BATCHES;
    if each < 3 {
        return None;
    }
    let middle = |of: &[f64]| {
        let mut sorted = of.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    };
    let mut batches: Vec<f64> = ticks.chunks_exact(each).take(BATCHES).map(middle).collect();
    batches.sort_unstable_by(f64::total_cmp);
    let value = middle(ticks);
    let lo = batches[1].min(value) - step / 2.0;
    let hi = batches[BATCHES - 2].max(value) + step / 2.0;
    Some((value, lo, hi))
}

/// Returns a column of a record batch of a trace.
pub(super) fn column(batch: &RecordBatch, name: &str) -> ArrayRef {
    (batch.column_by_name(name))
        .unwrap_or_else(|| unreachable!("the schema has {name}"))
        .clone()
}

fn too_few(event: u32) -> NotCalibrated {
    NotCalibrated(format!(
        "too few undisturbed samples of its span number {event}"
    ))
}

fn cut(samples: &mut Vec<Paired>) {
    let median = |part: fn(&Paired) -> f64| {
        let mut all: Vec<f64> = samples.iter().map(part).collect();
        all.sort_unstable_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(0.0)
    };
    let limit = Paired {
        t1: RATIO * median(|s| s.t1),
        tm: RATIO * median(|s| s.tm),
        t4: RATIO * median(|s| s.t4),
    };
    samples.retain(|s| s.t1 <= limit.t1 && s.tm <= limit.tm && s.t4 <= limit.t4);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nine batches of five have the medians 10, 20, .. 90. The interval is 20 to 80 about the
    /// median of all, 50, and half a step of 4.
    #[test]
    fn a_median_has_the_bounds_of_its_batches() {
        let ticks: Vec<f64> = (1..=BATCHES)
            .flat_map(|batch| [-2.0, -1.0, 0.0, 1.0, 2.0].map(|at| 10.0 * batch as f64 + at))
            .collect();
        assert_eq!(median_of(&ticks, 4.0), Some((50.0, 18.0, 82.0)));
        assert_eq!(median_of(&ticks[..20], 4.0), None);
    }
}
