//! Comparison of two surveys, two reports, two traces, or two sets of runs.
//!
//! **Question.** What differs between two machines, two days or two versions of a
//! program, and what only seems to?
//!
//! **Method.** Figures of the same name are compared by their ratio where they are above 0. For
//! documents, the interval of the ratio and the probability of such a distance by chance come from
//! the two intervals alone ([`undertick_estimate::versus`]). For sets of runs they come from the
//! scatter between runs ([`undertick_estimate::runs_versus`]), and for runs in turn from the
//! scatter between rounds ([`undertick_estimate::paired_runs_versus`]). Of many figures some differ
//! by chance. The probabilities are therefore adjusted (Benjamini and Hochberg), so that on average
//! at most the share 1 - level of the figures called different are not. Of the others, a figure
//! whose interval lies near 1 is alike; one whose interval is wide is undecided.
//!
//! **Caveats.** An interval of a document contains what repetitions within one run differ by. The
//! differences of a machine from hour to hour are in no single run, and those between processes of
//! one program are in no single recording. This command calls both a difference.

mod figures;
mod gate;
mod in_turn;
mod input;
mod reference;
mod rounds;
mod sets;
mod suites;
mod tree;
mod verdict;
mod warnings;

use std::path::Path;

use undertick_estimate::fleet::adjusted;
use undertick_format::input::{Kind, text as text_of};
use undertick_report::compare::{
    Comparison, Gate, KIND, Row, SCHEMA_VERSION, Side, Subject, Summary, Verdict, subject,
};
use undertick_report::survey::{Better, Scale};

use figures::Figure;

pub use in_turn::{InTurn, InTurnProgress, Recorded, record_in_turn};
pub use input::{Input, Runs, open};
pub use reference::hold_against;
pub use suites::{Suites, SuitesProgress, compare_suites, has_rounds};

/// Options of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Level of the intervals, and of the decision that a figure is different.
    pub level: f64,
    /// Figures within this share of no difference are alike, whatever else is known of them.
    /// `None`: those within a tenth, unless known to differ.
    pub within: Option<f64>,
    /// A figure that is slower by more than this share is too slow.
    pub gate: Option<f64>,
    /// Chance that any figure is called different, or too slow, if none is; `None`: 1 - level.
    pub false_alarms: Option<f64>,
}

impl Options {
    /// Default options at this level.
    #[must_use]
    pub const fn at_level(level: f64) -> Self {
        Self {
            level,
            within: None,
            gate: None,
            false_alarms: None,
        }
    }

    /// Chance that any figure is called different if none differs.
    pub(crate) fn alpha(&self) -> f64 {
        self.false_alarms.unwrap_or(1.0 - self.level)
    }
}

/// Reads a document that can be compared.
///
/// # Errors
/// Names the file, the place in it, what is wrong, and the mend.
pub(crate) fn read(path: &Path) -> Result<Side, String> {
    let file = path.display();
    std::fs::metadata(path).map_err(|e| {
        format!("{file}: {e}; give a file that `undertick survey --json` or `undertick report --json` printed, a trace, or a directory of traces")
    })?;
    Ok(document(path)?.side(&file.to_string()))
}

/// Reads the document in a file.
pub(crate) fn document(path: &Path) -> Result<Subject, String> {
    // The error names the file.
    let text = text_of(path, Kind::DOCUMENT).map_err(|error| error.to_string())?;
    subject(&text).map_err(|wrong| format!("{}: {wrong}", path.display()))
}

/// Compares the second with the first; both must be of one kind.
///
/// # Errors
/// They are of two kinds.
pub fn compare(a: Side, b: Side, level: f64) -> Result<Comparison, String> {
    compare_as(Input::One(a), Input::One(b), &Options::at_level(level))
}

