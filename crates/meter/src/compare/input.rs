//! The input of a comparison: a document, a trace, or a set of runs.

use std::path::{Path, PathBuf};

use undertick_analyze::analyze;
use undertick_estimate::MOST_RUNS;
use undertick_format::read::Trace;
use undertick_format::run_set::{is_trace, run_name};
use undertick_report::compare::{PathFigure, Side, Source, Subject};
use undertick_report::survey::Metric;

use super::{read, rounds};
use crate::only;

/// One of the two sides.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// One document, or one trace.
    One(Side),
    /// Several runs of one program.
    Runs(Runs),
}

/// A set of runs of one program: each run has one number for each of its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs {
    /// Describes the set; the machine is that of its first run.
    pub about: Source,
    /// The directory of the set.
    pub(super) dir: PathBuf,
    pub(super) runs: Vec<Run>,
}

/// One run of a set.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Run {
    pub(super) name: String,
    pub(super) metrics: Vec<Metric>,
    pub(super) paths: Vec<PathFigure>,
}

/// Opens a document, a trace, or a directory of these. `progress` receives the share done, 0 to 1.
///
/// # Errors
/// Names the file, the place in it, what is wrong, and the mend.
pub fn open(
    path: &Path,
    options: &undertick_analyze::Options,
    progress: &mut dyn FnMut(f64),
) -> Result<Input, String> {
    if !path.is_dir() || is_trace(path) {
        return Ok(Input::One(one(path, options, progress)?));
    }
    let files = files(path)?;
    let mut runs = Vec::with_capacity(files.len());
    let mut about: Option<Source> = None;
    for (index, file) in files.iter().enumerate() {
        let share = |within: f64| (index as f64 + within) / files.len() as f64;
        let side = one(file, options, &mut |within| progress(share(within))).map_err(|wrong| {
            format!(
                "{}: a directory, so taken for a set of runs, but {wrong}, or move it away",
                path.display()
            )
        })?;
        let first = about.get_or_insert_with(|| side.about.clone());
        if side.about.kind != first.kind {
            return Err(format!(
                "{}: a {} beside {}, a {}: a set of runs has one kind; move the others away",
                side.about.file, side.about.kind, first.file, first.kind
            ));
        }
        runs.push(Run {
            name: run_name(file),
            metrics: side.metrics,
            paths: side
                .paths
                .into_iter()
                .map(PathFigure::without_interval)
                .collect(),
        });
    }
    let Some(about) = about else {
        return Err(none_in(path));
    };
    Ok(Input::Runs(Runs {
        about: Source {
            file: path.display().to_string(),
            runs: Some(runs.len() as u64),
            ..about
        },
        dir: path.to_owned(),
        runs,
    }))
}

impl Input {
    /// Describes the input.
    #[must_use]
    pub const fn about(&self) -> &Source {
        match self {
            Self::One(side) => &side.about,
            Self::Runs(runs) => &runs.about,
        }
    }

    pub(super) fn into_about(self) -> Source {
        match self {
            Self::One(side) => side.about,
            Self::Runs(runs) => runs.about,
        }
    }

    pub(super) const fn is_one_run(&self) -> bool {
        matches!(self, Self::One(side) if side.is_one_run)
    }

    /// Keeps the figures whose name matches one of the patterns (`*`: any text, `?`: any
    /// character), or all if there is no pattern. Paths stay in the call tree, without the time of
    /// a call. Returns how many figures are left.
    pub fn keep_only(&mut self, forms: &[String]) -> usize {
        let wanted = |metric: &Metric| {
            let fits = |form: &String| {
                only::matches(form, &metric.id) || only::matches(form, &metric.name)
            };
            forms.is_empty() || forms.iter().any(fits)
        };
        let each: Vec<(&mut Vec<Metric>, &mut Vec<PathFigure>)> = match self {
            Self::One(side) => vec![(&mut side.metrics, &mut side.paths)],
            Self::Runs(runs) => (runs.runs.iter_mut())
                .map(|run| (&mut run.metrics, &mut run.paths))
                .collect(),
        };
        let left = each.into_iter().map(|(metrics, paths)| {
            metrics.retain(wanted);
            for path in paths {
                let is_wanted = || forms.iter().any(|form| only::matches(form, &path.name));
                if !forms.is_empty() && !is_wanted() {
                    path.side.call_ns = None;
                }
            }
            metrics.len()
        });
        left.max().unwrap_or(0)
    }
}

/// Opens a document or a trace.
fn one(
    path: &Path,
    options: &undertick_analyze::Options,
    progress: &mut dyn FnMut(f64),
) -> Result<Side, String> {
    if !is_trace(path) {
        return read(path);
    }
    // Both errors name the file where they can.
    let trace = Trace::open(path).map_err(|e| e.to_string())?;
    let report = analyze(&trace, options.clone(), progress)
        .map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(Subject::Report(Box::new(report)).side(&path.display().to_string()))
}

/// The runs of a directory, by name.
fn files(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let shown = dir.display();
    if dir.join(rounds::FILE).exists() {
        return Err(format!(
            "{shown}: it holds the runs of both programs; compare {shown}/a with {shown}/b"
        ));
    }
    let entries = std::fs::read_dir(dir).map_err(|e| format!("{shown}: {e}; make it readable"))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_trace(path) || (path.is_file() && has_ending(path, "json")))
        .collect();
    files.sort();
    match files.len() {
        0 => Err(none_in(dir)),
        n if n > MOST_RUNS => Err(format!(
            "{shown}: {n} runs, and more than {MOST_RUNS} say no more; move some away"
        )),
        _ => Ok(files),
    }
}

fn none_in(dir: &Path) -> String {
    format!(
        "{}: a directory with no trace (NAME.ut) and no report (NAME.json) in it; give a trace, a report, or a directory of either; of a fleet use `undertick survey --fleet`",
        dir.display()
    )
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension()
        .is_some_and(|e| e.eq_ignore_ascii_case(ending))
}
