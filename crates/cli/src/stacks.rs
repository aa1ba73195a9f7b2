//! `undertick stacks`.

use std::path::PathBuf;

use clap::Args;
use undertick_analyze::{Options, analyze};
use undertick_causes::add_stacks;
use undertick_document::{PathStacks, Report, Stacks};
use undertick_estimate::proportion;
use undertick_format::read::Trace;
use undertick_report::stacks;
use undertick_text::shell_word;

use crate::progress::Progress;
use crate::{Failure, output};

/// Which functions the time of spans went to, by samples of the threads' stacks
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick record --stacks 1ms -o run.ut -- ./program\n  undertick stacks run.ut\n  \
    undertick stacks run.ut request/lookup\n  \
    undertick stacks run.ut --folded > run.folded   (for flamegraph.pl, inferno and speedscope)\n  \
    undertick report run.ut --html run.html   (a flame graph of each path)"
)]
pub struct StacksArguments {
    /// Trace directory, as made by `undertick record --stacks`
    #[arg(value_name = "NAME.ut")]
    pub trace: PathBuf,
    /// Names of spans from the outermost on (after the threads' role, if the table has roles), with /
    /// between them, or the last name alone if it is unambiguous: the functions in that span and in
    /// those inside it; or "outside of spans" [default: a table of all paths]
    #[arg(value_name = "PATH", conflicts_with = "folded")]
    pub path: Option<String>,
    /// Each stack as a line of names with ; between them, from the outermost span to the innermost
    /// function, and the number of samples on a CPU
    #[arg(long, conflicts_with = "json")]
    pub folded: bool,
    /// With --folded: microseconds waited instead of samples on a CPU
    #[arg(long, requires = "folded")]
    pub waiting: bool,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    pub json: bool,
}

pub fn run(arguments: &StacksArguments) -> Result<u8, Failure> {
    let mut progress = Progress::new();
    let result = found(arguments, &mut progress);
    progress.done();
    let (mut report, found) = result?;
    if arguments.folded {
        return output::print(&stacks::folded(&report, &found, arguments.waiting));
    }
    let columns = output::columns();
    let path = (arguments.path.as_deref())
        .map(|path| wanted(&report, &found, path))
        .transpose()?;
    report.stacks = Some(found);
    let level = report.settings.confidence;
    output::document(arguments.json, &report, || {
        let found = report.stacks.as_ref().expect("it was put there");
        let interval = |n: u64, of: u64| {
            let found = proportion(n, of, level)?.interval;
            Some([found.lo?, found.hi?])
        };
        match &path {
            Some((name, of)) => stacks::path(name, found, of, &interval, columns),
            None => {
                let mut text = stacks::paths(&report, found, columns);
                let most = (found.paths.iter())
                    .filter(|of| of.path.is_some())
                    .max_by_key(|of| of.on_cpu);
                if let Some(path) = most.and_then(|of| of.path) {
                    text += &format!(
                        "\nOne path: undertick stacks {} {}\n",
                        shell_word(&arguments.trace.display().to_string()),
                        shell_word(&report.short_name(path as usize))
                    );
                }
                text
            }
        }
    })
}

/// The path that is asked for, and its samples.
fn wanted(report: &Report, found: &Stacks, path: &str) -> Result<(String, PathStacks), Failure> {
    if path == stacks::OUTSIDE {
        return Ok((path.to_owned(), found.inside(report, None)));
    }
    match crate::explain::wanted(report, path) {
        Ok(at) => Ok((report.path_name(at), found.inside(report, Some(at)))),
        Err(why) => match found.still_open(path) {
            Some(of) => Ok((format!("{}{}", of.still_open.join("/"), stacks::OPEN), of)),
            None => Err(why),
        },
    }
}

/// The report of the trace, and its samples.
fn found(
    arguments: &StacksArguments,
    progress: &mut Progress,
) -> Result<(Report, Stacks), Failure> {
    let trace = Trace::open(&arguments.trace)?;
    let options = Options::default();
    if !has_samples(&trace) {
        return Err(Failure::usage(format!(
            "{}: its threads were not sampled (record it with --stacks 1ms), or it was merged (give the trace of one host)",
            arguments.trace.display()
        )));
    }
    let mut report = analyze(&trace, options.clone(), &mut |share| {
        progress.share("analysing", share);
    })?;
    add_stacks(&trace, &options, &mut report, &mut |share| {
        progress.share("joining samples", share);
    })?;
    let found = report.stacks.take();
    let why = report
        .warnings
        .iter()
        .find(|warning| warning.code == "stacks");
    if let Some(why) = why.filter(|_| found.is_none()) {
        return Err(Failure::machine(&why.text));
    }
    found.map(|found| (report, found)).ok_or_else(|| {
        Failure::machine(format!(
            "{}: it has no stacks.json: no thread was sampled, or the file was removed; record it again \
             with --stacks 1ms",
            arguments.trace.display()
        ))
    })
}

/// Whether the threads of a trace were sampled.
pub fn has_samples(trace: &Trace) -> bool {
    let kernel = trace.manifest.kernel.as_ref();
    kernel.is_some_and(|kernel| kernel.stacks.is_some())
}
