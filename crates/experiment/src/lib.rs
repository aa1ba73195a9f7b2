//! Experiments: scripts that are performed on a machine, recorded, analysed, and combined over
//! repetitions.
//!
//! **Question.** How long does each step of cooperating processes take, how much of that is the
//! cost of stepping, and how much does it vary between repetitions?
//!
//! **Method.** A [`Machine`] performs every repetition of every setting in its own processes, in
//! turn, with the recorder at every step; one trace holds them all. The analysis kernel determines
//! the figures of each repetition. The combination takes off the null step of the same repetition
//! and states the interval from the scatter *between* repetitions, because one run of a process
//! cannot show how much the next one differs.
//!
//! **Caveats.** An interval holds for repetitions made then and there; it does not contain what
//! drifts more slowly than the experiment lasts.

mod analysis;
mod combine;
pub mod counted_work;
mod exceeded;
pub mod jobs;
mod lines;
pub mod linux;
mod machine;
mod numbering;
mod perform;
pub mod primitives;
pub mod script;
pub mod simulated;

pub use combine::over;
pub use machine::{
    Ended, ExperimentError, ExperimentProgress, Machine, Performed, Repetition, Why,
};
pub use numbering::{Cell, Mark, Numbering, TooMany};
pub use perform::{Options, Outcome, perform};

use serde::{Deserialize, Serialize};

use crate::script::{BadScript, Script, Setting};

/// Scripts that are performed together, in turn.
#[derive(Clone, Debug)]
pub struct Experiment {
    scripts: Vec<Named>,
}

#[derive(Clone, Debug)]
struct Named {
    name: String,
    text: String,
    script: Script,
}

/// The texts of an experiment, as passed to the process that performs it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Texts {
    scripts: Vec<(String, String)>,
}

impl Experiment {
    /// Makes an experiment of scripts, given by name and text.
    ///
    /// # Errors
    /// The name of a script that cannot be used, and the reason.
    pub fn new(
        scripts: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, (String, BadScript)> {
        let scripts = (scripts.into_iter())
            .map(|(name, text)| match Script::parse(&text) {
                Ok(script) => Ok(Named { name, text, script }),
                Err(bad) => Err((name, bad)),
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { scripts })
    }

    pub(crate) fn texts(&self) -> Texts {
        Texts {
            scripts: (self.scripts.iter())
                .map(|s| (s.name.clone(), s.text.clone()))
                .collect(),
        }
    }

    pub(crate) fn of_texts(texts: Texts) -> Result<Self, (String, BadScript)> {
        Self::new(texts.scripts)
    }

    /// Names of the scripts.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.scripts.iter().map(|named| named.name.as_str())
    }

    /// Every setting of every script, and how often it is repeated.
    pub fn settings(&self) -> impl Iterator<Item = (&Setting, u32)> {
        (self.scripts.iter())
            .flat_map(|s| s.script.settings.iter().map(|x| (x, s.script.repetitions)))
    }

    /// A setting by its index.
    ///
    /// # Panics
    /// There is no such setting.
    #[must_use]
    pub fn setting(&self, index: usize) -> &Setting {
        let found = self.settings().nth(index);
        found
            .map(|(setting, _)| setting)
            .unwrap_or_else(|| panic!("no setting {index}"))
    }

    /// A setting in words: the script's name and the values of its parameters.
    #[must_use]
    pub fn label(&self, index: usize) -> String {
        let mut left = index;
        for named in &self.scripts {
            match named.script.settings.get(left) {
                Some(setting) => {
                    let values =
                        (setting.parameters.iter()).map(|(name, value)| format!(" {name}={value}"));
                    return values.fold(named.name.clone(), |all, value| all + &value);
                }
                None => left -= named.script.settings.len(),
            }
        }
        format!("setting {index}")
    }

    /// Name of the script that a setting belongs to.
    #[must_use]
    pub fn script_of(&self, index: usize) -> &str {
        self.named(index).map_or("", |named| &named.name)
    }

    /// Title of the script that a setting belongs to.
    #[must_use]
    pub fn title_of(&self, index: usize) -> &str {
        self.named(index).map_or("", |named| &named.script.title)
    }

    fn named(&self, index: usize) -> Option<&Named> {
        let mut left = index;
        self.scripts.iter().find(|named| {
            let settings = named.script.settings.len();
            let is_here = left < settings;
            left = left.saturating_sub(settings);
            is_here
        })
    }

    /// Every repetition, round by round, so that a drift of the machine affects all settings alike.
    /// The order within a round is drawn from the scripts' seed.
    #[must_use]
    pub fn order(&self) -> Vec<Cell> {
        use rand::seq::SliceRandom as _;
        use rand_chacha::rand_core::SeedableRng as _;
        let seed = self.scripts.iter().fold(0, |seed, s| seed ^ s.script.seed);
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let repetitions: Vec<u32> = self.settings().map(|(_, n)| n).collect();
        let rounds = repetitions.iter().copied().max().unwrap_or(0);
        let mut order = Vec::new();
        for repetition in 0..rounds {
            let mut round: Vec<Cell> = (repetitions.iter().enumerate())
                .filter(|(_, n)| repetition < **n)
                .map(|(setting, _)| Cell {
                    setting,
                    repetition,
                })
                .collect();
            round.shuffle(&mut random);
            order.extend(round);
        }
        order
    }
}
