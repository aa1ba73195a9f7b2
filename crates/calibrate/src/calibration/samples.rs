//! The spans of the workload, read from its trace. The calibration reads them itself, because the
//! analysis subtracts the costs that are to be found here.

use std::collections::{BTreeMap, HashMap};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, RecordBatch};
use undertick_estimate::compensation::Paired;
use undertick_estimate::spread_of_mean;
use undertick_format::read::Trace;
use undertick_format::schema::Kind;
use undertick_record::functions::FIRST_FUNCTION;
use undertick_units::{Estimate, Interval};

use super::NotCalibrated;
use super::costs::are_repeated;

pub(super) const LEVEL: f64 = 0.95;
/// Spans of which any part is this many times the median are dropped: they contain interrupts,
/// which no flag shows. The cost of a span beside work stays below this limit.
const RATIO: f64 = 4.0;

/// The spans of the workload, by event and by the number of sampled spans recorded inside.
pub(super) struct Samples {
    by_event: BTreeMap<Key, Spans>,
    /// Starts of the passes through the workload, ticks.
    passes: Vec<i64>,
    pub(super) ns_per_tick: f64,
    pub(super) granularity_ticks: f64,
}

/// The span around nothing with which a pass through the workload of points begins, as in
/// `calibration.c`.
pub(super) const REGULAR_PLAIN: u32 = 60;
/// Added to the event of a span that follows one of the same event: `calibration.c` runs those around
/// nothing and around doses twice, and in the second their code is in the nearest caches.
pub(super) const AGAIN: u32 = 1000;
/// The spans that a pass through the workload of points, or of functions, begins with.
const PASS: [u32; 2] = [REGULAR_PLAIN, FIRST_FUNCTION as u32];

/// An event, and the number of sampled spans recorded inside each of its spans.
type Key = (u32, u32);

/// Spans in the order of the trace.
#[derive(Default)]
struct Spans {
    /// Their starts, ticks.
    starts: Vec<i64>,
    /// Their durations with the pairs that they carry, ticks.
    readings: Vec<Paired>,
}

