//! Opening a trace.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use tempfile::TempDir;
use undertick_analyze::spans::Spans;
use undertick_analyze::{Failed, Options, Table};
use undertick_causes::explain::explain;
use undertick_format::files::EVENTS_FILE;
use undertick_format::manifest::Part;
use undertick_format::{input, read};
use undertick_record::finalize::encode_into;

use crate::explanations::parts;
use crate::reports::Report;
use crate::streams::Batches;
use crate::{Error, InputError};

/// A trace.
#[pyclass(frozen, module = "undertick._native")]
pub struct Trace {
    trace: Arc<read::Trace>,
    /// Spans made for this object, by the options with which they were made.
    spans: Mutex<HashMap<String, Arc<Spans>>>,
    /// Where the Parquet of raw blocks is, once it was made for this object.
    parquet: Mutex<Option<TempDir>>,
}

#[pymethods]
impl Trace {
    /// Opens a trace directory.
    #[new]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = py.detach(|| read::Trace::open(&path));
        opened
            .map(|trace| Self {
                trace: Arc::new(trace),
                spans: Mutex::default(),
                parquet: Mutex::default(),
            })
            .map_err(of_trace)
    }

    /// Returns everything that is not an event, as JSON.
    fn manifest(&self) -> PyResult<String> {
        serde_json::to_string(&self.trace.manifest).map_err(|e| Error::new_err(e.to_string()))
    }

    /// Returns the program's rows.
    fn events(&self) -> Batches {
        Batches::rows(Arc::clone(&self.trace), 0)
    }

    /// Returns the kernel's rows.
    fn kernel(&self) -> Batches {
        Batches::rows(Arc::clone(&self.trace), 1)
    }

    /// Returns the report, as `undertick report` does; `table` is the text of a table and its name.
    #[pyo3(signature = (table, confidence, cull, compensate))]
    fn report(
        &self,
        py: Python<'_>,
        table: Option<(String, String)>,
        confidence: f64,
        cull: &str,
        compensate: &str,
    ) -> PyResult<Report> {
        let options = options(table, confidence, cull, compensate)?;
        let trace = Arc::clone(&self.trace);
        waited(py, move || {
            let mut report = undertick_analyze::analyze(&trace, options.clone(), &mut |_| {})?;
            undertick_causes::add_states(&trace, &options, &mut report, &mut |_| {})?;
            undertick_causes::add_stacks(&trace, &options, &mut report, &mut |_| {})?;
            undertick_causes::add_interposed(&trace, &options, &mut report, &mut |_| {})?;
            undertick_causes::add_tasks(&trace, &mut report, &mut |_| {})?;
            Ok(report)
        })
        .map(Report::new)
    }

    /// Returns why the slowest calls of a path took longer than its typical one.
    #[pyo3(signature = (path, slowest))]
    fn explain(&self, py: Python<'_>, path: &str, slowest: usize) -> PyResult<Batches> {
        let trace = Arc::clone(&self.trace);
        let wanted = path.to_owned();
        let (explanation, found) = waited(py, move || {
            let options = Options::default();
            let report = undertick_analyze::analyze(&trace, options.clone(), &mut |_| {})?;
            let paths = report.paths_named(&wanted);
            let explanation = explain(&trace, &options, &report, (&paths, slowest), &mut |_| {})?;
            Ok((explanation, paths.len()))
        })?;
        if found != 1 {
            return Err(InputError::new_err(match found {
                0 => format!("no path {path:?} in this trace"),
                n => format!("{path:?} is the end of {n} paths"),
            }));
        }
        parts(&explanation)
            .map(Batches::table)
            .map_err(|e| Error::new_err(e.to_string()))
    }

    /// Returns the spans one by one.
    #[pyo3(signature = (table, cull, compensate))]
    fn spans(
        &self,
        py: Python<'_>,
        table: Option<(String, String)>,
        cull: &str,
        compensate: &str,
    ) -> PyResult<Batches> {
        let spans = self.found(py, table, cull, compensate)?;
        Batches::parts(spans).map_err(|e| Error::new_err(e.to_string()))
    }

    /// Returns the Parquet files of all rows. For raw blocks, a Parquet file is made in a temporary
    /// directory, which lives as long as this object.
    fn files(&self, py: Python<'_>) -> PyResult<Vec<PathBuf>> {
        let parts = &self.trace.manifest.parts;
        let parquet = || self.parquet.lock().unwrap_or_else(PoisonError::into_inner);
        if parts.iter().any(Part::has_raw_blocks) && parquet().is_none() {
            let dir = tempfile::tempdir().map_err(|e| {
                Error::new_err(format!("no room for a Parquet file of raw blocks: {e}"))
            })?;
            let (trace, file) = (Arc::clone(&self.trace), dir.path().join(EVENTS_FILE));
            // Not locked: Python runs other threads at times.
            waited(py, move || Ok(encode_into(&trace, &file, &mut |_| {})?))?;
            parquet().get_or_insert(dir);
        }
        let parquet = parquet();
        let file = |part: &Part| match parquet.as_ref().filter(|_| part.has_raw_blocks()) {
            Some(dir) => dir.path().join(EVENTS_FILE),
            None => self.trace.dir().join(&part.file),
        };
        Ok(parts.iter().map(file).collect())
    }

    /// Returns the directory of the spans of a report, which exists as long as this object.
    fn spans_dir(&self, py: Python<'_>) -> PyResult<PathBuf> {
        let spans = self.found(py, None, "auto", "auto")?;
        Ok(spans.dir().to_owned())
    }
}

