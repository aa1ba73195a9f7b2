//! The manifest of a trace that a card recorded.

use std::path::Path;

use undertick_format::manifest::{
    Clock, Descheduled, Host, Manifest, Name, Recorder, Ring, SCHEMA_VERSION, State, Thread,
};

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
        schema_version: SCHEMA_VERSION,
        state: State::Recording,
        undertick_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ns: 0,
        duration_ns: Some(i64::try_from(ns).unwrap_or(i64::MAX)),
        host: Host {
            name: "event card".to_owned(),
            kernel: String::new(),
            arch: String::new(),
            cpus: header.masters.map_or(0, u32::from),
            cpu_model: String::new(),
        },
        command: Vec::new(),
        exit: None,
        clock: Clock {
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
        descheduled: Descheduled::Unavailable,
        calibration: None,
        recorder: Recorder {
            overflow: "card".to_owned(),
            ring_bytes: 0,
            budget_bytes: 0,
            triggers: None,
            with: Vec::new(),
        },
        names,
        threads: masters.all.iter().map(thread).collect(),
        locks: Vec::new(),
        rings: masters.all.iter().enumerate().map(ring).collect(),
        sampled: Vec::new(),
        events: 0,
        lost: masters.lost,
        parts: Vec::new(),
        kernel: None,
        perturbation: None,
        hosts: Vec::new(),
        closures: Vec::new(),
        flight: None,
        triggered: Vec::new(),
        triggered_more: 0,
        session: None,
        session_identity: None,
        warnings,
    }
}
