//! One of two benchmark programs that are compared: what is known of it, and its rounds.

use std::collections::HashSet;
use std::path::PathBuf;

use undertick_experiment::ExperimentError;
use undertick_report::benchmarks::Benchmarks;
use undertick_report::compare::{self, Source};

use super::super::input::{Input, Run, Runs};
use super::super::read;
use crate::benchmarks::{Program, Runner, is_of};

/// One of the two programs.
pub(super) struct Side<'a> {
    pub(super) runner: Runner<'a>,
    pub(super) which: &'static str,
    dir: PathBuf,
    pub(super) runs: Vec<Run>,
    about: Option<Source>,
}

impl<'a> Side<'a> {
    pub(super) const fn new(program: &'a Program, which: &'static str, dir: PathBuf) -> Self {
        Self {
            runner: Runner::new(program),
            which,
            dir,
            runs: Vec::new(),
            about: None,
        }
    }

    /// Makes its directory, and reads the rounds that are there.
    pub(super) fn open(&mut self, rounds: usize) -> Result<(), ExperimentError> {
        std::fs::create_dir_all(&self.dir)
            .map_err(|e| ExperimentError::input(format!("{}: {e}", self.dir.display())))?;
        for round in 1..=rounds {
            let name = format!("{round:04}");
            let path = self.dir.join(format!("{name}.json"));
            let read = read(&path).map_err(ExperimentError::input)?;
            self.push(name, read);
        }
        Ok(())
    }

    pub(super) fn error(&self, why: &str) -> ExperimentError {
        let program = self.runner.program;
        let command = program.command.first().map(|word| word.to_string_lossy());
        ExperimentError::input(format!(
            "{}, {} ({}): {why}",
            self.which,
            command.unwrap_or_default(),
            program.harness.name()
        ))
    }

    pub(super) fn write(&self, name: &str, said: &Benchmarks) -> Result<(), ExperimentError> {
        let path = self.dir.join(format!("{name}.json"));
        let text = serde_json::to_string_pretty(said).unwrap_or_default();
        std::fs::write(&path, text + "\n")
            .map_err(|e| ExperimentError::machine(format!("{}: {e}", path.display())))
    }

    pub(super) fn take(&mut self, name: String, said: Benchmarks) {
        self.push(name, said.side(&self.dir.display().to_string()));
    }

    fn push(&mut self, name: String, round: compare::Side) {
        self.about.get_or_insert(round.about);
        self.runs.push(Run {
            name,
            metrics: round.metrics,
            paths: Vec::new(),
        });
    }

    /// Names of the benchmarks that the last round has.
    pub(super) fn measured(&self) -> HashSet<&str> {
        let last = self.runs.last().into_iter();
        last.flat_map(|run| run.metrics.iter().map(|metric| metric.id.as_str()))
            .collect()
    }

    /// Its rounds as one side of a comparison, without the benchmarks that failed on either side.
    pub(super) fn input(&self, failed: &HashSet<String>) -> Option<Input> {
        let words: Vec<_> = (self.runner.program.command.iter())
            .map(|word| word.to_string_lossy())
            .collect();
        Some(Input::Runs(Runs {
            about: Source {
                file: words.join(" "),
                runs: Some(self.runs.len() as u64),
                ..self.about.clone()?
            },
            dir: self.dir.clone(),
            runs: (self.runs.iter())
                .map(|run| Run {
                    name: run.name.clone(),
                    metrics: (run.metrics.iter())
                        .filter(|metric| {
                            let harness = self.runner.program.harness;
                            !failed
                                .iter()
                                .any(|failed| is_of(harness, &metric.id, failed))
                        })
                        .cloned()
                        .collect(),
                    paths: Vec::new(),
                })
                .collect(),
        }))
    }
}
