//! Assigns event numbers to the steps of each repetition.
//!
//! Every repetition of every setting has its own numbers, so one recording holds a whole experiment
//! and its analysis tells the repetitions apart.

use undertick_format::manifest::Name;

use super::Experiment;
use crate::script::Plan;

/// First number that is assigned.
const FIRST: u32 = 1;
/// Number of event numbers available.
const MOST_EVENTS: u32 = 60_000;

/// The part of a process for which an event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Between two passes.
    Loop,
    /// The null step before the steps of a pass.
    NullBefore,
    /// The null step after them.
    NullAfter,
    /// A step, by its index.
    Step(usize),
}

impl Mark {
    pub(crate) const fn offset(self) -> u32 {
        match self {
            Self::Loop => 0,
            Self::NullBefore => 1,
            Self::NullAfter => 2,
            Self::Step(step) => 3 + step as u32,
        }
    }
}

/// One repetition of one setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Index of the setting, counted over all scripts.
    pub setting: usize,
    /// Number of the repetition, from 0.
    pub repetition: u32,
}

/// The event numbers of an experiment.
#[derive(Clone, Debug)]
pub struct Numbering {
    /// Per setting: its first number, and how many a repetition takes.
    settings: Vec<(u32, u32)>,
}

/// The experiment has more steps than there are event numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{wanted} kinds of events in all repetitions of all settings, and a trace tells {most} apart; ask for fewer repetitions or fewer points of a sweep",
    most = MOST_EVENTS
)]
pub struct TooMany {
    wanted: u64,
}

impl Numbering {
    /// Assigns numbers to every repetition.
    ///
    /// # Errors
    /// There are too many steps.
    pub fn new(experiment: &Experiment) -> Result<Self, TooMany> {
        let mut next = u64::from(FIRST);
        let mut settings = Vec::new();
        for (setting, repetitions) in experiment.settings() {
            let each = size(&setting.plan);
            settings.push((next as u32, each));
            next += u64::from(each) * u64::from(repetitions);
        }
        let wanted = next - u64::from(FIRST);
        if wanted > u64::from(MOST_EVENTS) {
            return Err(TooMany { wanted });
        }
        Ok(Self { settings })
    }

    /// The event number of a mark.
    #[must_use]
    pub fn event(&self, plan: &Plan, cell: Cell, process: usize, mark: Mark) -> u16 {
        let (first, each) = self.settings[cell.setting];
        let before: u32 = (plan.processes[..process].iter())
            .map(|p| events_of(p.steps.len()))
            .sum();
        (first + each * cell.repetition + before + mark.offset()) as u16
    }

    /// A name for each number, for readers of the trace itself.
    #[must_use]
    pub fn names(&self, experiment: &Experiment) -> Vec<Name> {
        let mut names = Vec::new();
        for (setting, (of, repetitions)) in experiment.settings().enumerate() {
            for repetition in 0..repetitions {
                let cell = Cell {
                    setting,
                    repetition,
                };
                let place = format!("{} #{}", experiment.label(setting), repetition + 1);
                self.add_names(&mut names, &of.plan, cell, &place);
            }
        }
        names
    }

    fn add_names(&self, names: &mut Vec<Name>, plan: &Plan, cell: Cell, place: &str) {
        for (p, process) in plan.processes.iter().enumerate() {
            let fixed = [
                (Mark::Loop, "between passes"),
                (Mark::NullBefore, "null before"),
                (Mark::NullAfter, "null after"),
            ];
            let steps = (process.steps.iter().enumerate())
                .map(|(s, step)| (Mark::Step(s), step.name.as_str()));
            for (mark, name) in fixed.into_iter().chain(steps) {
                names.push(Name {
                    pid: None,
                    event: self.event(plan, cell, p, mark),
                    name: format!("{place} {}.{name}", process.name),
                });
            }
        }
    }
}

/// Numbers that a repetition takes.
fn size(plan: &Plan) -> u32 {
    (plan.processes.iter())
        .map(|process| events_of(process.steps.len()))
        .sum()
}

const fn events_of(steps: usize) -> u32 {
    Mark::Step(steps).offset()
}
