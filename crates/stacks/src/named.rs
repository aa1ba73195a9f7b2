//! Gives frames their functions.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use undertick_functions::names::{demangled, shown};

use crate::elf::{self, Symbol};
use crate::tree::{Module, Tree};

/// Largest list of functions of a just-in-time compiler that is read, bytes.
const MOST_LIST_BYTES: u64 = 256 << 20;

/// A function, by its name in readable form and the file that it is from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Function {
    /// Its name; where no symbol covers it, the place in its file.
    pub name: String,
    /// Path of its file, or empty.
    pub file: String,
}

/// A tree of functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Functions, each once.
    pub functions: Vec<Function>,
    /// Of each node, the roots included, its caller and its function; of a root itself and none.
    pub nodes: Vec<(u32, Option<u32>)>,
}

impl Tree {
    /// Names the functions of all frames. Files are read again: one with another build id than it had
    /// when it was sampled gives no names.
    #[must_use]
    pub fn name(&self) -> Named {
        let mut named = Named {
            nodes: (0..3).map(|root| (root, None)).collect(),
            ..Named::default()
        };
        let mut numbers: HashMap<Function, u32> = HashMap::new();
        let mut functions: Vec<u32> = vec![0; self.frames.len()];
        // File by file: the symbols of all of them may not fit in memory.
        let mut by_module: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (at, frame) in self.frames.iter().enumerate() {
            by_module.entry(frame.module).or_default().push(at);
        }
        for (module, frames) in by_module {
            let addresses: Vec<u64> = frames.iter().map(|&at| self.frames[at].address).collect();
            let names = Names::read(&self.modules[module as usize], &addresses);
            for (place, at) in frames.into_iter().enumerate() {
                let function = names.function(place, addresses[place]);
                functions[at] = *numbers.entry(function).or_insert_with_key(|function| {
                    named.functions.push(function.clone());
                    named.functions.len() as u32 - 1
                });
            }
        }
        let nodes = self.nodes.iter();
        (named.nodes).extend(nodes.map(|node| (node.caller, Some(functions[node.frame as usize]))));
        named
    }
}

/// The names of the functions at some addresses of a module.
struct Names {
    path: String,
    symbols: Vec<Option<String>>,
}

impl Names {
    fn read(module: &Module, addresses: &[u64]) -> Self {
        let (path, symbols) = match module {
            Module::File { build_id, path } => {
                let found = elf::symbols(Path::new(path), build_id.as_deref(), addresses);
                (path.clone(), found)
            }
            Module::Code { pid } => {
                let list = format!("/tmp/perf-{pid}.map");
                let all = list_of_code(Path::new(&list)).unwrap_or_default();
                (String::new(), elf::names_at(&all, addresses))
            }
        };
        Self { path, symbols }
    }

    fn function(&self, place: usize, address: u64) -> Function {
        let name = match &self.symbols[place] {
            Some(symbol) => readable(symbol),
            None => {
                let file = self.path.rsplit('/').next().filter(|name| !name.is_empty());
                format!("{}+{address:#x}", file.unwrap_or("code"))
            }
        };
        Function {
            name,
            file: self.path.clone(),
        }
    }
}

/// The name of a symbol in readable form.
fn readable(symbol: &str) -> String {
    match rustc_demangle::try_demangle(symbol) {
        // Without the hash at its end.
        Ok(name) => shown(&format!("{name:#}")),
        Err(_) => shown(&demangled(symbol)),
    }
}

/// Reads the list of functions that a just-in-time compiler wrote for perf: address and size in
/// hexadecimal, name. It must be a regular file of this user or of root, as others may write where it
/// lies.
fn list_of_code(path: &Path) -> Option<Vec<Symbol>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = (File::options().read(true))
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .ok()?;
    let about = file.metadata().ok()?;
    let is_ours = [rustix::process::geteuid().as_raw(), 0].contains(&about.uid());
    if !about.is_file() || !is_ours {
        return None;
    }
    let mut text = Vec::new();
    file.take(MOST_LIST_BYTES).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let mut symbols: Vec<Symbol> = text.lines().filter_map(line_of_code).collect();
    // Code that was made later has replaced what lay at its address before.
    symbols.reverse();
    symbols.sort_by_key(|symbol| symbol.addresses.start);
    symbols.dedup_by_key(|symbol| symbol.addresses.start);
    Some(symbols)
}

fn line_of_code(line: &str) -> Option<Symbol> {
    let mut words = line.splitn(3, ' ');
    let mut hex = || {
        let word = words.next()?;
        u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
    };
    let (start, bytes) = (hex()?, hex()?);
    let symbol = words.next()?.trim();
    (!symbol.is_empty()).then_some(())?;
    Some(Symbol {
        addresses: start..start.checked_add(bytes)?,
        symbol: symbol.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::Root;

    #[test]
    fn symbols_are_readable() {
        assert_eq!(readable("main"), "main");
        assert_eq!(readable("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(
            readable("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt"
        );
        assert_eq!(readable("_RNvC6_123foo3bar"), "123foo::bar");
    }

    #[test]
    fn code_made_by_the_program_has_the_names_of_its_list() {
        let dir = tempfile::tempdir().expect("a directory");
        let list = dir.path().join("perf-1.map");
        std::fs::write(
            &list,
            "1000 10 py::first:/a b.py\n0x2000 20 second\nbad\n1000 8 py::later\n",
        )
        .expect("written");
        let found = list_of_code(&list).expect("a list");
        let name = |address| elf::at(&found, address).map(|of| of.symbol.as_str());
        assert_eq!(name(0x1007), Some("py::later"));
        assert_eq!(name(0x1008), None);
        assert_eq!(name(0x201f), Some("second"));
        let link = dir.path().join("perf-2.map");
        symlink(&list, &link).expect("a link");
        assert!(list_of_code(&link).is_none(), "a link may lead anywhere");
        assert!(list_of_code(dir.path()).is_none());
    }

    #[test]
    fn frames_without_a_symbol_say_where_they_are() {
        let mut tree = Tree::default();
        let module = Module::file(None, "/nowhere/libx.so".to_owned());
        let node = tree.stack(Root::Whole, &[(&module, 0x20), (&module, 0x10)]);
        let named = tree.name();
        let name = |node: u32| {
            let (_, function) = named.nodes[node as usize];
            function.map(|at| named.functions[at as usize].name.as_str())
        };
        assert_eq!(name(node), Some("libx.so+0x20"));
        assert_eq!(name(named.nodes[node as usize].0), Some("libx.so+0x10"));
        assert_eq!(name(0), None);
    }
}
