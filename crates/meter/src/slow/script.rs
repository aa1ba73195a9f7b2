//! The script of a slow run, version 1.

use core::ops::RangeInclusive;

use serde::Deserialize;
use toml::Spanned;

use undertick_experiment::script::{
    BadScript, MOST_PASSES, in_range, nanos, none_of, seconds_in_range,
};

use super::step::Step;

/// A loop, and how long it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Length of the run.
    pub length: Length,
    /// Cycles before the first one that counts.
    pub warm_up: u64,
    /// Whether the loop may wait for tick edges.
    pub may_wait: bool,
    /// Whether a delay may be added to each cycle.
    pub may_delay: bool,
    /// Shots per activity if the loop waits for edges.
    pub shots: u64,
    /// The activities, in order.
    pub activities: Vec<Activity>,
}

/// Length of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// That many cycles.
    Cycles(u64),
    /// That many seconds.
    Seconds(f64),
}

/// Steps between two points.
#[derive(Clone, Debug, PartialEq)]
pub struct Activity {
    /// Its name.
    pub name: String,
    /// Its steps.
    pub steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    cycles: Option<Spanned<u64>>,
    seconds: Option<Spanned<f64>>,
    warm_up: Option<Spanned<u64>>,
    #[serde(default)]
    may_wait: bool,
    #[serde(default = "yes")]
    may_delay: bool,
    shots: Option<Spanned<u64>>,
    step: Spanned<Vec<Spanned<RawStep>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    name: Option<String>,
    work: Option<Spanned<String>>,
    sleep: Option<Spanned<String>>,
    pace: Option<Spanned<String>>,
    call: Option<Spanned<String>>,
    #[serde(default = "yes")]
    point: bool,
}

const fn yes() -> bool {
    true
}

/// Default, minimum and maximum number of shots per activity. Each takes at least one tick of the
/// clock and is kept: a million are 17 minutes of a clock of milliseconds.
const USUAL_SHOTS: u64 = 64;
const FEWEST_SHOTS: u64 = 8;
const MOST_SHOTS: u64 = 1_000_000;
/// Minimum number of cycles that have a scatter.
const FEWEST_CYCLES: u64 = 2;
/// Maximum number of steps of a loop.
const MOST_STEPS: usize = 1000;

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// Gives the place of the first mistake, and the correct form.
    pub fn parse(text: &str) -> Result<Self, BadScript> {
        let raw: Raw = toml::from_str(text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start);
            bad(text, at, with_nearest(e.message()))
        })?;
        let length = length(text, &raw)?;
        let warm_up = whole(text, "warm_up", raw.warm_up.as_ref(), 0..=MOST_PASSES)?;
        let shots = whole(text, "shots", raw.shots.as_ref(), 1..=MOST_SHOTS)?;
        if raw.step.get_ref().len() > MOST_STEPS {
            let why = format!("a loop has at most {MOST_STEPS} steps; leave some out");
            return Err(bad(text, raw.step.span().start, why));
        }
        let mut activities: Vec<Activity> = Vec::new();
        for raw_step in raw.step.get_ref() {
            let at = raw_step.span().start;
            let raw_step = raw_step.get_ref();
            let step = step(text, at, raw_step)?;
            if let (false, Some(last)) = (raw_step.point, activities.last_mut()) {
                last.steps.push(step);
                continue;
            }
            let name = raw_step.name.clone();
            let name = name.unwrap_or_else(|| format!("{} {}", activities.len() + 1, step));
            if activities.iter().any(|a| a.name == name) {
                return Err(bad(text, at, format!("there are two steps named {name:?}")));
            }
            activities.push(Activity {
                name,
                steps: vec![step],
            });
        }
        if activities.is_empty() {
            return Err(bad(
                text,
                raw.step.span().start,
                "no step in the loop".to_owned(),
            ));
        }
        Ok(Self {
            length,
            warm_up: warm_up.unwrap_or(0),
            may_wait: raw.may_wait,
            may_delay: raw.may_delay,
            shots: shots.unwrap_or(USUAL_SHOTS).max(FEWEST_SHOTS),
            activities,
        })
    }

    /// Whether a step gives the CPU away by itself.
    #[must_use]
    pub fn blocks(&self) -> bool {
        let mut steps = self.activities.iter().flat_map(|a| &a.steps);
        steps.any(Step::blocks)
    }
}

fn length(text: &str, raw: &Raw) -> Result<Length, BadScript> {
    match (&raw.cycles, &raw.seconds) {
        (Some(cycles), None) => {
            let range = FEWEST_CYCLES..=MOST_PASSES;
            in_range("cycles", (*cycles.get_ref()).into(), &range)
                .map(Length::Cycles)
                .map_err(|why| bad(text, cycles.span().start, why))
        }
        (None, Some(seconds)) => seconds_in_range("seconds", *seconds.get_ref())
            .map(Length::Seconds)
            .map_err(|why| bad(text, seconds.span().start, why)),
        (Some(_), Some(seconds)) => {
            let why = "give cycles or seconds, not both".to_owned();
            Err(bad(text, seconds.span().start, why))
        }
        (None, None) => {
            let why = "say how long: cycles = 20000 or seconds = 10.0".to_owned();
            Err(bad(text, 0, why))
        }
    }
}

/// An optional whole number.
fn whole(
    text: &str,
    key: &str,
    given: Option<&Spanned<u64>>,
    range: RangeInclusive<u64>,
) -> Result<Option<u64>, BadScript> {
    let checked = given.map(|given| {
        in_range(key, (*given.get_ref()).into(), &range)
            .map_err(|why| bad(text, given.span().start, why))
    });
    checked.transpose()
}

fn step(text: &str, at: usize, raw: &RawStep) -> Result<Step, BadScript> {
    let one_of = || {
        let why = "a step is one of work = \"50us\", sleep = \"1ms\", pace = \"500us\", call = \"getppid\"";
        bad(text, at, why.to_owned())
    };
    let duration = |value: &Spanned<String>| {
        duration_ns(value.get_ref()).ok_or_else(|| {
            let why = format!(
                "{:?} is no duration; write e.g. 50us, 2.5ms or 1s",
                value.get_ref()
            );
            bad(text, value.span().start, why)
        })
    };
    match (&raw.work, &raw.sleep, &raw.pace, &raw.call) {
        (Some(work), None, None, None) => Ok(Step::Work {
            ns: duration(work)?,
        }),
        (None, Some(sleep), None, None) => Ok(Step::Sleep {
            ns: duration(sleep)?,
        }),
        (None, None, Some(pace), None) => Ok(Step::Pace {
            ns: duration(pace)?,
        }),
        (None, None, None, Some(call)) => Step::call(call.get_ref()).ok_or_else(|| {
            let why = none_of("there is no call", call.get_ref(), &Step::CALLS);
            bad(text, call.span().start, why)
        }),
        _ => Err(one_of()),
    }
}

fn bad(text: &str, at: usize, why: String) -> BadScript {
    BadScript::at(text, at, why)
}

/// Nanoseconds of `50us`, `2.5ms`, `1s`, `800ns`: above 0, below 1000 s.
#[must_use]
pub fn duration_ns(text: &str) -> Option<f64> {
    nanos(text).filter(|&ns| ns > 0.0 && ns < 1e12)
}

/// Adds the most similar known field to a message about an unknown one.
fn with_nearest(message: &str) -> String {
    let mut names = message.split('`').skip(1).step_by(2);
    match (message.contains("unknown field"), names.next()) {
        (true, Some(wrong)) => none_of("there is no key", wrong, &names.collect::<Vec<_>>()),
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests;
