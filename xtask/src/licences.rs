//! Licences of all dependencies: each must offer one that is allowed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::run::{line, output};

const ALLOWED: [&str; 10] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "CC0-1.0",
    "0BSD",
];

/// Checks all packages of the lock file, from the output of `cargo metadata`.
pub fn check(metadata: &Value) -> Result<(), String> {
    let packages = metadata["packages"]
        .as_array()
        .ok_or("cargo metadata has no packages")?;
    let bad: Vec<String> = packages
        .iter()
        .filter_map(|package| {
            let licence = package["license"].as_str().unwrap_or("none stated");
            (!allowed(licence))
                .then(|| format!("{} {}: {licence}", package["name"], package["version"]))
        })
        .collect();
    if bad.is_empty() {
        println!(
            "licences: {} packages, all under licences we allow",
            packages.len()
        );
        return Ok(());
    }
    Err(format!("licences not allowed:\n  {}", bad.join("\n  ")))
}

/// Whether a licence expression is allowed. `A OR B` needs one of them, `A AND B` both; `/` is the
/// old OR.
pub(crate) fn allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let plain = expression.replace(['(', ')'], " ");
    // With parentheses only one form occurs: `(A OR B) AND C`.
    if expression.contains('(') {
        return plain.split(" AND ").all(allowed);
    }
    plain.split(" OR ").any(|part| {
        part.split(" AND ")
            .all(|licence| ALLOWED.contains(&licence.trim()))
    })
}

/// The licences of everything of others in the program, each text once, with the names of the packages that
/// are under it.
pub fn notices() -> Result<String, String> {
    let tree =
        "cargo tree --locked --edges normal --prefix none --no-dedupe -p undertick-cli --format {}";
    let tree = output(line(tree, &["{p}"]))?;
    let used: BTreeSet<&str> = tree
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .collect();
    let metadata = output(line("cargo metadata --locked --format-version 1", &[]))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|e| e.to_string())?;
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let word = |of: &str| package[of].as_str().unwrap_or_default().to_owned();
        let name = format!("{} v{}", word("name"), word("version"));
        if package["source"].is_null()
            || !used.iter().any(|of| of.split(" (").next() == Some(&name))
        {
            continue;
        }
        let manifest = word("manifest_path");
        let found = texts_in(Path::new(&manifest).parent().unwrap_or(Path::new(".")), 2)?;
        if found.is_empty() {
            without.push(format!("{name}: {}", word("license")));
        }
        for text in found {
            texts
                .entry(text)
                .or_default()
                .push(format!("{name} ({})", word("license")));
        }
    }
    let mut notices = "Undertick contains the work of others, under these licences.\n".to_owned();
    for (text, names) in &texts {
        let line = "-".repeat(80);
        notices += &format!("\n{line}\n{}\n\n{}\n", names.join(", "), text.trim_end());
    }
    notices += &format!(
        "\nPackages without a text of their own:\n{}\n",
        without.join("\n")
    );
    Ok(notices)
}

/// The texts of licences in a directory and so many levels below it.
fn texts_in(dir: &Path, levels: usize) -> Result<BTreeSet<String>, String> {
    let mut texts = BTreeSet::new();
    let told = |e: std::io::Error| format!("{}: {e}", dir.display());
    for entry in std::fs::read_dir(dir).map_err(told)? {
        let path = entry.map_err(told)?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_uppercase();
        let is_licence = ["LICENSE", "LICENCE", "COPYING", "NOTICE"]
            .iter()
            .any(|of| name.starts_with(of));
        if path.is_dir() && levels > 0 {
            texts.extend(texts_in(&path, levels - 1)?);
        } else if path.is_file() && is_licence {
            let text = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            texts.insert(String::from_utf8_lossy(&text).replace("\r\n", "\n"));
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests;
