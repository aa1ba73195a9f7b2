//! Times of threads, joined to the innermost spans that were open then.
//!
//! **Method.** Of each thread, times wait until the first span that contains them ends: spans inside
//! others end before these, so that is the innermost one. Spans that are still open when the trace ends
//! contain all that comes after their begin.
//!
//! **Caveats.** Where a thread records through two recorders, each time belongs to the span that began
//! last.

use std::collections::HashMap;
use std::sync::Arc;

use undertick_document::Report;

use crate::tree::{Path, WithRole};

/// Times, and the numbers that they have, by thread, in order.
pub type ByThread = HashMap<i32, Vec<(i64, u32)>>;

/// Joins samples to the spans of the rings that a worker matches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Join {
    samples: Arc<ByThread>,
    joined: Vec<Joined>,
}

/// A sample, the innermost span that contains it, and when that began.
#[derive(Clone, Copy, Debug)]
struct Joined {
    sample: u32,
    path: Path,
    start: i64,
}

/// The samples of a ring's thread that no span has taken so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    seen: usize,
    samples: Vec<(i64, u32)>,
}

impl Join {
    pub(crate) fn new(samples: Arc<ByThread>) -> Self {
        Self {
            samples,
            joined: Vec::new(),
        }
    }

    /// A span of the thread ends.
    pub fn end(&mut self, waiting: &mut Waiting, tid: i32, path: Path, (start, end): (i64, i64)) {
        // Samples in a span without a node belong to the one around it.
        let Some(samples) = self.samples.get(&tid).filter(|_| path.has_node()) else {
            return;
        };
        let path = path.without_recursion();
        while let Some(&sample) = samples.get(waiting.seen).filter(|sample| sample.0 <= end) {
            waiting.samples.push(sample);
            waiting.seen += 1;
        }
        while let Some((_, sample)) = waiting.samples.pop_if(|sample| sample.0 >= start) {
            self.joined.push(Joined {
                sample,
                path,
                start,
            });
        }
    }

    /// What was joined; `names` gives the names of a path.
    pub(crate) fn finish(self, names: impl Fn(Path) -> WithRole) -> FoundSpans {
        let mut places: HashMap<Path, u32> = HashMap::new();
        let mut found = FoundSpans::default();
        for joined in self.joined {
            let path = *places.entry(joined.path).or_insert_with(|| {
                found.paths.push(names(joined.path));
                found.paths.len() as u32 - 1
            });
            found.spans.push((joined.sample, path, joined.start));
        }
        found
    }
}

/// The innermost span of each sample that was in one.
#[derive(Debug, Default)]
pub struct FoundSpans {
    pub(crate) paths: Vec<WithRole>,
    /// A sample, its path's place, and when the span began.
    pub(crate) spans: Vec<(u32, u32, i64)>,
}

impl FoundSpans {
    /// Adds those of another worker.
    pub(crate) fn append(&mut self, other: Self) {
        let before = self.paths.len() as u32;
        self.paths.extend(other.paths);
        let spans = other.spans.into_iter();
        (self.spans).extend(spans.map(|(sample, path, start)| (sample, path + before, start)));
    }
}

/// The span around each of `n` samples.
pub fn spans(found: &FoundSpans, paths: &Paths, n: usize) -> Vec<Around> {
    let places: Vec<Around> = found.paths.iter().map(|names| paths.place(names)).collect();
    let mut latest: Vec<Option<(i64, u32)>> = vec![None; n];
    for &(sample, path, start) in &found.spans {
        let known = &mut latest[sample as usize];
        if known.is_none_or(|(other, _)| other < start) {
            *known = Some((start, path));
        }
    }
    let around = |known: Option<(i64, u32)>| {
        known.map_or(Around::Nothing, |(_, path)| places[path as usize].clone())
    };
    latest.into_iter().map(around).collect()
}

/// What was around a sample.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Around {
    /// A span of this path of the report.
    Path(u32),
    /// A span of a path that is not in the report, because no call of it ended.
    StillOpen(Vec<String>),
    Nothing,
}

impl Around {
    /// The path, if it is in the report, and the names of the spans that were still open, if it is not.
    pub fn into_parts(self) -> (Option<u32>, Vec<String>) {
        match self {
            Self::Path(path) => (Some(path), Vec::new()),
            Self::StillOpen(names) => (None, names),
            Self::Nothing => (None, Vec::new()),
        }
    }
}

/// The paths of a report by their names.
pub struct Paths {
    places: HashMap<Vec<String>, u32>,
    have_roles: bool,
}

impl Paths {
    pub fn new(report: &Report) -> Self {
        let names = |at: usize| report.path_names(at).map(str::to_owned).collect();
        Self {
            places: (0..report.paths.len())
                .map(|at| (names(at), at as u32))
                .collect(),
            have_roles: report.has_roles(),
        }
    }

    fn place(&self, (role, names): &WithRole) -> Around {
        let role = role.iter().filter(|_| self.have_roles);
        let names: Vec<String> = role.chain(names).cloned().collect();
        let known = self.places.get(&names);
        known.map_or(Around::StillOpen(names), |&path| Around::Path(path))
    }
}

#[cfg(test)]
mod tests;
