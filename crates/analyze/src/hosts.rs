//! Several hosts: messages between their traces, and how the uncertainty of their clocks widens
//! intervals from one host to the other.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use undertick_document::{AcrossHosts, IntervalReport};
use undertick_format::manifest::{HostMap, Manifest, Name};
use undertick_format::messages::Messages;
use undertick_format::read::Trace;
use undertick_format::schema::Kind;
use undertick_units::Estimate;

use crate::columns::Columns;
use crate::error::Error;
use crate::names::Names;
use crate::parallel::Failed;
use crate::rules::known;
use crate::table::{Matching, NameOrNumber, Table};

/// Most keys of one interval that are stored; with more, every second key is removed, the same
/// ones on all hosts.
const MOST_KEYS: usize = 1 << 21;

/// Messages between hosts that their traces hold: intervals of the table with `match = "message"`
/// whose start is in one trace and whose end is in another. A key that comes more than once is
/// ambiguous and is left out, and so are boundaries without a key.
///
/// # Errors
/// A trace cannot be read, or the table names an event that no trace has.
pub fn messages(traces: &[Trace], table: &Table, source: &str) -> Result<Vec<Messages>, Failed> {
    let all: Vec<Name> = (traces.iter())
        .flat_map(|trace| trace.manifest.names.iter().cloned())
        .collect();
    let all = Names::new(&all, &table.names);
    let given: HashSet<&str> = all.all().collect();
    let mut rules = Vec::new();
    for interval in &table.intervals {
        if interval.matching == Matching::Message {
            known(&interval.start, &given, table).map_err(Error::from)?;
            known(&interval.end, &given, table).map_err(Error::from)?;
            let ends = [interval.start.event.clone(), interval.end.event.clone()];
            rules.push((ends, Keys::default()));
        }
    }
    for (host, trace) in traces.iter().enumerate() {
        let names = Names::new(&trace.manifest.names, &table.names);
        for batch in trace.batches() {
            let batch = batch?;
            gather(&mut rules, &Columns::from_batch(&batch)?, host, &names);
        }
    }
    let mut found: HashMap<(usize, usize), Vec<(i64, i64)>> = HashMap::new();
    for (_, keys) in rules {
        for ends in keys.ends.into_values() {
            if let [End::One(from, sent), End::One(to, received)] = ends
                && from != to
            {
                found.entry((from, to)).or_default().push((sent, received));
            }
        }
    }
    let mut messages: Vec<Messages> = (found.into_iter())
        .map(|((from, to), mut stamps)| {
            stamps.sort_unstable();
            Messages {
                from,
                to,
                source: source.to_owned(),
                stamps,
            }
        })
        .collect();
    messages.sort_unstable_by_key(|m| (m.from, m.to));
    Ok(messages)
}

/// The place where a key was seen as a start, or as an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    None,
    /// On one host, at one reading of its clock.
    One(usize, i64),
    More,
}

/// The boundaries of one interval, by key.
#[derive(Debug, Default)]
struct Keys {
    ends: HashMap<i64, [End; 2]>,
    /// Number of a key's lowest bits that must be 0.
    thinned: u32,
}

impl Keys {
    fn note(&mut self, key: i64, is_end: bool, host: usize, ts: i64) {
        if key.trailing_zeros() < self.thinned {
            return;
        }
        let end = &mut self.ends.entry(key).or_default()[usize::from(is_end)];
        *end = match *end {
            End::None => End::One(host, ts),
            _ => End::More,
        };
        if self.ends.len() > MOST_KEYS {
            self.thinned += 1;
            let thinned = self.thinned;
            self.ends.retain(|key, _| key.trailing_zeros() >= thinned);
        }
    }
}

