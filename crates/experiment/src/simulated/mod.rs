//! The simulated Cm*: performs scripts in virtual time, and records the true time of every reading
//! of its clock.
//!
//! **Method.** Each repetition is a separate machine ([`undertick_cmstar`]), whose processes go
//! through the same steps as on this machine, with a reading of the simulated clock between two of
//! them. The records are those that the recorder would have made, so the analysis is the same.
//! `truth.parquet` in the trace says when each word was really sampled.
//!
//! **Caveats.** The cost of a step is that of the model, not that of this machine. Every kind of
//! lock maps to its one lock, and every channel and backend to its messages and events. Such a
//! trace contains no kernel evidence.

mod processes;
mod repetition;
#[cfg(test)]
mod tests;
mod worker;

use std::path::Path;
use std::time::SystemTime;

use undertick_cmstar::{Os, Parameters, Routine};
use undertick_format::input::{self, Kind};
use undertick_format::manifest;
use undertick_record::synthetic::{self, SyntheticRing, SyntheticTrace};

use self::repetition::Ran;
use crate::jobs;
use crate::script::{Placement, Plan, Verb};
use crate::{Cell, Experiment, ExperimentError, ExperimentProgress, Machine, Numbering, Performed};

/// A simulated Cm*.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// Parameters of the model.
    pub parameters: Parameters,
    /// Its operating system.
    pub os: Os,
    /// The routine that reads its clock.
    pub routine: Routine,
}

impl Simulated {
    /// Makes a machine from its name: `cmstar`, or a file of parameters; after a colon `staros`
    /// (the default) or `medusa`.
    ///
    /// # Errors
    /// There is no such machine, or the file does not describe one.
    pub fn named(name: &str) -> Result<Self, ExperimentError> {
        let (of, os) = match name.rsplit_once(':') {
            Some((of, "medusa")) => (of, Os::Medusa),
            Some((of, "staros")) => (of, Os::StarOs),
            _ => (name, Os::StarOs),
        };
        let simulated = Self::published(os);
        if of == "cmstar" {
            return Ok(simulated);
        }
        let text = input::text(of.as_ref(), Kind::SCRIPT).map_err(|e| {
            ExperimentError::input(format!(
                "--machine {name}: no such machine, and no file of parameters ({e}); there are here, \
                 cmstar, cmstar:staros, cmstar:medusa, or a file like crates/cmstar/parameters.toml"
            ))
        })?;
        let parameters = Parameters::parse(&text)
            .map_err(|bad| ExperimentError::input(format!("{of}: {bad}")))?;
        Ok(Self {
            parameters,
            ..simulated
        })
    }

    /// The machine of the paper under that operating system; its clock is read by 4-Read.
    #[must_use]
    pub fn published(os: Os) -> Self {
        Self {
            parameters: Parameters::published(),
            os,
            routine: Routine::Four,
        }
    }
}

impl Machine for Simulated {
    fn name(&self) -> &'static str {
        "cmstar"
    }

    fn processors(&self) -> usize {
        self.sizes().0
    }

    fn lacks(&self, plan: &Plan) -> Option<String> {
        lacks(plan, self.sizes())
    }

    fn perform(
        &self,
        experiment: &Experiment,
        trace: &Path,
        progress: &mut dyn FnMut(ExperimentProgress),
    ) -> Result<Performed, ExperimentError> {
        let machine_error = |e: &dyn std::fmt::Display| ExperimentError::machine(e.to_string());
        let numbering = Numbering::new(experiment).map_err(|e| machine_error(&e))?;
        let order = experiment.order();
        let all = self.run_all(experiment, &numbering, &order, progress);
        let mut performed = Performed::default();
        let (mut rings, mut at_ns) = (Vec::new(), 0);
        let (mut reading_ns, mut too_slow) = (Vec::new(), 0);
        for ran in all {
            reading_ns.extend(ran.reading_ns);
            too_slow += ran.too_slow;
            let later = self.shifted(ran.rings, at_ns);
            at_ns += ran.duration_ns.next_multiple_of(self.tick_ns());
            rings.extend(later);
            performed.repetitions.push(ran.repetition);
        }
        reading_ns.sort_unstable();
        let mut made = self.about(experiment, numbering.names(experiment), at_ns);
        let middle = reading_ns.get(reading_ns.len() / 2);
        made.clock.read_cost_ns_median = middle.map_or(0.0, |ns| *ns as f64);
        if too_slow > 0 {
            made.warnings.push(format!(
                "{too_slow} readings of the clock took longer than its low word lasts: they are left out"
            ));
        }
        synthetic::write(trace, made, &rings, &mut |share| {
            progress(ExperimentProgress::Finalizing(share))
        })?;
        Ok(performed)
    }
}

