//! The analysis of an experiment's trace: every interval of every repetition, by the same analysis
//! kernel as for any trace.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use undertick_analyze::{Compensate, Cull, Options, Table, analyze};
use undertick_document::{IntervalReport, Report};
use undertick_format::read::Trace;

use super::machine::Repetition;
use super::numbering::{Cell, Mark, Numbering};
use super::{Experiment, ExperimentError};
use crate::script::{Between, Plan, Point, Process, Stamps};

/// Null steps that take over this many times the minimum are dropped.
pub(super) const RATIO: f64 = 4.0;
/// Intervals of one analysis: it refuses more than 4096, and each takes memory. For more intervals
/// the trace is read again.
const MOST_INTERVALS: usize = 2048;

/// What an interval of one repetition covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Extent {
    /// A span of a process.
    Section {
        process: usize,
        /// [`Mark`] as its event number, relative to the first one of the process.
        mark: u16,
    },
    /// All steps of a pass of a process, in succession.
    Pass(usize),
    /// An interval of the script, by its index.
    Between(usize),
}

/// Every interval of every repetition.
pub(crate) struct Analysed {
    pub(crate) report: Report,
    found: HashMap<(Cell, Extent), IntervalReport>,
}

impl Analysed {
    pub(crate) fn section(
        &self,
        cell: Cell,
        process: usize,
        mark: Mark,
    ) -> Option<&IntervalReport> {
        let mark = mark.offset() as u16;
        self.found.get(&(cell, Extent::Section { process, mark }))
    }

    pub(crate) fn pass(&self, cell: Cell, process: usize) -> Option<&IntervalReport> {
        self.found.get(&(cell, Extent::Pass(process)))
    }

    pub(crate) fn between(&self, cell: Cell, index: usize) -> Option<&IntervalReport> {
        self.found.get(&(cell, Extent::Between(index)))
    }
}

/// Analyses the trace of an experiment.
pub(crate) fn analyse(
    experiment: &Experiment,
    numbering: &Numbering,
    repetitions: &[Repetition],
    trace: &Path,
    cull: impl Fn(&Plan) -> Cull,
    confidence: f64,
) -> Result<Analysed, ExperimentError> {
    // One analysis for each way of dropping samples: most experiments have one.
    let mut groups: Vec<(Cull, Vec<Wanted>)> = Vec::new();
    for repetition in repetitions {
        let cell = Cell {
            setting: repetition.setting,
            repetition: repetition.repetition,
        };
        let plan = &experiment.setting(cell.setting).plan;
        for wanted in wanted(plan, numbering, cell) {
            // A disturbance of a null step is not a part of the cost of stepping.
            let cull = match wanted.of {
                Extent::Section { mark, .. } if mark < Mark::Step(0).offset() as u16 => {
                    Cull::Ratio(RATIO)
                }
                _ => cull(plan),
            };
            match groups.iter_mut().find(|(other, _)| *other == cull) {
                Some((_, group)) => group.push(wanted),
                None => groups.push((cull, vec![wanted])),
            }
        }
    }
    let mut analysed: Option<Analysed> = None;
    let parts = (groups.iter())
        .flat_map(|(cull, wanted)| wanted.chunks(MOST_INTERVALS).map(move |part| (cull, part)));
    for (cull, wanted) in parts {
        let one = of_group(wanted, trace, *cull, confidence)?;
        match &mut analysed {
            None => analysed = Some(one),
            Some(all) => all.found.extend(one.found),
        }
    }
    analysed.ok_or_else(|| ExperimentError::machine("nothing was performed"))
}

fn of_group(
    wanted: &[Wanted],
    trace: &Path,
    cull: Cull,
    confidence: f64,
) -> Result<Analysed, ExperimentError> {
    let table = Table::parse(&text(wanted), "experiment")
        .map_err(|e| ExperimentError::machine(e.to_string()))?;
    let report = run(trace, table, cull, confidence)?;
    let by_name: HashMap<&str, &IntervalReport> =
        (report.intervals.iter().map(|i| (i.name.as_str(), i))).collect();
    let found = (wanted.iter().enumerate())
        .filter_map(|(i, w)| {
            let interval = *by_name.get(name(i).as_str())?;
            Some(((w.cell, w.of), interval.clone()))
        })
        .collect();
    Ok(Analysed { report, found })
}

