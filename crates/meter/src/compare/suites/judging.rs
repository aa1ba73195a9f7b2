//! Plans the looks at the rounds, and judges the benchmarks.

use std::collections::HashSet;
use std::time::Duration;

use undertick_document::Warning;
use undertick_estimate::{Looks, MOST_RUNS, fewest_runs};
use undertick_experiment::ExperimentError;
use undertick_report::compare::{Comparison, Row, Sequential, SequentialEnd};

use super::super::{Options, compare_as};
use super::side::Side;
use super::{Comparing, FEWEST_ROUNDS, SuitesProgress};

/// Chance that a benchmark that differs by more than what matters is called alike, in all looks.
const FALSE_ALIKE: f64 = 0.025;

impl Comparing<'_> {
    /// Plans the looks, unless earlier rounds are continued, by how long a round takes and how much time
    /// is left.
    pub(super) fn plan(
        &mut self,
        rounds: usize,
        round: Duration,
        left: Duration,
        progress: &mut dyn FnMut(SuitesProgress),
    ) -> Result<(), ExperimentError> {
        let [a, b] = self.sides.each_ref().map(Side::measured);
        let benchmarks = a.intersection(&b).count();
        if benchmarks == 0 {
            let one = |of: &HashSet<&str>| of.iter().min().map_or("", |name| *name).to_owned();
            return Err(ExperimentError::input(format!(
                "no benchmark is in both: A has for example {:?}, and B {:?}; give them the same names",
                one(&a),
                one(&b)
            )));
        }
        let fit = left.as_secs_f64() / round.as_secs_f64().max(1e-3);
        let most = self.kept.most.unwrap_or_else(|| {
            (self.wanted.rounds.unwrap_or(MOST_RUNS))
                .min(rounds.saturating_add(fit as usize))
                .clamp(FEWEST_ROUNDS, MOST_RUNS)
        });
        self.kept.most = Some(most);
        self.kept
            .write(&self.wanted.dir)
            .map_err(ExperimentError::machine)?;
        progress(SuitesProgress::Planned {
            benchmarks,
            round,
            most,
        });
        Ok(())
    }

    /// The chance of a false alarm that a look at the rounds so far may spend.
    fn look(&mut self) -> Result<f64, ExperimentError> {
        let rounds = self.rounds();
        // The same rounds give the same answer again.
        if let Some((_, chance)) = self.kept.looked.filter(|(at, _)| *at == rounds) {
            return Ok(chance);
        }
        let looks = self.looks().unwrap_or(Looks::new(rounds));
        let chance = looks.chance(rounds, self.kept.spent, self.wanted.false_alarms);
        self.kept.spent += chance;
        self.kept.looked = Some((rounds, chance));
        self.kept
            .write(&self.wanted.dir)
            .map_err(ExperimentError::machine)?;
        Ok(chance)
    }

    /// Whether each benchmark is decided, by what this look may spend.
    pub(super) fn is_decided(&mut self) -> Result<bool, ExperimentError> {
        let rounds = self.rounds();
        let chance = self.look()?;
        let found = self.compared(self.wanted.options.level, chance)?;
        // Two bounds, of which one can be wrong; each look has its part of the chance.
        let part = chance / self.wanted.false_alarms * FALSE_ALIKE;
        let strict = 1.0 - 2.0 * part;
        let surely = (rounds >= fewest_runs(1, true, strict))
            .then(|| self.compared(strict, chance))
            .transpose()?;
        let sure = |at: usize| surely.as_ref().map(|found| &found.rows[at]);
        let is_alike = |at: usize| {
            let bound = sure(at).and_then(|row| row.bound);
            bound.is_some_and(|bound| bound <= self.wanted.within)
        };
        let passes = |at: usize, row: &Row| {
            let Some(gate) = self.wanted.options.gate else {
                return true;
            };
            let most = sure(at).and_then(|row| row.ratio.as_ref()?.interval.hi);
            row.gate_p.is_some_and(|p| p <= chance) || most.is_some_and(|most| most <= 1.0 + gate)
        };
        let mut rows = found.rows.iter().enumerate();
        // For what takes no time at all no one waits.
        let is_nothing = |row: &Row| row.a.value <= 0.0 || row.b.value <= 0.0;
        let is_done = |at: usize, row: &Row| (row.differs() || is_alike(at)) && passes(at, row);
        Ok(!found.rows.is_empty() && rows.all(|(at, row)| is_nothing(row) || is_done(at, row)))
    }

    /// The rounds so far, compared; intervals have this level.
    fn compared(&self, level: f64, chance: f64) -> Result<Comparison, ExperimentError> {
        let options = Options {
            level,
            false_alarms: Some(chance),
            within: Some(self.wanted.within),
            ..self.wanted.options
        };
        let failed = self.failed();
        let [a, b] = self.sides.each_ref().map(|side| side.input(&failed));
        let (Some(a), Some(b)) = (a, b) else {
            return Err(ExperimentError::machine(
                "stopped before a round was complete",
            ));
        };
        compare_as(a, b, &options).map_err(ExperimentError::input)
    }

    pub(super) fn result(mut self, end: SequentialEnd) -> Result<Comparison, ExperimentError> {
        let rounds = self.rounds();
        if rounds < FEWEST_ROUNDS {
            return Err(ExperimentError::machine(
                "stopped before two rounds were complete: nothing can be said",
            ));
        }
        let most = self.kept.most.unwrap_or(rounds);
        let chance = self.look()?;
        let mut found = self.compared(self.wanted.options.level, chance)?;
        if found.rows.is_empty() {
            return Err(ExperimentError::machine(
                "every benchmark that both programs have failed in some round: nothing is left to compare",
            ));
        }
        found.sequential = Some(Sequential {
            rounds: rounds as u64,
            most: most as u64,
            end,
            false_alarms: self.wanted.false_alarms,
        });
        found.warnings.extend(self.error.iter().map(|text| Warning {
            code: "ended_early".to_owned(),
            text: text.clone(),
        }));
        for side in &self.sides {
            let failed = side.runner.failed.iter().map(|(name, why)| Warning {
                code: "benchmark_failed".to_owned(),
                text: format!("{} of {} failed: {why}", name, side.which),
            });
            found.warnings.extend(failed);
            found
                .warnings
                .extend(side.runner.remark.iter().map(|text| Warning {
                    code: "benchmark_status".to_owned(),
                    text: text.clone(),
                }));
        }
        Ok(found)
    }
}
