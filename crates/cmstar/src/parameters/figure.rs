//! Published figures.

use serde::Deserialize;

/// A figure of the paper.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Its name here.
    pub name: String,
    /// What it is, in words.
    pub about: String,
    /// Where in the paper.
    pub place: String,
    /// Its value; of a range the lower end.
    pub value: f64,
    /// The upper end of a range.
    pub to: Option<f64>,
    /// Its unit.
    pub unit: String,
    /// What it was used for.
    #[serde(rename = "use")]
    pub used_for: Use,
}

/// What a figure was used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Use {
    /// Parameters were fitted to it.
    Fit,
    /// Only to check what came out.
    Check,
}