/// Compares the second with the first: two documents of one kind, or two sets of runs.
///
/// # Errors
/// They are of two kinds, or a set is compared with a document.
pub fn compare_as(a: Input, b: Input, options: &Options) -> Result<Comparison, String> {
    let (kind_a, kind_b) = (&a.about().kind, &b.about().kind);
    if kind_a != kind_b {
        return Err(format!(
            "{} is a {kind_a} and {} is a {kind_b}: only two of a kind can be compared; make both with the same command",
            a.about().file,
            b.about().file
        ));
    }
    let found = match (&a, &b) {
        (Input::One(a), Input::One(b)) => figures::of_documents(a, b, options),
        (Input::Runs(a), Input::Runs(b)) => sets::figures(a, b, options),
        (Input::One(one), Input::Runs(set)) | (Input::Runs(set), Input::One(one)) => {
            return Err(format!(
                "{} is one run and {} is a set of runs: what one run's processes differ by is not known; \
                 give a set for both, made for example by `undertick compare --runs 10`",
                one.about.file, set.about.file
            ));
        }
    };
    let rows = rows(&found.figures, options);
    let paths = tree::changes(&a, &b, found.are_paired, options);
    let mut warnings = warnings::find(&a, &b);
    warnings.extend(found.warnings);
    Ok(Comparison {
        schema_version: SCHEMA_VERSION,
        kind: KIND.to_owned(),
        confidence: options.level,
        false_share: options.alpha(),
        paired: found.are_paired,
        within: options.within,
        gate: options.gate.map(|share| Gate {
            share,
            too_slow: gate::too_slow(&rows, options.alpha()),
        }),
        sequential: None,
        summary: summary(&rows, options.level),
        only_in_a: found.only_in_a,
        only_in_b: found.only_in_b,
        rows,
        paths,
        warnings,
        a: a.into_about(),
        b: b.into_about(),
    })
}

fn rows(figures: &[Figure], options: &Options) -> Vec<Row> {
    let each = |p: fn(&Figure) -> Option<f64>| -> Vec<Option<f64>> {
        let known: Vec<f64> = figures.iter().filter_map(p).collect();
        let mut adjusted = adjusted(&known).into_iter();
        let of = |figure: &Figure| p(figure).and_then(|_| adjusted.next());
        figures.iter().map(of).collect()
    };
    let adjusted_p = each(|figure| figure.versus.p);
    let gate_p = each(|figure| figure.gate_p);
    (figures.iter().zip(adjusted_p).zip(gate_p))
        .map(|((figure, adjusted_p), gate_p)| row(figure, adjusted_p, gate_p, options))
        .collect()
}

fn row(figure: &Figure, adjusted_p: Option<f64>, gate_p: Option<f64>, options: &Options) -> Row {
    let metric = &figure.metric;
    // A ratio to a figure that may be 0 is meaningless.
    let is_above_0 = figure.a.interval.lo.is_some_and(|lo| lo > 0.0);
    let has_ratio = metric.scale == Scale::Ratio && is_above_0;
    let ratio = (figure.versus.ratio.clone()).filter(|_| has_ratio);
    let bound = ratio.as_ref().and_then(verdict::bound);
    let differs = adjusted_p.is_some_and(|p| p <= options.alpha());
    let verdict = verdict::decide(figure, differs, bound, options.within);
    let runs_wanted = match verdict {
        Verdict::CannotTell => verdict::runs_wanted(figure, ratio.as_ref(), options.within),
        _ => None,
    };
    let mut row = Row {
        id: metric.id.clone(),
        group: metric.group.clone(),
        name: metric.name.clone(),
        better: metric.better,
        a: figure.a.clone(),
        b: figure.b.clone(),
        ratio,
        difference: figure.versus.difference.clone(),
        p: figure.versus.p,
        adjusted_p,
        verdict,
        bound,
        runs_wanted,
        gate_p,
        words: String::new(),
    };
    row.words = verdict::words(&row, options.level);
    row
}

fn summary(rows: &[Row], level: f64) -> Summary {
    let count = |is: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| is(row)).count() as u64;
    let tested = count(&|row| row.p.is_some());
    let is_better = |row: &Row| match row.better {
        Better::Lower => row.difference.value < 0.0,
        Better::Higher => row.difference.value > 0.0,
        Better::Neither => false,
    };
    let is_worse = |row: &Row| row.better != Better::Neither && !is_better(row);
    Summary {
        compared: rows.len() as u64,
        differ: count(&Row::differs),
        better: count(&|row| row.differs() && is_better(row)),
        worse: count(&|row| row.differs() && is_worse(row)),
        differ_alone: count(&|row| row.p.is_some_and(|p| p <= 1.0 - level)),
        expected_by_chance: tested as f64 * (1.0 - level),
        alike: count(&|row| row.verdict == Verdict::Alike),
        cannot_tell: count(&|row| row.verdict == Verdict::CannotTell),
    }
}

#[cfg(test)]
#[path = "compare/tests.rs"]
mod tests;
