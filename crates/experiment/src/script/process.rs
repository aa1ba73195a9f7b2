//! Reads processes and their steps.

use super::field::{Fields, Given};
use super::head::{Names, TOP_VALUES};
use super::message::{Bad, Origin, Result};
use super::place;
use super::plan::{Placement, Process, Step};
use super::raw::Table;
use super::step::{Declared, Does, Made};
use super::sweep::Scope;

/// Maximum number of processes.
const MOST_PROCESSES: usize = 64;

/// Maximum number of steps of a process.
const MOST_STEPS: usize = 1000;

/// Maximum number of replicas of a process.
const MOST_REPLICAS: u64 = 64;

const KEYS: &[&str] = &[
    "name",
    "as",
    "start",
    "place",
    "replicas",
    "measured",
    "every",
    "after",
    "background",
    "pass",
    "includes",
    "step",
];

/// Where the parts of a process are in the script.
pub(super) struct Mark {
    pub(super) start: Origin,
    pub(super) steps: Vec<Origin>,
    /// The verbs of the steps.
    pub(super) verbs: Vec<String>,
}

/// The processes of one setting, and where their parts are in the script.
pub(super) struct Processes {
    pub(super) all: Vec<Process>,
    pub(super) marks: Vec<Mark>,
}

/// The tables of the processes.
pub(super) fn tables(root: &Table) -> Result<Vec<&Table>> {
    let tables = root.list("process", "[[process]]", MOST_PROCESSES)?;
    if tables.is_empty() {
        let why =
            "there is no process; add [[process]] with a name, and steps below [[process.step]]";
        return Err(Bad::new(0, why));
    }
    Ok(tables)
}

/// The tables of a process's steps.
pub(super) fn step_tables(process: &Table) -> Result<Vec<&Table>> {
    process.list("step", "[[process.step]]", MOST_STEPS)
}

/// The names of the processes.
pub(super) fn names(tables: &[&Table], scope: &Scope<'_>) -> Result<Names> {
    let mut names = Names {
        what: "process",
        names: Vec::new(),
        from: Vec::new(),
    };
    for table in tables {
        table.only("a process", KEYS, TOP_VALUES)?;
        let fields = Fields { table, scope };
        let name = fields.need(fields.name(".")?, "a process", "name = \"A\"")?;
        if names.names.contains(&name.value) {
            let why = format!("there are two processes {:?}; rename one", name.value);
            return Err(name.from.bad(why));
        }
        names.names.push(name.value);
        names.from.push(name.from);
    }
    Ok(names)
}

/// Reads the processes.
pub(super) fn read(
    tables: &[&Table],
    scope: &Scope<'_>,
    declared: &Declared<'_>,
    line: &dyn Fn(usize) -> usize,
) -> Result<Processes> {
    let mut processes = Processes {
        all: Vec::new(),
        marks: Vec::new(),
    };
    let mut places = Vec::new();
    for (own, table) in tables.iter().enumerate() {
        let fields = Fields { table, scope };
        let given = fields.text("place", "any")?;
        places.push(
            given
                .as_ref()
                .map_or_else(Origin::default, |g| g.from.clone()),
        );
        let place = given.map_or(Ok(Placement::Any), |g| {
            place::read(&g, own, declared.processes)
        })?;
        let (process, mark) = one(
            fields,
            place,
            &declared.processes.names[own],
            declared,
            line,
        )?;
        processes.all.push(process);
        processes.marks.push(mark);
    }
    let all: Vec<Placement> = processes.all.iter().map(|p| p.place.clone()).collect();
    place::check(&all, &places)?;
    Ok(processes)
}

