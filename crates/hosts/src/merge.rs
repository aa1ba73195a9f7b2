//! Merges several traces into one.

use std::path::{Path, PathBuf};

use undertick_format::TraceError;
use undertick_format::files::{EVENTS_FILE, KERNEL_FILE};
use undertick_format::manifest::{Manifest, Part};
use undertick_format::manifest_file::MOST_NAMES;
use undertick_format::messages::Messages;
use undertick_format::read::Trace;
use undertick_record::finalize::remove_empty;
use undertick_record::output::write_manifest;
use undertick_record::trace_dir::TraceDir;

use super::align::{Alignment, HostClock, align};
use super::combine;
use super::exchanges::SyncFile;
use super::extent::{Extent, extent, identity, kernel_rows};
use super::merged_file::{Writer, outside};
use super::rows::{Change, MOST_HOSTS, PIDS};

/// What to merge.
#[derive(Debug)]
pub struct Merge<'a> {
    /// The traces; the first one's clock is that of the result.
    pub traces: &'a [Trace],
    /// Files of exchanges, in addition to those in the traces.
    pub sync: &'a [PathBuf],
    /// Messages that were found in the traces themselves.
    pub messages: Vec<Messages>,
    /// By how much the difference of two rates may change between any two moments, ppm;
    /// `None`: what is usual for the clocks.
    pub wander_ppm: Option<f64>,
}

/// Writes the merged trace into a new directory. `progress` receives the share done, 0 to 1.
///
/// # Errors
/// Fewer than two traces, or more than 512; clocks that nothing compares; the directory
/// exists already, or the disk refuses. Nothing is left behind then.
pub fn merge(
    asked: &Merge<'_>,
    out: &Path,
    progress: &mut dyn FnMut(f64),
) -> Result<Manifest, TraceError> {
    check(asked.traces)?;
    let mut extents = Vec::new();
    for (place, trace) in asked.traces.iter().enumerate() {
        extents.push(extent(trace)?);
        progress(0.3 * (place + 1) as f64 / asked.traces.len() as f64);
    }
    let clocks: Vec<HostClock> = (asked.traces.iter().zip(&extents))
        .map(|(trace, extent)| clock(trace, extent))
        .collect();
    let (mut messages, notes) = exchanges(asked)?;
    messages.extend(asked.messages.iter().cloned());
    let alignment = align(&clocks, &messages, asked.wander_ppm).map_err(|error| match error {
        // What was left out may be what is missing.
        TraceError::Usage(text) if !notes.is_empty() => {
            TraceError::Usage(format!("{text}. {}", notes.join(". ")))
        }
        other => other,
    })?;
    TraceDir::make(out)?;
    let written = write(asked, &extents, alignment, notes, out, &mut |share| {
        progress(0.3 + 0.7 * share);
    });
    if written.is_err() {
        for file in [KERNEL_FILE, EVENTS_FILE] {
            let _ = std::fs::remove_file(out.join(file));
        }
        remove_empty(out);
    }
    written
}

fn check(traces: &[Trace]) -> Result<(), TraceError> {
    if traces.len() < 2 || traces.len() > MOST_HOSTS {
        return Err(TraceError::Usage(format!(
            "{} traces: give 2 to {MOST_HOSTS} to merge",
            traces.len()
        )));
    }
    for (place, trace) in traces.iter().enumerate() {
        let dir = trace.dir().display();
        if trace.manifest.hosts.len() > 1 {
            let mend = "is merged already: merge the traces that it is made of";
            return Err(TraceError::Usage(format!("{dir}: {mend}")));
        }
        let is_again = |other: &Trace| {
            let same = |a: &Path| a.canonicalize().unwrap_or_else(|_| a.to_owned());
            same(other.dir()) == same(trace.dir())
        };
        if traces[..place].iter().any(is_again) {
            return Err(TraceError::Usage(format!("{dir}: given twice")));
        }
    }
    Ok(())
}

fn clock(trace: &Trace, extent: &Extent) -> HostClock {
    let manifest = &trace.manifest;
    let name = format!("{} ({})", manifest.host.name, trace.dir().display());
    HostClock {
        span: extent.span,
        ..HostClock::from_clock(name, identity(manifest), &manifest.clock)
    }
}

