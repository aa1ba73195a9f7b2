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

use std::collections::BTreeMap;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        let mut places: BTreeMap<&str, u16> = BTreeMap::new();
        for name in &manifest.names {
            let Some((task, event)) = TaskEvent::split(&name.name) else {
                continue;
            };
            let place = match places.get(task) {
                Some(&place) => place,
                None if this.names.len() >= MOST_NAMES => {
                    this.left_out += u64::from(event == TaskEvent::New);
                    continue;
                }
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

    /// The meaning of each event in a process.
    fn of_process(&self, pid: i32) -> Meanings {
        let mut all = vec![None; 1 << 16];
        for key in [None, Some(pid)] {
            for &(event, meaning) in self.events.get(&key).into_iter().flatten() {
                all[usize::from(event)] = Some(meaning);
            }
        }
        Meanings(all)
    }

    /// Whether a process has other names than all.
    fn has_own(&self, pid: i32) -> bool {
        self.events.contains_key(&Some(pid))
    }
}

/// Meanings by event.
#[derive(Clone, Debug)]
struct Meanings(Vec<Option<Meaning>>);

impl Meanings {
    #[inline]
    fn get(&self, event: i32) -> Option<Meaning> {
        (usize::try_from(event).ok()).and_then(|event| *self.0.get(event)?)
    }
}

#[cfg(test)]
mod tests;
