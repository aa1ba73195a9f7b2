//! Licences of all dependencies: each must offer one that is allowed.

use serde_json::Value;

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

#[cfg(test)]
mod tests;
