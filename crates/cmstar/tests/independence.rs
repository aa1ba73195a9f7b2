//! The simulator judges the estimators, so it must contain none of their code.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Crates of this workspace that the simulator may use.
const ALLOWED: [&str; 3] = ["undertick-cmstar", "undertick-clock", "undertick-units"];

#[test]
fn no_crate_of_estimators_is_in_the_tree() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--offline"])
        // Packages for other platforms need not have been fetched.
        .args(["--filter-platform", &platform])
        .args(["--manifest-path", manifest])
        .output()
        .unwrap();
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        println!("skipped: cargo metadata: {}", reason.trim());
        return;
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let names: BTreeMap<String, String> = (list(&metadata["packages"]).iter())
        .map(|p| (text(&p["id"]), text(&p["name"])))
        .collect();
    // The dependencies at run time and at build time, not those of the tests.
    let edges: BTreeMap<String, Vec<String>> = (list(&metadata["resolve"]["nodes"]).iter())
        .map(|node| {
            let needed = list(&node["deps"]).into_iter().filter(|dep| {
                list(&dep["dep_kinds"])
                    .iter()
                    .any(|k| k["kind"].as_str() != Some("dev"))
            });
            (
                text(&node["id"]),
                needed.map(|dep| text(&dep["pkg"])).collect(),
            )
        })
        .collect();
    let start = names.iter().find(|(_, name)| *name == "undertick-cmstar");
    let mut to_visit = vec![start.unwrap().0.clone()];
    let mut seen = BTreeSet::new();
    while let Some(id) = to_visit.pop() {
        if seen.insert(id.clone()) {
            to_visit.extend(edges[&id].iter().cloned());
        }
    }
    let ours: Vec<&String> = (seen.iter().map(|id| &names[id]))
        .filter(|name| name.starts_with("undertick"))
        .collect();
    assert!(
        ours.iter().all(|name| ALLOWED.contains(&name.as_str())),
        "{ours:?}"
    );
    assert_eq!(ours.len(), ALLOWED.len(), "{ours:?}");
    // The tests do not use the estimators either.
    assert!(seen.len() > ALLOWED.len());
}
