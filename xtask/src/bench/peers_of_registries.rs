//! Peers from Debian and crates.io: installation, build, and version.

use crate::run::{Scratch, command, line, output, root, run};

const RUST: &str = "benches/peers/rust/Cargo.toml";
const TARGET: &str = "target/peers";

/// Installs packages of Debian where they are missing and installing is allowed.
pub fn installed(packages: &[&str]) -> Result<(), String> {
    let missing = packages.iter().filter(|p| version_of_package(p).is_err());
    let missing: Vec<&str> = missing.copied().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut install = vec!["apt-get", "install", "-y", "-qq", "--no-install-recommends"];
    install.extend(missing);
    let mut install = command(&install);
    install.env("DEBIAN_FRONTEND", "noninteractive");
    run(install)
}

pub fn version_of_package(package: &str) -> Result<String, String> {
    output(command(&["dpkg-query", "-W", "-f", "${Version}", package]))
}

pub fn version_of_crate(name: &str) -> Result<String, String> {
    let path = root().join("benches/peers/rust/Cargo.lock");
    let lock = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let after = lock
        .split(&format!("name = \"{name}\"\nversion = \""))
        .nth(1);
    let version = after.and_then(|after| after.split('"').next());
    version
        .map(str::to_owned)
        .ok_or_else(|| format!("no {name} in {}", path.display()))
}

/// Compiles a program of `benches/peers`.
pub fn compile(scratch: &Scratch, source: &str, options: &[&str]) -> Result<String, String> {
    let out = scratch.path(source.split('.').next().unwrap_or(source));
    let file = format!("benches/peers/{source}");
    let compiler = if source.ends_with(".cpp") {
        "c++"
    } else {
        "cc"
    };
    let mut words = vec![
        compiler,
        "-O2",
        "-Iinclude",
        "-Ibenches/peers",
        &file,
        "-o",
        &out,
    ];
    words.extend(options);
    words.push("-pthread");
    output(command(&words))?;
    Ok(out)
}

fn cargo_build() -> std::process::Command {
    line(
        "cargo build --release --locked --manifest-path {} --target-dir {}",
        &[RUST, TARGET],
    )
}

/// Builds a program of `benches/peers/rust`; the feature with its name enables the peer.
pub fn bin(name: &str) -> Result<String, String> {
    let mut build = cargo_build();
    build.args(["--bin", name, "--features", name]);
    run(build)?;
    Ok(path(&format!("{TARGET}/release/{name}")))
}

/// Builds a benchmark of `benches/peers/rust`; returns the program that cargo made of it.
pub fn bench(name: &str) -> Result<String, String> {
    let mut build = cargo_build();
    build.args(["--bench", name]);
    build.args(["--message-format", "json"]);
    let said = output(build)?;
    let made = said
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let made = made.filter(|line| line["target"]["name"] == name);
    let program = made
        .filter_map(|line| line["executable"].as_str().map(str::to_owned))
        .next_back();
    program.ok_or_else(|| format!("cargo made no program of {name}"))
}

fn path(file: &str) -> String {
    root().join(file).to_string_lossy().into_owned()
}