fn gather(rules: &mut [([NameOrNumber; 2], Keys)], rows: &Columns<'_>, host: usize, names: &Names) {
    for i in 0..rows.len() {
        if rows.mode[i] != 0 || rows.rows.kind[i] != Kind::Instant as i8 {
            continue;
        }
        let Ok(event) = u16::try_from(rows.rows.event[i]) else {
            continue;
        };
        for (ends, keys) in &mut *rules {
            for (is_end, boundary) in [(false, &ends[0]), (true, &ends[1])] {
                let is_it = match boundary {
                    NameOrNumber::Number(number) => *number == event,
                    NameOrNumber::Name(name) => {
                        names.given(names.set_of(rows.pid[i]), event) == Some(name)
                    }
                };
                if is_it {
                    keys.note(rows.rows.payload[i], is_end, host, rows.rows.ts[i]);
                }
            }
        }
    }
}

/// The maps of a trace of several hosts; empty for a trace of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clocks(Vec<Option<HostMap>>);

impl Clocks {
    pub(crate) fn from_manifest(manifest: &Manifest) -> Self {
        let maps = manifest.hosts.iter().map(|host| host.map.clone());
        Self(maps.collect())
    }

    /// Bound on the error of the time from one reading to another, ticks: `None` on one host.
    pub(crate) fn doubt(&self, start: (i16, i64), end: (i16, i64)) -> Option<i64> {
        if start.0 == end.0 {
            return None;
        }
        let of = |(host, ts): (i16, i64)| -> i64 {
            let map = usize::try_from(host).ok().and_then(|host| self.0.get(host));
            (map.and_then(Option::as_ref)).map_or(0, |map| map.half_width_at(ts))
        };
        Some(of(start).saturating_add(of(end)))
    }
}

/// The uncertainty of an interval's samples that comes from the clocks.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Doubt {
    samples: u64,
    /// Sum of half-widths, ticks.
    sum: i128,
    max: i64,
    /// Samples of uncertain sign.
    concurrent: u64,
}

impl Doubt {
    pub(crate) fn add(&mut self, ticks: i64, half_width: i64) {
        self.samples += 1;
        self.sum += i128::from(half_width);
        self.max = self.max.max(half_width);
        self.concurrent += u64::from(ticks.unsigned_abs() <= half_width.unsigned_abs());
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.samples += other.samples;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        self.concurrent += other.concurrent;
    }

    /// Widens the estimates of the interval. The clocks' error is the same for neighbouring
    /// samples, so more samples do not make it smaller. A mean is off by at most the mean of the
    /// half-widths, a quantile by the largest.
    pub(crate) fn tell(&self, report: &mut IntervalReport, ns_per_tick: f64) {
        if self.samples == 0 {
            return;
        }
        let max_ns = self.max as f64 * ns_per_tick;
        let sum_ns = self.sum as f64 * ns_per_tick;
        let mean_ns = sum_ns / self.samples as f64;
        let over = |count: u64| (sum_ns / count.max(1) as f64).min(max_ns);
        let count = report.count;
        for (mean, count) in [
            (&mut report.mean, count),
            (&mut report.before_culling.mean, count),
            (&mut report.uncompensated.mean, count),
        ] {
            widen(mean, over(count));
        }
        let quantiles = report.quantiles.values_mut();
        quantiles.for_each(|quantile| widen_one(quantile, max_ns));
        widen(&mut report.median, max_ns);
        widen(&mut report.before_culling.median, max_ns);
        widen(&mut report.uncompensated.median, max_ns);
        report.notes.push(format!(
            "{} samples go from one host to another: intervals are widened by what the hosts' clocks \
             leave open, {:.0} ns on average and {:.0} ns at most; {} samples are shorter than that, so \
             which of their ends came first is not certain (concurrent)",
            self.samples, mean_ns, max_ns, self.concurrent
        ));
        report.across_hosts = Some(AcrossHosts {
            samples: self.samples,
            half_width_ns_mean: mean_ns,
            half_width_ns_max: max_ns,
            concurrent: self.concurrent,
        });
    }
}

fn widen(estimate: &mut Option<Estimate>, by: f64) {
    if let Some(estimate) = estimate {
        widen_one(estimate, by);
    }
}

fn widen_one(estimate: &mut Estimate, by: f64) {
    estimate.interval.lo = estimate.interval.lo.map(|lo| lo - by);
    estimate.interval.hi = estimate.interval.hi.map(|hi| hi + by);
}

#[cfg(test)]
mod tests;
