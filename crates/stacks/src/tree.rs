//! All stacks of a recording as one tree, and the text in which it is written while it grows.
//!
//! ```text
//! file 5f2c...  /usr/lib/libc.so.6      module 1: its build id or -, its path
//! code 4711                             module 2: code of process 4711 without a file
//! at 1 2a8f0                            frame 0: module and address (as in the file; of code: in memory)
//! under 0 0                             node 3: frame 0 called by node 0
//! ```
//!
//! Nodes 0 to 2 are the roots ([`Root`]). A line refers to earlier lines only, so the text is valid up to
//! wherever it was torn.

use std::collections::HashMap;
use std::fmt::Write as _;

/// Most nodes of a tree; further stacks are counted by their root alone.
pub const MOST_NODES: usize = 1 << 20;
/// Most frames, and most modules.
const MOST_FRAMES: usize = 1 << 20;
const MOST_MODULES: usize = 1 << 12;
/// Longest path of a file that is written, and the one that stands for longer ones.
const MOST_PATH_BYTES: usize = 4096;
const NO_PATH: &str = "?";

/// Where a stack begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Root {
    /// It is whole: it begins with the thread.
    Whole = 0,
    /// Outer frames are missing.
    Cut = 1,
    /// No frame is known.
    Unknown = 2,
}

/// Number of roots, which are the first nodes.
const ROOTS: u32 = 3;

/// What has code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Module {
    /// A file with its build id, in hexadecimal, if it has one.
    File {
        build_id: Option<String>,
        path: String,
    },
    /// Memory of a process.
    Code { pid: i32 },
}

impl Module {
    /// A file; paths that cannot be written have none.
    pub(crate) fn file(build_id: Option<String>, path: String) -> Self {
        let is_plain = path.len() <= MOST_PATH_BYTES && !path.contains('\n');
        Self::File {
            build_id,
            path: if is_plain { path } else { NO_PATH.to_owned() },
        }
    }
}

/// A place in code: the module's number, and the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Frame {
    pub(crate) module: u32,
    pub(crate) address: u64,
}

/// A frame and the node that called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) caller: u32,
    pub(crate) frame: u32,
}

/// A tree of stacks.
#[derive(Debug, Default)]
pub struct Tree {
    pub(crate) modules: Vec<Module>,
    pub(crate) frames: Vec<Frame>,
    /// Without the roots.
    pub(crate) nodes: Vec<Node>,
    module_numbers: HashMap<Module, u32>,
    frame_numbers: HashMap<Frame, u32>,
    node_numbers: HashMap<Node, u32>,
    /// Lines that have not been taken.
    lines: String,
    /// Stacks for which there was no room.
    pub(crate) no_room: u64,
}

