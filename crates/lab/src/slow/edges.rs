//! Runs in which the loop waits for edges of the tick.

use std::time::Instant;

use undertick_clock::slow::TickClock;
use undertick_estimate::slow::{EdgeSamples, EdgeShot};

use super::document::{ActivityRow, Document};
use super::estimator::Estimator;
use super::run::{Failed, Loop};
use super::script::Length;

/// A shot with the fine clock beside it.
struct Seen {
    shot: EdgeShot,
    /// From the edge to the first poll after the activity, fine ticks.
    fine: Option<u64>,
    whole: bool,
}

/// Each activity in its place in the loop, waited for one after the other, a
/// calibrating shot before each.
pub(super) fn run<C: TickClock>(
    looped: &mut Loop<'_, C>,
    level: f64,
    mut go_on: impl FnMut(f64) -> bool,
) -> Result<Document, Failed> {
    let script = looped.script;
    let mut document = looped.empty_document(Estimator::Edges);
    let mut samples = vec![EdgeSamples::new(); script.activities.len()];
    let mut truths = vec![0.0; script.activities.len()];
    let fine_ns = looped.fine_ns();
    let begin = Instant::now();
    let mut round = 0;
    loop {
        for at in 0..script.activities.len() {
            let null = looped.shot(None);
            let seen = looped.around(at);
            if !(null.whole && seen.whole) {
                samples[at].drop_pair();
                continue;
            }
            samples[at].push(seen.shot, null.shot);
            if let (Some(seen), Some(null), Some(ns)) = (seen.fine, null.fine, fine_ns) {
                truths[at] += (seen as f64 - null as f64) * ns;
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
    document.cycles = samples.iter().map(|s| s.pairs() + s.dropped()).sum();
    document.dropped = samples.iter().map(EdgeSamples::dropped).sum();
    for ((activity, samples), truth) in script.activities.iter().zip(&samples).zip(truths) {
        let mean = samples
            .estimate(looped.tick_ns, level)
            .ok_or(Failed::TooShort)?;
        let truth_ns = fine_ns.map(|_| truth / samples.pairs() as f64);
        document
            .activities
            .push(ActivityRow::shot(&activity.name, mean, truth_ns));
    }
    if let Some(cost_ns) = samples[0].poll_cost_ns(looped.tick_ns) {
        document
            .findings
            .push(format!("a poll of the clock takes {cost_ns:.1} ns"));
    }
    Ok(document)
}

impl<C: TickClock> Loop<'_, C> {
    /// One cycle in which the activity there is waited for.
    fn around(&mut self, at: usize) -> Seen {
        let script = self.script;
        for activity in &script.activities[..at] {
            activity.steps.iter().for_each(|step| self.worker.act(step));
        }
        let seen = self.shot(Some(at));
        for activity in &script.activities[at + 1..] {
            activity.steps.iter().for_each(|step| self.worker.act(step));
        }
        seen
    }

    /// Waits for an edge, does the activity or nothing, polls to the next edge.
    fn shot(&mut self, activity: Option<usize>) -> Seen {
        let clock = self.clock;
        let (start, _) = clock.read_with_truth();
        self.watch();
        let (mut edge, mut fine_edge) = clock.read_with_truth();
        while edge == start {
            (edge, fine_edge) = clock.read_with_truth();
        }
        if let Some(at) = activity {
            let steps = &self.script.activities[at].steps;
            steps.iter().for_each(|step| self.worker.act(step));
        }
        let (after, fine_after) = clock.read_with_truth();
        let mut polls = 1;
        let mut end = clock.read_with_truth().0;
        while end == after {
            polls += 1;
            end = clock.read_with_truth().0;
        }
        Seen {
            shot: EdgeShot {
                ticks: end as i64 - edge as i64,
                polls,
            },
            fine: fine_edge.zip(fine_after).map(|(a, b)| b.saturating_sub(a)),
            whole: !self.is_gone(),
        }
    }
}
