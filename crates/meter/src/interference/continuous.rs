//! The continuous meter: a burst from time to time, and one line per interval.
//!
//! The baseline is the time of the fastest bursts. Each line says how far the last bursts were from
//! it, and which processes used more CPU than while nothing was slowed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use undertick_report::interference::{Line, Suspect};

use super::analysis::{Seen, mean_over_bursts};
use super::bursts::{Burst, ProbeInfo};
use super::meter::{Aside, Heard, Request, clock_of, run_probe};
use super::suspects::{CpuUser, Look, look, use_between};
use undertick_experiment::ExperimentError;

/// Time between two drains of the rings: 20 of some 50 us each second.
const ROUND_EVERY: Duration = Duration::from_millis(50);
/// A recording that is not to be kept is ended and restarted after this long, so that it never
/// takes more than some megabytes.
const LONGEST: Duration = Duration::from_secs(3600);
/// Number of bursts that determine the baseline.
const REMEMBERED: usize = 512;
/// The baseline is the time that this fraction of them does not exceed.
const QUICKEST: f64 = 0.1;
/// A sample is slowed if it takes this many times as long as the baseline.
const SLOWED: f64 = 1.1;
/// A line is clean if its bursts are slowed for less than this share of their time.
const CLEAN: f64 = 0.1;
/// A suspect must exceed its use in clean lines by at least this, CPUs.
const LEAST_USE: f64 = 0.2;

/// The state of the meter.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Nominal length of a burst, ns.
    burst_ns: f64,
    /// Time of the mix over that of the registers, and time of the registers per turn, of the last
    /// bursts.
    remembered: Vec<(f64, f64)>,
    first_core: Option<f64>,
    clean_uses: BTreeMap<CpuUser, f64>,
    clean_lines: u32,
}

impl State {
    pub(super) fn new(burst_ns: f64) -> Self {
        Self {
            burst_ns,
            ..Self::default()
        }
    }

    /// Makes the line for the bursts of an interval. `uses`: CPUs used in it.
    pub(super) fn line(
        &mut self,
        bursts: &[Burst],
        probe_info: ProbeInfo,
        uses: &BTreeMap<CpuUser, f64>,
        cpu: Option<usize>,
        seconds: f64,
    ) -> Line {
        let seen: Vec<Seen<'_>> = (bursts.iter())
            .filter_map(|burst| Seen::from_burst(burst, self.burst_ns))
            .collect();
        for s in &seen {
            let turns = probe_info.reference_turns.max(1) as f64;
            self.remembered.push((ratio(s), s.reference_ns / turns));
        }
        let from = self.remembered.len().saturating_sub(REMEMBERED);
        self.remembered.drain(..from);
        let clean = quantile(self.remembered.iter().map(|r| r.0), QUICKEST);
        let core = quantile(
            self.remembered[self.remembered.len().saturating_sub(seen.len())..]
                .iter()
                .map(|r| r.1),
            0.5,
        );
        let first_core = *self.first_core.get_or_insert(core);
        let lost: Vec<f64> = seen.iter().map(|s| s.lost(clean).iter().sum()).collect();
        let slowed: Vec<(f64, f64)> = seen.iter().map(|s| slowed(s, clean)).collect();
        let n = seen.len().max(1) as f64;
        let slowed_share = slowed.iter().map(|s| s.0).sum::<f64>() / n;
        let taken = seen.iter().filter(|s| s.is_taken()).count() as f64 / n;
        let weighted: f64 = slowed.iter().map(|s| s.0 * s.1).sum();
        let suspects = self.suspects(uses, cpu, slowed_share, taken);
        if slowed_share < CLEAN && taken == 0.0 && !seen.is_empty() {
            self.remember(uses);
        }
        let steal = cpu.and_then(|cpu| uses.get(&CpuUser::Steal(cpu)));
        Line {
            schema_version: 1,
            unix_s: SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(f64::NAN, |t| t.as_secs_f64()),
            seconds,
            bursts: seen.len() as u64,
            mean_loss: (!seen.is_empty()).then(|| mean_over_bursts(&lost, 0.95)),
            slowed_share,
            slowdown: (slowed_share > 0.0).then(|| weighted / (n * slowed_share)),
            taken_off_share: taken,
            core_speed: first_core / core,
            steal_share: steal.copied().unwrap_or(0.0),
            suspects,
            own_use: 0.0,
        }
    }

    /// Updates the mean uses in clean lines, over the last dozen or so.
    fn remember(&mut self, uses: &BTreeMap<CpuUser, f64>) {
        self.clean_lines += 1;
        let weight = 1.0 / f64::from(self.clean_lines.min(12));
        for used in self.clean_uses.values_mut() {
            *used *= 1.0 - weight;
        }
        for (user, used) in uses {
            *self.clean_uses.entry(user.clone()).or_insert(0.0) += weight * used;
        }
        self.clean_uses.retain(|_, used| *used > 1e-4);
    }

