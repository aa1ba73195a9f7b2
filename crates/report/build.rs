//! Bundles the script of the page (`web/`) into `OUT_DIR/page.js`, with npm and esbuild.
//! Without them the page is made without drawings, and the build says so. A published package has
//! the bundle in it (`cargo xtask packages`).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the bundle is made of, beside the sources.
const FILES: [&str; 4] = ["package.json", "package-lock.json", ".npmrc", "build.mjs"];

fn main() {
    let variable = |name| PathBuf::from(std::env::var_os(name).expect("cargo sets it"));
    let package = variable("CARGO_MANIFEST_DIR");
    let (web, bundled) = (package.join("../../web"), package.join("assets/page.js"));
    let out = variable("OUT_DIR");
    println!("cargo::rerun-if-changed=build.rs");
    if !web.exists() {
        std::fs::copy(&bundled, out.join("page.js"))
            .expect("a package has the page's script: it is made by `cargo xtask packages`");
        return;
    }
    for file in FILES {
        println!("cargo::rerun-if-changed={}", web.join(file).display());
    }
    println!("cargo::rerun-if-changed={}", web.join("src").display());
    println!("cargo::rerun-if-env-changed=UNDERTICK_NO_NODE");
    let script = out.join("page.js");
    // Never an old one.
    std::fs::write(&script, "").expect("OUT_DIR can be written");
    if let Err(why) = bundle(&web, &out.join("web"), &script) {
        println!("cargo::warning=the report page is built without its drawings: {why}");
        std::fs::write(&script, "").expect("OUT_DIR can be written");
    }
}

/// In a copy, so that builds side by side do not meet, and the sources stay as they are.
fn bundle(web: &Path, copy: &Path, script: &Path) -> Result<(), String> {
    if std::env::var_os("UNDERTICK_NO_NODE").is_some() {
        return Err("UNDERTICK_NO_NODE is set".to_owned());
    }
    let told = |e: std::io::Error| format!("cannot copy {}: {e}", web.display());
    let _ = std::fs::remove_dir_all(copy.join("src"));
    std::fs::create_dir_all(copy.join("src")).map_err(told)?;
    for file in FILES {
        std::fs::copy(web.join(file), copy.join(file)).map_err(told)?;
    }
    for entry in std::fs::read_dir(web.join("src")).map_err(told)? {
        let entry = entry.map_err(told)?;
        std::fs::copy(entry.path(), copy.join("src").join(entry.file_name())).map_err(told)?;
    }
    // Few and short tries: a machine without a network should not wait for minutes.
    let install = ["ci", "--omit=dev", "--prefer-offline", "--fetch-retries=1"];
    let mut npm = Command::new("npm");
    npm.args(install)
        .args(["--fetch-timeout=20000", "--loglevel=error"]);
    run(npm.current_dir(copy))?;
    let mut node = Command::new("node");
    run(node.arg("build.mjs").arg(script).current_dir(copy))
}

/// Runs it quietly; of a failure the first line that says why.
fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("cannot run {name} (Node.js 18 or later and npm are needed): {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let why = said.lines().find(|line| !line.trim().is_empty());
    Err(format!(
        "{name} failed: {}",
        why.unwrap_or("it said nothing")
    ))
}