impl Trace {
    /// Returns the spans that are stored with the events, or those made for this object.
    fn found(
        &self,
        py: Python<'_>,
        table: Option<(String, String)>,
        cull: &str,
        compensate: &str,
    ) -> PyResult<Arc<Spans>> {
        let key = format!("{table:?} {cull} {compensate}");
        let made = || self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = made().get(&key) {
            return Ok(Arc::clone(found));
        }
        let options = options(table, 0.95, cull, compensate)?;
        let trace = Arc::clone(&self.trace);
        let found = Arc::new(waited(py, move || {
            undertick_analyze::find_spans(&trace, options, &mut |_| {})
        })?);
        made().insert(key, Arc::clone(&found));
        Ok(found)
    }
}

fn options(
    table: Option<(String, String)>,
    confidence: f64,
    cull: &str,
    compensate: &str,
) -> PyResult<Options> {
    let usage = |e: undertick_analyze::Error| InputError::new_err(e.to_string());
    let table = table
        .map(|(text, name)| Table::parse(&text, &name))
        .transpose()
        .map_err(|e| InputError::new_err(e.to_string()))?;
    Ok(Options {
        table,
        cull: cull.parse().map_err(usage)?,
        compensate: compensate.parse().map_err(usage)?,
        confidence,
    })
}

/// Returns the text of a table.
#[pyfunction]
pub fn read_table(path: PathBuf) -> PyResult<String> {
    input::text(&path, input::Kind::TABLE).map_err(of_trace)
}

/// Returns the text of a document that was printed with `--json`.
#[pyfunction]
pub fn read_document(path: PathBuf) -> PyResult<String> {
    input::text(&path, input::Kind::DOCUMENT).map_err(of_trace)
}

/// Returns a text from a program or a file in one line that is safe to print on a terminal.
#[pyfunction]
pub fn shown(text: &str) -> Cow<'_, str> {
    undertick_text::clean(text)
}

/// Returns a message of several lines that is safe to print on a terminal.
#[pyfunction]
pub fn shown_lines(text: &str) -> Cow<'_, str> {
    undertick_text::clean_lines(text)
}

/// Returns a text as a cell of comma-separated values: quoted, safe to print, and no formula.
#[pyfunction]
pub fn csv_cell(text: &str) -> Cow<'_, str> {
    undertick_text::csv_cell(text)
}

/// Interval between checks for Ctrl-C.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Does work on another thread, so that Ctrl-C ends the wait for it. The work then goes on until it
/// is done or the process ends.
fn waited<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failed> + Send + 'static,
) -> PyResult<T> {
    let (sender, mut result) = channel();
    std::thread::spawn(move || {
        // After Ctrl-C nothing receives it.
        let _ = sender.send(work());
    });
    loop {
        let (said, back) = py.detach(move || (result.recv_timeout(LOOK_EVERY), result));
        result = back;
        match said {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(Failed::Trace(error))) => return Err(of_trace(error)),
            Ok(Err(Failed::Analysis(error))) => return Err(InputError::new_err(error.to_string())),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new_err("the analysis failed; its words are above"));
            }
        }
    }
}

/// Returns the exception for an error in reading a trace.
pub fn of_trace(error: undertick_format::TraceError) -> PyErr {
    match error.exit_status() {
        2 => InputError::new_err(error.to_string()),
        _ => Error::new_err(error.to_string()),
    }
}
