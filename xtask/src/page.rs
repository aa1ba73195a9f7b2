//! The page's script: its types, the licences of its dependencies, and its tests in a browser.

use serde_json::Value;

use crate::licences::allowed;
use crate::run::{command, exists, output, root, run};

/// What the tests need and is missing; `None` if all of it is there.
pub fn missing() -> Option<&'static str> {
    if !exists(&["npm", "--version"]) || !exists(&["node", "--version"]) {
        return Some("no Node.js: the page's script is not checked");
    }
    None
}

/// Installs the packages that `web/` is tested with, and checks its types.
pub fn types() -> Result<(), String> {
    let web = root().join("web");
    let mut install = command(&["npm", "ci", "--prefer-offline", "--loglevel=error"]);
    install.current_dir(&web);
    run(install)?;
    let mut types = command(&["npm", "run", "--silent", "types"]);
    types.current_dir(&web);
    run(types)
}

/// The command of the tests in a browser. Pages of synthetic reports are in `target/tmp`; `real` is
/// the page of a recorded trace, with its document beside it.
pub fn tests(real: &str) -> std::process::Command {
    let pages = root().join("target/tmp");
    let pages = pages.to_string_lossy();
    let mut tests = command(&["npm", "test", "--silent", "--", &pages, real]);
    tests.current_dir(root().join("web"));
    tests
}

/// Checks the licences of all packages in the lock file.
pub fn licences() -> Result<(), String> {
    let path = root().join("web/package-lock.json");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let bad = not_allowed(&text)?;
    let hosts = text.matches("\"resolved\"").count();
    if hosts > 0 {
        return Err(format!(
            "{}: holds {hosts} addresses of a registry; make it with web/.npmrc",
            path.display()
        ));
    }
    match bad.is_empty() {
        true => Ok(()),
        false => Err(format!("licences not allowed:\n  {}", bad.join("\n  "))),
    }
}

/// Tools that only the tests run, under licences that nothing we hand out may have: no page and no
/// binary holds a line of them.
const TESTS_ONLY: [(&str, &str); 1] = [("node_modules/axe-core", "MPL-2.0")];

/// Packages of a lock file without an allowed licence.
fn not_allowed(lock: &str) -> Result<Vec<String>, String> {
    let lock: Value = serde_json::from_str(lock).map_err(|e| e.to_string())?;
    let packages = lock["packages"]
        .as_object()
        .ok_or("package-lock.json has no packages")?;
    let ours = |place: &str| place.is_empty();
    Ok(packages
        .iter()
        .filter(|(place, _)| !ours(place))
        .filter_map(|(place, package)| {
            let licence = package["license"].as_str().unwrap_or("none stated");
            let tool = package["dev"] == true && TESTS_ONLY.contains(&(place.as_str(), licence));
            (!allowed(licence) && !tool).then(|| format!("{place}: {licence}"))
        })
        .collect())
}

/// The counts in a line of the tests' output: passed, failed, skipped.
pub fn counted(line: &str) -> (u64, u64, u64) {
    let number = |word: &str| {
        let rest = line.strip_prefix("# ")?.strip_prefix(word)?;
        rest.trim().parse().ok()
    };
    (
        number("pass ").unwrap_or(0),
        number("fail ").unwrap_or(0),
        number("skipped ").unwrap_or(0),
    )
}

/// Writes the document of a report, which the tests compare with the page.
pub fn document(undertick: &str, trace: &str, page: &str) -> Result<(), String> {
    let json = output(command(&[
        undertick, "report", trace, "--html", page, "--json",
    ]))?;
    std::fs::write(format!("{page}.json"), json).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests;
