//! Roles of threads: what the spans of a program are told apart by before their own names.
//!
//! Threads of one name have one role, and so have threads whose names differ in a number at their
//! end alone, as those of a pool do: a number after a separator (`worker 2`) is never a part of the
//! role, one without (`lz4`) is where no other thread has the same name with another number. A
//! program that names no thread has no roles.

use std::collections::{HashMap, HashSet};

use undertick_format::manifest::Thread;

/// Most roles; the threads of further names share one.
const MOST_ROLES: usize = 256;
/// The roles of threads without a name.
const MAIN: &str = "main thread";
const OTHERS: &str = "other threads";

/// What stands between a name and its number.
const SEPARATORS: [char; 7] = [' ', '-', '_', '.', ':', '#', '/'];

/// The roles of the threads of a trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roles {
    names: Vec<String>,
    of_thread: HashMap<(i32, i32), u32>,
}

impl Roles {
    pub(crate) fn from_threads(threads: &[Thread]) -> Self {
        let mut roles = Self::default();
        if threads.is_empty() {
            return roles;
        }
        let distinct: HashSet<&str> = threads.iter().map(|thread| &*thread.name).collect();
        let mut alike: HashMap<&str, usize> = HashMap::new();
        for name in distinct {
            *alike.entry(stem(name).0).or_default() += 1;
        }
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut number = |name| {
            *numbers
                .entry(name)
                .or_insert_with(|| match roles.names.len() {
                    MOST_ROLES.. => 1,
                    here => {
                        roles.names.push(name.to_owned());
                        here as u32
                    }
                })
        };
        number(MAIN);
        number(OTHERS);
        for thread in threads {
            // The same in a run with one worker and in one with many.
            let role = match stem(&thread.name) {
                (stem, true) => stem,
                (stem, false) if alike.get(stem).is_some_and(|names| *names > 1) => stem,
                _ => &thread.name,
            };
            (roles.of_thread).insert((thread.pid, thread.tid), number(role));
        }
        roles
    }

    /// The role of a thread; `None` where there are no roles.
    pub(crate) fn role(&self, pid: i32, tid: i32) -> Option<u32> {
        let unnamed = u32::from(pid != tid);
        (!self.names.is_empty()).then(|| *self.of_thread.get(&(pid, tid)).unwrap_or(&unnamed))
    }

    /// The name of each role.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}

/// A name without the number at its end, and whether something separates the two; all of the name where
/// nothing would be left.
fn stem(name: &str) -> (&str, bool) {
    let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let stem = letters.trim_end_matches(SEPARATORS);
    match letters.len() < name.len() && !stem.is_empty() {
        true => (stem, stem.len() < letters.len()),
        false => (name, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(threads: &[(i32, &str)]) -> Roles {
        let threads: Vec<Thread> = (threads.iter())
            .map(|&(tid, name)| Thread {
                pid: 1,
                tid,
                name: name.to_owned(),
            })
            .collect();
        Roles::from_threads(&threads)
    }

    fn named(roles: &Roles, tid: i32) -> Option<&str> {
        Some(&roles.names()[roles.role(1, tid)? as usize])
    }

    #[test]
    fn threads_whose_names_differ_in_a_number_have_one_role() {
        let roles = roles(&[
            (2, "worker 1"),
            (3, "worker 12"),
            (4, "worker"),
            (5, "phase-2"),
            (6, "io"),
            (7, "io"),
            (8, "7"),
            (9, "8"),
            (10, "lz4"),
            (11, "net1"),
            (12, "net2"),
        ]);
        let found: Vec<_> = (1..=13).map(|tid| named(&roles, tid).unwrap()).collect();
        assert_eq!(
            found,
            [
                "main thread",
                "worker",
                "worker",
                "worker",
                "phase",
                "io",
                "io",
                "7",
                "8",
                "lz4",
                "net",
                "net",
                "other threads"
            ]
        );
    }

    #[test]
    fn no_names_no_roles() {
        let roles = roles(&[]);
        assert_eq!(roles.role(1, 1), None);
        assert!(roles.names().is_empty());
    }

    /// A trace of others may have a name for every thread number.
    #[test]
    fn names_beyond_the_most_share_a_role() {
        let names: Vec<String> = (0..1000_u32)
            .map(|i| {
                ["a", "b"]
                    .map(|c| c.repeat(i as usize % 40 + 1))
                    .join(&format!("{i}x"))
            })
            .collect();
        let threads: Vec<(i32, &str)> = (2..).zip(names.iter().map(String::as_str)).collect();
        let roles = roles(&threads);
        assert_eq!(roles.names().len(), MOST_ROLES);
        assert_eq!(named(&roles, 1001), Some(OTHERS));
        assert_eq!(named(&roles, 2), Some(&*names[0]));
    }
}
