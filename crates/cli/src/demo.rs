//! `undertick demo`: the first command that a new user runs.

use std::path::PathBuf;
use std::time::Duration;

use undertick_record::kernel::Wanted;
use undertick_record::record::{Request, record};
use undertick_record::session::{DEFAULT_RING_BYTES, Settings};

use crate::Failure;
use crate::options::{Demo, Report};
use crate::progress::Progress;
use crate::{recording, reporting};

pub fn run(arguments: Demo) -> Result<u8, Failure> {
    let trace = arguments
        .output
        .unwrap_or_else(|| recording::free_name("undertick-demo".as_ref(), "ut"));
    say!(
        "undertick: SQLite (C) inserts and looks up from two threads, zstd (Rust) compresses beside it"
    );
    let (choice, facts) = recording::clock()?;
    let (calibration, warning) = recording::calibrate(&choice, &facts, Wanted::Auto, false);
    if let Some(warning) = warning {
        say!("undertick: note: {warning}");
    }
    let request = Request {
        trace: trace.clone(),
        command: crate::own_command("__demo-workload"),
        settings: Settings {
            overflow: undertick_record::Overflow::Grow,
            ring_bytes: DEFAULT_RING_BYTES,
            budget_bytes: None,
            clock: choice.clock,
            parent: None,
            rates: Vec::new(),
        },
        choice,
        facts: facts.clone(),
        calibration,
        names: Vec::new(),
        kernel: Wanted::Auto,
        stacks: None,
        perturbation: None,
        triggers: None,
        functions: None,
        with: Vec::new(),
    };
    let mut progress = Progress::new();
    let result = record(request, &mut |update| progress.update(update));
    progress.done();
    let mut manifest = result?;
    recording::calibrate_again(&trace, &mut manifest, &choice, &facts)?;
    if manifest.exit.and_then(|exit| exit.status) != Some(0) {
        return Err(Failure::machine(
            "the demo's workload failed; its own words are above",
        ));
    }
    let html: PathBuf = arguments.html;
    let status = reporting::run(&Report {
        trace: trace.clone(),
        table: None,
        confidence: 0.95,
        cull: "auto".to_owned(),
        compensate: "auto".to_owned(),
        second: None,
        spans: false,
        flat: false,
        full: false,
        html: Some(html.clone()),
        json: arguments.json,
    })?;
    say!(
        "undertick: the page is {}, the trace {}",
        html.display(),
        trace.display()
    );
    say!("undertick: the same with a program of your own: see README.md, \"First steps\"");
    Ok(status)
}

/// Runs the program that [`run`] records.
pub fn workload() -> Result<u8, Failure> {
    undertick_demo::run(Duration::from_secs(3))
        .map(|()| 0)
        .map_err(Failure::machine)
}
