//! The states of a run as peaks with causes and names, and the disturbers behind them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use undertick_estimate::peaks::{self, predict};
use undertick_estimate::ratio_of_sums;
use undertick_report::interference::{Disturber, Peak, Prediction};
use undertick_units::{Estimate, Interval};

use super::active::{Active, active};
use super::analysis::{Run, Scale, Seen, mean_over_bursts};
use super::cpu_time::CpuTimes;
use super::disturbers::disturbers;
use super::hits::Hit;
use super::occupancy::{occupied_ns, turn_ns};
use super::stretches::Stretches;
use super::suspects::{CpuUser, Suspect};

/// Minimum number of bursts in which processes had the CPU: fewer, or a smaller share, are not a
/// state of the machine but its housekeeping.
const FEWEST_TAKEN: usize = 3;
const LEAST_TAKEN: f64 = 0.005;

/// Time that passed in bursts over the probe's own time in them, which is a part of it. The interval
/// is that of the part: near one burst's work, a symmetrical interval of the ratio itself would say
/// that others may have made the probe faster.
fn time_for_its_own(walls: &[f64], own: &[f64], level: f64) -> Option<Estimate> {
    let part = ratio_of_sums(own, walls, level)?;
    let over = |bound: Option<f64>| bound.filter(|b| *b > 0.0).map(|b| 1.0 / b.min(1.0));
    Some(Estimate {
        value: over(Some(part.value))?,
        interval: Interval {
            lo: over(part.interval.hi),
            hi: over(part.interval.lo),
        },
        unit: "1".into(),
        ..part
    })
}

