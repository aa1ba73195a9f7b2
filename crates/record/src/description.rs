//! The description of a recording in its manifest.

use std::time::SystemTime;

use undertick_clock::{ClockId, Source};
use undertick_format::identity::ClockIdentity;
use undertick_format::manifest::{Anchor, Flight, Manifest, TraceHost};
use undertick_format::{TraceError, manifest};

use crate::accounts::GivenUp;
use crate::output;
use crate::perturbation;
use crate::request::Request;
use crate::session::Session;
use crate::trace_dir::TraceDir;
use crate::triggers::Triggers;

/// Writes the manifest of a finished recording, and only then removes the session. If the disk
/// has no room for the manifest, it stays in the session.
pub(crate) fn keep_manifest(
    trace: &TraceDir,
    manifest: &Manifest,
    mut session: Session,
) -> Result<(), TraceError> {
    let without = Manifest {
        session: None,
        session_identity: None,
        ..manifest.clone()
    };
    let Err(error) = output::write_manifest(trace, &without) else {
        return Ok(());
    };
    let place = session.dir().to_owned();
    if !serde_json::to_vec(manifest).is_ok_and(|text| session.keep_with(&text)) {
        return Err(error);
    }
    Err(TraceError::Recording(format!(
        "{error}; names, exit status and accounts are kept in {} until `undertick record --finish {}` has room for them",
        place.display(),
        trace.path_now().display()
    )))
}

/// A warning for a trace that has been moved since it was made.
pub(crate) fn moved(trace: &TraceDir) -> Option<String> {
    let now = trace.path_now();
    (now != trace.path()).then(|| {
        format!(
            "the trace directory was moved while it was recorded: it is {}",
            now.display()
        )
    })
}

pub(crate) const fn nothing_recorded(session: &Session) -> &'static str {
    if session.is_attached() {
        "the program passed no measuring point while it was recorded"
    } else {
        "the program recorded no event: is it built with undertick.h or the undertick crate, and not with UNDERTICK_DISABLE?"
    }
}

/// Adds the account of a flight recorder to the manifest.
pub(crate) fn flight(manifest: &mut Manifest, given_up: GivenUp, snapshot_unix_ns: Option<i64>) {
    manifest.flight = Some(Flight {
        snapshot_unix_ns,
        given_up_rings: given_up.rings,
        given_up_events: given_up.events,
    });
    manifest.lost = manifest.lost.saturating_add(given_up.events);
    if given_up.rings > 0 {
        manifest.warnings.push(format!(
            "{} threads that had ended are not in the trace, nor the {} events they wrote: the last ones that ended are, as far as there was room",
            given_up.rings, given_up.events
        ));
    }
}

pub(crate) fn anchor(clock: ClockId) -> Option<Anchor> {
    let source = Source::open(clock).ok()?;
    let anchor = undertick_clock::bracket::anchor(source, 1)?;
    Some(Anchor {
        ticks: anchor.ticks as i64,
        unix_ns: anchor.unix_ns,
        error_ns: anchor.error_ns,
    })
}

pub(crate) fn first_manifest(request: &Request, session: &Session) -> Manifest {
    let uname = rustix::system::uname();
    let text = |c: &std::ffi::CStr| c.to_string_lossy().into_owned();
    let facts = &request.facts;
    let rate = &facts.rate.claim;
    let mut warnings = session.warnings.clone();
    if let undertick_clock::Why::Fallback(why) = &request.choice.why {
        warnings.push(format!(
            "recorded with {} because the counter is not usable: {why}",
            facts.clock.name()
        ));
    }
    warnings.extend(facts.rate.refused.iter().map(ToString::to_string));
    let started = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let host = manifest::Host {
        name: text(uname.nodename()),
        kernel: text(uname.release()),
        arch: text(uname.machine()),
        cpus: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        cpu_model: cpu_model(),
    };
    let clock = manifest::Clock {
        name: facts.clock.name().to_owned(),
        ticks_per_second_numerator: rate.rate.numerator(),
        ticks_per_second_denominator: rate.rate.denominator(),
        rate_source: rate.source.name().to_owned(),
        rate_error_ppb: rate.error_ppb,
        granularity_ticks: facts.granularity.map_or(1.0, |g| g.step_ticks),
        read_cost_ns_median: facts.read_cost.map_or(f64::NAN, |cost| cost.cost_ns_median),
        anchors: anchor(facts.clock).into_iter().collect(),
        across_cpus: crate::clock_check::across_cpus(facts),
    };
    let overflow = format!("{:?}", session.settings().overflow).to_lowercase();
    let begun = Manifest::new(host, clock, &overflow);
    Manifest {
        started_unix_ns: i64::try_from(started.as_nanos()).unwrap_or(i64::MAX),
        command: request
            .command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        descheduled: crate::descheduled_self_test(),
        calibration: request.calibration.clone(),
        recorder: manifest::Recorder {
            ring_bytes: session.settings().ring_bytes,
            budget_bytes: session.budget_bytes(),
            triggers: request.triggers.as_ref().map(Triggers::settings),
            with: (request.with.iter())
                .map(|library| library.name().to_owned())
                .collect(),
            ..begun.recorder
        },
        names: request.names.clone(),
        perturbation: request
            .perturbation
            .as_ref()
            .map(perturbation::Wanted::about),
        hosts: vec![TraceHost {
            name: text(uname.nodename()),
            clock: ClockIdentity::here(facts.clock),
            ticks_per_second_numerator: rate.rate.numerator(),
            ticks_per_second_denominator: rate.rate.denominator(),
            merged: None,
            map: None,
        }],
        session: Some(session.dir().to_string_lossy().into_owned()),
        warnings,
        ..begun
    }
}

fn cpu_model() -> String {
    std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_default()
}
