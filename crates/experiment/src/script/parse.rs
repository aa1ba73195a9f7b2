//! Parses a script into one plan for each setting of its parameters.

use super::check;
use super::field::Fields;
use super::head::{self, Head, TOP, TOP_VALUES};
use super::message::{Bad, BadScript, Lines, Result};
use super::plan::Plan;
use super::raw::{self, Kind, Table};
use super::step::Declared;
use super::sweep::{Scope, Sweep};
use super::{interval, line, process};

/// Maximum number of steps and other parts of a script over all settings, so that a script cannot
/// exhaust the memory.
const MOST_PARTS: usize = 1_000_000;

/// A process counts as this many parts, for the list of its CPUs.
const PARTS_OF_A_PROCESS: usize = 10;

/// Default number of fresh processes for each setting.
const USUAL_REPETITIONS: u64 = 8;

/// Maximum number of fresh processes for each setting.
const MOST_REPETITIONS: u64 = 1000;

/// An experiment: what is run, at which settings, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Its title; may be empty.
    pub title: String,
    /// Number of times that each setting is run, in fresh processes.
    pub repetitions: u32,
    /// Seed of random choices.
    pub seed: u64,
    /// One setting for each combination of the parameters' values; the last parameter changes
    /// fastest. If nothing is swept there is one setting without parameters.
    pub settings: Vec<Setting>,
}

/// One combination of the parameters' values.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Names and values in the order of the script.
    pub parameters: Vec<(String, String)>,
    /// The plan to run.
    pub plan: Plan,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// Gives the place of the first mistake found, what is wrong, and the mend.
    pub fn parse(text: &str) -> core::result::Result<Self, BadScript> {
        read(text).map_err(|bad| BadScript::at(text, bad.at, bad.why))
    }
}

fn read(text: &str) -> Result<Script> {
    let root = raw::parse(text)?;
    root.only("a script", TOP, &[])?;
    let sweep = Sweep::read(&root, TOP_VALUES)?;
    sweep.check(&root)?;
    let title = title(&root)?;
    let repetitions = constant(
        &root,
        "repetitions",
        (1, MOST_REPETITIONS),
        USUAL_REPETITIONS,
    )?;
    let seed = constant(&root, "seed", (0, u64::MAX), 1)?;
    few_enough(&root, sweep.settings())?;
    let lines = Lines::new(text);
    let mut settings = Vec::new();
    for index in 0..sweep.settings() {
        let scope = sweep.setting(index);
        let plan = plan(&root, &scope, &lines).map_err(|mut bad| {
            // Earlier settings were valid, so the values of this one matter.
            if index > 0 && !bad.why.contains(" (with ") {
                bad.why.push_str(&scope.note_of_all());
            }
            bad
        })?;
        settings.push(Setting {
            parameters: scope.parameters(),
            plan,
        });
    }
    Ok(Script {
        title,
        // The checked range fits the type.
        repetitions: repetitions as u32,
        seed,
        settings,
    })
}

fn title(root: &Table) -> Result<String> {
    let Some(value) = root.value("title") else {
        return Ok(String::new());
    };
    match &value.kind {
        Kind::Text(title) => Ok(title.clone()),
        kind => {
            let why = format!("title is {} here; write a string in quotes", kind.what());
            Err(Bad::new(value.at, why))
        }
    }
}

/// A whole number that must be the same in all settings.
fn constant(root: &Table, key: &str, (least, most): (u64, u64), usual: u64) -> Result<u64> {
    let Some(value) = root.value(key) else {
        return Ok(usual);
    };
    let found = match &value.kind {
        Kind::Whole(n) => u64::try_from(*n).ok(),
        kind => {
            let why = format!(
                "{key} is {} here; write a whole number from {least} to {most}, the same for all settings",
                kind.what()
            );
            return Err(Bad::new(value.at, why));
        }
    };
    found.filter(|n| (least..=most).contains(n)).ok_or_else(|| {
        Bad::new(
            value.at,
            format!("{key} is out of range; from {least} to {most}"),
        )
    })
}

/// Checks that the settings together do not have too many parts.
fn few_enough(root: &Table, settings: usize) -> Result<()> {
    let tables = process::tables(root)?;
    let mut parts = interval::tables(root)?.len() + 1;
    for kind in ["lock", "channel", "region"] {
        parts += root.value(kind).map_or(0, |value| match &value.kind {
            Kind::Table(table) => table.entries.len(),
            _ => 0,
        });
    }
    for table in &tables {
        parts += process::step_tables(table)?.len() + PARTS_OF_A_PROCESS;
    }
    if parts * settings <= MOST_PARTS {
        return Ok(());
    }
    let at = root.entry("sweep").map_or(0, |entry| entry.at);
    let why = format!(
        "{settings} settings of {parts} steps and other parts are more than {MOST_PARTS}; sweep fewer values"
    );
    Err(Bad::new(at, why))
}

/// Makes the plan of one setting.
fn plan(root: &Table, scope: &Scope<'_>, lines: &Lines<'_>) -> Result<Plan> {
    let head = Head::read(Fields { table: root, scope })?;
    let (locks, lock_names) = head::locks(root, scope)?;
    let (channels, channel_names) = head::channels(root, scope)?;
    let (regions, region_names) = head::regions(root, scope)?;
    let tables = process::tables(root)?;
    let names = process::names(&tables, scope)?;
    let declared = Declared {
        processes: &names,
        locks: &lock_names,
        channels: &channel_names,
        regions: &region_names,
    };
    let processes = process::read(&tables, scope, &declared, &|at| lines.line(at))?;
    let mut plan = Plan {
        length: head.length,
        warm_up: head.warm_up,
        timeout: head.timeout,
        settle: head.settle,
        stamps: head.stamps,
        control: head.backend.as_ref().map(|b| b.value),
        policies: head.policies,
        locks,
        channels,
        regions,
        processes: processes.all,
        intervals: Vec::new(),
        lines: Vec::new(),
    };
    check::check(&check::Draft {
        plan: &plan,
        backend: head.backend.as_ref().map(|b| &b.from),
        processes: &names,
        channels: &channel_names,
        marks: &processes.marks,
    })?;
    let steps = interval::Steps {
        processes: &plan.processes,
        marks: &processes.marks,
        names: &names,
    };
    let intervals = interval::read(&interval::tables(root)?, scope, steps)?;
    plan.lines = line::read(&line::tables(root)?, scope, steps, &intervals)?;
    plan.intervals = intervals;
    Ok(plan)
}
