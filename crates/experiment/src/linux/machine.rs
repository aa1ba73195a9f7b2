//! This machine: performs scripts with Linux processes and threads.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use undertick_clock::{Choice, facts::Facts};
use undertick_record::kernel;
use undertick_record::record::{self, Request, record};
use undertick_record::session::Settings;

use super::placement::Cpus;
use crate::script::{ClockCall, Plan, Stamps, Verb, Words as _};
use crate::{
    Experiment, ExperimentError, ExperimentProgress, Machine, Numbering, Performed, Repetition,
};

/// This machine.
#[derive(Clone, Debug)]
pub struct LocalMachine {
    /// Command that must call [`run_repetitions`](super::run_repetitions) in its own process: the
    /// names of two files are appended to it.
    pub driver_command: Vec<OsString>,
    /// The recording clock.
    pub choice: Choice,
    /// Facts about that clock.
    pub facts: Facts,
    /// The kernel evidence to keep.
    pub kernel: kernel::Wanted,
}

/// The CPUs that experiments may use; CPU 0 alone if they cannot be determined.
#[must_use]
pub fn cpus() -> Vec<usize> {
    Cpus::here().map_or_else(|_| vec![0], |cpus| cpus.all().to_vec())
}

/// Time between two checks of how many repetitions are over.
const LOOK_EVERY: Duration = Duration::from_millis(200);

impl Machine for LocalMachine {
    fn name(&self) -> &'static str {
        "here"
    }

    fn processors(&self) -> usize {
        Cpus::here().map_or(1, |cpus| cpus.count())
    }

    fn lacks(&self, plan: &Plan) -> Option<String> {
        lacks(plan)
    }

    fn perform(
        &self,
        experiment: &Experiment,
        trace: &Path,
        progress: &mut dyn FnMut(ExperimentProgress),
    ) -> Result<Performed, ExperimentError> {
        let machine_error = |e: &dyn std::fmt::Display| ExperimentError::machine(e.to_string());
        let numbering = Numbering::new(experiment).map_err(|e| machine_error(&e))?;
        let dir = tempfile::tempdir()
            .map_err(|e| ExperimentError::machine(format!("no temporary directory: {e}")))?;
        let (texts, results) = (dir.path().join("scripts.json"), dir.path().join("results"));
        let json = serde_json::to_string(&experiment.texts()).map_err(|e| machine_error(&e))?;
        std::fs::write(&texts, json)
            .map_err(|e| ExperimentError::machine(format!("{}: {e}", texts.display())))?;
        let mut command = self.driver_command.clone();
        command.extend([texts.into_os_string(), results.clone().into_os_string()]);
        let request = Request {
            trace: trace.to_owned(),
            command,
            settings: Settings::growing(self.choice.clock),
            choice: self.choice,
            facts: self.facts.clone(),
            calibration: None,
            names: numbering.names(experiment),
            kernel: self.kernel,
            stacks: None,
            perturbation: None,
            triggers: None,
            functions: None,
            with: Vec::new(),
        };
        let all = experiment.order().len();
        let mut looked = Instant::now();
        let manifest = record(request, &mut |update| match update {
            record::RecordingProgress::Recording(..) if looked.elapsed() >= LOOK_EVERY => {
                looked = Instant::now();
                let lines = std::fs::read(&results)
                    .map_or(0, |text| text.iter().filter(|&&byte| byte == b'\n').count());
                progress(ExperimentProgress::Repetition(lines, all));
            }
            record::RecordingProgress::Recording(..) | record::RecordingProgress::Snapshot(_) => {}
            record::RecordingProgress::Finalizing(share) => {
                progress(ExperimentProgress::Finalizing(share))
            }
        })?;
        let lines = std::fs::read_to_string(&results).unwrap_or_default();
        let repetitions: Vec<Repetition> = (lines.lines())
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let interrupted = manifest.exit.is_some_and(|exit| exit.interrupted);
        match (repetitions.is_empty(), interrupted) {
            (true, true) => Err(ExperimentError::interrupted(
                "interrupted before a repetition was over",
            )),
            (true, false) => Err(ExperimentError::machine("no repetition was performed")),
            (false, _) => Ok(Performed {
                repetitions,
                interrupted,
            }),
        }
    }
}

/// What this machine lacks for a plan, regardless of its CPUs.
pub(super) fn lacks(plan: &Plan) -> Option<String> {
    if plan.stamps == Stamps::Around {
        let turned = |b: &crate::script::Between| b.from.is_end || !b.to.is_end;
        if let Some(between) = plan.intervals.iter().find(|b| turned(b)) {
            return Some(format!(
                "interval {:?} begins at an end or ends at a begin, which needs stamps = \"between\"",
                between.name
            ));
        }
    }
    let mut steps = plan.processes.iter().flat_map(|p| &p.steps);
    steps.find_map(|step| match step.verb {
        Verb::Read(clock) if !has(clock) => Some(format!(
            "line {}: the clock {:?} cannot be read on this machine",
            step.line,
            clock.word()
        )),
        _ => None,
    })
}

fn has(clock: ClockCall) -> bool {
    super::clock_call::read(clock).is_some()
}