/// Returns the exchanges of all files, by host, and warnings about those of other hosts.
fn exchanges(asked: &Merge<'_>) -> Result<(Vec<Messages>, Vec<String>), TraceError> {
    let mut files = Vec::new();
    for trace in asked.traces {
        files.extend(SyncFile::of_trace(trace.dir())?);
    }
    for path in asked.sync {
        files.push((path.clone(), SyncFile::read(path)?));
    }
    let (mut messages, mut notes) = (Vec::new(), Vec::new());
    for (path, file) in files {
        let source = path.display().to_string();
        let place = |side: &super::exchanges::Side| {
            (asked.traces.iter()).position(|trace| side.is_of(&trace.manifest))
        };
        let (Some(here), Some(there)) = (place(&file.here), place(&file.there)) else {
            notes.push(format!(
                "{source}: exchanges of {} ({}) and {} ({}), not both clocks of these traces: left out",
                file.here.name, file.here.clock.clock, file.there.name, file.there.clock.clock
            ));
            continue;
        };
        let stamps = |a: usize, b: usize| file.exchanges.iter().map(|s| (s[a], s[b])).collect();
        messages.push(Messages {
            from: here,
            to: there,
            source: source.clone(),
            stamps: stamps(0, 1),
        });
        messages.push(Messages {
            from: there,
            to: here,
            source,
            stamps: stamps(2, 3),
        });
    }
    // Exchanges of a clock with itself are useless.
    messages.retain(|m| m.from != m.to);
    Ok((messages, notes))
}

fn write(
    asked: &Merge<'_>,
    extents: &[Extent],
    alignment: Alignment,
    notes: Vec<String>,
    out: &Path,
    progress: &mut dyn FnMut(f64),
) -> Result<Manifest, TraceError> {
    let (shifts, too_many) = shifts(extents);
    if too_many {
        let mend = "have more rings together than numbers for them";
        return Err(TraceError::Usage(format!("these traces {mend}")));
    }
    let first = &asked.traces[0].manifest.clock;
    let changes = || -> Vec<Change<'_>> {
        (asked.traces.iter().enumerate())
            .map(|(host, trace)| {
                let ticks = trace.manifest.clock.ns_per_tick() / first.ns_per_tick();
                Change::new(host, shifts[host], ticks, alignment.maps[host].as_ref())
            })
            .collect()
    };
    let mut parts = Vec::new();
    if extents.iter().any(|extent| extent.kernel_rows > 0) {
        let path = out.join(KERNEL_FILE);
        let mut writer = Writer::create(&path)?;
        super::kernel_rows::write(asked.traces, changes(), &mut writer)?;
        parts.push(writer.finish(KERNEL_FILE, false)?);
    }
    progress(0.1);
    let path = out.join(EVENTS_FILE);
    let mut writer = Writer::create(&path)?;
    for (host, (trace, mut change)) in asked.traces.iter().zip(changes()).enumerate() {
        for batch in trace.batches() {
            let batch = batch?;
            let kernel = kernel_rows(&batch);
            let events = batch.slice(kernel, batch.num_rows() - kernel);
            if events.num_rows() > 0 {
                writer.write(&change.rows(&events).ok_or_else(|| outside(trace))?)?;
            }
        }
        progress(0.1 + 0.9 * (host + 1) as f64 / asked.traces.len() as f64);
    }
    // Ring numbers ascend from host to host.
    let is_by_ring = |part: &Part| part.by_ring || is_kernel(part);
    let by_ring = (asked.traces.iter()).all(|t| t.manifest.parts.iter().all(is_by_ring));
    parts.push(writer.finish(EVENTS_FILE, by_ring)?);
    let traces = combine::Input {
        traces: asked.traces,
        extents,
        shifts: &shifts,
    };
    let manifest = combine::manifest(&traces, alignment, notes, parts);
    if manifest.names.len().max(manifest.threads.len()) > MOST_NAMES {
        return Err(TraceError::Usage(format!(
            "these traces have more than {MOST_NAMES} names together, names for all processes counted for each: merge fewer"
        )));
    }
    write_manifest(&TraceDir::open(out)?, &manifest)?;
    Ok(manifest)
}

fn is_kernel(part: &Part) -> bool {
    part.file == KERNEL_FILE
}

/// Returns the numbers added to ring numbers and to process numbers, by host, and whether there
/// are too many rings.
fn shifts(extents: &[Extent]) -> (Vec<(i32, i32)>, bool) {
    let mut rings = 0_i64;
    let shifts = (extents.iter().enumerate())
        .map(|(host, extent)| {
            let shift = (i32::try_from(rings).unwrap_or(i32::MAX), host as i32 * PIDS);
            rings += i64::from(extent.last_ring) + 1;
            shift
        })
        .collect();
    (shifts, i32::try_from(rings).is_err())
}
