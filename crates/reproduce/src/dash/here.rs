//! The experiment of table 17 on this machine: thirteen intervals by the slow clock, with the fine
//! clock as the truth.

use undertick_estimate::slow::{LoopCounts, count_sd, mean_of_repetitions, spread_of_repetitions};
use undertick_meter::slow::published::TABLE_17;
use undertick_units::{Estimate, Interval};

use super::bare;
use crate::ping_pong::{POINTS, Repetition, Run};

/// A remark is made if an observed standard deviation differs from the predicted one by more than
/// this factor.
const APART: f64 = 1.5;

/// An interval is refused if its ends came in the wrong order in more than this share of the
/// cycles: what was measured then is not the figure's interval. At a thousandth, an interval that is
/// wrong by as much as a cycle shifts the mean by less than a thousandth of a cycle.
const DISORDERED: f64 = 1e-3;

/// What each of the thirteen intervals consists of on this machine.
const KINDS: [&str; 13] = [
    "cycle", "send", "user", "receive", "switch", "receive", "user", "send", "user", "receive",
    "switch", "receive", "user",
];

/// One interval measured on this machine, all in us.
pub(super) struct Measured {
    pub(super) ticks: i64,
    pub(super) mean: Estimate,
    pub(super) truth: Estimate,
    pub(super) error: Estimate,
    /// Standard deviation of a repetition's mean by (10a).
    pub(super) predicted: f64,
    /// The same with the dependence between the counts, (11).
    modelled: f64,
    pub(super) observed: Estimate,
    pub(super) error_spread: Estimate,
    dependent: usize,
    refused: usize,
    /// Share of the cycles in which the interval was not that of the figure.
    pub(super) disordered: f64,
}

impl Measured {
    /// Whether the interval was that of the figure.
    pub(super) fn is_ordered(&self) -> bool {
        self.disordered <= DISORDERED
    }
}

/// The result of one repetition for one interval.
struct Once {
    ticks: i64,
    mean: f64,
    truth: f64,
    modelled: f64,
    dependent: bool,
    refused: bool,
}

pub(super) struct Here {
    pub(super) of_interval: Vec<Measured>,
    repetitions: usize,
    cycles: usize,
    cycle_us: f64,
    disordered: usize,
    long: usize,
}

impl Here {
    pub(super) fn from_run(run: &Run, level: f64) -> Self {
        let each: Vec<Vec<Once>> = (run.repetitions.iter())
            .map(|r| repetition(r, run, level))
            .collect();
        let cycles = run.repetitions[0].cycles.len();
        let all = (each.len() * cycles) as f64;
        let wrong = disordered(&run.repetitions);
        let of_interval: Vec<Measured> = (0..TABLE_17.len())
            .map(|index| Measured {
                disordered: wrong.of_interval[index] as f64 / all,
                ..measured(&each, index, cycles as u64, run.tick_ns / 1e3, level)
            })
            .collect();
        Self {
            repetitions: each.len(),
            cycles,
            cycle_us: of_interval[0].truth.value,
            of_interval,
            disordered: wrong.cycles,
            long: run.repetitions.iter().map(long).sum(),
        }
    }

    pub(super) fn row(&self, index: usize, name: &str) -> Vec<String> {
        let m = &self.of_interval[index];
        if !m.is_ordered() {
            let cells = [name, KINDS[index]].map(str::to_owned).into_iter();
            let missing = core::iter::repeat_n("–".to_owned(), 9);
            let why = format!(
                "refused: out of order in {:.1} % of the cycles",
                100.0 * m.disordered
            );
            return cells.chain(missing).chain([why]).collect();
        }
        let bounds = match (m.error.interval.lo, m.error.interval.hi) {
            (Some(lo), Some(hi)) => format!("{lo:+.2} .. {hi:+.2}"),
            _ => "?".to_owned(),
        };
        vec![
            name.to_owned(),
            KINDS[index].to_owned(),
            m.ticks.to_string(),
            format!("{:.2}", m.mean.value),
            format!("{:.2}", m.truth.value),
            format!("{:+.2}", m.error.value),
            bounds,
            format!("{:.2}", m.predicted),
            format!("{:.2}", m.modelled),
            format!("{:.2}", m.observed.value),
            format!("{:.2}", m.error_spread.value),
            self.remark(m),
        ]
    }

    fn remark(&self, m: &Measured) -> String {
        let mut remarks = Vec::new();
        let share = |n: usize| format!("{n} of {}", self.repetitions);
        if m.refused > 0 {
            remarks.push(format!("locked to the tick in {}", share(m.refused)));
        }
        if m.dependent > 0 {
            remarks.push(format!("dependent in {}", share(m.dependent)));
        }
        let (lo, hi) = (m.error_spread.interval.lo, m.error_spread.interval.hi);
        if hi.is_some_and(|hi| m.predicted > APART * hi) {
            remarks.push(format!(
                "(10a) {} times too large",
                times(m.predicted / m.error_spread.value)
            ));
        } else if m.predicted > 0.0 && lo.is_some_and(|lo| APART * m.predicted < lo) {
            remarks.push(format!(
                "(10a) {} times too small",
                times(m.error_spread.value / m.predicted)
            ));
        }
        remarks.join("; ")
    }

