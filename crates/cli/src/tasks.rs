//! `undertick tasks`.

use std::path::PathBuf;

use clap::Args;
use undertick_analyze::{Options, analyze, suggestion};
use undertick_causes::add_tasks;
use undertick_document::{Report, Tasks};
use undertick_format::read::Trace;
use undertick_report::tasks;

use crate::progress::Progress;
use crate::{Failure, output};

/// How long futures, coroutines and other tasks were busy, idle and queued
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick record -o run.ut -- ./server\n  undertick tasks run.ut\n  \
    undertick tasks run.ut request   (what woke them, and the longest lives)\n  \
    undertick tasks run.ut --json | jq '.tasks.rows[] | {name, busy, queued}'\n\n\
    A program records tasks with undertick::task_span! (Rust), undertick.asyncio (Python), or a package for its\n\
    language: docs/book/tasks.md."
)]
pub struct TasksArguments {
    /// Trace directory, as made by `undertick record`
    #[arg(value_name = "NAME.ut")]
    trace: PathBuf,
    /// Name of tasks: their distribution, what woke them, and the longest lives [default: a line for each name]
    #[arg(value_name = "TASK")]
    name: Option<String>,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    json: bool,
}

pub fn tasks(arguments: &TasksArguments) -> Result<u8, Failure> {
    let mut progress = Progress::new();
    let report = found(arguments, &mut progress);
    progress.done();
    let report = report?;
    let no_tasks = || {
        let trace = arguments.trace.display();
        format!(
            "{trace}: no task was recorded; a program records them with undertick::task_span! and its kin: see \
             docs/book/tasks.md"
        )
    };
    let all = (report.tasks.as_ref()).ok_or_else(|| Failure::usage(no_tasks()))?;
    if let Some(name) = &arguments.name {
        known(all, name)?;
    }
    output::document(arguments.json, &report, || {
        tasks::tasks(all, arguments.name.as_deref(), output::columns())
    })
}

fn known(all: &Tasks, name: &str) -> Result<(), Failure> {
    let names = || all.rows.iter().map(|row| row.name.as_str());
    if names().any(|other| other == name) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "no tasks of the name {name:?} in this trace{}",
        suggestion(name, names())
    )))
}

fn found(arguments: &TasksArguments, progress: &mut Progress) -> Result<Report, Failure> {
    let trace = Trace::open(&arguments.trace)?;
    let mut report = analyze(&trace, Options::default(), &mut |share| {
        progress.share("analysing", share);
    })?;
    add_tasks(&trace, &mut report, &mut |share| {
        progress.share("replaying tasks", share);
    })?;
    Ok(undertick_document::without_impossible(report))
}
