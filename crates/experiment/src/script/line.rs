//! Reads straight lines through figures of several settings.

use super::amount;
use super::field::{Fields, Given};
use super::head::TOP_VALUES;
use super::interval::{Steps, checked, step};
use super::message::{Result, none_of};
use super::plan::{Between, Line, Timed};
use super::raw::Table;
use super::sweep::Scope;

/// Maximum number of lines.
const MOST_LINES: usize = 64;

/// Maximum number of units of a parameter for which a slope is stated.
const MOST_PER: u64 = 1 << 40;

/// The tables of the lines.
pub(super) fn tables(root: &Table) -> Result<Vec<&Table>> {
    root.list("line", "[[line]]", MOST_LINES)
}

/// Reads the lines.
pub(super) fn read(
    tables: &[&Table],
    scope: &Scope<'_>,
    steps: Steps<'_>,
    intervals: &[Between],
) -> Result<Vec<Line>> {
    let mut all: Vec<Line> = Vec::new();
    for table in tables {
        table.only(
            "a line",
            &["name", "of", "against", "per", "includes"],
            TOP_VALUES,
        )?;
        let fields = Fields { table, scope };
        let name = fields.need(fields.name("")?, "a line", "name = \"a word\"")?;
        if all.iter().any(|other| other.name == name.value) {
            let why = format!("there are two lines {:?}; rename one", name.value);
            return Err(name.from.bad(why));
        }
        let of = fields.need(
            fields.text("of", "client.send")?,
            "a line",
            "of = \"client.send\"",
        )?;
        let against = fields.need(
            fields.text("against", "words")?,
            "a line",
            "against = \"words\"",
        )?;
        all.push(Line {
            name: name.value,
            of: timed(&of, steps, intervals)?,
            x: value(&against, scope)?,
            against: against.value,
            per: fields
                .whole("per", 1..=MOST_PER)?
                .map_or(1.0, |p| p.value as f64),
            includes: fields.includes()?,
        });
    }
    Ok(all)
}

/// Finds an interval or a pass by its name, or a step as `PROCESS.STEP`.
fn timed(given: &Given<String>, steps: Steps<'_>, intervals: &[Between]) -> Result<Timed> {
    let text = given.value.as_str();
    if let Some(at) = intervals.iter().position(|i| i.name == text) {
        return Ok(Timed::Between(at));
    }
    let processes = steps.processes;
    let is_pass = |p: &super::plan::Process| !p.pass.is_empty() && p.pass == text;
    if let Some(at) = processes.iter().position(is_pass) {
        return Ok(Timed::Pass(at));
    }
    let Some((process, wanted)) = text.split_once('.') else {
        let known: Vec<&str> = (intervals.iter().map(|i| i.name.as_str()))
            .chain(processes.iter().map(|p| p.pass.as_str()))
            .filter(|name| !name.is_empty())
            .collect();
        let what = "a line is of a step, PROCESS.STEP, of an interval or of a pass; there is no";
        return Err(given.from.bad(none_of(what, text, &known)));
    };
    let process = steps.names.find(&Given {
        value: process.trim().to_owned(),
        from: given.from.clone(),
    })?;
    let own = &processes[process];
    let step = step(given, wanted.trim(), own, &steps.marks[process])?;
    checked(given, own, step)?;
    Ok(Timed::Step { process, step })
}

/// The parameter's value as a number; sizes are in bytes.
fn value(against: &Given<String>, scope: &Scope<'_>) -> Result<f64> {
    let parameters = scope.parameters();
    let found = parameters.iter().find(|(name, _)| *name == against.value);
    let Some((name, text)) = found else {
        let known: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
        let why = none_of("there is no parameter", &against.value, &known);
        return Err(against.from.bad(why));
    };
    let number = text.parse::<f64>().ok().filter(|x| x.is_finite());
    let number = number.or_else(|| amount::bytes(text).map(|bytes| bytes as f64));
    number.ok_or_else(|| {
        against.from.bad(format!(
            "{name} is {text:?} here, and a line needs numbers or sizes; sweep such, or leave the line out"
        ))
    })
}
