//! `undertick locks` and `undertick allocations`.

use std::path::PathBuf;

use clap::Args;
use undertick_analyze::{Options, analyze};
use undertick_causes::add_interposed;
use undertick_document::Report;
use undertick_format::read::Trace;
use undertick_report::interposed;

use crate::progress::Progress;
use crate::{Failure, output};

/// Which locks threads waited for, and which spans held them
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick record --with locks -o run.ut -- ./program\n  undertick locks run.ut\n  \
    undertick locks run.ut request/commit\n  undertick explain run.ut request   (what single slow calls waited for)"
)]
pub struct LocksArguments {
    #[command(flatten)]
    of: TraceArguments,
}

/// How much each span allocated
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick record --with malloc -o run.ut -- ./program\n  undertick allocations run.ut\n  \
    undertick allocations run.ut request --json | jq .allocations"
)]
pub struct AllocationsArguments {
    #[command(flatten)]
    of: TraceArguments,
}

#[derive(Args)]
struct TraceArguments {
    /// Trace directory, as made by `undertick record --with`
    #[arg(value_name = "NAME.ut")]
    trace: PathBuf,
    /// Names of spans from the outermost on (after the thread's role, if paths have one), with /
    /// between them, or the last name alone if it is unambiguous: only that span and those inside it
    /// [default: all]
    #[arg(value_name = "PATH")]
    path: Option<String>,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    json: bool,
}

pub fn locks(arguments: &LocksArguments) -> Result<u8, Failure> {
    let of = &arguments.of;
    print(of, "locks", |report, path| {
        let locks = report.locks.as_ref()?;
        Some(interposed::locks(report, locks, path, output::columns()))
    })
}

pub fn allocations(arguments: &AllocationsArguments) -> Result<u8, Failure> {
    let of = &arguments.of;
    print(of, "malloc", |report, path| {
        let found = report.allocations.as_ref()?;
        let columns = output::columns();
        Some(interposed::allocations(report, found, path, columns))
    })
}

fn print(
    of: &TraceArguments,
    library: &str,
    text: impl FnOnce(&Report, Option<usize>) -> Option<String>,
) -> Result<u8, Failure> {
    let mut progress = Progress::new();
    let report = found(of, library, &mut progress);
    progress.done();
    let report = report?;
    let path = (of.path.as_deref())
        .map(|path| crate::explain::wanted(&report, path))
        .transpose()?;
    output::document(of.json, &report, || text(&report, path).unwrap_or_default())
}

/// The report of the trace, with what that library recorded.
fn found(of: &TraceArguments, library: &str, progress: &mut Progress) -> Result<Report, Failure> {
    let trace = Trace::open(&of.trace)?;
    if !trace.manifest.is_with(library) {
        return Err(Failure::usage(format!(
            "{}: recorded without --with {library}; record it again with that option",
            of.trace.display()
        )));
    }
    let options = Options::default();
    let mut report = analyze(&trace, options.clone(), &mut |share| {
        progress.share("analysing", share);
    })?;
    add_interposed(&trace, &options, &mut report, &mut |share| {
        progress.share("joining to spans", share);
    })?;
    Ok(report)
}