impl Tree {
    /// Reads the text of a tree, up to the first line that is not whole; what was read is new lines of it.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut tree = Self::default();
        for line in text.split_inclusive('\n') {
            let Some(line) = line.strip_suffix('\n') else {
                break;
            };
            if tree.take(line).is_none() {
                break;
            }
        }
        tree
    }

    /// Number of nodes, the roots included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len() + ROOTS as usize
    }

    /// Whether there is no stack.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(' ')?;
        let two = || rest.split_once(' ');
        match word {
            "file" => {
                let (build_id, path) = two()?;
                self.module(&Module::File {
                    build_id: (build_id != "-").then(|| build_id.to_owned()),
                    path: path.to_owned(),
                })?;
            }
            "code" => {
                self.module(&Module::Code {
                    pid: rest.parse().ok()?,
                })?;
            }
            "at" => {
                let (module, address) = two()?;
                let frame = Frame {
                    module: module.parse().ok()?,
                    address: u64::from_str_radix(address, 16).ok()?,
                };
                ((frame.module as usize) < self.modules.len()).then(|| self.frame(frame))??;
            }
            "under" => {
                let (caller, frame) = two()?;
                let node = Node {
                    caller: caller.parse().ok()?,
                    frame: frame.parse().ok()?,
                };
                let is_known = (node.caller as usize) < self.len()
                    && (node.frame as usize) < self.frames.len();
                is_known.then(|| self.node(node))??;
            }
            _ => return None,
        }
        Some(())
    }

    /// The number of a module; `None` if there is no room for it.
    pub(crate) fn module(&mut self, module: &Module) -> Option<u32> {
        if let Some(&number) = self.module_numbers.get(module) {
            return Some(number);
        }
        if self.modules.len() >= MOST_MODULES {
            return None;
        }
        // Writing to a string does not fail.
        let _ = match module {
            Module::File { build_id, path } => {
                let build_id = build_id.as_deref().unwrap_or("-");
                writeln!(self.lines, "file {build_id} {path}")
            }
            Module::Code { pid } => writeln!(self.lines, "code {pid}"),
        };
        let number = self.modules.len() as u32;
        self.modules.push(module.clone());
        self.module_numbers.insert(module.clone(), number);
        Some(number)
    }

    fn frame(&mut self, frame: Frame) -> Option<u32> {
        if let Some(&number) = self.frame_numbers.get(&frame) {
            return Some(number);
        }
        if self.frames.len() >= MOST_FRAMES {
            return None;
        }
        let number = self.frames.len() as u32;
        let _ = writeln!(self.lines, "at {} {:x}", frame.module, frame.address);
        self.frames.push(frame);
        self.frame_numbers.insert(frame, number);
        Some(number)
    }

    fn node(&mut self, node: Node) -> Option<u32> {
        if let Some(&number) = self.node_numbers.get(&node) {
            return Some(number);
        }
        if self.len() >= MOST_NODES {
            return None;
        }
        let number = self.len() as u32;
        let _ = writeln!(self.lines, "under {} {}", node.caller, node.frame);
        self.nodes.push(node);
        self.node_numbers.insert(node, number);
        Some(number)
    }

    /// The number of a stack: its modules and the addresses in them, from the innermost on. Where there is no
    /// room, that of its outer frames that are known.
    pub(crate) fn stack(&mut self, root: Root, frames: &[(&Module, u64)]) -> u32 {
        let mut at = root as u32;
        for &(module, address) in frames.iter().rev() {
            match self.called(at, module, address) {
                Some(node) => at = node,
                None => {
                    self.no_room += 1;
                    break;
                }
            }
        }
        at
    }

    /// The node of a frame that another node called.
    fn called(&mut self, caller: u32, module: &Module, address: u64) -> Option<u32> {
        // Without room for its node a new frame is of no use.
        if self.len() >= MOST_NODES {
            let module = *self.module_numbers.get(module)?;
            let frame = *self.frame_numbers.get(&Frame { module, address })?;
            return self.node_numbers.get(&Node { caller, frame }).copied();
        }
        let module = self.module(module)?;
        let frame = self.frame(Frame { module, address })?;
        self.node(Node { caller, frame })
    }

    /// Takes the lines that describe what is new since the last call.
    pub(crate) fn new_lines(&mut self) -> String {
        std::mem::take(&mut self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Module {
        Module::file(Some("ab12".to_owned()), "/bin/a b".to_owned())
    }

    fn some() -> (Tree, [u32; 3]) {
        let mut tree = Tree::default();
        let module = program();
        let frames = [(&module, 3), (&module, 2), (&module, 1)];
        let numbers = [
            tree.stack(Root::Whole, &frames[1..]),
            tree.stack(Root::Whole, &frames),
            tree.stack(Root::Cut, &frames[1..]),
        ];
        (tree, numbers)
    }

    #[test]
    fn stacks_share_their_outer_frames_and_equal_ones_have_one_number() {
        let (mut tree, [outer, inner, cut]) = some();
        assert_eq!([outer, inner], [4, 5]);
        assert_eq!(tree.nodes[2].caller, outer);
        assert_ne!(cut, outer);
        let module = program();
        let again = [(&module, 2), (&module, 1)];
        assert_eq!(tree.stack(Root::Whole, &again), outer);
        assert_eq!(tree.stack(Root::Unknown, &[]), 2);
    }

    #[test]
    fn the_text_gives_the_same_tree_and_is_valid_wherever_it_is_torn() {
        let (mut tree, _) = some();
        let text = tree.new_lines();
        assert_eq!(tree.new_lines(), "");
        let mut read = Tree::read(&text);
        assert_eq!(read.nodes, tree.nodes);
        assert_eq!(read.modules, tree.modules);
        assert_eq!(read.new_lines(), text);
        for end in 0..text.len() {
            let torn = Tree::read(&text[..end]);
            assert!(tree.nodes.starts_with(&torn.nodes), "{end}");
            assert!(tree.frames.starts_with(&torn.frames), "{end}");
        }
    }

    #[test]
    fn lines_that_refer_to_nothing_end_the_text() {
        for line in [
            "under 7 0",
            "under 0 5",
            "at 3 10",
            "code x",
            "more 1 2",
            "at 0",
        ] {
            let text = format!("code 1\nat 0 10\n{line}\nunder 0 0\n");
            assert!(Tree::read(&text).nodes.is_empty(), "{line}");
        }
    }

    #[test]
    fn a_full_tree_still_knows_its_stacks_and_counts_the_others() {
        let (mut tree, [_, inner, _]) = some();
        let module = program();
        for address in 10.. {
            if tree.len() >= MOST_NODES {
                break;
            }
            tree.stack(Root::Whole, &[(&module, address)]);
        }
        let (frames, text) = (tree.frames.len(), tree.new_lines());
        let known = [(&module, 3), (&module, 2), (&module, 1)];
        assert_eq!(tree.stack(Root::Whole, &known), inner);
        let outer = tree.stack(Root::Whole, &[(&module, 2), (&module, 1)]);
        let new = [(&module, 1 << 40), (&module, 2), (&module, 1)];
        assert_eq!(tree.stack(Root::Whole, &new), outer, "its outer frames");
        assert_eq!((tree.no_room, tree.frames.len()), (1, frames));
        assert_eq!(tree.new_lines(), "");
        assert_eq!(Tree::read(&text).len(), MOST_NODES);
    }

    #[test]
    fn paths_that_cannot_be_written_have_none() {
        let path = |path: String| Module::file(None, path);
        let none = path("?".to_owned());
        assert_eq!(path("/a\nb".to_owned()), none);
        assert_eq!(path("x".repeat(5000)), none);
        assert_ne!(path("/a b".to_owned()), none);
    }
}
