//! Licences: those that the page's packages may have, and the texts that go with the program. Those of crates are
//! in `deny.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::lint;
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

/// The licences of everything in the program that others wrote: each text once, with the names of the packages
/// that are under it.
pub fn notices() -> Result<String, String> {
    let tree = "cargo tree --locked --edges normal --prefix none -p undertick-cli --format {}";
    let tree = output(line(tree, &["{p}"]))?;
    let names = tree
        .lines()
        .map(|line| line.split(" (").next().unwrap_or(line));
    let used: BTreeSet<&str> = names.collect();
    let metadata = lint::metadata()?;
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let word = |of: &str| package[of].as_str().unwrap_or_default();
        let name = format!("{} v{}", word("name"), word("version"));
        if package["source"].is_null() || !used.contains(name.as_str()) {
            continue;
        }
        let name = format!("{name} ({})", word("license"));
        let dir = Path::new(word("manifest_path")).parent();
        let found = texts_in(dir.unwrap_or(Path::new(".")), 2)?;
        if found.is_empty() {
            without.push(name.clone());
        }
        for text in found {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let mut notices = "Undertick contains the work of others, under these licences.\n".to_owned();
    let sysroot = output(line("rustc --print sysroot", &[]))?;
    for (name, file) in [
        (
            "musl, in the static program",
            "/usr/share/doc/musl/copyright".to_owned(),
        ),
        (
            "Rust's standard library",
            format!("{}/share/doc/rust/COPYRIGHT-library.html", sysroot.trim()),
        ),
    ] {
        if let Ok(text) = std::fs::read_to_string(file) {
            texts.entry(text).or_default().push(name.to_owned());
        }
    }
    for (text, names) in &texts {
        let line = "-".repeat(80);
        notices += &format!("\n{line}\n{}\n\n{}\n", names.join(", "), text.trim_end());
    }
    notices += &format!(
        "\nPackages without a text of a licence:\n{}\n",
        without.join("\n")
    );
    Ok(notices)
}

/// The texts of licences in a directory and `levels` levels below it.
fn texts_in(dir: &Path, levels: usize) -> Result<BTreeSet<String>, String> {
    let mut texts = BTreeSet::new();
    let told = |e: std::io::Error| format!("{}: {e}", dir.display());
    for entry in std::fs::read_dir(dir).map_err(told)? {
        let path = entry.map_err(told)?.path();
        let word =
            |of: Option<&std::ffi::OsStr>| of.unwrap_or_default().to_string_lossy().to_uppercase();
        let (name, ending) = (word(path.file_name()), word(path.extension()));
        let is_licence = (["LICENSE", "LICENCE", "COPYING", "NOTICE"].iter())
            .any(|of| name.starts_with(of))
            && !["RS", "PY", "JSON", "TOML"].contains(&ending.as_str());
        if path.is_dir() && levels > 0 {
            texts.extend(texts_in(&path, levels - 1)?);
        } else if path.is_file() && is_licence {
            let text = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            let text = String::from_utf8_lossy(&text).replace("\r\n", "\n");
            // Where there is a choice (zstd), the other one is taken: `deny.toml` allows no GPL.
            if !text.contains("GNU GENERAL PUBLIC LICENSE") {
                texts.insert(text);
            }
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests;
