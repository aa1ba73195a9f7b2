//! From bursts to peaks, losses and causes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use undertick_estimate::peaks::{PeakOptions, Peaks, RateSample, peaks, predict};
use undertick_estimate::{ratio_of_sums, scaled, spaced_mean};
use undertick_report::document::Warning;
use undertick_report::interference::{Interruption, Loss, Peak, Prediction, RateHistogram};
use undertick_units::{Estimate, Interval};

use super::bursts::{About, Burst, Sample, TakenOff};
use super::hits::{Apart, Hit, USUAL_LATENESS_NS, apart};
use super::who::{Look, Suspect, Who, active, suspects, use_between};

/// A burst in which other processes had the CPU for at least this share of its time
/// is one that a process disturbed.
const TAKEN_SHARE: f64 = 0.05;
/// Fewer such bursts than this, or a smaller share, are no state of the machine but
/// its housekeeping.
const FEWEST_TAKEN: usize = 3;
const LEAST_TAKEN: f64 = 0.005;
/// A process that used less of the probe's CPU is not shown as the busiest, CPUs.
const LEAST_NAMED: f64 = 0.002;
/// Bursts that have a loss: fewer have no interval.
const FEWEST_BURSTS: usize = 6;

/// What is found of a run.
pub(super) struct Found {
    pub(super) peaks: Vec<Peak>,
    pub(super) mean_loss: Estimate,
    pub(super) losses: Vec<Loss>,
    pub(super) reference_drift: Estimate,
    pub(super) clean_rate: Estimate,
    pub(super) histogram: RateHistogram,
    pub(super) interruptions: Vec<Interruption>,
    pub(super) samples: u64,
    pub(super) warnings: Vec<Warning>,
}

/// A run: its bursts, what the probe said of itself, and who ran meanwhile.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) bursts: &'a [Burst],
    pub(super) about: About,
    pub(super) looks: &'a [Look],
    /// Nominal length of a burst, ns.
    pub(super) burst_ns: f64,
    /// CPU of the probe, where it is fixed.
    pub(super) cpu: Option<usize>,
    pub(super) level: f64,
}

/// A burst with what was found in it.
pub(super) struct Seen<'a> {
    pub(super) burst: &'a Burst,
    pub(super) apart: Apart,
    /// From when it was due, ns.
    pub(super) wall_ns: f64,
    /// Median time of its registers, ns.
    pub(super) reference_ns: f64,
    /// Time that other processes had the CPU, ns.
    pub(super) taken_ns: f64,
}

impl<'a> Seen<'a> {
    /// Of a burst that was to last so long; `None` without a plain sample.
    ///
    /// A hit in its last sample lasts beyond its end: only what lies before it counts,
    /// else bursts would be the longer the more they are disturbed.
    pub(super) fn of(burst: &'a Burst, long_ns: f64) -> Option<Self> {
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
        // What a timer and an idle CPU explain was not taken by anybody.
        let late_ns = Some(burst.late_ns)
            .filter(|ns| *ns > USUAL_LATENESS_NS)
            .unwrap_or(0.0);
        let taken_ns = late_ns + apart.taken_ns(Hit::Switch);
        (reference_ns > 0.0).then_some(Self {
            burst,
            wall_ns: wall_ns + late_ns,
            reference_ns,
            taken_ns,
            apart,
        })
    }

    pub(super) fn is_taken(&self) -> bool {
        self.taken_ns >= TAKEN_SHARE * self.wall_ns
    }

    /// Mean over the plain samples of what `of` says of them, by their time.
    pub(super) fn share_of_time(&self, of: impl Fn(&Sample) -> bool) -> f64 {
        let time = |s: &Sample| s.mix_ns + s.reference_ns;
        let all: f64 = self.apart.plain.iter().map(|(_, s)| time(s)).sum();
        let these = self.apart.plain.iter().filter(|(_, s)| of(s));
        these.map(|(_, s)| time(s)).sum::<f64>() / all.max(f64::MIN_POSITIVE)
    }