    /// The process whose use most exceeds its use in clean lines. For a memory disturbance without
    /// such a process, the CPU other than the probe's with the largest excess.
    fn suspects(
        &self,
        uses: &BTreeMap<CpuUser, f64>,
        cpu: Option<usize>,
        slowed: f64,
        taken: f64,
    ) -> Vec<Suspect> {
        if slowed < CLEAN && taken == 0.0 {
            return Vec::new();
        }
        let clean = |user: &CpuUser| self.clean_uses.get(user).copied().unwrap_or(0.0);
        let most = |wanted: &dyn Fn(&CpuUser) -> bool| {
            let more = (uses.iter())
                .filter(|(user, _)| wanted(user))
                .map(|(user, used)| (user, *used, used - clean(user)))
                .filter(|(_, _, more)| *more >= LEAST_USE);
            more.max_by(|a, b| a.2.total_cmp(&b.2))
        };
        let process = most(&|user| matches!(user, CpuUser::Processes(_)));
        let other = || most(&|user| matches!(user, CpuUser::Cpu(c) if Some(*c) != cpu));
        let found = process.or_else(|| if taken > slowed { None } else { other() });
        let cause = if taken > slowed {
            "same-cpu-process"
        } else {
            "memory-traffic"
        };
        let suspect = found.map(|(user, used, _)| Suspect {
            name: match user {
                CpuUser::Processes(name) => name.clone(),
                CpuUser::Cpu(cpu) | CpuUser::Steal(cpu) => format!("CPU {cpu}"),
            },
            cause: cause.to_owned(),
            use_now: used,
            use_when_clean: clean(user),
        });
        suspect.into_iter().collect()
    }
}

/// Time of the mix over that of the registers, for the median sample.
fn ratio(seen: &Seen<'_>) -> f64 {
    let plain = seen.apart.plain.iter();
    quantile(plain.map(|(_, s)| s.mix_ns), 0.5) / seen.reference_ns
}

/// Share of a burst's time that was slowed, and by how much.
fn slowed(seen: &Seen<'_>, clean: f64) -> (f64, f64) {
    let times = |s: &super::bursts::Sample| s.mix_ns / (clean * seen.reference_ns);
    let share = seen.share_of_time(|s| times(s) > SLOWED);
    let these: Vec<f64> = (seen.apart.plain.iter())
        .map(|(_, s)| times(s))
        .filter(|t| *t > SLOWED)
        .collect();
    (share, these.iter().sum::<f64>() / these.len().max(1) as f64)
}

fn quantile(values: impl Iterator<Item = f64>, p: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let at = (p * values.len().saturating_sub(1) as f64).round() as usize;
    values.get(at).copied().unwrap_or(f64::NAN)
}

/// Measures until `stop`, or until the schedule's total is over; calls `on_line` with the line of
/// each interval. The trace is kept only if `keep` says so.
///
/// # Errors
/// The probe could not be recorded.
pub fn watch(
    request: &Request,
    every: Duration,
    keep: bool,
    stop: &AtomicBool,
    mut on_line: impl FnMut(&Line),
) -> Result<(), ExperimentError> {
    let ns_per_tick = request.facts.rate.claim.rate.ns_per_tick();
    let heard = Heard::new(ns_per_tick);
    let clock = clock_of(&request.facts)?;
    let _aside = Aside::from(request.schedule.cpu);
    let now = || look(|| clock.read_ticks() as f64 * ns_per_tick);
    let begun = Instant::now();
    let mut lines = Lines {
        state: State::new(request.schedule.burst.as_nanos() as f64),
        before: now(),
        used_s: heard.borrow().use_s(),
        since: Instant::now(),
    };
    let mut schedule = request.schedule.clone();
    let total = request.schedule.total;
    for part in 0.. {
        let left = total.map(|total| total.saturating_sub(begun.elapsed()));
        if stop.load(Ordering::Relaxed) || left == Some(Duration::ZERO) {
            break;
        }
        schedule.total = match (left, keep) {
            (left, true) => left,
            (left, false) => Some(left.unwrap_or(LONGEST).min(LONGEST)),
        };
        schedule.seed = request.schedule.seed.wrapping_add(part);
        let tap = Heard::tap(&heard, ROUND_EVERY);
        let manifest = run_probe(request, &schedule, &request.trace, tap, |_| {
            if lines.since.elapsed() >= every {
                on_line(&lines.next(&heard, &now, request.schedule.cpu));
            }
        })?;
        let probe_info = heard.borrow().probe_info();
        // The same work as before, so that rates stay comparable.
        schedule.units = (probe_info.mix_units > 0)
            .then_some((probe_info.mix_units, probe_info.reference_turns));
        heard.borrow_mut().again();
        if manifest.exit.is_some_and(|exit| exit.interrupted) || keep {
            break;
        }
        std::fs::remove_dir_all(&request.trace)
            .map_err(|e| ExperimentError::machine(format!("{}: {e}", request.trace.display())))?;
    }
    if !heard.borrow().bursts.is_empty() {
        on_line(&lines.next(&heard, &now, request.schedule.cpu));
    }
    Ok(())
}

/// State from one line to the next.
struct Lines {
    state: State,
    before: Look,
    used_s: f64,
    since: Instant,
}

impl Lines {
    fn next(
        &mut self,
        heard: &Rc<RefCell<Heard>>,
        now: &dyn Fn() -> Look,
        cpu: Option<usize>,
    ) -> Line {
        let (probe_info, bursts, used_s) = {
            let mut heard = heard.borrow_mut();
            let bursts = std::mem::take(&mut heard.bursts);
            (heard.probe_info(), bursts, heard.use_s())
        };
        let after = now();
        let uses = use_between(&self.before, &after);
        let seconds = self.since.elapsed().as_secs_f64();
        let mut line = self.state.line(&bursts, probe_info, &uses, cpu, seconds);
        line.own_use = (used_s - self.used_s) / seconds;
        (self.before, self.used_s, self.since) = (after, used_s, Instant::now());
        line
    }
}
