//! What users install: crates, the Debian package, the header for CMake, pkg-config and Conan.

mod crates;
mod debian;
mod header;
pub mod release;

use std::path::{Path, PathBuf};

use crate::exchange::{Outcome, Step};
use crate::licences;
use crate::run::{self, exists, line, output, run};

/// Where packages are made, in the repository.
const DIR: &str = "target/packages";

/// Makes the packages and tries each as its users do.
pub fn all() -> Vec<Step> {
    let step = |what, result| Step { what, result };
    let mut steps = match crates::made() {
        Ok(Outcome::Said(_)) => vec![
            step("MSRV of the linked crates", crates::by_the_msrv()),
            step("crates from their tarballs", crates::build()),
        ],
        other => vec![step("crates as tarballs", other)],
    };
    steps.push(step("dependencies", dependencies()));
    match lacks("cmake").map_or_else(installed, Ok) {
        Ok(Outcome::Said(_)) => {}
        other => {
            steps.push(step("what the packages install", other));
            return steps;
        }
    }
    steps.push(step("Debian package", debian::in_a_bare_system()));
    steps.push(step("CMake package", header::by_cmake()));
    steps.push(step("pkg-config", header::by_pkg_config()));
    steps.push(step("Conan package", header::by_conan()));
    steps
}

/// Holds the dependencies to `deny.toml`.
fn dependencies() -> Result<Outcome, String> {
    let Some(deny) = tool("cargo-deny", "0.20.2", "", &["--version"]) else {
        return Ok(Outcome::Skipped(
            "cargo-deny cannot be installed here".to_owned(),
        ));
    };
    run(line("{} --offline check bans licenses sources", &[&deny]))?;
    Ok(Outcome::Said(
        "licences, sources and versions are as deny.toml has them".to_owned(),
    ))
}

fn dir() -> PathBuf {
    run::root().join(DIR)
}

/// The program that packages hold.
fn undertick() -> String {
    text(&run::root().join("target/release/undertick"))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// An empty directory below [`DIR`].
fn fresh(name: &str) -> Result<PathBuf, String> {
    let path = dir().join(name);
    let told = |e: std::io::Error| format!("{}: {e}", path.display());
    if path.exists() {
        std::fs::remove_dir_all(&path).map_err(told)?;
    }
    std::fs::create_dir_all(&path).map_err(told)?;
    Ok(path)
}

fn write(path: &Path, contents: &str) -> Result<(), String> {
    std::fs::write(path, contents).map_err(|e| format!("{}: {e}", path.display()))
}

/// The version of all crates and packages.
fn version() -> Result<String, String> {
    let id = output(line("cargo pkgid --offline -p undertick-cli", &[]))?;
    let version = id.trim().rsplit(['#', '@']).next().unwrap_or_default();
    Ok(version.to_owned())
}

/// Puts all that a package installs beside the program into `target/packages/installed`: the header
/// with the files by which it is found, manual pages, completions, licences.
fn installed() -> Result<Outcome, String> {
    let prefix = fresh("installed")?;
    let build = text(&fresh("cmake")?);
    run(line("cmake -S . -B {} --log-level=WARNING", &[&build]))?;
    run(line(
        "cmake --install {} --prefix {}",
        &[&build, &text(&prefix)],
    ))?;
    let share = prefix.join("share");
    let undertick = undertick();
    let man = text(&share.join("man/man1"));
    run(line("{} man --quiet --dir {}", &[&undertick, &man]))?;
    let completions = |shell| output(line("{} completions {}", &[&undertick, shell]));
    for (file, contents) in [
        ("doc/undertick/LICENCES-OF-OTHERS", licences::notices()?),
        (
            "bash-completion/completions/undertick",
            completions("bash")?,
        ),
        ("zsh/vendor-completions/_undertick", completions("zsh")?),
        (
            "fish/vendor_completions.d/undertick.fish",
            completions("fish")?,
        ),
    ] {
        let file = share.join(file);
        let parent = file.parent().unwrap_or(&share);
        std::fs::create_dir_all(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
        write(&file, &contents)?;
    }
    Ok(Outcome::Said(text(&prefix)))
}

/// A tool of crates.io: the one that is installed here, else one in `target/tools`, where this version is
/// installed; `None` if it cannot be. `words` only look whether it runs.
fn tool(name: &str, version: &str, options: &str, words: &[&str]) -> Option<String> {
    let is_there = |program: &str| exists(&[&[program][..], words].concat());
    if is_there(name) {
        return Some(name.to_owned());
    }
    let root = run::root().join("target/tools");
    let program = text(&root.join("bin").join(name));
    if !is_there(&program) {
        // They run for seconds, and optimization takes minutes.
        let words = format!(
            "cargo install --quiet --debug --locked --root {{}} --version {{}} {{}} {options}"
        );
        let _ = run(line(&words, &[&text(&root), version, name]));
    }
    is_there(&program).then_some(program)
}

/// The skip of a step where a program cannot be run.
fn lacks(program: &str) -> Option<Outcome> {
    let why = || Outcome::Skipped(format!("no {program} here"));
    (!exists(&[program, "--version"])).then(why)
}
