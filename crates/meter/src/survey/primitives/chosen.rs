//! The selected settings of the groups, and the names of their figures: `chosen.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// A group of primitives.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Chosen {
    /// Its script.
    pub(super) script: String,
    /// The values of its sweep to perform.
    #[serde(default)]
    pub(super) sweep: BTreeMap<String, Vec<String>>,
    /// The figures that are metrics.
    pub(super) metrics: Vec<Wanted>,
}

/// A figure that is a metric; `{parameter}` stands for the value at a setting.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    pub(super) id: String,
    pub(super) group: String,
    pub(super) name: String,
    /// The interval's name in the script; empty if the figure is a slope.
    #[serde(default)]
    pub(super) of: String,
    /// The line's name, if it is a slope.
    pub(super) line: Option<String>,
    /// If not empty, only settings with these values.
    #[serde(default)]
    at: BTreeMap<String, String>,
}

impl Wanted {
    pub(super) fn is_in(&self, parameters: &BTreeMap<String, String>) -> bool {
        let has = |(name, value): (&String, &String)| parameters.get(name) == Some(value);
        self.at.iter().all(has)
    }
}

/// All groups of the survey.
pub(super) static CHOSEN: LazyLock<Vec<Chosen>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct All {
        chosen: Vec<Chosen>,
    }
    let all: All = toml::from_str(include_str!("chosen.toml")).expect("chosen.toml is whole");
    all.chosen
});
