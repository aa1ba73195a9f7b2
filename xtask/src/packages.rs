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
    let made = crates::made();
    let mut steps = match &made {
        Ok(()) => vec![
            step("the oldest compiler", crates::by_the_oldest_compiler()),
            step("crates from their packages", crates::build()),
        ],
        Err(error) => vec![step("crates as packages", Err(error.clone()))],
    };
    let installed = installed();
    if let Err(error) = &installed {
        steps.push(step("what the packages install", Err(error.clone())));
        return steps;
    }
    steps.push(step("Debian package", debian::in_a_bare_system()));
    steps.push(step("CMake and pkg-config", header::found()));
    steps.push(step("Conan package", header::by_conan()));
    steps
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
/// with the files by which it is found, manual pages and completions.
fn installed() -> Result<(), String> {
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
    let doc = share.join("doc/undertick");
    std::fs::create_dir_all(&doc).map_err(|e| format!("{}: {e}", doc.display()))?;
    write(&doc.join("LICENCES-OF-OTHERS"), &licences::notices()?)?;
    for (shell, file) in [
        ("bash", "bash-completion/completions/undertick"),
        ("zsh", "zsh/vendor-completions/_undertick"),
        ("fish", "fish/vendor_completions.d/undertick.fish"),
    ] {
        let file = share.join(file);
        let parent = file.parent().unwrap_or(&share);
        std::fs::create_dir_all(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
        write(
            &file,
            &output(line("{} completions {}", &[&undertick, shell]))?,
        )?;
    }
    Ok(())
}

/// A tool of crates.io: the one that is installed here, else one in `target/tools`, where it is installed;
/// `None` if it cannot be.
fn tool(name: &str, version: &str, options: &str) -> Option<String> {
    let is_there = |program: &str| exists(&[program, "--version"]);
    if is_there(name) {
        return Some(name.to_owned());
    }
    let root = run::root().join("target/tools");
    let program = text(&root.join("bin").join(name));
    if !is_there(&program) {
        let words =
            format!("cargo install --quiet --locked --root {{}} --version {{}} {{}} {options}");
        let _ = run(line(&words, &[&text(&root), version, name]));
    }
    is_there(&program).then_some(program)
}

/// Skips a step where a program cannot be run.
fn lacks(program: &str) -> Option<Outcome> {
    let why = || Outcome::Skipped(format!("no {program} here"));
    (!exists(&[program, "--version"])).then(why)
}
