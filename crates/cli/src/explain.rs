//! `undertick explain`.

use std::path::PathBuf;

use clap::Args;
use undertick_analyze::{Options, analyze};
use undertick_causes::explain::{FEWEST, explain};
use undertick_document::Report;
use undertick_document::explanation::Explanation;
use undertick_format::read::Trace;
use undertick_format::tasks::TaskEvent;
use undertick_report::explanation;
use undertick_text::{clean, shell_word};

use crate::progress::Progress;
use crate::{Failure, output};

/// Most paths that are explained when none is asked for: those that take most of the time.
const MOST_PATHS: usize = 16;
/// Most calls that may be asked for.
const MOST_SLOWEST: usize = 10_000;

/// Why the slowest calls of a path took longer than its typical one
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick explain run.ut\n  undertick explain run.ut request/lookup --slowest 5\n  \
    undertick explain run.ut request --json | jq '.paths[0].slowest[0].parts'"
)]
pub struct Explain {
    /// Trace directory, as made by `undertick record`
    #[arg(value_name = "NAME.ut")]
    pub trace: PathBuf,
    /// Names of spans from the outermost on, with / between them, or the last name alone if it is
    /// unambiguous [default: a table of the 16 paths that take most time]
    #[arg(value_name = "PATH")]
    pub path: Option<String>,
    /// Number of slowest calls of each path
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub slowest: usize,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    pub json: bool,
}

pub fn run(arguments: &Explain) -> Result<u8, Failure> {
    if !(1..=MOST_SLOWEST).contains(&arguments.slowest) {
        return Err(Failure::usage(format!(
            "--slowest {}: give a number from 1 to {MOST_SLOWEST}",
            arguments.slowest
        )));
    }
    let mut progress = Progress::new();
    let result = found(arguments, &mut progress);
    progress.done();
    let (explanation, tasks) = result?;
    let columns = output::columns();
    output::document(arguments.json, &explanation, || {
        match (&arguments.path, explanation.paths.as_slice()) {
            (Some(_), [only]) => {
                let mut text = explanation::path(&explanation, only, columns);
                text += &tasks.map_or_else(String::new, |tasks| format!("\n{tasks}\n"));
                text
            }
            _ => {
                let mut text = explanation::paths(&explanation, columns);
                if let Some(first) = explanation.paths.first() {
                    text += &format!(
                        "\nSingle calls: undertick explain {} {}\n",
                        shell_word(&arguments.trace.display().to_string()),
                        shell_word(&first.path.join("/"))
                    );
                }
                text
            }
        }
    })
}

/// The explanation, and where the lives of tasks are explained if the path is one of their polls.
fn found(
    arguments: &Explain,
    progress: &mut Progress,
) -> Result<(Explanation, Option<String>), Failure> {
    let trace = Trace::open(&arguments.trace)?;
    let options = Options::default();
    let report = analyze(&trace, options.clone(), &mut |share| {
        progress.share("analysing", share);
    })?;
    let path = arguments.path.as_deref();
    let tasks = path.and_then(|path| lives(&trace, &arguments.trace, path));
    let paths = match path {
        // Tasks may have no polls in the trace.
        Some(path) => match (wanted(&report, path), &tasks) {
            (Err(_), Some(tasks)) => return Err(Failure::usage(tasks.clone())),
            (path, _) => vec![path?],
        },
        None => most_time(&report),
    };
    let explained = explain(
        &trace,
        &options,
        &report,
        (&paths, arguments.slowest),
        &mut |share| progress.share("looking at single calls", share),
    )?;
    if explained.paths.is_empty() {
        return Err(Failure::usage(match &arguments.path {
            Some(path) => format!(
                "{path:?} has fewer than {FEWEST} calls, which have no typical one; undertick report {} \
                 --full has their figures",
                arguments.trace.display()
            ),
            None => format!(
                "{}: no span has {FEWEST} calls or more, so none has a typical one",
                arguments.trace.display()
            ),
        }));
    }
    Ok((explained, tasks))
}

/// Where the lives of tasks are explained whose polls these spans are.
fn lives(trace: &Trace, file: &std::path::Path, path: &str) -> Option<String> {
    // Names of tasks may have slashes.
    let is_its = |task: &str| {
        let before = path.strip_suffix(task);
        before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    let names = trace.manifest.names.iter();
    let mut tasks = names.filter_map(|name| TaskEvent::split(&name.name));
    let found = tasks.find(|(task, event)| *event == TaskEvent::New && is_its(task));
    found.map(|(task, _)| {
        format!(
            "{} is a name of tasks; what they waited for: undertick tasks {} {}",
            clean(task),
            shell_word(&file.display().to_string()),
            shell_word(task)
        )
    })
}

/// The paths that take most of the time.
pub fn most_time(report: &Report) -> Vec<usize> {
    let mut paths: Vec<usize> = (0..report.paths.len())
        .filter(|&at| report.paths[at].calls >= FEWEST)
        .collect();
    let share = |at: usize| report.paths[at].share.unwrap_or(0.0);
    paths.sort_by(|&a, &b| share(b).total_cmp(&share(a)).then(a.cmp(&b)));
    paths.truncate(MOST_PATHS);
    paths
}

/// The path that is asked for.
pub fn wanted(report: &Report, path: &str) -> Result<usize, Failure> {
    let name = |at: usize| report.path_name(at);
    match report.paths_named(path).as_slice() {
        [only] => Ok(*only),
        [] => {
            let names: Vec<String> = (0..report.paths.len().min(MOST_PATHS)).map(name).collect();
            let more = match report.paths.len() > names.len() {
                true => ", and more",
                false => "",
            };
            Err(Failure::usage(format!(
                "no path {path:?} in this trace; there are: {}{more}",
                names.join(", ")
            )))
        }
        several => {
            let names: Vec<String> = several.iter().map(|&at| name(at)).collect();
            Err(Failure::usage(format!(
                "{path:?} is the end of several paths; give one of: {}",
                names.join(", ")
            )))
        }
    }
}
