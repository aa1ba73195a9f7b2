//! Names of events, per process or for all.

use std::collections::HashMap;

use undertick_format::manifest::Name;

/// Names that came with the program, overridden by those from a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    overrides: HashMap<u16, String>,
    /// Set 0 holds for every process; each other one holds for a process with names of its own.
    sets: Vec<HashMap<u16, String>>,
    of_pid: HashMap<i32, usize>,
}

impl Names {
    pub(crate) fn new(names: &[Name], overrides: &[(u16, String)]) -> Self {
        let mut this = Self {
            overrides: overrides.iter().cloned().collect(),
            sets: vec![HashMap::new()],
            of_pid: HashMap::new(),
        };
        for name in names {
            let set = match name.pid {
                None => 0,
                Some(pid) => *this.of_pid.entry(pid).or_insert_with(|| {
                    this.sets.push(HashMap::new());
                    this.sets.len() - 1
                }),
            };
            this.sets[set].insert(name.event, name.name.clone());
        }
        this
    }

    /// Index of the set of names that a process uses.
    pub(crate) fn set_of(&self, pid: i32) -> usize {
        self.of_pid.get(&pid).copied().unwrap_or(0)
    }

    pub(crate) fn sets(&self) -> usize {
        self.sets.len()
    }

    /// The name given to an event, if one was.
    pub(crate) fn given(&self, set: usize, event: u16) -> Option<&str> {
        (self.overrides.get(&event))
            .or_else(|| self.sets[set].get(&event))
            .or_else(|| self.sets[0].get(&event))
            .map(String::as_str)
    }

    /// The name to show.
    pub(crate) fn shown(&self, set: usize, event: u16) -> String {
        self.given(set, event)
            .map_or_else(|| format!("event {event}"), str::to_owned)
    }

    /// Every name that any process uses.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        (self.overrides.values())
            .chain(self.sets.iter().flat_map(HashMap::values))
            .map(String::as_str)
    }
}

#[cfg(test)]
mod tests;