/// The peaks, the clean one first, and the disturbers that caused the others.
pub(super) fn states(
    scale: &Scale,
    seen: &[Seen<'_>],
    stretches: &Stretches,
    run: &Run<'_>,
) -> (Vec<Peak>, Vec<Disturber>) {
    let mut peaks = memory_peaks(scale, seen.len(), stretches, run);
    peaks.extend(taken_peak(seen, stretches, run));
    let active = active(&CpuTimes::from_readings(run.looks, run.glances), seen, run);
    if let Some(active) = &active {
        peaks.extend(active_peak(&peaks, active, stretches));
    }
    leave_the_rest_to_the_clean_one(&mut peaks);
    let disturbers = disturbers(&peaks, active.as_ref(), run.level, |these| {
        let of: Vec<peaks::Peak> = (these.iter())
            .map(|i| scale.found.peaks[*i].clone())
            .collect();
        scale.shares(seen.len(), &of)
    });
    (peaks, disturbers)
}

/// Sets the clean share to the time without any disturber: the samples' share of the time less the
/// shares found from bursts and from activity, which no sample shows.
fn leave_the_rest_to_the_clean_one(peaks: &mut [Peak]) {
    let of = |what: &str| peaks.iter().find(|peak| peak.of == what);
    let taken = of("bursts").map(|peak| peak.time_share.clone());
    let active = of("activity").map(|peak| peak.time_share.clone());
    let Some(clean) = peaks.first_mut() else {
        return;
    };
    let share = &mut clean.time_share;
    let bounds = |share: &Estimate| (share.interval.lo, share.interval.hi);
    if let Some(taken) = taken {
        let (lo, hi) = bounds(&taken);
        share.value *= 1.0 - taken.value;
        share.interval.lo = (share.interval.lo.zip(hi)).map(|(own, hi)| own * (1.0 - hi));
        share.interval.hi = (share.interval.hi.zip(lo)).map(|(own, lo)| own * (1.0 - lo));
    }
    if let Some(active) = active {
        let (lo, hi) = bounds(&active);
        share.value = (share.value - active.value).max(0.0);
        share.interval.lo = (share.interval.lo.zip(hi)).map(|(own, hi)| (own - hi).max(0.0));
        share.interval.hi = (share.interval.hi.zip(lo)).map(|(own, lo)| (own - lo).max(0.0));
    }
}

/// The best suspect: a process is preferred to a CPU, whose use is the sum of those of its
/// processes.
fn best(suspects: &[Suspect], probes: Option<usize>) -> Option<&Suspect> {
    let of = |wanted: fn(&CpuUser) -> bool| suspects.iter().find(|s| wanted(&s.user));
    of(|user| matches!(user, CpuUser::Processes(_)))
        .or_else(|| of(|user| matches!(user, CpuUser::Steal(_))))
        .or_else(|| {
            let other = |s: &&Suspect| matches!(s.user, CpuUser::Cpu(cpu) if Some(cpu) != probes);
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
    let (kind, name) = match &suspect.user {
        CpuUser::Processes(name) => ("process", name.clone()),
        CpuUser::Cpu(cpu) => ("cpu", format!("CPU {cpu}")),
        CpuUser::Steal(cpu) => ("steal", format!("CPU {cpu}")),
    };
    evidence.insert(kind.to_owned(), json!(name));
    if let Some(cpu) = stretches.cpus.get(&suspect.user) {
        evidence.insert("process_cpu".to_owned(), json!(cpu));
    }
    evidence
}

/// Peaks of the samples, each with its suspect.
fn memory_peaks(scale: &Scale, bursts: usize, stretches: &Stretches, run: &Run<'_>) -> Vec<Peak> {
    let found = &scale.found.peaks;
    let suspect_of = |peaks: &[peaks::Peak]| {
        let suspects = stretches.suspects(&scale.shares(bursts, peaks));
        best(&suspects, run.cpu).cloned()
    };
    let mut suspects: Vec<Option<Suspect>> = (found.iter().enumerate())
        .map(|(i, peak)| match i {
            0 => None, // the clean one
            _ => suspect_of(std::slice::from_ref(peak)),
        })
        .collect();
    // One disturber can cause two states of the machine, as other tenants come and go beside it.
    // Then all of these peaks together agree with it better than any one alone.
    if found.len() > 2 {
        let together = suspect_of(&found[1..]);
        let correlation = |s: &Option<Suspect>| s.as_ref().map_or(0.0, |s| s.correlation);
        let alone = suspects.iter().map(correlation).fold(0.0, f64::max);
        if correlation(&together) > alone {
            suspects[1..].fill(together);
        }
    }
    (found.iter().zip(suspects).enumerate())
        .map(|(i, (peak, suspect))| {
            let cause = match i {
                0 => "clean",
                _ => cause_of(suspect.as_ref(), stretches, run.cpu),
            };
            Peak {
                rate: peak.rate.value,
                slowdown: peak.slowdown.clone(),
                time_share: peak.time_share.clone(),
                sample_share: peak.sample_share.clone(),
                cause: cause.to_owned(),
                evidence: evidence(suspect.as_ref(), stretches),
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
    match suspect.map(|s| &s.user) {
        None => "unknown",
        Some(CpuUser::Steal(_)) => "host",
        Some(CpuUser::Cpu(_)) => "memory-traffic",
        // Samples in which the probe lost its CPU are not in any peak of samples.
        Some(user) if probes.is_some() && stretches.cpus.get(user) == probes.as_ref() => {
            "same-cpu-process"
        }
        Some(_) => "memory-traffic",
    }
}

/// The bursts in which other processes had the CPU, as a separate peak: among the rates of samples
/// they are a few that last a hundred times longer.
fn taken_peak(seen: &[Seen<'_>], stretches: &Stretches, run: &Run<'_>) -> Option<Peak> {
    let taken: Vec<&Seen<'_>> = seen.iter().filter(|s| s.is_taken()).collect();
    let turn_ns = turn_ns(&taken.iter().map(|s| s.lost_times()).collect::<Vec<_>>());
    let occupied = |s: &Seen<'_>| match s.is_taken() {
        true => occupied_ns(&s.lost_times(), s.wall_ns, turn_ns),
        false => 0.0,
    };
    let state: Vec<f64> = seen.iter().map(|s| occupied(s) / s.wall_ns).collect();
    let mut share = mean_over_bursts(&state, run.level);
    if taken.len() < FEWEST_TAKEN || share.value < LEAST_TAKEN {
        return None;
    }
    let bound = |b: Option<f64>| b.map(|b| b.clamp(0.0, 1.0));
    let more = turns_more(&state, run, turn_ns);
    share.interval = Interval {
        lo: bound(share.interval.lo.map(|lo| lo - more)),
        hi: bound(share.interval.hi),
    };
    let walls: Vec<f64> = taken.iter().map(|s| occupied(s)).collect();
    // The work done in these bursts is known to one sample: less than one cannot be distinguished
    // from none.
    let own: Vec<f64> = (taken.iter().zip(&walls))
        .map(|(s, wall_ns)| (wall_ns - s.taken_ns).max(s.sample_ns().min(*wall_ns)))
        .collect();
    let mut slowdown = time_for_its_own(&walls, &own, run.level)?;
    let resolved =
        (taken.iter().zip(&walls)).filter(|(s, wall_ns)| **wall_ns - s.taken_ns > s.sample_ns());
    if 2 * resolved.count() < taken.len() {
        slowdown.interval.hi = None;
        (slowdown.notes).push(
            "the probe hardly ran beside it: as slow as its samples can tell, or slower".to_owned(),
        );
    }
    (slowdown.notes).push(
        "of bursts that begin after a sleep: what runs all the time loses more to a process of equal rights"
            .to_owned(),
    );
    let suspects = stretches.suspects(&state);
    let processes = suspects
        .iter()
        .find(|s| matches!(s.user, CpuUser::Processes(_)));
    let mut evidence = evidence(processes, stretches);
    // If the activity hardly changes, no process agrees with it; then the busiest process on the
    // CPU is named.
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

/// The maximum excess of the share of bursts: a process that starts less than a turn after the
/// begin of a burst is assumed to have been present before.
fn turns_more(state: &[f64], run: &Run<'_>, turn_ns: f64) -> f64 {
    let phases = (state.windows(2))
        .filter(|w| w[0] == 0.0 && w[1] > 0.0)
        .count();
    let (Some(first), Some(last)) = (run.bursts.first(), run.bursts.last()) else {
        return 0.0;
    };
    let run_ns = last.begun_ns + last.wall_ns() - first.begun_ns;
    phases as f64 * turn_ns / run_ns
}

/// A process with whose activity the probe slows down, if that forms no separate peak. On a machine
/// whose memory is never quiet, its state and the clean one merge.
fn active_peak(peaks: &[Peak], active: &Active, stretches: &Stretches) -> Option<Peak> {
    let CpuUser::Processes(name) = &active.user else {
        return None;
    };
    // A process that takes the CPU: its effect on the caches is also due to it.
    if peaks.iter().any(|peak| is_of(peak, name)) {
        return None;
    }
    Some(Peak {
        rate: 1.0 / active.slowdown.value,
        slowdown: active.slowdown.clone(),
        time_share: active.time_share.clone(),
        sample_share: active.time_share.clone(),
        cause: "memory-traffic".to_owned(),
        evidence: evidence_of(active, stretches),
        of: "activity".to_owned(),
    })
}

/// Whether the evidence of a peak names this process.
fn is_of(peak: &Peak, name: &str) -> bool {
    peak.evidence.get("process").and_then(Value::as_str) == Some(name)
}

fn evidence_of(active: &Active, stretches: &Stretches) -> BTreeMap<String, Value> {
    let mut evidence: BTreeMap<String, Value> = [
        ("use_when_active_cpus", json!(active.full_use)),
        ("deviations", json!(active.deviations)),
        ("bursts", json!(active.bursts)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    if let CpuUser::Processes(name) = &active.user {
        evidence.insert("process".to_owned(), json!(name));
    }
    if let Some(cpu) = stretches.cpus.get(&active.user) {
        evidence.insert("process_cpu".to_owned(), json!(cpu));
    }
    evidence
}

/// The loss that each slowed peak would cause if its cause were active for that share of the time.
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

#[cfg(test)]
mod tests;
