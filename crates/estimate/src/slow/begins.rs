//! Detects spans that begin in step with a coarse clock.

use serde::{Deserialize, Serialize};

use super::lock::Lock;
use super::variance::Spectrum;
use super::walk::PhaseWalk;

/// Maximum number of readings kept of the beginning, and of the whole thinned out, each.
const MOST: usize = 1 << 13;
/// Separator between chains of readings.
const BREAK: i64 = i64::MIN;
/// Maximum number of spans per turn of a program's loop that is searched for.
const MOST_SECTIONS: usize = 8;
/// Steps by which turns of one loop may differ.
const ALIKE_STEPS: i64 = 2;
/// Share of the turns that must be alike.
const REGULAR: f64 = 0.75;
/// Minimum number of turns to show a lock.
const FEW_TURNS: usize = 16;

/// The begins of the spans of each thread, as far as they are needed to tell whether the spans keep
/// step with the clock: the first ones, and some of all. At most 128 KiB.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Begins {
    first: Vec<i64>,
    thinned: Vec<i64>,
    /// One in 2^this of a chain is in `thinned`.
    thinned_by: u32,
    /// Number of spans of this chain.
    in_chain: u64,
}

impl Begins {
    /// Adds the reading at which the next span of this chain began.
    #[inline]
    pub fn push(&mut self, reading: i64) {
        self.extend(&[reading]);
    }

    /// Adds the readings at which the next spans of this chain began.
    #[inline]
    pub fn extend(&mut self, readings: &[i64]) {
        let room = MOST.saturating_sub(self.first.len()).min(readings.len());
        self.first.extend_from_slice(&readings[..room]);
        let mut left = readings;
        loop {
            // Up to the next span whose number of predecessors in the chain is a multiple.
            let skipped = (self.in_chain.wrapping_neg() & ((1 << self.thinned_by) - 1)) as usize;
            let Some(&reading) = left.get(skipped) else {
                self.in_chain += left.len() as u64;
                return;
            };
            self.thinned.push(reading);
            self.in_chain += skipped as u64 + 1;
            left = &left[skipped + 1..];
            if self.thinned.len() >= MOST {
                self.thin();
            }
        }
    }

    /// Begins a new chain: the next span follows none before it.
    pub fn next_chain(&mut self) {
        self.in_chain = 0;
        for kept in [&mut self.first, &mut self.thinned] {
            if kept.len() < MOST && kept.last().is_some_and(|&last| last != BREAK) {
                kept.push(BREAK);
            }
        }
    }

    /// Adds the chains of another.
    pub fn merge(&mut self, mut other: Self) {
        self.next_chain();
        let room = MOST.saturating_sub(self.first.len());
        self.first.extend(other.first.iter().take(room));
        while self.thinned_by < other.thinned_by {
            self.thin();
        }
        while other.thinned_by < self.thinned_by {
            other.thin();
        }
        self.thinned.append(&mut other.thinned);
        while self.thinned.len() >= MOST {
            self.thin();
        }
        self.next_chain();
    }

    /// Drops every second reading of each chain.
    #[cold]
    fn thin(&mut self) {
        let mut at = 0_u64;
        self.thinned.retain(|&reading| {
            if reading == BREAK {
                at = 0;
                return true;
            }
            at += 1;
            at % 2 == 1
        });
        self.thinned_by += 1;
        // Chains so short that only breaks remain of them show nothing.
        if self.thinned.len() >= MOST {
            self.thinned.clear();
        }
    }

    /// Returns the lock that spoils `n` spans of `ticks` each: the clock moves by `step` ticks at a
    /// time, so the measured length of a span depends on where in a step it began, and a lock
    /// repeats the same place again and again.
    ///
    /// `None` also where the spans begin in no order: then their phases are as good as random.
    #[must_use]
    pub fn lock(&self, step: f64, ticks: f64, n: u64) -> Option<Lock> {
        if !(step > 0.0 && step.is_finite()) {
            return None;
        }
        let mut lock = lock_of(&self.first, step)?;
        if self.thinned_by > 0 {
            // A loop that stands still at first may move in the end.
            lock.coherence = lock.coherence.min(lock_of(&self.thinned, step)?.coherence);
        }
        lock.spoils(ticks / step, n).then_some(lock)
    }
}

impl Lock {
    /// Returns how far the mean reading of a span may be off, in steps of the clock: two standard
    /// deviations of the effect of the lock, and never more than between two places in a step.
    #[must_use]
    pub fn may_be_off_steps(&self) -> f64 {
        (2.0 * self.coherence.clamp(0.0, 1.0).sqrt()).min(1.0) * self.error_ticks
    }
}

/// Returns the lock that readings in chains show or cannot exclude.
fn lock_of(readings: &[i64], step: f64) -> Option<Lock> {
    let steps = in_steps(readings, step);
    let walk = (1..=MOST_SECTIONS).find_map(|sections| walk_of(&steps, sections))?;
    let facts = walk.facts()?;
    let spectrum = Spectrum::of_walk(facts.cycles, &facts, facts.jitter[0]);
    Lock::find(&facts, &spectrum)
}

/// Returns the readings in steps of the clock since the first of each chain, and the breaks. The
/// distances between readings are rounded, not their places: readings lie on steps, but a step need
/// not be a whole number of ticks and is not known exactly, and a chain is long.
fn in_steps(readings: &[i64], step: f64) -> Vec<i64> {
    let (mut last, mut steps) = (BREAK, 0_i64);
    (readings.iter())
        .map(|&reading| {
            if reading == BREAK {
                last = BREAK;
                return BREAK;
            }
            if last == BREAK {
                steps = 0;
            } else {
                let passed = reading.saturating_sub(last) as f64 / step;
                steps = steps.saturating_add(passed.round() as i64).max(-i64::MAX);
            }
            last = reading;
            steps
        })
        .collect()
}

/// Returns the turns of a loop with that many spans, if most take the same number of steps. The
/// stretch between two unlike turns belongs to none.
fn walk_of(readings: &[i64], sections: usize) -> Option<PhaseWalk> {
    let turns = || {
        let ends = readings.iter().skip(sections);
        (readings.iter().zip(ends).enumerate()).filter_map(move |(at, (&from, &to))| {
            let is_whole = !readings[at..=at + sections].contains(&BREAK);
            is_whole.then(|| (at, to.saturating_sub(from)))
        })
    };
    let mut steps: Vec<i64> = turns().map(|(_, steps)| steps).collect();
    if steps.len() < FEW_TURNS * sections {
        return None;
    }
    let middle = steps.len() / 2;
    let median = *steps.select_nth_unstable(middle).1;
    let is_alike = |steps: i64| steps.saturating_sub(median).saturating_abs() <= ALIKE_STEPS;
    let alike = steps.iter().filter(|&&steps| is_alike(steps)).count();
    if (alike as f64) < REGULAR * steps.len() as f64 {
        return None;
    }
    let mut walk = PhaseWalk::default();
    let (mut next, mut is_broken) = (0, true);
    for (at, steps) in turns() {
        if at < next {
            continue;
        }
        if !is_alike(steps) {
            is_broken = true;
            continue;
        }
        if is_broken || at > next {
            walk.interrupt();
            walk.push(readings[at]);
        }
        walk.push(readings[at + sections]);
        (next, is_broken) = (at + sections, false);
    }
    Some(walk)
}

#[cfg(test)]
mod tests;