fn one(
    fields: Fields<'_>,
    place: Placement,
    name: &str,
    declared: &Declared<'_>,
    line: &dyn Fn(usize) -> usize,
) -> Result<(Process, Mark)> {
    let kind = fields.one_of(
        "as",
        "kind of process",
        &[("process", false), ("thread", true)],
    )?;
    let starts = [("running", false), ("blocked", true)];
    let start = fields.one_of("start", "way to start", &starts)?;
    let replicas = fields.whole("replicas", 1..=MOST_REPLICAS)?;
    let background = fields.flag("background")?.is_some_and(|b| b.value);
    let measured = fields.flag("measured")?;
    if let (true, Some(measured)) = (background, &measured)
        && measured.value
    {
        let why = "a process in the background is not measured; leave out measured or background";
        return Err(measured.from.bad(why));
    }
    let every = fields.time("every", false)?;
    let after = fields.time("after", true)?;
    let steps = steps(fields, declared, line)?;
    let process = Process {
        name: name.to_owned(),
        is_thread: kind.is_some_and(|k| k.value),
        starts_blocked: start.as_ref().is_some_and(|s| s.value),
        place,
        // The checked range fits the type.
        replicas: replicas.map_or(1, |r| r.value as u32),
        measured: measured.map_or(!background, |m| m.value),
        every: every.map(|t| t.value),
        after: after.map(|t| t.value).filter(|t| !t.is_zero()),
        background,
        steps: steps.all,
        loop_to: steps.loop_to,
        pass: fields
            .text("pass", "round trip")?
            .map_or_else(String::new, |p| p.value),
        includes: fields.includes()?,
    };
    let mark = Mark {
        start: start.map(|s| s.from).unwrap_or_default(),
        steps: steps.from,
        verbs: steps.verbs,
    };
    Ok((process, mark))
}

#[derive(Default)]
struct Steps {
    all: Vec<Step>,
    from: Vec<Origin>,
    verbs: Vec<String>,
    loop_to: usize,
}

fn steps(
    fields: Fields<'_>,
    declared: &Declared<'_>,
    line: &dyn Fn(usize) -> usize,
) -> Result<Steps> {
    let tables = step_tables(fields.table)?;
    let mut steps = Steps::default();
    let mut last = 0;
    for (i, table) in tables.iter().enumerate() {
        let made = Made::read(Fields { table, ..fields }, declared)?;
        let number = number_after(last, &made)?;
        last = number;
        match made.does {
            Does::Verb { verb, name } => {
                let name = step_name(made.name, name, &steps)?;
                steps.all.push(Step {
                    number,
                    name,
                    verb,
                    timed: made.timed,
                    line: line(made.from.at),
                    includes: made.includes,
                });
                steps.from.push(made.from);
                steps.verbs.push(made.key);
            }
            Does::GoTo(_) if i + 1 < tables.len() => {
                let why = "nothing comes after go_to; make it the last step";
                return Err(made.from.bad(why));
            }
            Does::GoTo(to) => steps.loop_to = go_to(to, &steps.all, &made.from)?,
        }
    }
    if steps.all.is_empty() {
        let why = "this process has no steps; add [[process.step]] with a verb, or leave it out";
        return Err(Bad::new(fields.table.at, why));
    }
    Ok(steps)
}

/// The number of a step: explicit, or one more than the last.
fn number_after(last: u32, made: &Made) -> Result<u32> {
    let Some(given) = &made.number else {
        let next = last.checked_add(1);
        return next.ok_or_else(|| {
            made.from
                .bad("there is no number after 4294967295; use smaller ones")
        });
    };
    match u32::try_from(given.value) {
        Ok(number) if number > last => Ok(number),
        _ => {
            let why = format!(
                "number {} does not come after {last}, that of the step before (a step without \
                 number has one more than the last); numbers rise: use {} or more",
                given.value,
                u64::from(last) + 1
            );
            Err(given.from.bad(why))
        }
    }
}

fn step_name(given: Option<Given<String>>, usual: String, before: &Steps) -> Result<String> {
    let Some(name) = given else {
        return Ok(usual);
    };
    if before.all.iter().any(|step| step.name == name.value) {
        let why = format!(
            "there are two steps {:?} in this process; rename one",
            name.value
        );
        return Err(name.from.bad(why));
    }
    Ok(name.value)
}

fn go_to(to: u32, steps: &[Step], from: &Origin) -> Result<usize> {
    let found = steps.iter().position(|step| step.number == to);
    found.ok_or_else(|| {
        let numbers: Vec<String> = steps
            .iter()
            .take(40)
            .map(|s| s.number.to_string())
            .collect();
        let has = match numbers.is_empty() {
            true => "it has none before this".to_owned(),
            false => format!("it has {}", numbers.join(", ")),
        };
        from.bad(format!("this process has no step {to} to go to; {has}"))
    })
}