/// An interval and its boundaries.
struct Wanted {
    cell: Cell,
    of: Extent,
    start: u16,
    end: u16,
}

fn wanted(plan: &Plan, numbering: &Numbering, cell: Cell) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for (p, process) in plan
        .processes
        .iter()
        .enumerate()
        .filter(|(_, p)| p.measured)
    {
        let steps = (0..process.steps.len()).filter(|&s| process.steps[s].timed);
        for mark in [Mark::Loop, Mark::NullBefore, Mark::NullAfter]
            .into_iter()
            .chain(steps.map(Mark::Step))
        {
            let event = numbering.event(plan, cell, p, mark);
            wanted.push(Wanted {
                cell,
                of: Extent::Section {
                    process: p,
                    mark: mark.offset() as u16,
                },
                start: event,
                end: event,
            });
        }
    }
    for (p, process) in passes(plan) {
        let event = |step| numbering.event(plan, cell, p, Mark::Step(step));
        wanted.push(Wanted {
            cell,
            of: Extent::Pass(p),
            start: event(process.loop_to),
            end: event(process.steps.len() - 1),
        });
    }
    for (i, between) in plan.intervals.iter().enumerate() {
        let event = |process, mark| numbering.event(plan, cell, process, mark);
        let Between { from, to, .. } = between;
        wanted.push(Wanted {
            cell,
            of: Extent::Between(i),
            start: event(from.process, begins(plan, *from)),
            end: event(to.process, ends(plan, *to)),
        });
    }
    wanted
}

/// The processes whose pass is itself an interval: those whose clock is read between two steps, so
/// that a pass consists of its steps only.
pub(super) fn passes(plan: &Plan) -> impl Iterator<Item = (usize, &Process)> {
    let several = |p: &Process| p.measured && p.steps.len() > p.loop_to + 1;
    (plan.processes.iter().enumerate())
        .filter(move |(_, p)| plan.stamps == Stamps::Between && several(p))
}

/// The span that begins at a point. Where the clock is read between two steps, the end of a step is
/// the begin of the next; a script that asks for this elsewhere is refused.
fn begins(plan: &Plan, point: Point) -> Mark {
    match point.is_end {
        true if point.step + 1 < plan.processes[point.process].steps.len() => {
            Mark::Step(point.step + 1)
        }
        true => Mark::NullAfter,
        false => Mark::Step(point.step),
    }
}

/// The span that ends at a point.
fn ends(plan: &Plan, point: Point) -> Mark {
    match point.is_end {
        true => Mark::Step(point.step),
        false if point.step > plan.processes[point.process].loop_to => Mark::Step(point.step - 1),
        false => Mark::NullBefore,
    }
}

fn name(index: usize) -> String {
    format!("i{index}")
}

/// The table of these intervals, in the language of tables.
fn text(wanted: &[Wanted]) -> String {
    let mut text = String::new();
    for (i, Wanted { of, start, end, .. }) in wanted.iter().enumerate() {
        let matching = match of {
            Extent::Section { .. } | Extent::Pass(_) => "nested",
            Extent::Between(_) => "message",
        };
        let _ = writeln!(
            text,
            "[[interval]]\nname = {:?}\nstart = {start}\nend = {end}\nmatch = {matching:?}",
            name(i)
        );
    }
    text
}

fn run(trace: &Path, table: Table, cull: Cull, confidence: f64) -> Result<Report, ExperimentError> {
    let machine_error = |e: &dyn std::fmt::Display| ExperimentError::machine(e.to_string());
    let trace = Trace::open(trace).map_err(|e| machine_error(&e))?;
    let options = Options {
        table: Some(table),
        cull,
        // Instead, the null step of the same repetition is taken off: it contains the recorder's
        // cost, in the same surroundings.
        compensate: Compensate::None,
        confidence,
    };
    analyze(&trace, options, &mut |_| {}).map_err(|e| machine_error(&e))
}
