//! Combines the manifests of several traces.

use std::collections::{BTreeSet, HashSet};

use undertick_format::manifest::{
    Balance, Descheduled, Exit, Kernel, LockName, Manifest, Name, Part, Recorder, Ring, Sampled,
    State, Thread,
};
use undertick_format::manifest::{Merged, TraceHost};
use undertick_format::manifest_file::MOST_NAMES;
use undertick_format::read::Trace;

use super::align::Alignment;
use super::extent::{Extent, identity};
use super::rows::shifted;

/// The traces to be combined.
pub(super) struct Input<'a> {
    pub(super) traces: &'a [Trace],
    pub(super) extents: &'a [Extent],
    /// The numbers added to ring numbers and to process numbers, by host.
    pub(super) shifts: &'a [(i32, i32)],
}

/// Returns the combined manifest without events: values that cannot be combined are the first
/// trace's, others add up over all traces.
pub(super) fn manifest(
    input: &Input<'_>,
    alignment: Alignment,
    notes: Vec<String>,
    parts: Vec<Part>,
) -> Manifest {
    let all = || input.traces.iter().map(|trace| &trace.manifest);
    let first = &input.traces[0].manifest;
    let mut warnings = warnings(input, &alignment);
    warnings.extend(notes);
    let commands: Vec<Vec<String>> = all().map(|m| m.command.clone()).collect();
    let duration_ns = duration_ns(input, &alignment);
    Manifest {
        state: State::Complete,
        undertick_version: env!("CARGO_PKG_VERSION").to_owned(),
        duration_ns,
        command: commands.join(&"+".to_owned()),
        exit: all()
            .map(|m| m.exit)
            .find(|exit| !exit.is_some_and(is_clean))
            .unwrap_or(first.exit),
        descheduled: if all().all(|m| m.descheduled == first.descheduled) {
            first.descheduled
        } else {
            Descheduled::Unavailable
        },
        // Each host's calibration is among the hosts.
        calibration: None,
        names: (0..input.traces.len())
            .flat_map(|h| names(input, h))
            .take(MOST_NAMES + 1) // too many are refused where they are written
            .collect(),
        threads: (0..input.traces.len())
            .flat_map(|h| threads(input, h))
            .collect(),
        locks: (0..input.traces.len())
            .flat_map(|h| locks(input, h))
            .collect(),
        rings: (0..input.traces.len())
            .flat_map(|h| rings(input, h))
            .collect(),
        recorder: Recorder {
            with: with(input),
            ..first.recorder.clone()
        },
        sampled: (0..input.traces.len())
            .flat_map(|h| sampled(input, h))
            .collect(),
        events: all().map(|m| m.events).sum(),
        lost: all().map(|m| m.lost).fold(0, u64::saturating_add),
        parts,
        kernel: kernel(input),
        perturbation: None,
        hosts: hosts(input, &alignment),
        closures: alignment.closures,
        flight: None,
        triggered: Vec::new(),
        triggered_more: 0,
        session: None,
        session_identity: None,
        warnings,
        ..first.clone()
    }
}

const fn is_clean(exit: Exit) -> bool {
    matches!(exit.status, Some(0)) && exit.signal.is_none()
}

/// Time from the first reading to the last, on the first host's clock.
fn duration_ns(input: &Input<'_>, alignment: &Alignment) -> Option<i64> {
    let spans = (input.extents.iter().zip(&alignment.maps)).filter_map(|(extent, map)| {
        let (from, to) = extent.span?;
        let at = |local: i64| match map {
            None => Some(local),
            Some(map) => map.at(local).map(|(ts, _)| ts),
        };
        Some((at(from)?, at(to)?))
    });
    let (from, to) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    let ticks = i128::from(to) - i128::from(from);
    Some((ticks as f64 * input.traces[0].manifest.clock.ns_per_tick()) as i64)
}

fn hosts(input: &Input<'_>, alignment: &Alignment) -> Vec<TraceHost> {
    (input.traces.iter().enumerate())
        .map(|(host, trace)| {
            let manifest = &trace.manifest;
            TraceHost {
                name: manifest.host.name.clone(),
                clock: identity(manifest),
                ticks_per_second_numerator: manifest.clock.ticks_per_second_numerator,
                ticks_per_second_denominator: manifest.clock.ticks_per_second_denominator,
                merged: Some(Merged {
                    trace: trace.dir().display().to_string(),
                    command: manifest.command.clone(),
                    exit: manifest.exit,
                    started_unix_ns: manifest.started_unix_ns,
                    ring_shift: input.shifts[host].0,
                    pid_shift: input.shifts[host].1,
                    span_ticks: input.extents[host].span.map(|(from, to)| [from, to]),
                    events: manifest.events,
                    lost: manifest.lost,
                    calibration: manifest.calibration.clone(),
                }),
                map: alignment.maps[host].clone(),
            }
        })
        .collect()
}

/// Names that hold for all processes of one trace hold for those of its host: one entry for each.
fn names(input: &Input<'_>, host: usize) -> Vec<Name> {
    let names = &input.traces[host].manifest.names;
    let shift = input.shifts[host].1;
    let own: HashSet<(i32, u16)> = (names.iter())
        .filter_map(|name| Some((name.pid?, name.event)))
        .collect();
    let mut pids = input.extents[host].pids.clone();
    pids.extend(names.iter().filter_map(|name| name.pid));
    let of = |pid: i32, name: &Name| Name {
        pid: Some(shifted(pid, shift)),
        ..name.clone()
    };
    (names.iter())
        .flat_map(|name| match name.pid {
            Some(pid) => vec![of(pid, name)],
            None => (pids.iter())
                .filter(|pid| !own.contains(&(**pid, name.event)))
                .map(|pid| of(*pid, name))
                .collect(),
        })
        .take(MOST_NAMES + 1)
        .collect()
}

