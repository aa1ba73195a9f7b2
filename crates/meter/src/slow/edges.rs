//! Runs in which the loop waits for edges of the tick.

use std::time::Instant;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use undertick_clock::slow::TickClock;
use undertick_estimate::slow::{EdgeSamples, EdgeShot};

use super::document::{ActivityRow, Document};
use super::estimator::Estimator;
use super::run::{Failed, Loop};
use super::script::Length;

/// A shot, with its duration by the fine clock.
struct Seen {
    shot: EdgeShot,
    /// Time from the edge to the first poll after the activity, fine ticks.
    fine: Option<u64>,
    whole: bool,
}

/// Seed of the waits between rounds; the phases that they meet are random without it.
const WAITS: u64 = 0x3a17_5eed;

/// Rounds of the loop in which each activity has a shot, preceded by a shot around nothing.
pub(super) fn run<C: TickClock>(
    looped: &mut Loop<'_, C>,
    level: f64,
    mut go_on: impl FnMut(f64) -> bool,
) -> Result<Document, Failed> {
    let script = looped.script;
    let mut document = looped.empty_document(Estimator::Edges);
    let mut samples = EdgeSamples::new(script.activities.len());
    let mut truth = Truth::default();
    let begin = Instant::now();
    let mut random = ChaCha8Rng::seed_from_u64(WAITS);
    let mut round = 0;
    loop {
        let mut edge = looped.edge_seen();
        // The number of ticks varies by one, so that rounds do not keep step with events every few
        // ticks, above all with a kernel's own tick.
        if random.random() {
            edge = looped.edge_seen();
        }
        for at in [None]
            .into_iter()
            .chain((0..script.activities.len()).map(Some))
        {
            let (seen, end) = looped.shot(at, edge);
            edge = end;
            if seen.whole {
                samples.push(at, seen.shot);
                truth.0.push((at, seen.fine));
            } else {
                samples.drop_shot(at);
                edge = looped.edge_seen();
            }
        }
        round += 1;
        let share = match script.length {
            Length::Seconds(s) => begin.elapsed().as_secs_f64() / s,
            Length::Cycles(_) => round as f64 / script.shots as f64,
        };
        document.interrupted = share < 1.0 && !go_on(share);
        if share >= 1.0 || document.interrupted {
            break;
        }
    }
    document.seconds = begin.elapsed().as_secs_f64();
    let all = 0..script.activities.len();
    document.cycles = all
        .clone()
        .map(|a| samples.shots(a) + samples.dropped(a))
        .sum();
    document.dropped = all.map(|a| samples.dropped(a)).sum();
    let fine_ns = looped.fine_ns();
    for (at, activity) in script.activities.iter().enumerate() {
        let mean = (samples.estimate(at, looped.tick_ns, level)).ok_or(Failed::TooShort)?;
        let truth_ns = truth.ticks(at).zip(fine_ns).map(|(ticks, ns)| ticks * ns);
        document
            .activities
            .push(ActivityRow::shot(&activity.name, mean, truth_ns));
    }
    if let Some(cost_ns) = samples.poll_cost_ns(looped.tick_ns) {
        document
            .findings
            .push(format!("a poll of the clock takes {cost_ns:.1} ns"));
    }
    Ok(document)
}

/// The duration of each shot by the fine clock.
#[derive(Debug, Default)]
struct Truth(Vec<(Option<usize>, Option<u64>)>);

impl Truth {
    /// The duration of a typical execution of that activity, less that of a typical shot around
    /// nothing, by medians.
    fn ticks(&self, activity: usize) -> Option<f64> {
        let median = |wanted: Option<usize>| {
            let of = self.0.iter().filter(|(at, _)| *at == wanted);
            let mut fine: Vec<u64> = of.filter_map(|(_, fine)| *fine).collect();
            fine.sort_unstable();
            let middle = fine.get(fine.len().checked_sub(1)? / 2)? + fine[fine.len() / 2];
            Some(0.5 * middle as f64)
        };
        Some(median(Some(activity))? - median(None)?)
    }
}

/// A reading of the slow clock, and of the fine one with it.
type Reading = (u64, Option<u64>);

impl<C: TickClock> Loop<'_, C> {
    /// Waits for an edge and returns the reading there.
    fn edge_seen(&self) -> Reading {
        poll(self.clock, self.clock.read_with_truth().0).0
    }

    /// From an edge just seen: executes the activity or nothing, and polls to the next edge, which
    /// is also returned.
    fn shot(&mut self, activity: Option<usize>, edge: Reading) -> (Seen, Reading) {
        self.watch();
        if let Some(at) = activity {
            let steps = &self.script.activities[at].steps;
            steps.iter().for_each(|step| self.worker.act(step));
        }
        let (after, fine_after) = self.clock.read_with_truth();
        let (end, polls) = poll(self.clock, after);
        let seen = Seen {
            shot: EdgeShot {
                ticks: end.0 as i64 - edge.0 as i64,
                polls,
            },
            fine: edge.1.zip(fine_after).map(|(a, b)| b.saturating_sub(a)),
            whole: !self.is_gone(),
        };
        (seen, end)
    }
}

/// Reads the clock until it no longer shows `seen`; returns the reading then, and the number of
/// reads. All waits use this code, so that polls take the same time in each.
#[inline(never)]
fn poll<C: TickClock>(clock: &C, seen: u64) -> (Reading, u64) {
    let mut polls = 1;
    let mut now = clock.read_with_truth();
    while now.0 == seen {
        polls += 1;
        now = clock.read_with_truth();
    }
    (now, polls)
}
