//! The manifest of a trace that a card recorded.

use std::path::Path;

use undertick_format::manifest::{Clock, Host, Manifest, Name, Ring, Thread};

use super::{Master, Masters, PID, StreamHeader};

pub(super) fn build(
    file: &Path,
    masters: &Masters,
    header: &StreamHeader,
    names: Vec<Name>,
    cut: usize,
) -> Manifest {
    let (first, last) = masters.span.unwrap_or((0, 0));
    let ns = u128::from(last - first) * u128::from(header.tick) * 1_000_000_000
        / u128::from(header.hz.max(1));
    let mut warnings = vec![format!(
        "from the event card's stream {}: when it was recorded is not known, and its clock's rate is what the card says",
        file.file_name().unwrap_or_default().to_string_lossy(),
    )];
    if cut > 0 {
        warnings.push(format!(
            "the stream ends in the middle of a record: its last {cut} bytes are not in the trace"
        ));
    }
    if masters.lost > 0 {
        warnings.push(format!(
            "the card lost {} events; spans that were open then are given up",
            masters.lost
        ));
    }
    let ring = |(place, master): (usize, &Master)| Ring {
        ring: place as i32,
        pid: PID,
        tid: master.tid,
        written: master.events,
        received: master.events,
        dropped: 0,
        overwritten: 0,
        spans_wait: None,
        interposed: false,
        read_cost: None,
    };
    let thread = |master: &Master| Thread {
        pid: PID,
        tid: master.tid,
        name: master.name.clone(),
    };
    Manifest {
        duration_ns: Some(i64::try_from(ns).unwrap_or(i64::MAX)),
        names,
        threads: masters.all.iter().map(thread).collect(),
        rings: masters.all.iter().enumerate().map(ring).collect(),
        lost: masters.lost,
        warnings,
        ..Manifest::new(
            Host {
                name: "event card".to_owned(),
                kernel: String::new(),
                arch: String::new(),
                cpus: header.masters.map_or(0, u32::from),
                cpu_model: String::new(),
            },
            Clock {
                name: "event card".to_owned(),
                ticks_per_second_numerator: header.hz,
                ticks_per_second_denominator: header.tick,
                rate_source: "card".to_owned(),
                rate_error_ppb: 0.0,
                granularity_ticks: 1.0,
                read_cost_ns_median: 0.0,
                anchors: Vec::new(),
                across_cpus: None,
            },
            "card",
        )
    }
}
