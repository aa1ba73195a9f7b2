//! Sampled spans: executions are counted, some of them timed.
//!
//! Each execution was recorded with probability 1/r, whatever happened in it. So the recorded
//! ones are a fair sample of all as long as r was one number. Where it was changed while the
//! program ran, the spans recorded under each rate are a sample of what was executed under it.
//! Their means are weighted by that (post-stratification).

use serde::{Deserialize, Serialize};
use undertick_document::{IntervalReport, Sampled};
use undertick_estimate::{Sample, Series, normal_quantile, scaled};
use undertick_units::{Estimate, Interval};

use crate::sample::Sampling;

/// Most rates that are distinguished, about 50 KiB each; further ones are merged with the last.
const MOST_RATES: usize = 16;

/// Samples recorded under one rate.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stratum {
    one_in: u32,
    executions: u64,
    /// Kept samples; empty while there is one rate only.
    kept: Series,
}

/// The sampling data of an interval.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Strata {
    /// Executions, recorded or not.
    pub(crate) executions: u64,
    by_rate: Vec<Stratum>,
    /// Sampled executions inside the kept samples.
    inside: u64,
}

impl Strata {
    /// Returns whether no execution of a sampled span was counted.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.executions == 0
    }

    /// Nothing of it was sampled, nor anything inside it.
    pub(crate) fn is_unused(&self) -> bool {
        self.is_empty() && self.by_rate.is_empty() && self.inside == 0
    }

    /// Adds a matched sample, kept or not; `kept` are those before it.
    #[inline]
    pub(crate) fn add(&mut self, sampling: Sampling, value: Option<i64>, kept: &Series) {
        if sampling == Sampling::default() {
            return;
        }
        if value.is_some() {
            self.inside += sampling.inside;
        }
        if sampling.one_in > 0 {
            self.add_to_rate(sampling, value, kept);
        }
    }

    /// Announces that the next samples are from another thread.
    pub(crate) fn next_thread(&mut self) {
        self.by_rate.iter_mut().for_each(|s| s.kept.next_thread());
    }

    /// Merges what was sampled elsewhere. Under a single rate the kept samples are stored only
    /// with the interval: `ours` here and `theirs` there.
    pub(crate) fn merge(&mut self, other: Self, ours: &Series, theirs: &Series) {
        self.executions += other.executions;
        self.inside += other.inside;
        if self.by_rate.is_empty() {
            self.by_rate = other.by_rate;
            return;
        }
        if self.by_rate.len() == 1 && other.by_rate.len() == 1 {
            let (rate, theirs_rate) = (self.by_rate[0].one_in, other.by_rate[0].one_in);
            if rate == theirs_rate {
                self.by_rate[0].executions += other.by_rate[0].executions;
                return;
            }
        }
        if self.by_rate.len() == 1 && !other.by_rate.is_empty() {
            self.by_rate[0].kept = ours.clone();
        }
        let alone = other.by_rate.len() == 1;
        for mut stratum in other.by_rate {
            if alone {
                stratum.kept = theirs.clone();
            }
            let known = self.by_rate.len();
            let at = (self.by_rate.iter()).position(|s| s.one_in == stratum.one_in);
            match at.unwrap_or(known.min(MOST_RATES - 1)) {
                at if at == known => self.by_rate.push(stratum),
                at => {
                    self.by_rate[at].executions += stratum.executions;
                    self.by_rate[at].kept.merge(stratum.kept);
                }
            }
        }
    }

    #[inline(never)]
    fn add_to_rate(&mut self, sampling: Sampling, value: Option<i64>, kept: &Series) {
        let known = self.by_rate.len();
        let at = (self.by_rate.iter()).position(|s| s.one_in == sampling.one_in);
        let at = at.unwrap_or(known.min(MOST_RATES - 1));
        if at == known {
            if known == 1 {
                self.by_rate[0].kept = kept.clone();
            }
            self.by_rate.push(Stratum {
                one_in: sampling.one_in,
                executions: 0,
                kept: Series::new(),
            });
        }
        let only = self.by_rate.len() == 1;
        let stratum = &mut self.by_rate[at];
        stratum.executions += u64::from(sampling.stands_for);
        if let Some(value) = value.filter(|_| !only) {
            stratum.kept.push(value);
        }
    }

    /// The mean of all executions, ticks, where several rates apply; `None` where the plain mean
    /// is valid.
    pub(crate) fn mean(&self, sample: &Sample, level: f64, granularity: f64) -> Option<Estimate> {
        let used = || self.by_rate.iter().filter(|s| s.kept.n() > 0);
        if used().count() < 2 {
            return None;
        }
        let plain = sample.mean(level, granularity)?;
        let executions: u64 = used().map(|s| s.executions).sum();
        if executions == 0 {
            return None; // ends that say they are sampled, begins that do not
        }
        let (mut mean, mut below, mut above) = (0.0, 0.0, 0.0);
        for stratum in used() {
            let weight = stratum.executions as f64 / executions as f64;
            let own = stratum.kept.clone().sample();
            let estimate = own.mean(level, granularity)?;
            // Too few to have a scatter of their own: that of all is used.
            let spread = sample.moments().sd()? / (own.moments().n() as f64).sqrt();
            let few = normal_quantile(level) * spread;
            let side = |bound: Option<f64>| bound.map_or(few, |b| (b - estimate.value).abs());
            mean += weight * estimate.value;
            below += (weight * side(estimate.interval.lo)).powi(2);
            above += (weight * side(estimate.interval.hi)).powi(2);
        }
        let mut notes = plain.notes;
        notes.push(
            "the rate of sampling changed: the means under each rate are weighted by executions"
                .to_owned(),
        );
        Some(Estimate {
            value: mean,
            interval: Interval::new(mean - below.sqrt(), mean + above.sqrt()),
            method: format!("{}, by rate", plain.method),
            notes,
            ..plain
        })
    }

    /// Puts the sampling into the report of its interval.
    pub(crate) fn tell(&self, report: &mut IntervalReport) {
        if self.is_empty() {
            return;
        }
        let recorded = report.count + report.culled.count;
        let rates: Vec<u32> = self.by_rate.iter().map(|s| s.one_in).collect();
        let total = (report.mean.clone()).map(|mean| scaled(mean, self.executions as f64, "ns"));
        if let Some(total) = &total {
            report.total_ns = Some(total.value);
        }
        if rates.len() > 1 {
            report.notes.push(format!(
                "the rate of sampling changed while the program ran ({} rates): quantiles and \
                 histogram count each recorded span once",
                rates.len()
            ));
        }
        report.sampled = Some(Sampled {
            executions: self.executions,
            recorded,
            rate: (rates.len() == 1).then(|| rates[0]),
            total,
        });
    }
}

/// Executions that the begins of a ring stood for, by event.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Begun(Vec<(u16, u64)>);

impl Begun {
    #[inline]
    pub(crate) fn add(&mut self, event: u16, stands_for: u32) {
        match self.0.iter_mut().find(|(known, _)| *known == event) {
            Some((_, sum)) => *sum += u64::from(stands_for),
            None => self.0.push((event, u64::from(stands_for))),
        }
    }

    pub(crate) fn executions(&self, event: u16) -> u64 {
        let found = self.0.iter().find(|(known, _)| *known == event);
        found.map_or(0, |&(_, sum)| sum)
    }
}
