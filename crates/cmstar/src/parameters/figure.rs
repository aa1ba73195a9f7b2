//! Published figures.

use serde::Deserialize;

/// A figure of the paper.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Its name in the parameters file.
    pub name: String,
    /// Its description.
    pub about: String,
    /// Its place in the paper.
    pub place: String,
    /// Its value; for a range the lower end.
    pub value: f64,
    /// The upper end of a range.
    pub to: Option<f64>,
    /// Its unit.
    pub unit: String,
    /// Its use.
    #[serde(rename = "use")]
    pub used_for: Use,
}

/// The use of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Use {
    /// Parameters were fitted to it.
    Fit,
    /// It is only used to check the results.
    Check,
}