    pub(super) fn introduction(&self, run: &Run) -> Vec<String> {
        vec![
            format!(
                "Two processes on one CPU pass a byte to and fro over a Unix socket; adjustable \
                 clock of {} us; {} repetitions of {} cycles of {:.0} us. User code does counted \
                 work of the published length, the kernel's part is this kernel's. Policy: {}.",
                run.tick_ns / 1e3,
                self.repetitions,
                self.cycles,
                self.cycle_us,
                run.policy
            ),
            "All in us. Truth: the fine clock at the same points of the same cycles. (10a): \
             standard deviation of a repetition's mean predicted from independent counts; (11): \
             from the dependence seen in the counts; observed: over the repetitions, for the mean \
             and for its error against the truth."
                .to_owned(),
        ]
    }

    pub(super) fn findings(&self, run: &Run) -> Vec<String> {
        let all = self.repetitions * self.cycles;
        let ordered: Vec<&Measured> = self.of_interval.iter().filter(|m| m.is_ordered()).collect();
        let n = ordered.len();
        let holds = |interval: &Interval, value: f64| {
            interval.lo.is_some_and(|lo| lo <= value) && interval.hi.is_some_and(|hi| value <= hi)
        };
        let outside = (ordered.iter())
            .filter(|m| !holds(&m.error.interval, 0.0))
            .count();
        let level = self.of_interval[0].error.level;
        let mut findings = vec![format!(
            "{outside} of {n} intervals of the error do not hold 0 at {:.0} % ({:.1} expected if all \
             means are unbiased)",
            100.0 * level,
            n as f64 * (1.0 - level)
        )];
        let right = |sd: fn(&Measured) -> f64| {
            (ordered.iter())
                .filter(|m| holds(&m.error_spread.interval, sd(m)))
                .count()
        };
        findings.push(format!(
            "the standard deviation of the error over the repetitions has an interval at {:.0} % that holds the one \
             predicted by (11), with the dependence measured, in {} of {n} intervals, and the one by (10a), for \
             independent counts, in {}; what the true means differ by is in the observed one alone",
            100.0 * level,
            right(|m| m.modelled),
            right(|m| m.predicted)
        ));
        let refused = self.of_interval.len() - n;
        if refused > 0 {
            findings.push(format!(
                "{refused} of 13 intervals are refused: in more than one of 1000 cycles the points did not come in the \
                 order of the figure, so that they are not its intervals; a real-time policy keeps the order \
                 (CAP_SYS_NICE, or `ulimit -r 1`)"
            ));
        }
        let dependent = self.of_interval.iter().filter(|m| m.dependent > 0).count();
        let locked = self.of_interval.iter().filter(|m| m.refused > 0).count();
        findings.push(format!(
            "counts depend on each other in {dependent} of 13 intervals, the loop is locked to the \
             tick for {locked}"
        ));
        if self.long > 0 {
            findings.push(format!(
                "{} of {all} cycles took over twice the median: other programs or the kernel ran in \
                 them, and they count, in the mean as in the truth. They may end in step with the \
                 kernel's own tick, and so with this clock's: then (6) is off by up to half a tick \
                 for each, {:.1} us in a mean",
                self.long,
                0.5 * run.tick_ns / 1e3 * self.long as f64 / all as f64
            ));
        }
        if self.disordered > 0 {
            findings.push(format!(
                "in {} of {all} cycles the points did not come in the order of the figure: the \
                 scheduler let who was woken run first",
                self.disordered
            ));
        }
        if run.clock_missed > 0 {
            findings.push(format!(
                "the clock's thread woke late {} times, and a tick was not shown by itself",
                run.clock_missed
            ));
        }
        if !run.apart {
            findings.push(
                "one CPU only: the clock's thread runs on the loop's, in step with the tick, and \
                 adds its time to what it interrupts"
                    .to_owned(),
            );
        }
        if run.interrupted {
            findings.push(format!(
                "interrupted: only {} repetitions are complete",
                self.repetitions
            ));
        }
        findings
    }
}

/// A ratio with two digits or slightly more.
fn times(ratio: f64) -> String {
    format!("{ratio:.*}", usize::from(ratio < 10.0))
}

