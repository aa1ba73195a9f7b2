//! Selects the estimator of a run.

use std::str::FromStr;

use super::script::Script;

/// An estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// Counts ticks in the unmodified loop.
    Counts,
    /// Counts ticks with a delay in each cycle that steps the phase.
    Stepped,
    /// The loop waits for edges of the tick.
    Edges,
    /// Edges where the script may wait, otherwise stepped where it may be delayed, otherwise
    /// counts.
    Auto,
}

impl Estimator {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Counts => "counts",
            Self::Stepped => "stepped",
            Self::Edges => "edges",
            Self::Auto => "auto",
        }
    }

    /// The estimator to use, and the reason if the choice was left to the program.
    pub(super) fn chosen(self, script: &Script) -> (Self, Option<String>) {
        let because = |why: &str| Some(why.to_owned());
        match self {
            Self::Auto if script.may_wait => {
                (Self::Edges, because("the script may wait for ticks"))
            }
            Self::Auto if script.may_delay => (
                Self::Stepped,
                because("small delays make it independent of how loop and tick happen to fit"),
            ),
            Self::Auto => (Self::Counts, because("the script allows no delays")),
            asked => (asked, None),
        }
    }
}

impl FromStr for Estimator {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        [Self::Counts, Self::Stepped, Self::Edges, Self::Auto]
            .into_iter()
            .find(|e| e.name() == name)
            .ok_or_else(|| format!("{name:?}: there are counts, stepped, edges and auto"))
    }
}