fn threads(input: &Input<'_>, host: usize) -> Vec<Thread> {
    let shift = input.shifts[host].1;
    let threads = input.traces[host].manifest.threads.iter();
    threads
        .map(|thread| Thread {
            pid: shifted(thread.pid, shift),
            tid: shifted(thread.tid, shift),
            name: thread.name.clone(),
        })
        .collect()
}

fn locks(input: &Input<'_>, host: usize) -> Vec<LockName> {
    let shift = input.shifts[host].1;
    let locks = input.traces[host].manifest.locks.iter();
    locks
        .map(|lock| LockName {
            pid: shifted(lock.pid, shift),
            ..lock.clone()
        })
        .collect()
}

/// Libraries that a program of any host preloaded.
fn with(input: &Input<'_>) -> Vec<String> {
    let traces = input.traces.iter();
    let all = traces.flat_map(|trace| trace.manifest.recorder.with.iter().cloned());
    let all: BTreeSet<String> = all.collect();
    all.into_iter().collect()
}

fn rings(input: &Input<'_>, host: usize) -> Vec<Ring> {
    let (ring_shift, pid_shift) = input.shifts[host];
    let rings = input.traces[host].manifest.rings.iter();
    rings
        .map(|ring| Ring {
            ring: ring.ring + ring_shift,
            pid: shifted(ring.pid, pid_shift),
            tid: shifted(ring.tid, pid_shift),
            ..*ring
        })
        .collect()
}

fn sampled(input: &Input<'_>, host: usize) -> Vec<Sampled> {
    let shift = input.shifts[host].0;
    let sampled = input.traces[host].manifest.sampled.iter();
    sampled
        .map(|counted| Sampled {
            ring: counted.ring + shift,
            ..*counted
        })
        .collect()
}

/// Combines the descriptions of kernel events: sources are listed one after the other, with their
/// host; all else adds up.
fn kernel(input: &Input<'_>) -> Option<Kernel> {
    let mut together: Option<Kernel> = None;
    for trace in input.traces {
        let Some(kernel) = &trace.manifest.kernel else {
            continue;
        };
        let into = together.get_or_insert_default();
        into.sources
            .extend(kernel.sources.iter().cloned().map(|mut source| {
                if !source.why.is_empty() {
                    source.why = format!("{}: {}", trace.manifest.host.name, source.why);
                }
                source
            }));
        into.rows += kernel.rows;
        into.lost = into.lost.saturating_add(kernel.lost);
        into.losses_not_counted += kernel.losses_not_counted;
        into.error_ns = into.error_ns.max(kernel.error_ns);
        if let Some(balance) = kernel.balance {
            let sum: &mut Balance = into.balance.get_or_insert_default();
            sum.switches_in += balance.switches_in;
            sum.switches_out += balance.switches_out;
            sum.missing_out += balance.missing_out;
            sum.missing_in += balance.missing_in;
        }
    }
    together
}

fn warnings(input: &Input<'_>, alignment: &Alignment) -> Vec<String> {
    let mut out = Vec::new();
    for (host, trace) in input.traces.iter().enumerate() {
        let (name, manifest) = (&trace.manifest.host.name, &trace.manifest);
        let about = |text: &str| format!("host {host} ({name}): {text}");
        out.extend(manifest.warnings.iter().map(|warning| about(warning)));
        if manifest.calibration.is_some() {
            out.push(about(
                "what recording costs there is not taken off in a trace of several hosts; report \
                 its own trace for that",
            ));
        }
        if manifest.perturbation.is_some() {
            out.push(about(
                "its points were switched off and on; by how much they slow what encloses them, \
                 only the report of its own trace says",
            ));
        }
        if (manifest.kernel.as_ref()).is_some_and(|kernel| kernel.stacks.is_some()) {
            out.push(about(
                "its stack samples are not merged: undertick stacks with its own trace has them",
            ));
        }
        let Some(map) = &alignment.maps[host] else {
            continue;
        };
        if map.is_same_clock {
            out.push(about(
                "same boot and same clock as host 0: no map is needed",
            ));
        }
        if map.is_wander_raised {
            out.push(about(&format!(
                "its messages contradict the wander that was allowed for; the map allows for {} \
                 ppm, which is the least power of two of it that they do not contradict, and not \
                 a bound of what the clocks really did",
                map.wander_ppm
            )));
        }
    }
    let name = |host: u16| &input.traces[usize::from(host)].manifest.host.name;
    for closure in alignment.closures.iter().filter(|closure| !closure.holds) {
        let [a, b] = closure.hosts;
        out.push(format!(
            "the clocks of hosts {a} ({}) and {b} ({}), compared with each other, are {:.0} ns off \
             what the maps say, and the half-widths allow {:.0} ns: the maps are wrong, or the \
             clocks wander more than was said (--wander)",
            name(a),
            name(b),
            closure.error_ns,
            closure.allowed_ns
        ));
    }
    out
}
