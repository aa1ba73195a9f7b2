//! `undertick report`.

use std::path::PathBuf;

use undertick_analyze::{Options, Table};
use undertick_combine::{MOST_RUNS, Run, combine};
use undertick_document::Report as Document;
use undertick_document::explanation::Explanation;
use undertick_document::timeline::Timeline;
use undertick_format::input::{self, Kind};
use undertick_format::read::Trace;
use undertick_format::run_set;
use undertick_report::{html, terminal};

use crate::Failure;
use crate::options::Report;
use crate::output;
use crate::progress::Progress;

/// Slowest calls of a path on a page.
const PAGE_CALLS: usize = 10;

pub fn run(arguments: &Report) -> Result<u8, Failure> {
    let table = arguments.table.as_deref().map(read_table).transpose()?;
    let options = Options {
        table,
        cull: arguments.cull.parse()?,
        compensate: arguments.compensate.parse()?,
        confidence: arguments.confidence,
    };
    let mut progress = Progress::new();
    let result = analyze(arguments, options, &mut progress);
    progress.done();
    let Analysed {
        report,
        timeline,
        explanation,
    } = result?;
    output::page(arguments.html.as_deref(), || {
        let trace = arguments.trace.to_string_lossy();
        let beside = html::Beside {
            timeline: timeline.as_ref(),
            explanation: explanation.as_ref(),
            // Several runs have no common timeline.
            trace: report.runs.is_none().then_some(&*trace),
        };
        html::render_beside(&report, &beside)
    })?;
    if arguments.json {
        return output::as_json(&report);
    }
    if arguments.full {
        let text = terminal::render(&report, terminal::Options::default());
        return output::paged(&undertick_text::clean_lines(&text));
    }
    let spans = match arguments.flat {
        true => terminal::Spans::Flat,
        false => terminal::Spans::Tree,
    };
    let screen = terminal::overview(&report, spans, output::columns());
    output::print(&match output::has_colours() {
        true => screen.coloured(),
        false => screen.plain(),
    })
}

/// The document, and what only the page shows.
struct Analysed {
    report: Document,
    timeline: Option<Timeline>,
    explanation: Option<Explanation>,
}

fn analyze(
    arguments: &Report,
    options: Options,
    progress: &mut Progress,
) -> Result<Analysed, Failure> {
    let runs = run_set::traces_in(&arguments.trace).map_err(|e| {
        Failure::usage(format!(
            "{}: {e}; make it readable",
            arguments.trace.display()
        ))
    })?;
    match runs {
        Some(runs) => Ok(Analysed {
            report: analyze_runs(arguments, &runs, &options, progress)?,
            timeline: None,
            explanation: None,
        }),
        None => analyze_one(arguments, options, progress),
    }
}

/// Analyses several runs of a program, and merges the results.
fn analyze_runs(
    arguments: &Report,
    traces: &[PathBuf],
    options: &Options,
    progress: &mut Progress,
) -> Result<Document, Failure> {
    if arguments.second.is_some() {
        return Err(Failure::usage(
            "--second is of one run: give its trace, NAME.ut, not the directory of the runs",
        ));
    }
    if traces.len() > MOST_RUNS {
        return Err(Failure::usage(format!(
            "{}: {} runs, and more than {MOST_RUNS} say no more; move some away",
            arguments.trace.display(),
            traces.len()
        )));
    }
    let mut runs = Vec::with_capacity(traces.len());
    for (index, path) in traces.iter().enumerate() {
        let share = |within: f64| (index as f64 + within) / traces.len() as f64;
        let trace = Trace::open(path)?;
        if arguments.spans {
            undertick_analyze::keep_spans(&trace, options.clone(), &mut |_| {})?;
        }
        let mut on_progress = |within| progress.share("analysing", share(within));
        runs.push(Run {
            name: run_set::run_name(path),
            report: undertick_analyze::analyze(&trace, options.clone(), &mut on_progress)?,
        });
    }
    let mut report = combine(&runs, options.confidence)
        .ok_or_else(|| Failure::usage(format!("{}: no run in it", arguments.trace.display())))?;
    undertick_causes::add_states_of_runs(traces, options, &mut report, &mut |share| {
        progress.share("comparing calls", share);
    })?;
    Ok(report)
}

fn analyze_one(
    arguments: &Report,
    options: Options,
    progress: &mut Progress,
) -> Result<Analysed, Failure> {
    let trace = Trace::open(&arguments.trace)?;
    if arguments.spans {
        undertick_analyze::keep_spans(&trace, options.clone(), &mut |share| {
            progress.share("keeping spans", share);
        })?;
    }
    let mut on_progress = |share| progress.share("analysing", share);
    let (mut report, timeline) = match arguments.html {
        None => {
            let report = undertick_analyze::analyze(&trace, options.clone(), &mut on_progress)?;
            (report, None)
        }
        Some(_) => {
            let second = arguments.second.map(|second| second.as_secs_f64() * 1e9);
            undertick_analyze::analyze_with_timeline(&trace, &options, second, &mut on_progress)?
        }
    };
    undertick_causes::add_states(&trace, &options, &mut report, &mut |share| {
        progress.share("comparing calls", share);
    })?;
    undertick_causes::add_stacks(&trace, &options, &mut report, &mut |share| {
        progress.share("joining samples", share);
    })?;
    undertick_causes::add_interposed(&trace, &options, &mut report, &mut |share| {
        progress.share("joining waits and allocations", share);
    })?;
    undertick_causes::add_tasks(&trace, &mut report, &mut |share| {
        progress.share("replaying tasks", share);
    })?;
    let explanation = match arguments.html {
        None => None,
        Some(_) => Some(page_explanation(&trace, &options, &report, progress)?),
    };
    Ok(Analysed {
        report,
        timeline,
        explanation,
    })
}

/// Why the slowest calls of the paths that take most of the time were slow, for a page.
fn page_explanation(
    trace: &Trace,
    options: &Options,
    report: &Document,
    progress: &mut Progress,
) -> Result<Explanation, Failure> {
    let paths = crate::explain::most_time(report);
    let asked = (paths.as_slice(), PAGE_CALLS);
    let found = undertick_causes::explain::explain(trace, options, report, asked, &mut |share| {
        progress.share("looking at single calls", share);
    })?;
    Ok(found)
}

pub fn read_table(path: &std::path::Path) -> Result<Table, Failure> {
    let text = input::text(path, Kind::TABLE)?;
    Table::parse(&text, &path.display().to_string()).map_err(Failure::usage)
}
