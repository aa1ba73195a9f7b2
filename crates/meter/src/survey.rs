//! Characterises this machine in one run of about a minute. The figures can be compared with those
//! of another machine, or of another day.
//!
//! **Method.** A survey uses the same measurements as the other commands. Clocks are audited as by
//! `undertick clock`, and so is the speed of each CPU. The rest is a selection of the
//! [primitives](undertick_experiment::primitives): the same scripts with chosen settings, performed
//! and analysed by the same code. An interval therefore includes the differences between repetitions in fresh
//! processes, which are spread over the survey.
//!
//! **Caveats.** No interval contains what drifts more slowly than a survey lasts.

mod clocks;
mod host;
pub(crate) use host::machine;
mod interference;
mod primitives;
mod speed;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use undertick_document::Warning;
use undertick_report::survey::{KIND, Metric, Missing, SCHEMA_VERSION, Survey};

use speed::Speeds;
pub use speed::spread_of_cpus;
use undertick_calibrate::audit;
use undertick_experiment::Machine;

/// Options of a survey.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Level of the intervals.
    pub level: f64,
    /// Fewer and shorter repetitions, in a quarter of the time.
    pub quick: bool,
    /// Options of the interference meter, except its length and level; `None`: the meter does not
    /// run.
    pub meter: Option<&'a crate::interference::Request>,
    /// Becomes true when the survey is to end with the complete parts.
    pub stop: &'a AtomicBool,
}

impl Request<'_> {
    fn stopped(self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A survey, and what failed in it.
#[derive(Debug)]
pub struct Surveyed {
    /// The document.
    pub survey: Survey,
    /// Why parts failed that this machine should be able to measure.
    pub failed: Option<String>,
}

/// Parts of the survey: the text of the progress bar, and the share of the time that has passed
/// when the part begins.
const CLOCKS: (&str, f64) = ("clocks", 0.0);
const SPEEDS: (&str, f64) = ("speed of the CPUs", 0.08);
const PRIMITIVES: (&str, f64) = ("primitives", 0.1);
const KEEPING: (&str, f64) = ("analysing", 0.55);
const INTERFERENCE: (&str, f64) = ("interference", 0.65);

/// Reason for the missing parts after Ctrl-C.
const INTERRUPTED: &str = "interrupted before it";

/// The results that a survey has so far.
#[derive(Default)]
struct SurveyResults {
    metrics: Vec<Metric>,
    missing: Vec<Missing>,
    warnings: Vec<Warning>,
    interrupted: bool,
    failed: Option<String>,
}

/// Surveys the machine; calls `progress` with the current part and the share done.
pub fn run(
    machine: &dyn Machine,
    request: Request<'_>,
    progress: &mut dyn FnMut(&'static str, f64),
) -> Surveyed {
    let (begun, begun_at) = (SystemTime::now(), Instant::now());
    let mut found = SurveyResults::default();
    let mut speeds = Speeds::new();
    speeds.visit();
    let audit = audit::run(request.level, |share| {
        progress(CLOCKS.0, share * SPEEDS.1);
    });
    clocks::add(&mut found, &audit);
    progress(SPEEDS.0, SPEEDS.1);
    speeds.visit();
    if request.stopped() {
        found.interrupted = true;
        primitives::lack_all(&mut found, INTERRUPTED);
    } else {
        primitives::add(&mut found, machine, request, progress);
    }
    progress(SPEEDS.0, KEEPING.1);
    speeds.visit();
    if request.stopped() || found.interrupted {
        found.interrupted = true;
        found.lack("interference.*", INTERRUPTED);
    } else {
        progress(INTERFERENCE.0, INTERFERENCE.1);
        let share = |share: f64| INTERFERENCE.1 + share.min(1.0) * (1.0 - INTERFERENCE.1);
        interference::add(&mut found, request, |done| {
            progress(INTERFERENCE.0, share(done))
        });
        speeds.visit();
    }
    speeds.add(&mut found, request.level);
    progress(INTERFERENCE.0, 1.0);
    found.finish(begun, begun_at, &audit, request.level)
}

impl SurveyResults {
    fn lack(&mut self, id: impl Into<String>, why: impl Into<String>) {
        self.missing.push(Missing {
            id: id.into(),
            why: why.into(),
        });
    }

    /// Adds a metric, or reports that it has no interval.
    fn add(&mut self, metric: Metric) {
        let interval = metric.estimate.interval;
        let bounds = [interval.lo, interval.hi].map(|b| b.filter(|b| b.is_finite()));
        match bounds {
            [Some(_), Some(_)] if metric.estimate.value.is_finite() => self.metrics.push(metric),
            _ => self.lack(metric.id, "too few repetitions for an interval"),
        }
    }

    fn warn(&mut self, code: &str, text: impl Into<String>) {
        self.warnings.push(Warning {
            code: code.to_owned(),
            text: text.into(),
        });
    }

    fn finish(
        mut self,
        begun: SystemTime,
        begun_at: Instant,
        audit: &undertick_report::audit::Audit,
        level: f64,
    ) -> Surveyed {
        let groups = undertick_report::survey::GROUPS.map(|(group, _)| group);
        let place = |m: &Metric| groups.iter().position(|g| *g == m.group);
        self.metrics.sort_by_key(place);
        let since = begun.duration_since(UNIX_EPOCH).unwrap_or_default();
        Surveyed {
            survey: Survey {
                schema_version: SCHEMA_VERSION,
                kind: KIND.to_owned(),
                host: host::here(audit),
                begun_unix_s: since.as_secs_f64(),
                took_s: begun_at.elapsed().as_secs_f64(),
                confidence: level,
                interrupted: self.interrupted,
                metrics: self.metrics,
                warnings: self.warnings,
                missing: self.missing,
            }
            .without_impossible(),
            failed: self.failed,
        }
    }
}

#[cfg(test)]
#[path = "survey/tests.rs"]
mod tests;
