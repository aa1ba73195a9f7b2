//! `undertick report`.

use undertick_analyze::{Options, Table};
use undertick_report::document::Report as Document;
use undertick_report::{html, terminal};
use undertick_trace::read::Trace;

use crate::Failure;
use crate::args::Report;
use crate::output;
use crate::progress::Progress;

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
    let report = result?;
    if let Some(path) = &arguments.html {
        std::fs::write(path, html::render(&report)).map_err(|e| Failure {
            status: 1,
            text: format!("{}: cannot write the page: {e}", path.display()),
        })?;
    }
    output::document(arguments.json, &report, || {
        terminal::render(&report, terminal::Options::default())
    })
}

fn analyze(
    arguments: &Report,
    options: Options,
    progress: &mut Progress,
) -> Result<Document, Failure> {
    let trace = Trace::open(&arguments.trace, |share| progress.share("keeping", share))?;
    if arguments.spans {
        undertick_analyze::keep_spans(&trace, options.clone(), |share| {
            progress.share("keeping spans", share);
        })?;
    }
    Ok(undertick_analyze::analyze(&trace, options, |share| {
        progress.share("analysing", share);
    })?)
}

pub fn read_table(path: &std::path::Path) -> Result<Table, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::usage(format!("{}: cannot read the table: {e}", path.display())))?;
    Table::parse(&text, &path.display().to_string()).map_err(Failure::usage)
}