/// The whole cycle first, then the parts.
fn repetition(repetition: &Repetition, run: &Run, level: f64) -> Vec<Once> {
    let mut counts = LoopCounts::new(POINTS);
    let mut fine = vec![0_i64; POINTS + 1];
    let cycles = &repetition.cycles;
    for (index, points) in cycles.iter().enumerate() {
        let next = cycles.get(index + 1).map_or(repetition.end, |c| c[0]);
        let all: Vec<_> = points.iter().copied().chain([next]).collect();
        let ticks: Vec<i64> = all.iter().map(|r| r.ticks as i64).collect();
        counts.push(&ticks, true);
        for (sum, ends) in fine[1..].iter_mut().zip(all.windows(2)) {
            *sum += ends[1].fine.wrapping_sub(ends[0].fine) as i64;
        }
        fine[0] += next.fine.wrapping_sub(points[0].fine) as i64;
    }
    let results = counts.results(run.tick_ns, level);
    let n = cycles.len() as f64;
    let all = core::iter::once(&results.cycle).chain(&results.activities);
    all.zip(fine)
        .map(|(result, fine)| Once {
            ticks: result.ticks,
            mean: result.estimate.value / 1e3,
            truth: fine as f64 / n * run.fine_ns / 1e3,
            modelled: result.sd_ns / 1e3,
            dependent: result
                .independence
                .as_ref()
                .is_some_and(|i| i.is_rejected()),
            refused: result.refused.is_some(),
        })
        .collect()
}

fn measured(each: &[Vec<Once>], index: usize, cycles: u64, tick_us: f64, level: f64) -> Measured {
    let once = || each.iter().map(|r| &r[index]);
    let (means, truths): (Vec<f64>, Vec<f64>) = once().map(|o| (o.mean, o.truth)).unzip();
    let errors: Vec<f64> = means.iter().zip(&truths).map(|(m, t)| m - t).collect();
    // One more tick in one of the repetitions.
    let least = tick_us / cycles as f64 / (each.len() as f64).sqrt();
    let mean = |values: &[f64], least| {
        mean_of_repetitions(values, least, level, "us").unwrap_or_else(|| bare(0.0, "us", "none"))
    };
    let spread = |values: &[f64]| {
        spread_of_repetitions(values, level, "us").unwrap_or_else(|| bare(0.0, "us", "none"))
    };
    let mean_here = mean(&means, least);
    let mut modelled: Vec<f64> = once().map(|o| o.modelled).collect();
    modelled.sort_by(f64::total_cmp);
    Measured {
        ticks: once().map(|o| o.ticks).sum(),
        predicted: count_sd(mean_here.value / tick_us, cycles) * tick_us,
        modelled: modelled[modelled.len() / 2],
        mean: mean_here,
        truth: mean(&truths, 0.0),
        error: mean(&errors, least),
        observed: spread(&means),
        error_spread: spread(&errors),
        dependent: once().filter(|o| o.dependent).count(),
        refused: once().filter(|o| o.refused).count(),
        disordered: 0.0,
    }
}

/// Cycles whose points did not come in the order of the figure.
struct Disordered {
    cycles: usize,
    /// For each interval: the number of cycles in which it was not that of the figure. The whole
    /// cycle always is.
    of_interval: [usize; POINTS + 1],
}

/// In a cycle whose points did not come in order, every interval counts that something else lies in:
/// one whose ends are reversed, and one in which a point of the other process lies.
fn disordered(repetitions: &[Repetition]) -> Disordered {
    let mut found = Disordered {
        cycles: 0,
        of_interval: [0; POINTS + 1],
    };
    for repetition in repetitions {
        for (index, points) in repetition.cycles.iter().enumerate() {
            let next = (repetition.cycles.get(index + 1)).map_or(repetition.end, |c| c[0]);
            let all: Vec<u64> = (points.iter().chain([&next])).map(|r| r.fine).collect();
            if all.is_sorted() {
                continue;
            }
            found.cycles += 1;
            for (interval, ends) in all.windows(2).enumerate() {
                let others = (all.iter().enumerate())
                    .filter(|(at, _)| !(interval..=interval + 1).contains(at));
                let is_split = others.clone().any(|(_, &t)| ends[0] < t && t < ends[1]);
                found.of_interval[interval + 1] += usize::from(ends[1] < ends[0] || is_split);
            }
        }
    }
    found
}

/// Number of cycles of over twice the median.
fn long(repetition: &Repetition) -> usize {
    let starts: Vec<u64> = (repetition.cycles.iter().map(|c| c[0]))
        .chain([repetition.end])
        .map(|r| r.fine)
        .collect();
    let lengths: Vec<u64> = starts
        .windows(2)
        .map(|w| w[1].saturating_sub(w[0]))
        .collect();
    let mut sorted = lengths.clone();
    sorted.sort_unstable();
    let median = sorted[sorted.len() / 2];
    lengths.iter().filter(|&&l| l > 2 * median).count()
}

#[cfg(test)]
mod tests;
