//! Derives peaks, losses and causes from bursts.

use undertick_document::Warning;
use undertick_estimate::peaks::{self, PeakOptions, Peaks, RateSample};
use undertick_estimate::{intermittent_mean, scaled};
use undertick_report::interference::{Disturber, Interruption, Loss, Peak, RateHistogram};
use undertick_units::{Estimate, Interval};

use super::bursts::{Burst, ProbeInfo, Sample, TakenOff};
use super::cpu_time::Glance;
use super::hits::{Apart, Hit, USUAL_LATENESS_NS, apart};
use super::states::states;
use super::stretches::Stretches;
use super::suspects::Look;

/// A burst in which other processes had the CPU for at least this share of its time counts as
/// disturbed by a process.
const TAKEN_SHARE: f64 = 0.05;
/// Minimum number of bursts for a loss: with fewer there is no interval.
const FEWEST_BURSTS: usize = 6;

/// The findings about a run.
pub(super) struct RunAnalysis {
    pub(super) peaks: Vec<Peak>,
    pub(super) disturbers: Vec<Disturber>,
    pub(super) mean_loss: Estimate,
    pub(super) losses: Vec<Loss>,
    pub(super) reference_drift: Estimate,
    pub(super) clean_rate: Estimate,
    pub(super) histogram: RateHistogram,
    pub(super) interruptions: Vec<Interruption>,
    pub(super) samples: u64,
    pub(super) warnings: Vec<Warning>,
}

/// A run: its bursts, what the probe reported of itself, and the processes that ran.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) bursts: &'a [Burst],
    pub(super) probe_info: ProbeInfo,
    pub(super) looks: &'a [Look],
    /// Frequent readings of the CPU time of processes that used a CPU, between two looks.
    pub(super) glances: &'a [Glance],
    /// Nominal length of a burst, ns.
    pub(super) burst_ns: f64,
    /// CPU of the probe, if it is fixed.
    pub(super) cpu: Option<usize>,
    pub(super) level: f64,
}

/// A burst with its analysis.
pub(super) struct Seen<'a> {
    pub(super) burst: &'a Burst,
    pub(super) apart: Apart,
    /// Duration from when the burst was due, ns.
    pub(super) wall_ns: f64,
    /// Duration from when the burst began, ns.
    in_time_ns: f64,
    /// Median time of the registers, ns.
    pub(super) reference_ns: f64,
    /// Time for which other processes had the CPU, ns.
    pub(super) taken_ns: f64,
}

impl<'a> Seen<'a> {
    /// Analyses a burst of the nominal length `long_ns`; `None` without a plain sample.
    ///
    /// A hit in the last sample lasts beyond the end of the burst, so only the time before the end
    /// counts. Otherwise bursts would be longer the more they are disturbed.
    pub(super) fn from_burst(burst: &'a Burst, long_ns: f64) -> Option<Self> {
        let mut apart = apart(burst);
        let mut wall_ns = burst.wall_ns();
        let last = burst.samples.len().saturating_sub(1);
        if let Some((_, _, ns)) = apart.hits.last_mut().filter(|(at, _, _)| *at == last) {
            let beyond = (wall_ns - long_ns).clamp(0.0, ns.max(0.0));
            *ns -= beyond;
            wall_ns -= beyond;
        }
        let mut references: Vec<f64> = apart.plain.iter().map(|(_, s)| s.reference_ns).collect();
        references.sort_by(f64::total_cmp);
        let reference_ns = *references.get(references.len() / 2)?;
        // Lateness explained by the timer and an idle CPU was not taken by another process.
        let late_ns = Some(burst.late_ns)
            .filter(|ns| *ns > USUAL_LATENESS_NS)
            .unwrap_or(0.0);
        let taken_ns = late_ns + apart.taken_ns(Hit::Switch);
        (reference_ns > 0.0).then_some(Self {
            burst,
            wall_ns: wall_ns + late_ns,
            in_time_ns: wall_ns,
            reference_ns,
            taken_ns,
            apart,
        })
    }

    /// When other processes had the CPU, from the time the burst was due, ns.
    pub(super) fn lost_times(&self) -> Vec<(f64, f64)> {
        let late_ns = self.wall_ns - self.in_time_ns;
        let late = (late_ns > 0.0).then_some((0.0, late_ns));
        let mut at_ns = late_ns;
        let mut begins = vec![];
        for sample in &self.burst.samples {
            begins.push(at_ns);
            at_ns += sample.mix_ns + sample.reference_ns;
        }
        let switches = (self.apart.hits.iter())
            .filter(|(_, hit, ns)| *hit == Hit::Switch && *ns > 0.0)
            .map(|(at, _, ns)| (begins[*at], begins[*at] + ns));
        late.into_iter().chain(switches).collect()
    }

    /// Mean time of a plain sample, ns: the resolution at which the burst's work is known.
    pub(super) fn sample_ns(&self) -> f64 {
        let plain = &self.apart.plain;
        let sum: f64 = plain.iter().map(|(_, s)| s.mix_ns + s.reference_ns).sum();
        sum / plain.len().max(1) as f64
    }

