//! The packages that are published as crates, built from their own tarballs.

use std::path::{Path, PathBuf};

use super::{dir, fresh, lacks, text, write};
use crate::exchange::Outcome;
use crate::run::{command, exists, line, output, root, run};

/// What programs link.
const LINKED: [&str; 3] = ["undertick-ring", "undertick", "undertick-tracing"];
/// The page's script, in the package of `undertick-report` alone.
const SCRIPT: &str = "crates/report/assets/page.js";

/// The page's script while packages are made; it is in no commit.
struct Script(PathBuf);

impl Script {
    fn bundled() -> Result<Self, String> {
        let script = Self(root().join(SCRIPT));
        for words in [
            &["npm", "ci", "--prefer-offline", "--loglevel=error"][..],
            &["node", "build.mjs", &text(&script.0)],
        ] {
            let mut command = command(words);
            command.current_dir(root().join("web"));
            run(command)?;
        }
        Ok(script)
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Makes the tarballs of all crates, in `target/packages/package`, and unpacks them beside it.
pub fn made() -> Result<(), String> {
    if lacks("npm").is_some() {
        return Err("the page's script cannot be bundled without npm".to_owned());
    }
    let tarballs = fresh("package")?;
    let script = Script::bundled()?;
    run(line(
        "cargo package --quiet --workspace --exclude xtask --exclude undertick-python --no-verify --allow-dirty \
         --target-dir {}",
        &[&text(&dir())],
    ))?;
    drop(script);
    let unpacked = text(&fresh("crates")?);
    for tarball in entries(&tarballs)? {
        if tarball.extension().is_some_and(|of| of == "crate") {
            run(line("tar -xzf {} -C {}", &[&text(&tarball), &unpacked]))?;
        }
    }
    Ok(())
}

/// Builds the program from the tarballs alone, without npm.
pub fn build() -> Result<Outcome, String> {
    let unpacked = dir().join("crates");
    let names: Vec<String> = (entries(&unpacked)?.iter())
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .filter(|name| name.starts_with("undertick"))
        .collect();
    let own = std::fs::read_to_string(root().join("Cargo.toml")).map_err(|e| e.to_string())?;
    let (_, profiles) = (own.split_once("[profile.release]")).ok_or("Cargo.toml has no profile")?;
    let manifest = format!("{}\n[profile.release]{profiles}", workspace(&names, "3"));
    write(&unpacked.join("Cargo.toml"), &manifest)?;
    std::fs::copy(root().join("Cargo.lock"), unpacked.join("Cargo.lock"))
        .map_err(|e| e.to_string())?;
    let mut build = line("cargo build --release --offline -p undertick-cli", &[]);
    build.current_dir(&unpacked);
    // The crates of others are compiled once for these and for the repository's.
    build.env("CARGO_BUILD_BUILD_DIR", root().join("target"));
    build.env("CARGO_TARGET_DIR", dir().join("built"));
    build.env("UNDERTICK_NO_NODE", "1");
    run(build)?;
    let program = text(&dir().join("built/release/undertick"));
    let header = fresh("header")?;
    output(line("{} header --dir {}", &[&program, &text(&header)]))?;
    let ours = std::fs::read(root().join("include/undertick.h")).map_err(|e| e.to_string())?;
    if std::fs::read(header.join("undertick.h")).map_err(|e| e.to_string())? != ours {
        return Err("the packaged program writes another undertick.h".to_owned());
    }
    Ok(Outcome::Said(format!(
        "{} packages; {}",
        names.len(),
        output(line("{} --version", &[&program]))?.trim()
    )))
}

/// Compiles what programs link by the oldest compiler that its manifests name.
pub fn by_the_oldest_compiler() -> Result<Outcome, String> {
    let oldest = fresh("oldest")?;
    let mut names = Vec::new();
    for package in entries(&dir().join("crates"))? {
        let name = package.file_name().unwrap_or_default().to_string_lossy();
        let (of, _) = name.rsplit_once('-').unwrap_or((&name, ""));
        if LINKED.contains(&of) {
            run(line("cp -r {} {}", &[&text(&package), &text(&oldest)]))?;
            names.push(name.into_owned());
        }
    }
    let mut versions: Vec<String> = (names.iter())
        .map(|name| compiler_of(&oldest.join(name).join("Cargo.toml")))
        .collect::<Result<_, _>>()?;
    versions.dedup();
    let [version] = versions.as_slice() else {
        return Err(format!("{LINKED:?} need different compilers: {versions:?}"));
    };
    let toolchain = format!("{version}.0");
    let is_there = ["rustup", "run", &toolchain, "rustc", "--version"];
    let install = "rustup toolchain install --profile minimal {}";
    if !exists(&is_there) && run(line(install, &[&toolchain])).is_err() {
        return Ok(Outcome::Skipped(format!("no Rust {toolchain} here")));
    }
    write(&oldest.join("Cargo.toml"), &workspace(&names, "2"))?;
    let within = |mut command: std::process::Command| {
        command.current_dir(&oldest);
        // Of the others' crates those that this compiler can compile.
        command.env("CARGO_RESOLVER_INCOMPATIBLE_RUST_VERSIONS", "fallback");
        run(command)
    };
    within(line("cargo generate-lockfile --quiet", &[]))?;
    let check = "rustup run {} cargo check --quiet --locked --workspace --target-dir target";
    within(line(check, &[&toolchain]))?;
    Ok(Outcome::Said(format!(
        "{} by Rust {toolchain}",
        LINKED.join(", ")
    )))
}

/// The manifest of a workspace in which packages use each other instead of what is published.
fn workspace(names: &[String], resolver: &str) -> String {
    let mut manifest = format!(
        "[workspace]\nresolver = \"{resolver}\"\nmembers = {names:?}\n\n[patch.crates-io]\n"
    );
    for name in names {
        let (of, _) = name.rsplit_once('-').unwrap_or((name, ""));
        manifest += &format!("{of} = {{ path = \"{name}\" }}\n");
    }
    manifest
}

/// The compiler that a manifest names.
fn compiler_of(manifest: &Path) -> Result<String, String> {
    let text =
        std::fs::read_to_string(manifest).map_err(|e| format!("{}: {e}", manifest.display()))?;
    (text
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = ")))
    .map(|version| version.trim_matches('"').to_owned())
    .ok_or_else(|| format!("{}: no rust-version", manifest.display()))
}

pub fn entries(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let all = std::fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut paths: Vec<PathBuf> = all.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}