impl Samples {
    /// Reads the spans during which the thread was not descheduled and that are not far above the
    /// median of their event.
    pub(super) fn read(trace: &Trace) -> Result<Self, NotCalibrated> {
        let mut by_event: BTreeMap<Key, Spans> = BTreeMap::new();
        let mut passes = Vec::new();
        let mut open: HashMap<i32, (i64, i64, u32)> = HashMap::new();
        let mut sampled = 0;
        let mut last = None;
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
                    let is_second = last == Some(event[i]) && are_repeated(event[i] as u32);
                    if PASS.contains(&(event[i] as u32)) && !is_second {
                        passes.push(ts[i]);
                    }
                    continue;
                }
                if ![Kind::End as i8, Kind::EndOrdered as i8].contains(&kind[i]) {
                    continue;
                }
                let is_again = last.replace(event[i]) == Some(event[i]);
                let again = match is_again && are_repeated(event[i] as u32) {
                    true => AGAIN,
                    false => 0,
                };
                if let Some((start, t1, before)) = open.remove(&event[i])
                    && flag[i] != 1
                {
                    let key = (event[i] as u32 + again, sampled - before);
                    let spans = by_event.entry(key).or_default();
                    spans.starts.push(start);
                    spans.readings.push(Paired {
                        t1: t1 as f64,
                        tm: (ts[i] - start) as f64,
                        t4: payload[i] as f64,
                    });
                }
            }
        }
        by_event.values_mut().for_each(Spans::cut);
        let clock = &trace.manifest.clock;
        Ok(Self {
            by_event,
            passes,
            ns_per_tick: clock.ns_per_tick(),
            granularity_ticks: clock.granularity_ticks,
        })
    }

    /// The spans of these events, with none sampled inside, whose start is wanted.
    pub(super) fn only(&self, events: &[u32], is_wanted: impl Fn(i64) -> bool) -> Self {
        let of = |&event: &u32| {
            let mut spans = Spans::default();
            for (start, &readings) in self.timed(event).filter(|(start, _)| is_wanted(*start)) {
                spans.starts.push(start);
                spans.readings.push(readings);
            }
            ((event, 0), spans)
        };
        Self {
            by_event: events.iter().map(of).collect(),
            passes: Vec::new(),
            ..*self
        }
    }

    /// The spans of an event with no sampled span recorded inside.
    pub(super) fn get(&self, event: u32) -> &[Paired] {
        (self.by_event.get(&(event, 0))).map_or(&[], |spans| &spans.readings)
    }

    /// As [`Self::get`], each span with its start, ticks.
    pub(super) fn timed(&self, event: u32) -> impl Iterator<Item = (i64, &Paired)> {
        self.spans((event, 0))
    }

    fn spans(&self, key: Key) -> impl Iterator<Item = (i64, &Paired)> {
        (self.by_event.get(&key).into_iter())
            .flat_map(|spans| spans.starts.iter().copied().zip(&spans.readings))
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
        let ticks: Vec<f64> = self.get(event).iter().map(|s| s.tm).collect();
        self.median_ns(&ticks, self.granularity_ticks)
            .ok_or_else(|| too_few(event))
    }

    /// The time that spans of `with` take beyond those of `without`, ns: the median over all
    /// passes, see [`Self::differences`].
    pub(super) fn median_added(&self, with: Key, without: Key) -> Result<Estimate, NotCalibrated> {
        // Both durations are known to a step.
        let step = self.granularity_ticks * core::f64::consts::SQRT_2;
        self.median_ns(&self.differences(with, without), step)
            .ok_or_else(|| too_few(with.0))
    }

    /// As [`Self::median_added`], by the mean over all passes.
    pub(super) fn mean_added(&self, with: Key, without: Key) -> Result<Estimate, NotCalibrated> {
        self.mean_of(self.differences(with, without).into_iter())
            .ok_or_else(|| too_few(with.0))
    }

    /// The difference between the mean spans of `with` and of `without` in each pass that has both,
    /// ticks. A pass takes tens of microseconds, or a few hundred, so both are measured at the same speed of the
    /// core. Where that speed changes, medians of all spans may come from different speeds.
    fn differences(&self, with: Key, without: Key) -> Vec<f64> {
        let mut passes = vec![[Sum::default(); 2]; self.passes.len()];
        for (key, side) in [(without, 0), (with, 1)] {
            for (start, readings) in self.spans(key) {
                let begun = self.passes.partition_point(|&pass| pass <= start);
                if let Some(pass) = begun.checked_sub(1) {
                    passes[pass][side].add(readings.tm);
                }
            }
        }
        (passes.iter())
            .filter_map(|[without, with]| Some(with.mean()? - without.mean()?))
            .collect()
    }

    /// The median of durations in ticks that are known to `step` ticks, ns: see [`median_of`].
    fn median_ns(&self, ticks: &[f64], step: f64) -> Option<Estimate> {
        let (value, lo, hi) = median_of(ticks, step)?;
        let ns = |ticks: f64| ticks * self.ns_per_tick;
        Some(Estimate {
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

pub(super) fn too_few(event: u32) -> NotCalibrated {
    NotCalibrated(format!(
        "too few undisturbed samples of its span number {event}"
    ))
}

/// A sum of durations.
#[derive(Clone, Copy, Default)]
struct Sum {
    n: u32,
    ticks: f64,
}

impl Sum {
    fn add(&mut self, ticks: f64) {
        self.n += 1;
        self.ticks += ticks;
    }

    /// `None` for none.
    fn mean(self) -> Option<f64> {
        (self.n > 0).then(|| self.ticks / f64::from(self.n))
    }
}

impl Spans {
    /// Drops the spans of which any part is far above the median.
    fn cut(&mut self) {
        let median = |part: fn(&Paired) -> f64| {
            let mut all: Vec<f64> = self.readings.iter().map(part).collect();
            all.sort_unstable_by(f64::total_cmp);
            all.get(all.len() / 2).copied().unwrap_or(0.0)
        };
        let limit = Paired {
            t1: RATIO * median(|s| s.t1),
            tm: RATIO * median(|s| s.tm),
            t4: RATIO * median(|s| s.t4),
        };
        let is_kept = |s: &Paired| s.t1 <= limit.t1 && s.tm <= limit.tm && s.t4 <= limit.t4;
        let mut kept = self.readings.iter().map(is_kept);
        self.starts.retain(|_| kept.next().unwrap_or(false));
        self.readings.retain(is_kept);
    }
}

#[cfg(test)]
pub(super) mod tests;
