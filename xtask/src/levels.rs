//! The levels of ARCHITECTURE.md: a crate depends only on crates of levels below its own.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::run::root;

/// Checks the dependencies of the workspace's crates, those of their tests excepted, from the output
/// of `cargo metadata`.
pub fn check(metadata: &Value) -> Result<(), String> {
    let crates = dependencies(metadata)?;
    let path = root().join("ARCHITECTURE.md");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let wrong = against(&levels(&text), &crates);
    if wrong.is_empty() {
        println!(
            "levels: {} crates depend only on levels below",
            crates.len()
        );
        return Ok(());
    }
    Err(format!("ARCHITECTURE.md:\n  {}", wrong.join("\n  ")))
}

/// The workspace's crates without the prefix of their names, and those of them that each needs to
/// run or to be built. `xtask` is beside the levels.
fn dependencies(metadata: &Value) -> Result<BTreeMap<String, Vec<String>>, String> {
    let short = |name: &str| name.trim_start_matches("undertick-").to_owned();
    let packages = metadata["packages"]
        .as_array()
        .ok_or("cargo metadata has no packages")?;
    let crates = packages
        .iter()
        .filter(|package| package["source"].is_null() && package["name"] != "xtask")
        .map(|package| {
            let needed = (package["dependencies"].as_array().into_iter().flatten())
                .filter(|needed| needed["kind"] != "dev" && !needed["path"].is_null())
                .filter_map(|needed| needed["name"].as_str().map(short))
                .collect();
            (short(package["name"].as_str().unwrap_or_default()), needed)
        });
    Ok(crates.collect())
}

/// The level under which each crate is described: a paragraph that begins with its name in bold.
fn levels(architecture: &str) -> Vec<(String, u32)> {
    let mut level = None;
    let mut found = Vec::new();
    for line in architecture.lines() {
        if line.starts_with('#') {
            let number = line.strip_prefix("### Level ");
            level = number.and_then(|number| number.trim().parse().ok());
        }
        let name = line
            .strip_prefix("**`")
            .and_then(|rest| rest.split_once("`**"));
        if let (Some(level), Some((name, _))) = (level, name) {
            found.push((name.to_owned(), level));
        }
    }
    found
}

/// What is wrong, one line each.
fn against(levels: &[(String, u32)], crates: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let level = |of: &str| {
        let mut all = levels.iter().filter(|(name, _)| name == of);
        (all.next().map(|(_, level)| *level), all.next().is_none())
    };
    let mut wrong = Vec::new();
    for (name, _) in levels {
        if !crates.contains_key(name) {
            wrong.push(format!("{name} is no crate of the workspace"));
        }
    }
    for (name, needed) in crates {
        let (Some(own), true) = level(name) else {
            wrong.push(format!("{name} must be described under one level"));
            continue;
        };
        for needed in needed {
            match level(needed).0 {
                Some(other) if other < own => {}
                Some(other) => wrong.push(format!(
                    "{name} (level {own}) depends on {needed} (level {other}): move one of them, \
                     or take the dependency out"
                )),
                None => wrong.push(format!(
                    "{name} (level {own}) depends on {needed}, which has no level"
                )),
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests;
