//! A recording in a few lines.

use std::collections::HashSet;
use std::path::Path;

use undertick_format::manifest::{Kernel, Manifest, Ring};

pub fn summary(trace: &Path, manifest: &Manifest) {
    let plural = |n: u64| if n == 1 { "" } else { "s" };
    let (events, threads) = (manifest.events, threads(manifest));
    let text = format!(
        "undertick: {events} event{} of {threads} thread{} in {}, {} lost",
        plural(events),
        plural(threads),
        trace.display(),
        manifest.lost
    );
    match manifest.lost {
        0 => say!("{text}"),
        _ => alert!("{text}"),
    }
    if let Some(kernel) = &manifest.kernel {
        match kernel.sources.iter().all(|source| source.lost == 0) {
            true => say!("undertick: {}", evidence(kernel)),
            false => alert!("undertick: {}", evidence(kernel)),
        }
    }
    for warning in &manifest.warnings {
        alert!("undertick: note: {warning}");
    }
}

/// Number of threads that recorded; preloaded libraries have rings of their own.
fn threads(manifest: &Manifest) -> u64 {
    let (interposed, others): (Vec<_>, Vec<_>) = manifest
        .rings
        .iter()
        .partition(|ring: &&Ring| ring.interposed);
    let distinct: HashSet<(i32, i32)> = (interposed.iter())
        .map(|ring: &&Ring| (ring.pid, ring.tid))
        .collect();
    others.len().max(distinct.len()) as u64
}

/// Describes the recorded kernel events, and the missing ones, in a line.
fn evidence(kernel: &Kernel) -> String {
    let (used, missing): (Vec<_>, Vec<_>) = kernel.sources.iter().partition(|source| source.used);
    let used: Vec<&str> = used.iter().map(|source| source.name.as_str()).collect();
    let missing: Vec<String> = (missing.iter())
        .map(|source| format!("; without {}: {}", source.name, source.why))
        .collect();
    format!(
        "{} kernel events from {} within {:.0} ns, {} lost{}",
        kernel.rows,
        used.join(", "),
        kernel.error_ns,
        kernel.lost,
        missing.concat()
    )
}