impl Simulated {
    /// Number of Cms, and of clusters.
    fn sizes(&self) -> (usize, usize) {
        let topology = &self.parameters.topology;
        (
            topology.clusters * topology.cms_per_cluster,
            topology.clusters,
        )
    }

    fn tick_ns(&self) -> u64 {
        (self.parameters.clock.tick_us * 1e3).round() as u64
    }

    /// Performs all repetitions, on all CPUs: they are independent.
    fn run_all(
        &self,
        experiment: &Experiment,
        numbering: &Numbering,
        order: &[Cell],
        progress: &mut dyn FnMut(ExperimentProgress),
    ) -> Vec<Ran> {
        let all = order.len();
        let run = |cell: &Cell| repetition::run(self, experiment, numbering, *cell);
        jobs::run(order, run, &mut |share| {
            progress(ExperimentProgress::Repetition(
                (share * all as f64).round() as usize,
                all,
            ));
            true
        })
        .unwrap_or_default() // nobody stops it
    }

    /// Shifts the records of a repetition: each is a machine that begins at 0, and in the trace
    /// they follow one another.
    fn shifted(&self, mut rings: Vec<SyntheticRing>, by_ns: u64) -> Vec<SyntheticRing> {
        let ticks = by_ns / self.tick_ns();
        for ring in &mut rings {
            for record in &mut ring.records {
                record.ts += ticks;
            }
            for true_ns in &mut ring.true_ns {
                *true_ns += by_ns.cast_signed();
            }
        }
        rings
    }

    fn about(
        &self,
        experiment: &Experiment,
        names: Vec<manifest::Name>,
        ns: u64,
    ) -> SyntheticTrace {
        let clock = &self.parameters.clock;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        SyntheticTrace {
            host: manifest::Host {
                name: format!("Cm*, simulated, {}", self.os),
                kernel: self.os.to_string(),
                arch: "lsi-11".to_owned(),
                cpus: self.processors() as u32,
                cpu_model: "LSI-11, simulated".to_owned(),
            },
            command: experiment.names().map(str::to_owned).collect(),
            clock: manifest::Clock {
                name: format!("cmstar, tick {} us, {}", clock.tick_us, self.routine.name()),
                ticks_per_second_numerator: 1_000_000_000,
                ticks_per_second_denominator: self.tick_ns(),
                rate_source: "definition".to_owned(),
                rate_error_ppb: 0.0,
                granularity_ticks: 1.0,
                read_cost_ns_median: 0.0, // known when all is read
                anchors: Vec::new(),
                across_cpus: None,
            },
            names,
            started_unix_ns: now.map_or(0, |now| i64::try_from(now.as_nanos()).unwrap_or(0)),
            duration_ns: ns.cast_signed(),
            warnings: vec![format!(
                "simulated: Cm* under {}; times are virtual, {} has the true ones",
                self.os,
                synthetic::TRUTH_FILE
            )],
        }
    }
}

/// What Cm* lacks for a plan.
fn lacks(plan: &Plan, (processors, clusters): (usize, usize)) -> Option<String> {
    let processes: u32 = plan.processes.iter().map(|p| p.replicas).sum();
    for process in &plan.processes {
        match &process.place {
            Placement::SameCore(_) => {
                return Some(format!(
                    "{}: a Cm has one processor, so there is no other thread of its core",
                    process.name
                ));
            }
            Placement::Cluster(cluster) if *cluster >= clusters => {
                return Some(format!(
                    "{}: its place is cluster {cluster} (from 0), and there are {clusters}",
                    process.name
                ));
            }
            Placement::Cpus(cpus) if cpus.iter().all(|cpu| *cpu >= processors) => {
                return Some(format!(
                    "{}: its place is beyond the {processors} Cms (from 0)",
                    process.name
                ));
            }
            _ => {}
        }
    }
    if processes as usize > 20 * processors {
        return Some(format!("{processes} processes on {processors} Cms"));
    }
    let mut steps = plan.processes.iter().flat_map(|p| &p.steps);
    steps.find_map(|step| {
        let what = match step.verb {
            Verb::Call(_) => "system calls of Linux",
            Verb::Read(_) => "clocks of Linux",
            Verb::Record(_) => "calls of the recorder",
            Verb::Fork(_) | Verb::Reap => "fork",
            Verb::Create { .. } | Verb::Touch { .. } | Verb::Fill { .. } | Verb::Free { .. } => {
                "memory that is mapped"
            }
            _ => return None,
        };
        Some(format!("line {}: Cm* has no {what}", step.line))
    })
}