    pub(super) fn is_taken(&self) -> bool {
        self.taken_ns >= TAKEN_SHARE * self.wall_ns
    }

    /// Mean of `of` over the plain samples, weighted by their time.
    pub(super) fn share_of_time(&self, of: impl Fn(&Sample) -> bool) -> f64 {
        let time = |s: &Sample| s.mix_ns + s.reference_ns;
        let all: f64 = self.apart.plain.iter().map(|(_, s)| time(s)).sum();
        let these = self.apart.plain.iter().filter(|(_, s)| of(s));
        these.map(|(_, s)| time(s)).sum::<f64>() / all.max(f64::MIN_POSITIVE)
    }

    /// Fractions of the mix's time that were lost to each cause; the first is the remainder of the
    /// total.
    pub(super) fn lost(&self, mix_ns_per_reference_ns: f64) -> [f64; 4] {
        let n = self.burst.samples.len() as f64;
        let mix_wall_ns = self.wall_ns - n * self.reference_ns;
        let clean_ns = n * mix_ns_per_reference_ns * self.reference_ns;
        let of = |ns: f64| ns / mix_wall_ns.max(f64::MIN_POSITIVE);
        let (taken, long, short) = (
            of(self.taken_ns),
            of(self.apart.taken_ns(Hit::Long)),
            of(self.apart.taken_ns(Hit::Short)),
        );
        [
            1.0 - of(clean_ns) - taken - long - short,
            taken,
            long,
            short,
        ]
    }
}

/// Causes of these fractions, in the same order.
const PARTS: [&str; 4] = ["slowed", "same-cpu-process", "host", "short"];

/// Analyses a run; `None` if there is too little data.
pub(super) fn analyse(run: &Run<'_>) -> Option<RunAnalysis> {
    let seen: Vec<Seen<'_>> = (run.bursts.iter())
        .filter_map(|burst| Seen::from_burst(burst, run.burst_ns))
        .collect();
    let scale = Scale::best(&seen, run)?;
    let found = &scale.found;
    let mix_ns_per_reference_ns = run.probe_info.mix_units as f64
        / run.probe_info.reference_turns as f64
        / found.clean_rate.value;
    let stretches = Stretches::new(run.looks, &seen);
    let (peaks, disturbers) = states(&scale, &seen, &stretches, run);
    let parts: Vec<[f64; 4]> = seen
        .iter()
        .map(|s| s.lost(mix_ns_per_reference_ns))
        .collect();
    let mean = |of: &dyn Fn(&[f64; 4]) -> f64| {
        mean_over_bursts(&parts.iter().map(of).collect::<Vec<_>>(), run.level)
    };
    let losses = PARTS.iter().enumerate();
    let losses = losses.map(|(i, cause)| Loss {
        cause: (*cause).to_owned(),
        share: mean(&|p| p[i]),
    });
    let seconds = seen.iter().map(|s| s.wall_ns / 1e9).sum::<f64>();
    let turns_per_second = median_reference_rate(&seen, run.probe_info);
    Some(RunAnalysis {
        peaks,
        disturbers,
        mean_loss: mean(&|p| p.iter().sum()),
        losses: losses.collect(),
        clean_rate: scaled(found.clean_rate.clone(), turns_per_second, "1/s"),
        reference_drift: found.reference_drift.clone(),
        histogram: RateHistogram {
            unit: "1".to_owned(),
            edges: found.histogram.edges.clone(),
            counts: found.histogram.counts.clone(),
            seconds: found.histogram.seconds.clone(),
            together: scale.together as u64,
        },
        interruptions: interruptions(&seen, seconds),
        samples: seen.iter().map(|s| s.burst.samples.len() as u64).sum(),
        warnings: warnings(&seen),
    })
}

/// Numbers of samples of a burst that are averaged before the search for peaks. Where the memory is
/// always busy, single samples scatter so much that two states of the machine merge. States last
/// longer than samples, so averages separate them.
const TOGETHER: [usize; 3] = [1, 8, usize::MAX];

/// Rates averaged over this many samples, and their peaks.
pub(super) struct Scale {
    together: usize,
    samples: Vec<RateSample>,
    pub(super) found: Peaks,
}

