//! The slow-down by other programs: the figures of the interference meter.

use std::time::Duration;

use undertick_report::interference::Interference;
use undertick_report::survey::{Better, Metric, Scale};
use undertick_units::Estimate;

use super::{INTERRUPTED, Request, SurveyResults};
use crate::interference::{Request as Meter, measure};

/// Duration of the probe.
const LENGTH: Duration = Duration::from_secs(15);
/// Duration of the probe in a quick survey.
const QUICK_LENGTH: Duration = Duration::from_secs(4);

/// Measures and adds the figures; without a meter, or if it fails, they are reported as missing.
pub(super) fn add(found: &mut SurveyResults, request: Request<'_>, progress: impl FnMut(f64)) {
    let Some(meter) = request.meter else {
        return found.lack("interference.*", "not measured: no meter was asked for");
    };
    let mut meter: Meter = meter.clone();
    meter.level = request.level;
    meter.schedule.total = Some(match request.quick {
        true => QUICK_LENGTH,
        false => LENGTH,
    });
    match measure(&meter, progress) {
        Ok(measured) => {
            found.interrupted |= measured.interrupted;
            metrics(&measured).into_iter().for_each(|m| found.add(m));
            found.warnings.extend(measured.warnings);
        }
        Err(_) if request.stopped() => found.lack("interference.*", INTERRUPTED),
        Err(error) => found.lack("interference.*", format!("not measured: {}", error.text)),
    }
}

/// The meter's document as metrics.
fn metrics(measured: &Interference) -> Vec<Metric> {
    let mut all = vec![metric(
        "interference.mean_loss",
        "speed lost in all",
        measured.mean_loss.clone(),
        "share of the speed of a memory stream that was lost, whatever the cause",
    )];
    all.extend(measured.losses.iter().map(|loss| {
        metric(
            &format!("interference.loss.{}", loss.cause.replace('-', "_")),
            &format!("lost to {}", words(&loss.cause)),
            loss.share.clone(),
            "its part of the speed lost in all",
        )
    }));
    all.extend(measured.probe.clean_rate.clone().map(|rate| Metric {
        better: Better::Higher,
        scale: Scale::Ratio,
        ..metric(
            "interference.clean_rate",
            "memory stream, undisturbed",
            rate,
            "cache lines read one after the other in a second, by one CPU while nothing slows it",
        )
    }));
    all.extend(measured.reference_drift.clone().map(|drift| {
        metric(
            "interference.core_drift",
            "drift of the core's speed",
            drift,
            "how far the speed of a register loop moved meanwhile, relative",
        )
    }));
    all
}

fn metric(id: &str, name: &str, estimate: Estimate, includes: &str) -> Metric {
    Metric {
        scale: Scale::Difference,
        ..Metric::new(id, "interference", name, estimate, includes)
    }
}

fn words(cause: &str) -> String {
    match cause {
        "slowed" => "slower memory".to_owned(),
        "same-cpu-process" => "processes on the same CPU".to_owned(),
        "host" => "the host".to_owned(),
        "short" => "interrupts and the like".to_owned(),
        other => other.to_owned(),
    }
}
