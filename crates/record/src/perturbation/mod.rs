//! Switches measuring points off and on at random while the program runs, so that their cost is
//! measured instead of assumed.
//!
//! **Question.** By how much do the points inside a span slow it?
//!
//! **Method.** Time is cut into pairs of neighbouring halves of equal length. In one half, drawn
//! at random, all points record; in the other one those inside the spans in question do not. Each
//! switch is a row of the trace with the readings before and after it, so the analysis knows
//! which samples lie in which half. A constant per point cannot answer the question: readings
//! overlap with the work around them by an amount that depends on the code.
//!
//! **Caveats.** Points that are off still check whether they are on: below a nanosecond each, and
//! not in the figure. The page that they check and what the recorder writes occupy the caches;
//! effects that take longer than a half to build up are seen only in part.

mod levels;
mod switcher;

pub(crate) use levels::Levels;
pub(crate) use switcher::{Epoch, Switcher};

use std::sync::atomic::AtomicU64;

use undertick_format::TraceError;
use undertick_format::manifest::{Kernel, Name, Perturbation};

/// Which points are switched off and on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The points inside at least this many open spans. Points inside fewer stay on, and are the
    /// subject of the figures: 1 keeps the outermost spans, and instants outside of all spans.
    Level(u32),
    /// All points but those of these events.
    Kept(Vec<u16>),
    /// No points, but the kernel's trace (tracefs): measures the cost of recording its events.
    Kernel,
}

impl Wanted {
    /// Parses the option of the command line: a level, or `keep=EVENT[,EVENT...]` by number or by
    /// a name of `names`.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn parse(text: &str, names: &[Name]) -> Result<Self, TraceError> {
        let wrong = |why: String| {
            TraceError::Usage(format!(
                "--perturbation {text}: {why}; give a level (1: the outermost spans stay on, \
                 what lies inside is switched off and on), keep=EVENT[,EVENT...] for the events that \
                 stay on, or kernel for the kernel's own events"
            ))
        };
        if text == Perturbation::KERNEL {
            return Ok(Self::Kernel);
        }
        let Some(list) = text.strip_prefix("keep=") else {
            return match text.parse() {
                Ok(0) => Err(wrong(
                    "at level 0 nothing stays on that could be measured".to_owned(),
                )),
                Ok(level) => Ok(Self::Level(level)),
                Err(_) => Err(wrong("not a level".to_owned())),
            };
        };
        let event = |word: &str| {
            let known = names.iter().find(|name| name.name == word);
            known
                .map(|name| name.event)
                .or_else(|| word.parse().ok())
                .ok_or_else(|| {
                    wrong(format!(
                        "{word:?} is neither a number of an event nor a name in the file of --events"
                    ))
                })
        };
        let kept: Vec<u16> = list.split(',').map(event).collect::<Result<_, _>>()?;
        Ok(Self::Kept(kept))
    }
}

impl Wanted {
    /// The description for the manifest before anything was switched.
    pub(crate) fn about(&self) -> Perturbation {
        let asked = match self {
            Self::Level(level) => level.to_string(),
            Self::Kernel => Perturbation::KERNEL.to_owned(),
            Self::Kept(kept) => {
                let kept: Vec<String> = kept.iter().map(ToString::to_string).collect();
                format!("keep={}", kept.join(","))
            }
        };
        Perturbation {
            asked,
            kept: Vec::new(),
            pairs: 0,
            half_ns: 0,
        }
    }
}

/// The error for a kernel trace that cannot be switched.
pub(crate) fn without_tracefs(kernel: Option<&Kernel>) -> TraceError {
    let source = kernel.and_then(|k| k.sources.iter().find(|of| of.name == "tracefs"));
    TraceError::Recording(format!(
        "--perturbation kernel: the kernel's trace (tracefs) cannot be used here: {}",
        source.map_or("not asked for", |source| source.why.as_str())
    ))
}

/// A warning for the user where there is no result.
pub(crate) fn remark(found: &Perturbation) -> Option<String> {
    let why = if found.is_of_kernel() && found.half_ns == 0 {
        "no event had 20 whole sections after the first 0.1 s"
    } else if found.kept.is_empty() {
        "no event was found that stays on"
    } else if found.half_ns == 0 {
        "the events that stay on had no other points inside them, or fewer than 20 whole sections \
         after the first 0.1 s"
    } else {
        return None;
    };
    Some(format!(
        "the perturbation was not measured (--perturbation {}): {why}; nothing was switched",
        found.asked
    ))
}

/// What the learning thread tells the switching thread.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Length of a half, ns; 0: not known yet.
    pub(crate) half_ns: AtomicU64,
}

#[cfg(test)]
mod tests;
