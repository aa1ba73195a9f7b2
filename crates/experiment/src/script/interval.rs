//! Intervals from a step of one process to a step of another.

use super::field::{Fields, Given};
use super::head::{Names, TOP_VALUES};
use super::message::{Result, none_of};
use super::plan::{Between, Point, Process};
use super::process::Mark;
use super::raw::Table;
use super::sweep::Scope;

/// Maximum number of intervals.
const MOST_INTERVALS: usize = 256;

/// The steps between which intervals lie.
#[derive(Clone, Copy)]
pub(super) struct Steps<'s> {
    pub(super) processes: &'s [Process],
    pub(super) marks: &'s [Mark],
    pub(super) names: &'s Names,
}

/// The tables of the intervals.
pub(super) fn tables(root: &Table) -> Result<Vec<&Table>> {
    root.list("interval", "[[interval]]", MOST_INTERVALS)
}

/// Reads the intervals.
pub(super) fn read(tables: &[&Table], scope: &Scope<'_>, steps: Steps<'_>) -> Result<Vec<Between>> {
    let mut all: Vec<Between> = Vec::new();
    for table in tables {
        table.only(
            "an interval",
            &["name", "from", "to", "includes"],
            TOP_VALUES,
        )?;
        let fields = Fields { table, scope };
        let name = fields.need(fields.name("")?, "an interval", "name = \"latency\"")?;
        if all.iter().any(|other| other.name == name.value) {
            let why = format!("there are two intervals {:?}; rename one", name.value);
            return Err(name.from.bad(why));
        }
        let point = |key: &str, is_end: bool| {
            let example = format!("{key} = \"client.send\"");
            let given = fields.text(key, "client.send")?;
            let given = fields.need(given, "an interval", &example)?;
            let point = point(&given, is_end, steps)?;
            Ok((point, given))
        };
        let (from, _) = point("from", false)?;
        let (to, given) = point("to", true)?;
        if from == to {
            let why = "from and to are the same point; name another step, or \"end of ...\"";
            return Err(given.from.bad(why));
        }
        all.push(Between {
            name: name.value,
            from,
            to,
            includes: fields.includes()?,
        });
    }
    Ok(all)
}

/// Parses `begin of A.2`, `B.receive`: a boundary of a step.
fn point(given: &Given<String>, is_end: bool, steps: Steps<'_>) -> Result<Point> {
    let text = given.value.as_str();
    let (rest, is_end) = match (text.strip_prefix("begin of "), text.strip_prefix("end of ")) {
        (Some(rest), _) => (rest, false),
        (_, Some(rest)) => (rest, true),
        _ => (text, is_end),
    };
    let Some((process, wanted)) = rest.split_once('.') else {
        let why = format!(
            "{text:?} names no step; write \"PROCESS.STEP\", e.g. \"client.send\" or \"end of A.2\""
        );
        return Err(given.from.bad(why));
    };
    let process = steps.names.find(&Given {
        value: process.trim().to_owned(),
        from: given.from.clone(),
    })?;
    let own = &steps.processes[process];
    let step = step(given, wanted.trim(), own, &steps.marks[process])?;
    checked(given, own, step)?;
    Ok(Point {
        process,
        step,
        is_end,
    })
}

/// Finds a step by its number, by its name, or by a verb that occurs once.
pub(super) fn step(
    given: &Given<String>,
    wanted: &str,
    process: &Process,
    mark: &Mark,
) -> Result<usize> {
    let steps = &process.steps;
    if let Ok(number) = wanted.parse::<u32>() {
        let found = steps.iter().position(|step| step.number == number);
        return found.ok_or_else(|| {
            let numbers: Vec<String> = steps.iter().map(|s| s.number.to_string()).collect();
            let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
            let what = format!("there is no step of {} with the number", process.name);
            given.from.bad(none_of(&what, wanted, &numbers))
        });
    }
    let is_named = |i: &usize| steps[*i].name == wanted;
    let has_verb = |i: &usize| mark.verbs[*i] == wanted;
    for is_it in [&is_named as &dyn Fn(&usize) -> bool, &has_verb] {
        let mut found = (0..steps.len()).filter(is_it);
        let Some(first) = found.next() else {
            continue;
        };
        let Some(second) = found.next() else {
            return Ok(first);
        };
        let why = format!(
            "{} has more than one step {wanted:?} ({} and {}); write its number, {}.{}",
            process.name,
            steps[first].number,
            steps[second].number,
            process.name,
            steps[first].number
        );
        return Err(given.from.bad(why));
    }
    let mut known: Vec<&str> = steps.iter().map(|s| s.name.as_str()).collect();
    known.dedup();
    let what = format!("there is no step of {}", process.name);
    Err(given.from.bad(none_of(&what, wanted, &known)))
}

/// Checks that the clock is read at the step in each pass.
pub(super) fn checked(given: &Given<String>, process: &Process, step: usize) -> Result<()> {
    let (name, at) = (&process.name, &process.steps[step]);
    let why = if !process.measured {
        format!(
            "{name} is not measured, so nothing is known of its steps; set measured = true there"
        )
    } else if !at.timed {
        format!(
            "step {} of {name} is not timed; leave out timed = false there",
            at.number
        )
    } else if step < process.loop_to {
        format!(
            "step {} of {name} is done once, before the passes; name one from {} on",
            at.number, process.steps[process.loop_to].number
        )
    } else {
        return Ok(());
    };
    Err(given.from.bad(why))
}
