//! The choice of slow spans.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::str::FromStr;

use hdrhistogram::Histogram;
use undertick_format::TraceError;
use undertick_format::read::Trace;
use undertick_trigger::{Condition, Limit, Rule};

use super::spans::{ClosedSpan, Output, Spans};
use super::{Chosen, Counts};
use crate::export::drive;

/// Digits to which a quantile is known.
const DIGITS: u8 = 3;
/// Most spans that can be chosen: 16 bytes of memory each.
const MOST_CHOSEN: usize = 1 << 25;

/// A choice of slow spans, such as `request > p99`, `request > 5ms` or `request > 4 x median`.
#[derive(Clone, Debug, PartialEq)]
pub struct Only {
    name: String,
    limit: Limit,
}

impl Only {
    /// The name of the spans.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl FromStr for Only {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rule: Rule = text.parse().map_err(|error| format!("{error}"))?;
        match rule.condition() {
            Condition::Longer { name, limit } => Ok(Self {
                name: name.clone(),
                limit: *limit,
            }),
            _ => Err(format!(
                "{text}: chooses no spans; write NAME > LIMIT, e.g. 'request > 5ms' or 'request > p99'"
            )),
        }
    }
}

/// The spans that were chosen.
pub(super) struct Slow {
    /// Ring and row of their begins.
    pub(super) rows: HashSet<(i32, u64)>,
    pub(super) chosen: Chosen,
}

impl Slow {
    /// Reads the trace, twice if the limit depends on the spans. Until the rest is known, all spans
    /// count as left out.
    pub(super) fn find(trace: &Trace, only: &Only) -> Result<Self, TraceError> {
        let limit_ns = match only.limit {
            Limit::Nanoseconds(ns) => ns as u64,
            Limit::Quantile(share) => quantile(trace, &only.name, share)?,
            Limit::Medians(times) => (quantile(trace, &only.name, 0.5)? as f64 * times) as u64,
        };
        let mut found = Slow {
            rows: HashSet::new(),
            chosen: Chosen {
                limit_ns,
                of_name: 0,
                slow: 0,
                left_out: 0,
            },
        };
        each(trace, &only.name, |ns, at| {
            found.chosen.of_name += 1;
            if ns > limit_ns {
                if found.rows.len() >= MOST_CHOSEN {
                    return Err(io::Error::other(format!(
                        "more than {MOST_CHOSEN} spans of {} are slower; choose a higher limit",
                        only.name
                    )));
                }
                found.rows.insert(at);
            }
            Ok(())
        })
        .map(|all| found.chosen.left_out = all)?;
        found.chosen.slow = found.rows.len() as u64;
        if found.chosen.of_name == 0 {
            return Err(none(&only.name));
        }
        Ok(found)
    }
}

fn none(name: &str) -> TraceError {
    TraceError::Usage(format!(
        "no span of the name {name:?} has ended in this trace; undertick report lists the names"
    ))
}

/// Returns a quantile of the durations of the spans of a name, ns, to three digits.
fn quantile(trace: &Trace, name: &str, share: f64) -> Result<u64, TraceError> {
    let mut durations = Histogram::<u64>::new(DIGITS).expect("0 to 5 digits");
    each(trace, name, |ns, _| {
        durations.record(ns).map_err(io::Error::other)
    })?;
    match durations.is_empty() {
        true => Err(none(name)),
        false => Ok(durations.value_at_quantile(share)),
    }
}

/// Calls `take` with duration and begin of each finished span of a name. Returns the number of all
/// spans of the trace.
fn each(
    trace: &Trace,
    name: &str,
    take: impl FnMut(u64, (i32, u64)) -> io::Result<()>,
) -> Result<u64, TraceError> {
    struct Durations<'a, F> {
        name: &'a str,
        take: F,
    }

    impl<F: FnMut(u64, (i32, u64)) -> io::Result<()>> Output for Durations<'_, F> {
        const HAS_POINTS: bool = false;

        fn span(&mut self, span: ClosedSpan<'_>) -> io::Result<()> {
            if span.is_finished && span.name == self.name {
                (self.take)(span.end_ns.abs_diff(span.start_ns), span.at)?;
            }
            Ok(())
        }

        fn finish(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut counts = Counts::default();
    let out = Durations { name, take };
    let spans = Spans::new(trace, out, None, &mut counts);
    drive(trace, Path::new("--only"), &[], &mut |_| {}, spans)?;
    Ok(counts.spans)
}
