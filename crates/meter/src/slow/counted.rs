//! Runs in which ticks are counted: of the unmodified loop, or of the stepped loop.

use std::time::Instant;

use undertick_clock::slow::TickClock;
use undertick_estimate::slow::{LoopCounts, Stepper};

use super::document::{ActivityRow, Document};
use super::estimator::Estimator;
use super::pace::{BATCH, Pace, Truth};
use super::run::{Failed, Loop};
use super::stepped;

/// Minimum share of preempted cycles for a remark.
const WORTH_A_WORD: f64 = 0.002;

/// Counts ticks in the unmodified loop, or in the stepped loop.
pub(super) fn run<C: TickClock>(
    looped: &mut Loop<'_, C>,
    estimator: Estimator,
    level: f64,
    mut go_on: impl FnMut(f64) -> bool,
) -> Result<Document, Failed> {
    let activities = looped.script.activities.len();
    let mut truth = Truth::new(activities);
    let mut pace = Pace {
        begin: Instant::now(),
        length: looped.script.length,
        cycles: 0,
        interrupted: false,
    };
    let mut document = looped.empty_document(estimator);
    let readings = if estimator == Estimator::Stepped {
        let cycles = stepped::expected_cycles(looped);
        pace.begin = Instant::now();
        stepped::run(looped, &mut truth, &mut pace, cycles, &mut go_on)
    } else {
        plain(looped, &mut truth, &mut pace, &mut go_on)
    };
    document.cycles = pace.cycles;
    document.seconds = pace.begin.elapsed().as_secs_f64();
    document.interrupted = pace.interrupted;
    readings.write_to(looped, &truth, level, &mut document)?;
    if truth.cycles() < 2 {
        return Err(Failed::TooShort);
    }
    Ok(document)
}

/// The accumulated readings.
pub(super) enum CountedReadings {
    Counts(Box<LoopCounts>),
    /// With the seconds spent on waiting for edges and ends of windows.
    Stepped(Box<Stepper>, f64),
}

impl CountedReadings {
    /// Writes the results into the document.
    fn write_to<C: TickClock>(
        &self,
        looped: &Loop<'_, C>,
        truth: &Truth,
        level: f64,
        document: &mut Document,
    ) -> Result<(), Failed> {
        let (tick_ns, fine_ns) = (looped.tick_ns, looped.fine_ns());
        let (activities, cycle) = match self {
            Self::Counts(counts) => {
                let results = counts.results(tick_ns, level);
                document.dropped = results.dropped;
                document.jitter_ticks = results.walk.map(|w| w.jitter).filter(|j| j[2].is_finite());
                if let Some(lock) = results.lock {
                    document.findings.push(lock.to_string());
                }
                let gone = document.dropped as f64 / document.cycles.max(1) as f64;
                if gone > WORTH_A_WORD && results.cycle.refused.is_none() {
                    document.findings.push(format!(
                        "{:.1} % of the cycles were preempted and left out; the intervals hold what \
                         that may have shifted",
                        100.0 * gone
                    ));
                }
                (results.activities, results.cycle)
            }
            Self::Stepped(stepper, waited) => {
                let blocks = stepper.blocks();
                document.dropped = blocks.dropped();
                document.delay_seconds = stepper.delayed_ticks() * tick_ns / 1e9 + waited;
                document.findings.push(format!(
                    "a delay of {:.4} of a tick in each cycle steps the phase; the loop without it \
                     takes {:.4} ticks",
                    stepper.step_delay_ticks(),
                    stepper.loop_ticks().unwrap_or(f64::NAN)
                ));
                if blocks.disturbances() > 0 {
                    document.findings.push(format!(
                        "{} of {} blocks of cycles were preempted and left out, whatever their \
                         phase, which does not bias the others",
                        blocks.disturbances(),
                        blocks.disturbances() + blocks.whole() as u64
                    ));
                }
                if blocks.whole() == 0 {
                    return Err(Failed::Preempted);
                }
                let results = blocks.activities(tick_ns, level);
                if results.iter().any(|a| a.estimate.interval.lo.is_none()) {
                    return Err(Failed::TooShort);
                }
                (results, blocks.cycle(tick_ns, level))
            }
        };
        let named = looped.script.activities.iter().zip(activities).enumerate();
        document.activities = named
            .map(|(i, (a, result))| {
                ActivityRow::counted(&a.name, result, truth.mean_ns(i, fine_ns))
            })
            .collect();
        document.cycle = Some(ActivityRow::counted(
            "cycle",
            cycle,
            truth.cycle_ns(fine_ns),
        ));
        Ok(())
    }
}

/// Runs the unmodified loop. Readings are kept for a batch and counted after it.
fn plain<C: TickClock>(
    looped: &mut Loop<'_, C>,
    truth: &mut Truth,
    pace: &mut Pace,
    go_on: &mut impl FnMut(f64) -> bool,
) -> CountedReadings {
    let width = looped.ticks.len();
    let mut counts = Box::new(LoopCounts::new(width - 1));
    let mut kept: Vec<i64> = Vec::with_capacity(BATCH as usize * width);
    let mut whole: Vec<bool> = Vec::with_capacity(BATCH as usize);
    loop {
        looped.watch();
        looped.cycle();
        whole.push(!looped.is_gone());
        kept.extend(&looped.ticks);
        if whole.last() == Some(&true) {
            truth.add(&looped.fine);
            truth.keep();
        }
        let goes_on = pace.goes_on(go_on);
        if whole.len() as u64 == BATCH || !goes_on {
            for (readings, whole) in kept.chunks_exact(width).zip(&whole) {
                if *whole {
                    // The next cycle begins with a separate reading.
                    counts.push(readings, false);
                } else {
                    counts.drop_cycle();
                }
            }
            kept.clear();
            whole.clear();
        }
        if !goes_on {
            return CountedReadings::Counts(counts);
        }
    }
}
