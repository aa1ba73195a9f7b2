//! Runs a benchmark program again and again, whatever some of its benchmarks do.

use undertick_report::benchmarks::Benchmark;

use super::{How, Program, Silent, is_of};
use crate::only;

/// A benchmark program, and what is known of its benchmarks.
pub(crate) struct Runner<'a> {
    pub(crate) program: &'a Program,
    /// The benchmarks, where each is run by itself.
    pub(crate) names: Option<Vec<String>>,
    /// Benchmarks that failed, and why.
    pub(crate) failed: Vec<(String, String)>,
    /// How the program failed after it had measured.
    pub(crate) remark: Option<String>,
}

/// What one round gives.
pub(crate) enum Round {
    Measured {
        benchmarks: Vec<Benchmark>,
        /// Benchmarks that failed for the first time, and why.
        failed: Vec<(String, String)>,
        /// How the program failed after it had measured, when that is new.
        remark: Option<String>,
    },
    /// The user stopped it.
    Stopped,
    /// The program failed as a whole: from now on each benchmark is to be run by itself
    /// ([`Runner::choose`]).
    Again,
}

impl<'a> Runner<'a> {
    pub(crate) const fn new(program: &'a Program) -> Self {
        Self {
            program,
            names: None,
            failed: Vec::new(),
            remark: None,
        }
    }

    /// Runs each benchmark by itself from now on: those whose names match one of `wanted`, or all.
    /// Returns false if the user stopped it.
    ///
    /// # Errors
    /// Why this cannot be done, in words.
    pub(crate) fn choose(&mut self, how: &How<'_>, wanted: &[String]) -> Result<bool, String> {
        if self.names.is_some() {
            return Ok(true);
        }
        let mut names = match self.program.list(how) {
            Ok(names) => names,
            Err(Silent::Stopped) => return Ok(false),
            Err(Silent::Failed(why)) => return Err(why),
        };
        if names.is_empty() {
            return Err(
                "its benchmarks cannot be run one by one; choose them by the tool's own options, without --only"
                    .to_owned(),
            );
        }
        names.retain(|name| {
            wanted.is_empty() || wanted.iter().any(|form| only::matches(form, name))
        });
        if names.is_empty() {
            return Err(
                "no benchmark has a name as --only gives; leave it out to see all".to_owned(),
            );
        }
        self.names = Some(names);
        Ok(true)
    }

    /// Runs it once, or once for each benchmark.
    ///
    /// # Errors
    /// It measures nothing, in words.
    pub(crate) fn round(&mut self, how: &How<'_>) -> Result<Round, String> {
        let (mut benchmarks, mut failed): (Vec<Benchmark>, Vec<(String, String)>) =
            Default::default();
        let mut remark = None;
        match &self.names {
            None => match self.program.run(how) {
                Ok(said) => {
                    remark = said.remark;
                    (benchmarks, failed) = (said.benchmarks, said.failed);
                }
                Err(Silent::Stopped) => return Ok(Round::Stopped),
                Err(Silent::Failed(why)) => {
                    return match self.program.list(how) {
                        Ok(names) if !names.is_empty() => Ok(Round::Again),
                        Err(Silent::Stopped) => Ok(Round::Stopped),
                        _ => Err(why),
                    };
                }
            },
            Some(names) => {
                for name in names {
                    let alone = How {
                        only: Some(name),
                        ..*how
                    };
                    match self.program.run(&alone) {
                        Ok(said) => {
                            benchmarks.extend(said.benchmarks);
                            failed.extend(said.failed);
                        }
                        Err(Silent::Stopped) => return Ok(Round::Stopped),
                        Err(Silent::Failed(why)) => failed.push((name.clone(), why)),
                    }
                }
            }
        }
        if benchmarks.is_empty() {
            return Err(failed
                .first()
                .map_or("it has no benchmarks".to_owned(), |(name, why)| {
                    format!("no benchmark runs; {name}: {why}")
                }));
        }
        let known = self.failed.len();
        for (name, why) in failed {
            if !self.has_failed(&name) {
                self.failed.push((name, why));
            }
        }
        let failed = self.failed[known..].to_vec();
        let remark = remark.filter(|_| self.remark.is_none());
        self.remark = self.remark.take().or_else(|| remark.clone());
        Ok(Round::Measured {
            benchmarks,
            failed,
            remark,
        })
    }

    fn has_failed(&self, name: &str) -> bool {
        self.failed.iter().any(|(other, _)| other == name)
    }

    /// Runs none of these benchmarks any more, where each is run by itself.
    pub(crate) fn leave_out<'b>(&mut self, failed: impl Iterator<Item = &'b String> + Clone) {
        let harness = self.program.harness;
        if let Some(names) = &mut self.names {
            names.retain(|name| !failed.clone().any(|failed| is_of(harness, name, failed)));
        }
    }
}
