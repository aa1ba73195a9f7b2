//! Options of an analysis.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use crate::table::Table;

/// Options of an analysis.
#[derive(Clone, Debug)]
pub struct Options {
    /// The intervals and frequencies wanted; without a table, every pair that the events
    /// themselves form.
    pub table: Option<Table>,
    /// Which samples to drop.
    pub cull: Cull,
    /// Whether to subtract the cost of recording.
    pub compensate: Compensate,
    /// Level of every confidence interval, above 0 and below 1.
    pub confidence: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            table: None,
            cull: Cull::Auto,
            compensate: Compensate::Auto,
            confidence: 0.95,
        }
    }
}

/// Which samples to drop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cull {
    /// As `Kernel` where the trace holds kernel events; otherwise samples during which the thread
    /// was descheduled, as its records say.
    Auto,
    /// Samples that were disturbed according to the kernel's events: by a preemption, an
    /// interrupt or a migration, not by waiting of the thread itself.
    Kernel,
    /// Samples over this many times the smallest (TRAMS, pass 2): a fallback without evidence,
    /// and marked so.
    Ratio(f64),
    /// No samples.
    None,
}

impl FromStr for Cull {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let ratio = text
            .strip_prefix("ratio:")
            .and_then(|r| r.parse::<f64>().ok())
            .filter(|r| r.is_finite() && *r > 1.0);
        match (text, ratio) {
            ("auto", _) => Ok(Self::Auto),
            ("kernel", _) => Ok(Self::Kernel),
            ("none", _) => Ok(Self::None),
            (_, Some(ratio)) => Ok(Self::Ratio(ratio)),
            _ => Err(Error::Option {
                option: "--cull",
                given: text.into(),
                mend: "use auto, kernel, none, or ratio:R with R above 1, e.g. ratio:4".into(),
            }),
        }
    }
}

impl fmt::Display for Cull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Kernel => f.write_str("kernel"),
            Self::Ratio(r) => write!(f, "ratio:{r}"),
            Self::None => f.write_str("none"),
        }
    }
}

/// Whether to subtract the cost of recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compensate {
    /// The calibrated cost, if the trace has a calibration.
    Auto,
    /// Nothing.
    None,
    /// The mean cost of a reading over the whole run.
    LongTerm,
    /// Pairs of readings around each sample.
    Pairs,
    /// Pairs read by a process beside the program.
    Sampler,
    /// Pairs with fitted coefficients.
    ControlVariate,
}

impl Compensate {
    const ALL: [(Self, &str); 6] = [
        (Self::Auto, "auto"),
        (Self::None, "none"),
        (Self::LongTerm, "long-term"),
        (Self::Pairs, "pairs"),
        (Self::Sampler, "sampler"),
        (Self::ControlVariate, "control-variate"),
    ];
}

impl FromStr for Compensate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found
            .map(|(method, _)| *method)
            .ok_or_else(|| Error::Option {
                option: "--compensate",
                given: text.into(),
                mend: "use one of auto, none, long-term, pairs, sampler, control-variate".into(),
            })
    }
}

impl fmt::Display for Compensate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(method, _)| method == self);
        f.write_str(name.map_or("auto", |(_, name)| name))
    }
}

impl Options {
    /// Refuses invalid options.
    ///
    /// # Errors
    /// A level outside 0..1.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            return Err(Error::Option {
                option: "--confidence",
                given: self.confidence.to_string(),
                mend: "use a level above 0 and below 1, e.g. 0.95".into(),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