impl Scale {
    /// The finest scale among those that separate most states. There are three attempts, so each is
    /// allowed a third of the error probability.
    fn best(seen: &[Seen<'_>], run: &Run<'_>) -> Option<Self> {
        let usual = PeakOptions::default();
        let options = PeakOptions {
            level: run.level,
            false_alarm: usual.false_alarm / TOGETHER.len() as f64,
            ..usual
        };
        let scales = TOGETHER.into_iter().filter_map(|together| {
            let samples = rate_samples(seen, run.probe_info, together);
            let longest = seen.iter().map(|s| s.apart.plain.len()).max()?;
            Some(Self {
                together: together.min(longest),
                found: peaks::peaks(&samples, &options)?,
                samples,
            })
        });
        scales.reduce(
            |best, next| match next.found.peaks.len() > best.found.peaks.len() {
                true => next,
                false => best,
            },
        )
    }

    /// Share of each burst's time that lies in these peaks.
    pub(super) fn shares(&self, bursts: usize, peaks: &[peaks::Peak]) -> Vec<f64> {
        let mut times = vec![(0.0, 0.0); bursts];
        for sample in &self.samples {
            let rate = sample.rate / sample.reference / self.found.clean_rate.value;
            let time = &mut times[sample.burst as usize];
            time.1 += sample.seconds;
            if peaks.iter().any(|p| rate > p.lo && rate <= p.hi) {
                time.0 += sample.seconds;
            }
        }
        times
            .into_iter()
            .map(|(inside, all)| inside / all.max(f64::MIN_POSITIVE))
            .collect()
    }
}

/// Averages `together` neighbouring samples of a burst into one. The remainder at its end also
/// counts as one if it has half as many.
fn rate_samples(seen: &[Seen<'_>], probe_info: ProbeInfo, together: usize) -> Vec<RateSample> {
    (seen.iter().enumerate())
        .flat_map(|(burst, seen)| {
            let plain = &seen.apart.plain;
            let together = together.min(plain.len()).max(1);
            let parts = plain
                .chunks(together)
                .filter(move |part| 2 * part.len() >= together);
            parts.map(move |part| {
                let sum = |of: fn(&Sample) -> f64| part.iter().map(|(_, s)| of(s)).sum::<f64>();
                let (mix_ns, reference_ns) = (sum(|s| s.mix_ns), sum(|s| s.reference_ns));
                let per_s = |units: u64, ns: f64| units as f64 * part.len() as f64 / ns * 1e9;
                RateSample {
                    burst: burst as u32,
                    rate: per_s(probe_info.mix_units, mix_ns),
                    reference: per_s(probe_info.reference_turns, reference_ns),
                    seconds: (mix_ns + reference_ns) / 1e9,
                }
            })
        })
        .collect()
}

fn median_reference_rate(seen: &[Seen<'_>], probe_info: ProbeInfo) -> f64 {
    let mut rates: Vec<f64> = (seen.iter())
        .map(|s| probe_info.reference_turns as f64 / s.reference_ns * 1e9)
        .collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Mean over the run of a quantity that each burst has.
pub(super) fn mean_over_bursts(values: &[f64], level: f64) -> Estimate {
    let n = values.len();
    let mut estimate = intermittent_mean(values, level).unwrap_or_else(|| Estimate {
        value: values.iter().sum::<f64>() / n.max(1) as f64,
        interval: Interval { lo: None, hi: None },
        level,
        unit: "1".into(),
        method: "mean of spaced looks".into(),
        n: n as u64,
        n_effective: n as f64,
        notes: Vec::new(),
    });
    if n < FEWEST_BURSTS {
        estimate.interval = Interval { lo: None, hi: None };
        estimate
            .notes
            .push(format!("fewer than {FEWEST_BURSTS} bursts: no interval"));
    }
    estimate
}

fn interruptions(seen: &[Seen<'_>], seconds: f64) -> Vec<Interruption> {
    let kinds = [
        (
            Hit::Switch,
            PARTS[1],
            "the probe's thread was taken off its CPU",
        ),
        (
            Hit::Long,
            PARTS[2],
            "it stayed on its CPU and lost 0.5 ms or more at once",
        ),
        (
            Hit::Short,
            PARTS[3],
            "interrupts and what else hits single samples",
        ),
    ];
    let of = |(kind, cause, what): (Hit, &str, &str)| {
        let mut times: Vec<f64> = (seen.iter())
            .flat_map(|s| &s.apart.hits)
            .filter(|(_, hit, _)| *hit == kind)
            .map(|(_, _, ns)| *ns)
            .collect();
        times.sort_by(f64::total_cmp);
        Some(Interruption {
            cause: cause.to_owned(),
            what: what.to_owned(),
            count: times.len() as u64,
            per_second: times.len() as f64 / seconds,
            median_ns: *times.get(times.len() / 2)?,
            longest_ns: *times.last()?,
        })
    };
    kinds.into_iter().filter_map(of).collect()
}

fn warnings(seen: &[Seen<'_>]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code: &str, text: String| {
        warnings.push(Warning {
            code: code.to_owned(),
            text,
        });
    };
    let samples = || seen.iter().flat_map(|s| &s.burst.samples);
    if samples().any(|s| s.taken_off == TakenOff::Unknown) {
        warn(
            "taken_off_unknown",
            "This kernel does not say when the probe lost its CPU: times that other processes took are \
             counted to the host if they are long, else to interrupts."
                .to_owned(),
        );
    }
    if seen.len() < FEWEST_BURSTS {
        warn(
            "few_bursts",
            format!(
                "{} bursts: too few for intervals; measure longer (--for)",
                seen.len()
            ),
        );
    }
    warnings
}
