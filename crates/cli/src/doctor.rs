//! `undertick doctor`: which parts of a recording work here, and how to mend the others.

mod checks;
mod limits;

use clap::Args;
use undertick_calibrate::calibration::kept::Kept;
use undertick_clock::ClockId;
use undertick_clock::cpus::allowed;
use undertick_record::kernel::{cpus, sources_here};
use undertick_record::session::{Session, Settings};
use undertick_report::doctor::{self, CheckState, Diagnosis};

use crate::{Failure, output, recording};

/// What works on this machine for this user, and how to mend the rest
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick doctor\n  undertick doctor --json | jq '.checks[] | select(.state != \"works\") | .mend'\n\n\
    Takes less than a second. The exit status is 1 if nothing can be recorded."
)]
pub struct Doctor {
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    pub json: bool,
}

pub fn run(arguments: &Doctor) -> Result<u8, Failure> {
    let found = diagnosis();
    output::document(arguments.json, &found, || {
        doctor::render(&found, output::columns())
    })?;
    Ok(u8::from(found.number(CheckState::Fails) > 0))
}

fn diagnosis() -> Diagnosis {
    let system = rustix::system::uname();
    let kernel = system.release().to_string_lossy().into_owned();
    let clock = recording::clock();
    let id = clock
        .as_ref()
        .map_or(ClockId::MonotonicRaw, |(choice, _)| choice.clock);
    let session = Session::create(Settings::growing(id));
    let rings = checks::rings(
        session.as_ref(),
        std::env::var_os("UNDERTICK_DIR").is_some(),
    );
    let budget_bytes = session.as_ref().map_or(0, Session::budget_bytes);
    drop(session);
    let rights = checks::PerfRights::here();
    let online = cpus().len();
    let mut checks = vec![
        checks::kernel(&kernel),
        checks::clock(clock.as_ref().map_err(|failure| failure.text.as_str())),
        checks::cpus(limits::cpus_allowed(), allowed().len(), online),
        rings,
        checks::memory(limits::memory(), budget_bytes),
        checks::open_files(limits::open_files(), online),
        checks::descheduled(
            undertick_record::descheduled_self_test(),
            std::env::var("GLIBC_TUNABLES").ok().as_deref(),
        ),
    ];
    checks.extend((sources_here(id).iter()).map(|source| checks::source(source, &rights)));
    let kept = Kept::here(id, true).map(|kept| (kept.directory().to_owned(), kept.probe()));
    checks.push(checks::calibration(kept));
    Diagnosis {
        schema_version: doctor::SCHEMA_VERSION,
        undertick_version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel,
        arch: std::env::consts::ARCH.to_owned(),
        checks,
    }
}
