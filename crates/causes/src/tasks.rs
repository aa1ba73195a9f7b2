//! What the tasks of a program did: futures, coroutines, and other work that threads poll.
//!
//! **Method.** The names of events say which of them are of tasks (`docs/format.md`, section 14). The rings
//! are read once, in parallel; a poll is a span of its thread that follows the record that names its task. All
//! that is known of tasks is then sorted by task and time, and each life is replayed: a task is queued from its
//! creation or a wake until its next poll, busy during polls, and else idle. So busy, idle and queued time
//! are exactly its lifetime, which ends at the end of its last poll if the task ended there.
//!
//! **Bounds.** 32 bytes of memory for each record until there are 2^20 of a worker, then temporary files.
//!
//! **Caveats.** Times are as read, with the cost of recording. A poll that begins before the previous one
//! has ended (by clocks of two CPUs that disagree, or because records were lost) begins at that end.

mod behind;
mod life;
mod reader;

use std::collections::{BTreeMap, BTreeSet};

use undertick_analyze::Failed;
use undertick_document::{Report, Tasks};
use undertick_format::manifest::Manifest;
use undertick_format::read::Trace;
use undertick_format::tasks::TaskEvent;

/// Most names of tasks that are reported.
const MOST_NAMES: usize = 4096;

/// Adds to a report of this trace what its tasks did, if the program recorded tasks. `progress` receives
/// the share done, 0 to 1.
///
/// # Errors
/// The trace cannot be read.
pub fn add_tasks(
    trace: &Trace,
    report: &mut Report,
    progress: &mut dyn FnMut(f64),
) -> Result<(), Failed> {
    let names = TaskNames::new(&trace.manifest);
    if names.names.is_empty() {
        return Ok(());
    }
    let records = reader::read(trace, &names, progress)?;
    let rows = life::rows(records, &names, &trace.manifest);
    let manifest = &trace.manifest;
    let rings = (manifest.rings.iter()).filter(|ring| !ring.interposed);
    report.tasks = (!rows.is_empty()).then(|| Tasks {
        lost: rings
            .map(|ring| ring.dropped.saturating_add(ring.overwritten))
            .fold(0, u64::saturating_add),
        names_left_out: names.left_out,
        rows,
    });
    Ok(())
}

/// What an event says of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Meaning {
    /// The begin of a span of this event is the begin of a poll of a task of that name.
    Poll(u16),
    /// A record of a task of that name.
    Task(u16, TaskEvent),
}

/// The names of tasks of a trace, and the events that are about them.
#[derive(Clone, Debug, Default)]
struct TaskNames {
    names: Vec<String>,
    /// Whether polls of tasks of each name would have been recorded.
    has_polls: Vec<bool>,
    left_out: u64,
    /// By process; `None` holds for all processes.
    events: BTreeMap<Option<i32>, Vec<(u16, Meaning)>>,
}

impl TaskNames {
    fn new(manifest: &Manifest) -> Self {
        let mut this = Self::default();
        // A name that happens to end like the record of a new task has none of the others.
        let names = manifest
            .names
            .iter()
            .filter_map(|name| TaskEvent::split(&name.name));
        let tasks: BTreeSet<&str> = names
            .filter(|(_, event)| !matches!(event, TaskEvent::New | TaskEvent::Woken))
            .map(|(task, _)| task)
            .collect();
        this.left_out = tasks.len().saturating_sub(MOST_NAMES) as u64;
        let mut places: BTreeMap<&str, u16> = BTreeMap::new();
        for name in &manifest.names {
            let split = TaskEvent::split(&name.name).filter(|(task, _)| tasks.contains(task));
            let Some((task, event)) = split else { continue };
            let place = match places.get(task) {
                Some(&place) => place,
                None if this.names.len() >= MOST_NAMES => continue,
                None => {
                    let place = this.names.len() as u16;
                    this.names.push(task.to_owned());
                    this.has_polls.push(false);
                    places.insert(task, place);
                    place
                }
            };
            this.has_polls[usize::from(place)] |= event == TaskEvent::Polled;
            let events = this.events.entry(name.pid).or_default();
            events.push((name.event, Meaning::Task(place, event)));
        }
        for name in &manifest.names {
            if let Some(&place) = places.get(name.name.as_str()) {
                let events = this.events.entry(name.pid).or_default();
                events.push((name.event, Meaning::Poll(place)));
            }
        }
        this
    }

    /// The events of a process that mean something.
    fn of_process(&self, pid: i32) -> BTreeMap<u16, Meaning> {
        let keys = [None, Some(pid)].into_iter();
        let events = keys.filter_map(|key| self.events.get(&key));
        events.flatten().copied().collect()
    }
}

/// Meanings by event.
#[derive(Debug)]
enum Meanings {
    /// From an event on.
    Table(u16, Vec<Option<Meaning>>),
    /// In the order of events.
    List(Vec<(u16, Meaning)>),
}

impl Meanings {
    fn new(events: &BTreeMap<u16, Meaning>, as_table: bool) -> Self {
        let (first, last) = (events.keys().next(), events.keys().next_back());
        match (first, last) {
            (Some(&first), Some(&last)) if as_table => {
                let all = (first..=last).map(|event| events.get(&event).copied());
                Self::Table(first, all.collect())
            }
            _ => Self::List(events.iter().map(|(&event, &of)| (event, of)).collect()),
        }
    }

    #[inline]
    fn get(&self, event: i32) -> Option<Meaning> {
        match self {
            Self::Table(first, all) => {
                let place = event.checked_sub(i32::from(*first))?;
                *all.get(usize::try_from(place).ok()?)?
            }
            Self::List(all) => {
                let event = u16::try_from(event).ok()?;
                let place = all.binary_search_by_key(&event, |(event, _)| *event).ok()?;
                Some(all[place].1)
            }
        }
    }
}

#[cfg(test)]
mod tests;
