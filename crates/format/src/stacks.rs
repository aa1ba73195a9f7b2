//! The stacks of sampled threads: a tree of functions.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::TraceError;
use crate::files::STACKS_FILE;
use crate::input::{self, Kind};

/// Node of stacks that are whole.
pub const WHOLE: u32 = 0;
/// Node of stacks of which outer frames are missing.
pub const CUT: u32 = 1;
/// Node of samples without any frame.
pub const UNKNOWN: u32 = 2;
/// Most frames of a stack.
const MOST_FRAMES: usize = 1 << 10;

/// All stacks of a trace, as one tree. A node is a function and the node that called it; the first three
/// nodes are roots ([`WHOLE`], [`CUT`], [`UNKNOWN`]). Rows of kind [`crate::schema::Kind::Stack`] refer to
/// nodes by their place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackTable {
    /// Functions, by name and the path of their file.
    pub functions: Vec<(String, String)>,
    /// Of each node its caller's place, which is lower than its own, and its function's place; -1 of a root.
    pub nodes: Vec<(u32, i32)>,
}

impl StackTable {
    /// Reads the stacks of the trace in that directory; `None` if it has none.
    ///
    /// # Errors
    /// They cannot be read, or are damaged.
    pub fn read(trace: &Path) -> Result<Option<Self>, TraceError> {
        let path = trace.join(STACKS_FILE);
        if input::open_if_there(&path)?.is_none() {
            return Ok(None);
        }
        let text = input::text(&path, Kind::STACKS)?;
        let table: Self =
            serde_json::from_str(&text).map_err(|error| TraceError::damaged(&path, error))?;
        let functions = table.functions.len();
        let is_valid =
            |(at, &(caller, function)): (usize, &(u32, i32))| match usize::try_from(function) {
                Ok(function) => (caller as usize) < at && function < functions,
                Err(_) => at <= UNKNOWN as usize,
            };
        match table.nodes.iter().enumerate().all(is_valid) {
            true => Ok(Some(table)),
            false => Err(TraceError::damaged(
                &path,
                "a node refers to a caller or a function that does not exist",
            )),
        }
    }

    /// The functions of a stack by their places, from the innermost on, and its root. A node that does
    /// not exist has none, and is [`UNKNOWN`].
    #[must_use]
    pub fn stack(&self, node: i64) -> (Vec<u32>, u32) {
        let mut functions = Vec::new();
        let Some(mut at) = u32::try_from(node)
            .ok()
            .filter(|at| (*at as usize) < self.nodes.len())
        else {
            return (functions, UNKNOWN);
        };
        while let (caller, Ok(function)) = {
            let (caller, function) = self.nodes[at as usize];
            (caller, u32::try_from(function))
        } {
            if functions.len() >= MOST_FRAMES {
                return (functions, CUT);
            }
            functions.push(function);
            at = caller;
        }
        (functions, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(nodes: &[(u32, i32)]) -> StackTable {
        let function = |name: &str| (name.to_owned(), "/bin/x".to_owned());
        StackTable {
            functions: vec![function("main"), function("work")],
            nodes: [&[(0, -1), (1, -1), (2, -1)], nodes].concat(),
        }
    }

    #[test]
    fn a_stack_is_the_functions_from_its_node_to_its_root() {
        let table = table(&[(0, 0), (3, 1), (1, 1)]);
        assert_eq!(table.stack(4), (vec![1, 0], WHOLE));
        assert_eq!(table.stack(5), (vec![1], CUT));
        assert_eq!(table.stack(2), (vec![], UNKNOWN));
        for nowhere in [6, -1, i64::MAX] {
            assert_eq!(table.stack(nowhere), (vec![], UNKNOWN));
        }
    }

    #[test]
    fn a_tree_with_circles_or_without_functions_is_damaged() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(StackTable::read(dir.path()).expect("none"), None);
        let write = |table: &StackTable| {
            let text = serde_json::to_vec(table).expect("JSON");
            std::fs::write(dir.path().join(STACKS_FILE), text).expect("written");
            StackTable::read(dir.path())
        };
        let whole = table(&[(0, 0), (3, 1)]);
        assert_eq!(write(&whole).expect("valid"), Some(whole));
        for nodes in [
            [(4, 0), (3, 1)],
            [(3, 0), (3, 1)],
            [(0, 2), (0, 1)],
            [(0, -1), (3, 1)],
        ] {
            assert!(write(&table(&nodes)).is_err(), "{nodes:?}");
        }
    }
}
