//! The packages that are published as crates, built from their own tarballs.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{dir, fresh, text, version, write};
use crate::exchange::Outcome;
use crate::run::{exists, line, output, root, run};

/// What programs link.
const LINKED: [&str; 3] = ["undertick-ring", "undertick", "undertick-tracing"];
/// The page's script, in the package of `undertick-report` alone.
const SCRIPT: &str = "crates/report/assets/page.js";

/// The page's script in the package of `undertick-report`, as long as this lives: git ignores it.
pub struct Script(PathBuf);

impl Script {
    /// Takes the one that the last build bundled.
    pub fn of_the_build() -> Result<Option<Self>, String> {
        let words = "cargo build --release --locked --message-format json -p undertick-report";
        let said = output(line(words, &[]))?;
        let is_ours = |message: &Value| {
            let package = message["package_id"].as_str().unwrap_or_default();
            message["reason"] == "build-script-executed" && package.contains("undertick-report")
        };
        let bundled = (said.lines())
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find(is_ours)
            .and_then(|message| Some(format!("{}/page.js", message["out_dir"].as_str()?)))
            .ok_or("cargo names no output of the build script of undertick-report")?;
        let script = Self(root().join(SCRIPT));
        let bytes = std::fs::copy(&bundled, &script.0).map_err(|e| format!("{bundled}: {e}"))?;
        // Without npm it is empty.
        Ok((bytes > 0).then_some(script))
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Makes the tarballs of all crates, in `target/packages/package`, and unpacks them in
/// `target/packages/crates`.
pub fn made() -> Result<Outcome, String> {
    let tarballs = fresh("package")?;
    let Some(_script) = Script::of_the_build()? else {
        let why =
            "the program was built without the page's script: it needs npm and Node.js 18 or later";
        return Ok(Outcome::Skipped(why.to_owned()));
    };
    let package = "cargo package --quiet --workspace --exclude xtask --exclude undertick-python --no-verify \
                   --allow-dirty --target-dir {}";
    or_online(package, &[&text(&dir())], &root())?;
    let unpacked = text(&fresh("crates")?);
    for tarball in entries(&tarballs)? {
        if tarball.extension().is_some_and(|of| of == "crate") {
            // With today's date: Cargo's tarballs have one of 2006, by which nothing has changed.
            run(line("tar -xmzf {} -C {}", &[&text(&tarball), &unpacked]))?;
        }
    }
    Ok(Outcome::Said(unpacked))
}

/// Publishes the crates, for which cargo must be logged in.
pub fn publish() -> Result<(), String> {
    let Some(_script) = Script::of_the_build()? else {
        return Err(
            "no page's script: install npm and Node.js 18 or later, and build again".to_owned(),
        );
    };
    let publish = "cargo publish --locked --workspace --exclude xtask --exclude undertick-python";
    run(line(publish, &[]))
}

/// Runs a command of cargo without a network, and with it if that fails.
fn or_online(words: &str, values: &[&str], dir: &Path) -> Result<(), String> {
    let within = |words: &str| {
        let mut command = line(words, values);
        command.current_dir(dir);
        run(command)
    };
    within(&format!("{words} --offline")).or_else(|_| within(words))
}

/// Builds the program from the tarballs alone, without npm.
pub fn build() -> Result<Outcome, String> {
    let unpacked = dir().join("crates");
    let packages = entries(&unpacked)?;
    let names: Vec<&str> = (packages.iter())
        .filter(|path| path.join("Cargo.toml").is_file())
        .filter_map(|path| path.file_name()?.to_str())
        .collect();
    let own = std::fs::read_to_string(root().join("Cargo.toml")).map_err(|e| e.to_string())?;
    let (_, profiles) = own
        .split_once("[profile.release]")
        .ok_or("Cargo.toml: no [profile.release]")?;
    let manifest = format!("{}\n[profile.release]{profiles}", workspace(&names)?);
    write(&unpacked.join("Cargo.toml"), &manifest)?;
    std::fs::copy(root().join("Cargo.lock"), unpacked.join("Cargo.lock"))
        .map_err(|e| e.to_string())?;
    let mut build = line("cargo build --release --offline -p undertick-cli", &[]);
    build.current_dir(&unpacked);
    // The crates of others are compiled once for these and for the repository's.
    build.env("CARGO_BUILD_BUILD_DIR", root().join("target"));
    build.env("CARGO_TARGET_DIR", dir().join("built"));
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

/// Compiles what programs link by the oldest compiler that their manifests allow.
pub fn by_the_msrv() -> Result<Outcome, String> {
    let place = fresh("msrv")?;
    let names = LINKED.map(|name| Ok::<_, String>(format!("{name}-{}", version()?)));
    let names: Vec<String> = names.into_iter().collect::<Result<_, _>>()?;
    let mut versions = Vec::new();
    for name in &names {
        run(line(
            "cp -r {} {}",
            &[&text(&dir().join("crates").join(name)), &text(&place)],
        ))?;
        versions.push(compiler_of(&place.join(name).join("Cargo.toml"))?);
    }
    versions.dedup();
    let [version] = versions.as_slice() else {
        return Err(format!("{LINKED:?} have different MSRVs: {versions:?}"));
    };
    let toolchain = format!("{version}.0");
    let is_there = ["rustup", "run", &toolchain, "rustc", "--version"];
    let install = "rustup toolchain install --profile minimal {}";
    if !exists(&is_there) && run(line(install, &[&toolchain])).is_err() {
        let why = format!("no Rust {toolchain}: rustup toolchain install {toolchain}");
        return Ok(Outcome::Skipped(why));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    write(&place.join("Cargo.toml"), &workspace(&names)?)?;
    or_online("cargo generate-lockfile --quiet", &[], &place)?;
    let check = "rustup run {} cargo check --quiet --locked --workspace --target-dir target";
    for features in ["", " --all-features"] {
        let mut check = line(&format!("{check}{features}"), &[&toolchain]);
        check.current_dir(&place);
        run(check)?;
    }
    Ok(Outcome::Said(format!(
        "{} by Rust {toolchain}",
        LINKED.join(", ")
    )))
}

/// The manifest of a workspace in which packages use each other instead of what is published.
fn workspace(names: &[&str]) -> Result<String, String> {
    let ending = format!("-{}", version()?);
    let mut manifest =
        format!("[workspace]\nresolver = \"2\"\nmembers = {names:?}\n\n[patch.crates-io]\n");
    for name in names {
        let of = name
            .strip_suffix(&ending)
            .ok_or_else(|| format!("{name}: not of version {ending}"))?;
        manifest += &format!("{of} = {{ path = \"{name}\" }}\n");
    }
    Ok(manifest)
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