    /// Parts of the mix's time that were lost to each cause; the first is what is left
    /// when the others are taken off the whole.
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

/// Causes of the parts, in their order.
const PARTS: [&str; 4] = ["slowed", "same-cpu-process", "host", "short"];

/// `None` of too little to say anything.
pub(super) fn analyse(run: &Run<'_>) -> Option<Found> {
    let seen: Vec<Seen<'_>> = (run.bursts.iter())
        .filter_map(|burst| Seen::of(burst, run.burst_ns))
        .collect();
    let scale = Scale::best(&seen, run)?;
    let found = &scale.found;
    let mix_ns_per_reference_ns =
        run.about.mix_units as f64 / run.about.reference_turns as f64 / found.clean_rate.value;
    let stretches = Stretches::of(run.looks, &seen);
    let mut drawn = memory_peaks(&scale, seen.len(), &stretches, run);
    drawn.extend(taken_peak(&seen, &stretches, run));
    drawn.extend(active_peak(&drawn, &seen, &stretches, run.level));
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
    let turns_per_second = median_reference_rate(&seen, run.about);
    Some(Found {
        peaks: drawn,
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

/// Samples of a burst that are averaged before peaks are looked for. Where the memory
/// is busy all the time single samples scatter so much that two states of the machine
/// run into each other; states last longer than samples, so averages tell them apart.
const TOGETHER: [usize; 3] = [1, 8, usize::MAX];

/// Rates averaged over so many samples, and their peaks.
struct Scale {
    together: usize,
    samples: Vec<RateSample>,
    found: Peaks,
}

impl Scale {
    /// The finest one of those that tell most states apart. Three looks, so each may
    /// be wrong a third as often.
    fn best(seen: &[Seen<'_>], run: &Run<'_>) -> Option<Self> {
        let usual = PeakOptions::default();
        let options = PeakOptions {
            level: run.level,
            false_alarm: usual.false_alarm / TOGETHER.len() as f64,
            ..usual
        };
        let scales = TOGETHER.into_iter().filter_map(|together| {
            let samples = rate_samples(seen, run.about, together);
            let longest = seen.iter().map(|s| s.apart.plain.len()).max()?;
            Some(Self {
                together: together.min(longest),
                found: peaks(&samples, &options)?,
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

    /// Share of each burst's time in a peak.
    fn shares(&self, bursts: usize, peak: &undertick_estimate::peaks::Peak) -> Vec<f64> {
        let mut times = vec![(0.0, 0.0); bursts];
        for sample in &self.samples {
            let rate = sample.rate / sample.reference / self.found.clean_rate.value;
            let time = &mut times[sample.burst as usize];
            time.1 += sample.seconds;
            if rate > peak.lo && rate <= peak.hi {
                time.0 += sample.seconds;
            }
        }
        times
            .into_iter()
            .map(|(inside, all)| inside / all.max(f64::MIN_POSITIVE))
            .collect()
    }
}

/// `together` neighbouring samples of a burst make one; what is left over at its end
/// is one, too, if it is half as many.
fn rate_samples(seen: &[Seen<'_>], about: About, together: usize) -> Vec<RateSample> {
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
                    rate: per_s(about.mix_units, mix_ns),
                    reference: per_s(about.reference_turns, reference_ns),
                    seconds: (mix_ns + reference_ns) / 1e9,
                }
            })
        })
        .collect()
}

fn median_reference_rate(seen: &[Seen<'_>], about: About) -> f64 {
    let mut rates: Vec<f64> = (seen.iter())
        .map(|s| about.reference_turns as f64 / s.reference_ns * 1e9)
        .collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Mean over the run of something that each burst has a value of.
pub(super) fn mean_over_bursts(values: &[f64], level: f64) -> Estimate {
    let n = values.len();
    let mut estimate = spaced_mean(values, level).unwrap_or_else(|| Estimate {
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

/// Stretches of time between looks at who used the CPUs, with the bursts in each.
pub(super) struct Stretches {
    /// Indices of bursts, and uses.
    all: Vec<(Vec<usize>, BTreeMap<Who, f64>)>,
    /// CPU on which processes of a name were seen most.
    cpus: BTreeMap<Who, usize>,
}

impl Stretches {
    pub(super) fn of(looks: &[Look], seen: &[Seen<'_>]) -> Self {
        let all = looks.windows(2).map(|pair| {
            let (from, to) = (pair[0].at_ns, pair[1].at_ns);
            let inside = |s: &Seen<'_>| (from..to).contains(&s.burst.begun_ns);
            let bursts = (0..seen.len()).filter(|&i| inside(&seen[i])).collect();
            (bursts, use_between(&pair[0], &pair[1]))
        });
        let mut counts: BTreeMap<(Who, usize), f64> = BTreeMap::new();
        for pair in looks.windows(2) {
            for (pid, process) in &pair[1].processes {
                let then = pair[0].processes.get(pid).map_or(0.0, |p| p.ns);
                if let Some(cpu) = process.cpu {
                    let who = Who::Processes(process.name.clone());
                    *counts.entry((who, cpu)).or_default() += (process.ns - then).max(0.0);
                }
            }
        }
        let mut cpus: BTreeMap<Who, (usize, f64)> = BTreeMap::new();
        for ((who, cpu), ns) in counts {
            let best = cpus.entry(who).or_insert((cpu, ns));
            if ns > best.1 {
                *best = (cpu, ns);
            }
        }
        Self {
            all: all.collect(),
            cpus: cpus.into_iter().map(|(who, (cpu, _))| (who, cpu)).collect(),
        }
    }

    /// The process that used most of a CPU, and how many CPUs that was.
    fn busiest_on(&self, cpu: Option<usize>) -> Option<(&str, f64)> {
        let mut totals: BTreeMap<&str, f64> = BTreeMap::new();
        for (who, used) in self.all.iter().flat_map(|(_, uses)| uses) {
            if let (Who::Processes(name), true) = (who, self.cpus.get(who) == cpu.as_ref()) {
                *totals.entry(name).or_insert(0.0) += used / self.all.len() as f64;
            }
        }
        let busiest = totals.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        busiest.filter(|(_, used)| *used >= LEAST_NAMED)
    }

    /// Who goes with a state of which each burst has a share.
    fn suspects(&self, state: &[f64]) -> Vec<Suspect> {
        suspects(&self.with(state))
    }

    /// The stretches that have bursts, with the mean of what these have.
    fn with(&self, state: &[f64]) -> Vec<(f64, BTreeMap<Who, f64>)> {
        let with_bursts = self.all.iter().filter(|(bursts, _)| !bursts.is_empty());
        with_bursts
            .map(|(bursts, uses)| {
                let mean = bursts.iter().map(|&i| state[i]).sum::<f64>() / bursts.len() as f64;
                (mean, uses.clone())
            })
            .collect()
    }
}

/// The best suspect: a process rather than a CPU, whose use is the sum of processes.
fn best(suspects: &[Suspect], probes: Option<usize>) -> Option<&Suspect> {
    let of = |wanted: fn(&Who) -> bool| suspects.iter().find(|s| wanted(&s.who));
    of(|who| matches!(who, Who::Processes(_)))
        .or_else(|| of(|who| matches!(who, Who::Steal(_))))
        .or_else(|| {
            let other = |s: &&Suspect| matches!(s.who, Who::Cpu(cpu) if Some(cpu) != probes);
            suspects.iter().find(other)
        })
}

fn evidence(suspect: Option<&Suspect>, stretches: &Stretches) -> BTreeMap<String, Value> {
    let Some(suspect) = suspect else {
        return BTreeMap::new();
    };
    let mut evidence: BTreeMap<String, Value> = [
        ("use_when_slow_cpus", json!(suspect.use_when_slow)),
        ("use_when_clean_cpus", json!(suspect.use_when_clean)),
        ("correlation", json!(suspect.correlation)),
        ("stretches", json!(suspect.stretches)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let (kind, name) = match &suspect.who {
        Who::Processes(name) => ("process", name.clone()),
        Who::Cpu(cpu) => ("cpu", format!("CPU {cpu}")),
        Who::Steal(cpu) => ("steal", format!("CPU {cpu}")),
    };
    evidence.insert(kind.to_owned(), json!(name));
    if let Some(cpu) = stretches.cpus.get(&suspect.who) {
        evidence.insert("process_cpu".to_owned(), json!(cpu));
    }
    evidence
}

fn memory_peaks(scale: &Scale, bursts: usize, stretches: &Stretches, run: &Run<'_>) -> Vec<Peak> {
    (scale.found.peaks.iter().enumerate())
        .map(|(i, peak)| {
            let (cause, evidence) = if i == 0 {
                ("clean", BTreeMap::new())
            } else {
                let state = scale.shares(bursts, peak);
                let suspects = stretches.suspects(&state);
                let suspect = best(&suspects, run.cpu);
                (
                    cause_of(suspect, stretches, run.cpu),
                    evidence(suspect, stretches),
                )
            };
            Peak {
                rate: peak.rate.value,
                slowdown: peak.slowdown.clone(),
                time_share: peak.time_share.clone(),
                sample_share: peak.sample_share.clone(),
                cause: cause.to_owned(),
                evidence,
                of: "samples".to_owned(),
            }
        })
        .collect()
}

fn cause_of(
    suspect: Option<&Suspect>,
    stretches: &Stretches,
    probes: Option<usize>,
) -> &'static str {
    match suspect.map(|s| &s.who) {
        None => "unknown",
        Some(Who::Steal(_)) => "host",
        Some(Who::Cpu(_)) => "memory-traffic",
        // Samples in which the probe lost its CPU are in no peak of samples.
        Some(who) if probes.is_some() && stretches.cpus.get(who) == probes.as_ref() => {
            "same-cpu-process"
        }
        Some(_) => "memory-traffic",
    }
}

/// The bursts in which other processes had the CPU, as a peak of their own: in the
/// rates of samples they are a few that last a hundred times longer.
fn taken_peak(seen: &[Seen<'_>], stretches: &Stretches, run: &Run<'_>) -> Option<Peak> {
    let state: Vec<f64> = seen
        .iter()
        .map(|s| f64::from(u8::from(s.is_taken())))
        .collect();
    let taken: Vec<&Seen<'_>> = seen.iter().filter(|s| s.is_taken()).collect();
    let mut share = mean_over_bursts(&state, run.level);
    if taken.len() < FEWEST_TAKEN || share.value < LEAST_TAKEN {
        return None;
    }
    let bound = |b: Option<f64>| b.map(|b| b.clamp(0.0, 1.0));
    let more = shown_longer(&taken, &state, run);
    share.interval = Interval {
        lo: bound(share.interval.lo.map(|lo| lo - more)),
        hi: bound(share.interval.hi),
    };
    let walls: Vec<f64> = taken.iter().map(|s| s.wall_ns).collect();
    let own: Vec<f64> = taken.iter().map(|s| s.wall_ns - s.taken_ns).collect();
    let mut slowdown = ratio_of_sums(&walls, &own, run.level)?;
    "1".clone_into(&mut slowdown.unit);
    (slowdown.notes).push(
        "of bursts that begin after a sleep: what runs all the time loses more to a process of equal rights"
            .to_owned(),
    );
    let suspects = stretches.suspects(&state);
    let processes = suspects.iter().find(|s| matches!(s.who, Who::Processes(_)));
    let mut evidence = evidence(processes, stretches);
    // Where its activity hardly changes nobody's goes with it: then who used the CPU.
    if let (None, Some((name, used))) = (processes, stretches.busiest_on(run.cpu)) {
        evidence.insert("busiest_process".to_owned(), json!(name));
        evidence.insert("busiest_use_cpus".to_owned(), json!(used));
    }
    let switches: usize = (taken.iter())
        .map(|s| {
            s.apart
                .hits
                .iter()
                .filter(|(_, hit, _)| *hit == Hit::Switch)
                .count()
        })
        .sum();
    evidence.insert("switches".to_owned(), json!(switches));
    Some(Peak {
        rate: 1.0 / slowdown.value,
        slowdown,
        time_share: share.clone(),
        sample_share: share,
        cause: "same-cpu-process".to_owned(),
        evidence,
        of: "bursts".to_owned(),
    })
}

/// By how much the share of bursts can be too great: a burst shows a process that was
/// there for a part of it, which makes each of its phases as long as up to a slice
/// longer.
fn shown_longer(taken: &[&Seen<'_>], state: &[f64], run: &Run<'_>) -> f64 {
    let mut slices: Vec<f64> = (taken.iter())
        .flat_map(|s| &s.apart.hits)
        .filter(|(_, hit, _)| *hit == Hit::Switch)
        .map(|(_, _, ns)| *ns)
        .collect();
    slices.sort_by(f64::total_cmp);
    let slice_ns = slices.get(slices.len() / 2).copied().unwrap_or(0.0);
    let phases = state
        .windows(2)
        .filter(|w| w[0] == 0.0 && w[1] == 1.0)
        .count();
    let (Some(first), Some(last)) = (run.bursts.first(), run.bursts.last()) else {
        return 0.0;
    };
    let run_ns = last.begun_ns + last.wall_ns() - first.begun_ns;
    phases as f64 * slice_ns / run_ns
}

/// A process with whose activity the probe slows down, where that makes no peak of
/// its own: on a machine whose memory is never quiet its state and the clean one
/// run into each other. Its share of the time is the CPU time it used, of what it uses
/// when it is active all the time.
fn active_peak(
    peaks: &[Peak],
    seen: &[Seen<'_>],
    stretches: &Stretches,
    level: f64,
) -> Option<Peak> {
    if peaks.iter().any(|p| p.cause == "memory-traffic") {
        return None;
    }
    let slowness: Vec<f64> = (seen.iter())
        .map(|s| {
            let plain = s.apart.plain.iter();
            let ratios: f64 = plain.map(|(_, x)| (x.mix_ns / x.reference_ns).ln()).sum();
            ratios / s.apart.plain.len() as f64
        })
        .collect();
    let found = active(&stretches.with(&slowness), level)?;
    let same = |p: &Peak| {
        p.evidence
            .get("process")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let Who::Processes(name) = &found.suspect.who else {
        return None;
    };
    if peaks.iter().filter_map(same).any(|other| other == *name) {
        return None; // it takes the CPU, and what it leaves in the caches is its doing, too
    }
    let mut share = mean_over_bursts(&found.activity, level);
    "CPU time used, successive differences of stretches".clone_into(&mut share.method);
    let by = |slope: f64| slope.exp();
    let slowdown = Estimate {
        value: by(found.slope),
        interval: Interval::new(
            by(found.slope - found.slope_half),
            by(found.slope + found.slope_half),
        ),
        level,
        unit: "1".into(),
        method: "line of the time per work on the use of a CPU".into(),
        n: found.activity.len() as u64,
        n_effective: found.activity.len() as f64,
        notes: vec!["what else slows the machine is taken not to come and go with it".into()],
    };
    Some(Peak {
        rate: 1.0 / slowdown.value,
        slowdown,
        time_share: share.clone(),
        sample_share: share,
        cause: "memory-traffic".to_owned(),
        evidence: evidence(Some(&found.suspect), stretches),
        of: "activity".to_owned(),
    })
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

/// What each slowed peak would cost if its cause were active for that share of the
/// time.
pub(super) fn predictions(peaks: &[Peak], activity: f64) -> Vec<Prediction> {
    let slowed = peaks.iter().filter(|p| p.cause != "clean");
    slowed
        .map(|peak| Prediction {
            cause: peak.cause.clone(),
            rate: peak.rate,
            activity,
            loss: predict(&peak.time_share, &peak.slowdown, activity),
        })
        .collect()
}
