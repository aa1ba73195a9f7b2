//! Dependency cycles between the modules of a crate.
//!
//! A module is a file of `src` with the files in the directory of its name. What its comments and
//! its tests name does not count, nor do names that `lib.rs` exports again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::run::{command, output, root};

/// Modules of all crates that may lie in cycles of more than two: those of `undertick`.
const MOST_MODULES: usize = 10;

/// The modules that each module of a crate uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Checks the crates of the workspace.
pub fn check() -> Result<(), String> {
    let crates = root().join("crates");
    let listed = output(command(&["git", "ls-files", "crates"]))?;
    let mut by_crate: BTreeMap<&str, Vec<(&str, PathBuf)>> = BTreeMap::new();
    for line in listed.lines() {
        let file = line.strip_prefix("crates/").unwrap_or(line);
        if let Some((name, file)) = file.split_once("/src/")
            && file.ends_with(".rs")
            && !is_of_tests(file)
        {
            let path = crates.join(name).join("src").join(file);
            by_crate.entry(name).or_default().push((file, path));
        }
    }
    let mut found = Vec::new();
    for (name, files) in &by_crate {
        let texts = (files.iter()).map(|(file, path)| read(path).map(|text| (*file, text)));
        let texts = texts.collect::<Result<Vec<_>, String>>()?;
        let cycles = cycles(&uses(&texts));
        found.extend(cycles.into_iter().map(|cycle| (*name, cycle)));
    }
    let modules: usize = found.iter().map(|(_, cycle)| cycle.len()).sum();
    if modules <= MOST_MODULES {
        println!("dependency cycles: {modules} modules, {MOST_MODULES} are allowed");
        return Ok(());
    }
    let lines = found
        .iter()
        .map(|(name, cycle)| format!("{name}: {}", cycle.join(", ")));
    Err(format!(
        "{modules} modules in dependency cycles of more than two, {MOST_MODULES} are allowed:\n  {}",
        lines.collect::<Vec<_>>().join("\n  ")
    ))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn is_of_tests(file: &str) -> bool {
    file.ends_with("tests.rs") || file.split('/').any(|part| part == "tests")
}

/// The top-level module of a file under `src`.
fn module(file: &str) -> &str {
    let first = file.split('/').next().unwrap_or(file);
    first.trim_end_matches(".rs")
}

fn uses(files: &[(&str, String)]) -> Uses {
    let mut uses: Uses = (files.iter())
        .map(|(file, _)| (module(file).to_owned(), BTreeSet::new()))
        .collect();
    let all: BTreeSet<String> = uses.keys().cloned().collect();
    for (file, text) in files {
        let own = module(file);
        let mut named = names_after(text, "crate::");
        // The crate's root, seen from this file.
        let depth = file.trim_end_matches("/mod.rs").split('/').count();
        if own != "lib" && own != "main" {
            named.extend(names_after(text, &"super::".repeat(depth)));
        }
        let others = named
            .into_iter()
            .filter(|name| name != own && all.contains(name));
        if let Some(of_own) = uses.get_mut(own) {
            of_own.extend(others);
        }
    }
    uses
}

/// The first names of the paths that begin with `start`: one, or those of a list in braces.
fn names_after(text: &str, start: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in text.split_inclusive(';') {
        let code: String = (line.lines())
            .map(|line| line.split("//").next().unwrap_or(""))
            .collect::<Vec<_>>()
            .join(" ");
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let rest = &code[at + start.len()..];
            match rest.strip_prefix('{') {
                Some(list) => names.extend(firsts(list)),
                None => names.extend(identifier(rest)),
            }
        }
    }
    names
}

/// The first names in a list, up to the brace that closes it.
fn firsts(list: &str) -> Vec<String> {
    let (mut depth, mut begins) = (0, true);
    let mut names = Vec::new();
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            c if begins && !c.is_whitespace() => {
                names.extend(identifier(&list[at..]));
                begins = false;
            }
            _ => {}
        }
    }
    names
}

fn identifier(text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = &text[..end.unwrap_or(text.len())];
    (!name.is_empty()).then(|| name.to_owned())
}

/// The cycles of more than two modules, each in the order of names.
fn cycles(uses: &Uses) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = (uses.keys())
        .map(|from| {
            let mut seen = BTreeSet::new();
            let mut left: Vec<&String> = uses[from].iter().collect();
            while let Some(next) = left.pop() {
                if seen.insert(next) {
                    left.extend(&uses[next]);
                }
            }
            (from, seen)
        })
        .collect();
    let ring_of = |module: &String| -> Vec<String> {
        let others = reached[module].iter().copied();
        let back = others.filter(|other| reached[*other].contains(module));
        back.cloned().collect()
    };
    let rings: BTreeSet<Vec<String>> = uses.keys().map(ring_of).collect();
    rings.into_iter().filter(|ring| ring.len() > 2).collect()
}

#[cfg(test)]
mod tests;
